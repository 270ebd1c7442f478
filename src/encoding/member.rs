use bytes::{BufMut, Bytes, BytesMut};
use md5::{Digest, Md5};

use super::{DecodeError, decode_member_score, encode_member_score};

const RECORD: &str = "zset member";

/// Members from this length on are represented by their digest.
const DIGESTED_FROM: usize = 15;

const VERBATIM: u8 = 0;
const DIGESTED: u8 = 1;

const SCORE_BYTES: usize = 8;

/// What stands for a member in a sorted set of encode-version 1: `0` and the member if it is shorter than 15 bytes,
/// `1` and its MD5 otherwise. At most 17 bytes, whatever the member's length.
pub fn index_of_member(member: &[u8]) -> Bytes {
    let index = |kind: u8, content: &[u8]| Bytes::from([&[kind], content].concat());
    if member.len() < DIGESTED_FROM { index(VERBATIM, member) } else { index(DIGESTED, &Md5::digest(member)) }
}

/// The member that an index stands for, if it is short enough to be in the index itself.
pub fn member_of_index(index: &Bytes) -> Option<Bytes> {
    (index.first() == Some(&VERBATIM)).then(|| index.slice(1..))
}

/// The value of a member's record in a sorted set of encode-version 1: its score, then the member itself.
pub fn encode_member(score: f64, member: &[u8]) -> Bytes {
    let mut value = BytesMut::with_capacity(SCORE_BYTES + member.len());
    value.put_slice(&encode_member_score(score));
    value.put_slice(member);
    value.freeze()
}

/// The member and the score that [`encode_member`] made this value of; the member shares its memory.
pub fn decode_member(value: &Bytes) -> Result<(Bytes, f64), DecodeError> {
    let too_short = DecodeError::TooShort { record: RECORD, bytes: value.len() };
    let score = decode_member_score(value.get(..SCORE_BYTES).ok_or(too_short)?)?;
    Ok((value.slice(SCORE_BYTES..), score))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_bytes() {
        assert_eq!(index_of_member(b""), &b"\x00"[..]);
        assert_eq!(index_of_member(b"a\xff"), &b"\x00a\xff"[..]);
        assert_eq!(index_of_member(b"fourteen bytes"), &b"\x00fourteen bytes"[..]);
        assert_eq!(
            index_of_member(b"fifteen bytes!!"),
            &b"\x01\xf3\xb1\x68\xa0\xfb\x91\x9a\x0b\x1d\xf9\x35\xfa\x8d\x1c\x42\x4c"[..]
        );
    }

    #[test]
    fn golden_bytes_of_a_record() {
        let value = encode_member(-1.5, b"m\0");
        assert_eq!(value, &b"\xbf\xf8\0\0\0\0\0\0m\0"[..]);
        assert_eq!(decode_member(&value), Ok((Bytes::from_static(b"m\0"), -1.5)));
        assert_eq!(decode_member(&value.slice(..8)), Ok((Bytes::new(), -1.5)));
        let too_short = DecodeError::TooShort { record: "zset member", bytes: 7 };
        assert_eq!(decode_member(&value.slice(..7)), Err(too_short));
    }

    #[test]
    fn only_short_members_are_in_their_index() {
        for member in [&b""[..], b"a", b"fourteen bytes"] {
            assert_eq!(member_of_index(&index_of_member(member)).as_deref(), Some(member));
        }
        assert_eq!(member_of_index(&index_of_member(b"fifteen bytes!!")), None);
        assert_eq!(member_of_index(&Bytes::new()), None);
    }
}
