use bytes::Bytes;

use super::{DecodeError, Type};

const RECORD: &str = "garbage";
const FORMAT: u8 = 0;

/// The value of a garbage record: of what kind the dead elements are, so that a collector knows where they lie.
///
/// Written in the unit that makes a collection unreachable, deleted after the ranges that
/// [`KeyCodec::garbage_ranges`](super::KeyCodec::garbage_ranges) names for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Garbage {
    /// The type of the dead key.
    pub kind: Type,
    /// Its encode-version.
    pub encode_version: u8,
    /// How many elements there are, for those who want to know how much is left to do; 0 if nobody counted them.
    pub elements: u64,
}

const BYTES: usize = 3 + 8;

impl Garbage {
    /// True if something of it lies in the sidecar.
    pub fn is_in_sidecar(self) -> bool {
        self.kind == Type::Zset && self.encode_version == 1
    }

    /// `u8` format (0), `u8` type, `u8` encode-version, `u64` elements.
    pub fn encode(self) -> Bytes {
        let [kind, encode_version] = [self.kind as u8, self.encode_version];
        [&[FORMAT, kind, encode_version][..], &self.elements.to_be_bytes()].concat().into()
    }

    /// Reads what [`Self::encode`] wrote.
    pub fn decode(record: &[u8]) -> Result<Self, DecodeError> {
        match *record {
            [FORMAT, kind, encode_version, ref elements @ ..] if record.len() == BYTES => {
                let elements = elements.first_chunk().map_or(0, |elements| u64::from_be_bytes(*elements));
                Ok(Self { kind: Type::from_number(kind)?, encode_version, elements })
            }
            [FORMAT, ..] if record.len() > BYTES => {
                Err(DecodeError::TooLong { record: RECORD, bytes: record.len() - BYTES })
            }
            [FORMAT, ..] | [] => Err(DecodeError::TooShort { record: RECORD, bytes: record.len() }),
            [format, ..] => Err(DecodeError::UnknownFormat { record: RECORD, format }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        let garbage = Garbage { kind: Type::Zset, encode_version: 1, elements: 0x102 };
        assert_eq!(garbage.encode(), &b"\x00\x03\x01\0\0\0\0\0\0\x01\x02"[..]);
        assert_eq!(Garbage::decode(&garbage.encode()), Ok(garbage));
    }

    #[test]
    fn what_no_release_writes_is_refused() {
        let too_short = |bytes| Err(DecodeError::TooShort { record: "garbage", bytes });
        assert_eq!(Garbage::decode(b""), too_short(0));
        assert_eq!(Garbage::decode(b"\x00\x03\x01\0\0\0\0\0\0\0"), too_short(10));
        let too_long = Err(DecodeError::TooLong { record: "garbage", bytes: 1 });
        assert_eq!(Garbage::decode(b"\x00\x03\x01\0\0\0\0\0\0\0\0\0"), too_long);
        assert_eq!(Garbage::decode(b"\x00\x09\x00\0\0\0\0\0\0\0\0"), Err(DecodeError::UnknownType(9)));
        let unknown_format = DecodeError::UnknownFormat { record: "garbage", format: 1 };
        assert_eq!(Garbage::decode(b"\x01\x03\x01"), Err(unknown_format));
    }
}
