use bytes::{Buf, BufMut, Bytes};

use super::DecodeError;

const RECORD: &str = "lease";
const FORMAT: u8 = 0;
const FIXED_BYTES: usize = 1 + 5 * 8;

/// The value of a lease record: who does a piece of background work, until when, and how far it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Grows whenever the lease is taken, so that who held it before can tell that it lost it.
    pub term: u64,
    /// The process that took it last, by the number that it chose at random when it started.
    pub owner: u64,
    /// Until when it is held, in milliseconds since the Unix epoch; a time that has passed: nobody holds it.
    pub deadline_ms: i64,
    /// When the work was last laid down, in milliseconds since the Unix epoch; 0 for never.
    pub rested_at_ms: i64,
    /// When the work last came to an end of the store, in milliseconds since the Unix epoch; 0 for never.
    pub round_ended_at_ms: i64,
    /// Where the work goes on; empty for the beginning.
    pub position: Bytes,
}

impl LeaseRecord {
    /// `u8` format (0), `u64` term, `u64` owner, `i64` deadline, `i64` time of rest, `i64` end of the last round, position.
    pub fn encode(&self) -> Bytes {
        let mut record = Vec::with_capacity(FIXED_BYTES + self.position.len());
        record.put_u8(FORMAT);
        record.put_u64(self.term);
        record.put_u64(self.owner);
        record.put_i64(self.deadline_ms);
        record.put_i64(self.rested_at_ms);
        record.put_i64(self.round_ended_at_ms);
        record.put_slice(&self.position);
        record.into()
    }

    /// Reads what [`Self::encode`] wrote.
    pub fn decode(record: &Bytes) -> Result<Self, DecodeError> {
        if let Some(&format) = record.first().filter(|&&format| format != FORMAT) {
            return Err(DecodeError::UnknownFormat { record: RECORD, format });
        }
        if record.len() < FIXED_BYTES {
            return Err(DecodeError::TooShort { record: RECORD, bytes: record.len() });
        }
        let mut rest = record.slice(1..);
        Ok(Self {
            term: rest.get_u64(),
            owner: rest.get_u64(),
            deadline_ms: rest.get_i64(),
            rested_at_ms: rest.get_i64(),
            round_ended_at_ms: rest.get_i64(),
            position: rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let lease = LeaseRecord {
            term: 2,
            owner: 0xfedc_ba98_7654_3210,
            deadline_ms: 0x18b_cfe5_6800,
            rested_at_ms: 3,
            round_ended_at_ms: 4,
            position: Bytes::from_static(b"\x00foo"),
        };
        let bytes = b"\x00\0\0\0\0\0\0\0\x02\xfe\xdc\xba\x98\x76\x54\x32\x10\0\0\x01\x8b\xcf\xe5\x68\x00\
            \0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\x04\x00foo";
        assert_eq!(lease.encode(), &bytes[..]);
        assert_eq!(LeaseRecord::decode(&lease.encode()), Ok(lease));
        assert_eq!(LeaseRecord::decode(&LeaseRecord::default().encode()), Ok(LeaseRecord::default()));
    }

    #[test]
    fn what_no_release_writes_is_refused() {
        let too_short = |bytes| Err(DecodeError::TooShort { record: "lease", bytes });
        assert_eq!(LeaseRecord::decode(&Bytes::new()), too_short(0));
        assert_eq!(LeaseRecord::decode(&Bytes::from_static(&[0; 40])), too_short(40));
        let unknown_format = DecodeError::UnknownFormat { record: "lease", format: 1 };
        assert_eq!(LeaseRecord::decode(&Bytes::from_static(b"\x01")), Err(unknown_format));
    }
}
