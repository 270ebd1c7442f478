use bytes::Bytes;
use md5::{Digest, Md5};

/// Members from this length on are represented by their digest.
const DIGESTED_FROM: usize = 15;

const VERBATIM: u8 = 0;
const DIGESTED: u8 = 1;

/// What stands for a member in a sorted set of encode-version 1: `0` and the member if it is shorter than 15 bytes,
/// `1` and its MD5 otherwise. At most 17 bytes, whatever the member's length.
pub fn index_of_member(member: &[u8]) -> Bytes {
    let index = |kind: u8, content: &[u8]| Bytes::from([&[kind], content].concat());
    if member.len() < DIGESTED_FROM { index(VERBATIM, member) } else { index(DIGESTED, &Md5::digest(member)) }
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
}
