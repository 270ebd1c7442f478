use bytes::{Buf, BufMut, Bytes};

use super::DecodeError;

const RECORD: &str = "journal";
const FORMAT: u8 = 0;

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

/// What becomes of one index in the order of a sorted set: its score, or `None` if it goes.
pub type OrderChange = (Bytes, Option<f64>);

/// What the last change of a sorted set of encode-version 1 does to the order in the sidecar.
///
/// Written in the unit of the change, so that whoever finds the sidecar without it can make up for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    /// The revision before the change.
    pub from: u64,
    /// The revision after it.
    pub to: u64,
    /// The changes, at most one to an index.
    pub changes: Vec<OrderChange>,
}

impl Journal {
    /// `u8` format (0), `u64` from, `u64` to, then for each change `u8` length of the index, the index, and either `0` or
    /// `1` and the score.
    pub fn encode(&self) -> Bytes {
        let mut record = Vec::new();
        record.put_u8(FORMAT);
        record.put_u64(self.from);
        record.put_u64(self.to);
        for (index, score) in &self.changes {
            record.put_u8(index.len() as u8);
            record.put_slice(index);
            match score {
                Some(score) => {
                    record.put_u8(PRESENT);
                    record.put_f64(*score);
                }
                None => record.put_u8(ABSENT),
            }
        }
        record.into()
    }

    /// Reads what [`Self::encode`] wrote. Indexes share the memory of `record`.
    pub fn decode(record: &Bytes) -> Result<Self, DecodeError> {
        if let Some(&format) = record.first().filter(|&&format| format != FORMAT) {
            return Err(DecodeError::UnknownFormat { record: RECORD, format });
        }
        Self::take(record.clone()).ok_or(DecodeError::TooShort { record: RECORD, bytes: record.len() })
    }

    fn take(mut record: Bytes) -> Option<Self> {
        record.try_get_u8().ok()?;
        let (from, to) = (record.try_get_u64().ok()?, record.try_get_u64().ok()?);
        let mut changes = Vec::new();
        while record.has_remaining() {
            let bytes = usize::from(record.try_get_u8().ok()?);
            let index = (bytes <= record.len()).then(|| record.split_to(bytes))?;
            let score = match record.try_get_u8().ok()? {
                ABSENT => None,
                _ => Some(record.try_get_f64().ok()?),
            };
            changes.push((index, score));
        }
        Some(Self { from, to, changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let changes = vec![(Bytes::from_static(b"\0a"), Some(-1.5)), (Bytes::from_static(b"\0"), None)];
        let journal = Journal { from: 1, to: 258, changes };
        let golden = b"\x00\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\x01\x02\x02\0a\x01\xbf\xf8\0\0\0\0\0\0\x01\0\x00";
        assert_eq!(journal.encode(), &golden[..]);
        assert_eq!(Journal::decode(&Bytes::from_static(golden)), Ok(journal));
    }

    #[test]
    fn what_no_release_writes_is_refused() {
        let decode = |record: &'static [u8]| Journal::decode(&Bytes::from_static(record)).unwrap_err();
        assert_eq!(decode(b""), DecodeError::TooShort { record: "journal", bytes: 0 });
        assert_eq!(
            decode(b"\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"),
            DecodeError::TooShort { record: "journal", bytes: 16 }
        );
        let cut = b"\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\x05abc";
        assert_eq!(decode(cut), DecodeError::TooShort { record: "journal", bytes: cut.len() });
        assert_eq!(decode(b"\x01"), DecodeError::UnknownFormat { record: "journal", format: 1 });
    }
}
