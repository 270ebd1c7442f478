//! Bytes ↔ meaning: how keys and values of Redis become records of the store.
//!
//! Pure functions and plain values: nothing here reads a store, a clock or a source of randomness. `FORMAT.md` beside
//! this module is the reference; the golden bytes in the tests hold the code to it. All stored integers are big-endian,
//! so that the order of records is the order of numbers.
//!
//! - [`KeyCodec`] builds the keys of records, and the ranges that hold exactly the records of one thing;
//! - [`Metadata`] is the value of a key's first record: type, expiry, version, and what its type adds;
//! - [`Garbage`] is what a deleted collection leaves for the collector;
//! - [`DatabaseMap`] says where the records of each database lie;
//! - [`Journal`] tells the sidecar of a sorted set what the last change was;
//! - [`Cursor`] is the position that a number given out by SCAN stands for;
//! - [`KeyVersions`] hands out versions that set a new collection apart from the old one of the same name;
//! - [`slot()`] and [`slot_prefix`] spread keys over range-partitioned stores;
//! - [`encode_score`] orders scores as bytes;
//! - [`rdb`] is the exception: the format of DUMP and RESTORE, which is Redis'.

mod cursor;
mod databases;
mod error;
mod garbage;
mod journal;
mod keys;
mod lease;
mod member;
mod metadata;
pub mod rdb;
mod score;
mod sidecar;
mod slot;
mod version;

pub use cursor::Cursor;
pub use databases::DatabaseMap;
pub use error::DecodeError;
pub use garbage::Garbage;
pub use journal::{Journal, OrderChange};
pub use keys::{KeyCodec, NamespaceTooLong, Owner};
pub use lease::LeaseRecord;
pub use member::{decode_member, encode_member, index_of_member, member_of_index};
pub use metadata::{Body, LIST_START, Metadata, Type, ZsetBounds, ZsetOrder};
pub use score::{decode_member_score, decode_score, encode_member_score, encode_score};
pub use slot::{SLOTS, rank_of_record, slot, slot_prefix, slot_rank, slots_in_order};
pub use version::KeyVersions;
