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
