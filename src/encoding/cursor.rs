use bytes::{Buf, BufMut, Bytes};

use super::DecodeError;

const RECORD: &str = "cursor";
const FORMAT: u8 = 0;
const FIXED_BYTES: usize = 1 + 8;

/// The value of a cursor record: the position that a number given to a client stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// When the cursor was given out, in milliseconds since the Unix epoch; records that are old enough are swept.
    pub written_at_ms: i64,
    /// Where the scan goes on, in the terms of what is scanned.
    pub position: Bytes,
}

impl Cursor {
    /// `u8` format (0), `i64` time, position.
    pub fn encode(&self) -> Bytes {
        let mut record = Vec::with_capacity(FIXED_BYTES + self.position.len());
        record.put_u8(FORMAT);
        record.put_i64(self.written_at_ms);
        record.put_slice(&self.position);
        record.into()
    }

    /// Reads what [`Self::encode`] wrote. The position shares the memory of `record`.
    pub fn decode(record: &Bytes) -> Result<Self, DecodeError> {
        let mut rest = record.clone();
        match rest.try_get_u8() {
            Ok(FORMAT) if rest.len() >= FIXED_BYTES - 1 => Ok(Self { written_at_ms: rest.get_i64(), position: rest }),
            Ok(format) if format != FORMAT => Err(DecodeError::UnknownFormat { record: RECORD, format }),
            _ => Err(DecodeError::TooShort { record: RECORD, bytes: record.len() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let cursor = Cursor { written_at_ms: 0x0102_0304_0506_0708, position: Bytes::from_static(b"user:1000") };
        assert_eq!(cursor.encode(), &b"\0\x01\x02\x03\x04\x05\x06\x07\x08user:1000"[..]);
        assert_eq!(Cursor::decode(&cursor.encode()), Ok(cursor));
    }

    #[test]
    fn damaged_records_are_refused() {
        for bytes in 0..FIXED_BYTES {
            let error = DecodeError::TooShort { record: RECORD, bytes };
            assert_eq!(Cursor::decode(&Bytes::from(vec![0; bytes])), Err(error));
        }
        let error = DecodeError::UnknownFormat { record: RECORD, format: 9 };
        assert_eq!(Cursor::decode(&Bytes::from_static(&[9; 20])), Err(error));
    }
}
