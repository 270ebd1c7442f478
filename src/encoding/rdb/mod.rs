//! DUMP payloads: one value in Redis' RDB format, then the format's version and a checksum.
//!
//! ```text
//! | type (1) | value (*) | RDB version (2, little-endian) | CRC-64/Redis of all before it (8, little-endian) |
//! ```
//!
//! [`dump()`] writes the oldest encodings, which every Redis still reads, under RDB version 10: Redis 7.0 refuses newer
//! versions, and 7.2, whose own is 11, takes older ones. [`restore()`] reads every encoding of the five types that Redis
//! up to 7.2 has written: a payload tells of the server's memory layout at the time.
//!
//! This is Redis' format, not ours: most of its integers are little-endian, but the lengths are not.

mod dump;
mod lzf;
mod packed;
mod reader;
mod restore;
#[cfg(test)]
mod tests;

use bytes::{Bytes, TryGetError};
use crc::{CRC_64_REDIS, Crc, Table};

pub use dump::dump;
pub use restore::restore;

/// The version that [`dump()`] writes.
const VERSION: u16 = 10;

/// The latest version that [`restore()`] reads: that of Redis 7.2.
const VERSION_MAX: u16 = 11;

const CHECKSUM_BYTES: usize = 8;

static CRC64: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// The numbers of the encodings, as far as the five types go.
mod encoding {
    pub(super) const STRING: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    /// Scores as text.
    pub(super) const ZSET: u8 = 3;
    pub(super) const HASH: u8 = 4;
    /// Scores as doubles.
    pub(super) const ZSET_2: u8 = 5;
    pub(super) const HASH_ZIPMAP: u8 = 9;
    pub(super) const LIST_ZIPLIST: u8 = 10;
    pub(super) const SET_INTSET: u8 = 11;
    pub(super) const ZSET_ZIPLIST: u8 = 12;
    pub(super) const HASH_ZIPLIST: u8 = 13;
    /// Nodes of ziplists.
    pub(super) const LIST_QUICKLIST: u8 = 14;
    pub(super) const HASH_LISTPACK: u8 = 16;
    pub(super) const ZSET_LISTPACK: u8 = 17;
    /// Nodes of listpacks or of one large element.
    pub(super) const LIST_QUICKLIST_2: u8 = 18;
    pub(super) const SET_LISTPACK: u8 = 20;
}

/// What a payload says: the value of a key, whatever way it is laid out.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A string.
    String(Bytes),
    /// The elements from head to tail; at least one.
    List(Vec<Bytes>),
    /// Distinct members; at least one.
    Set(Vec<Bytes>),
    /// Pairs of field and value with distinct fields; at least one.
    Hash(Vec<(Bytes, Bytes)>),
    /// Pairs of member and score with distinct members; at least one, no score is NaN.
    Zset(Vec<(Bytes, f64)>),
}

/// Why a payload was refused. The texts are those of Redis, without `ERR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// Too short, damaged on its way, or written by a newer Redis.
    #[error("DUMP payload version or checksum are wrong")]
    VersionOrChecksum,
    /// Undamaged, but not a value of the five types.
    #[error("Bad data format")]
    BadFormat,
}

impl From<TryGetError> for RestoreError {
    fn from(_: TryGetError) -> Self {
        Self::BadFormat
    }
}
