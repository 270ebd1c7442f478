use std::result;

use crate::keyspace;

/// The result of an operation on a type.
pub type Result<T> = result::Result<T, Error>;

/// Why a type could not do what it was asked. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The value at hand is no integer of 64 bits in the only spelling that Redis takes.
    #[error("not an integer")]
    NotInteger,

    /// The value at hand is no finite floating-point number.
    #[error("not a float")]
    NotFloat,

    /// The sum would leave the range of 64 bits.
    #[error("overflow")]
    Overflow,

    /// The sum would be NaN or infinite.
    #[error("not finite")]
    NotFinite,

    /// The score would be NaN.
    #[error("not a number")]
    NotANumber,

    /// The value would be longer than strings may be.
    #[error("string too long")]
    StringTooLong,

    /// There is no element with this index.
    #[error("index out of range")]
    IndexOutOfRange,

    /// The key does not exist, where it must.
    #[error("no such key")]
    NoSuchKey,

    /// The type has no encoding of this version.
    #[error("no such encode-version")]
    NoSuchEncodeVersion,

    /// A member of a sorted set in the sidecar is stood for by its MD5, and another one has the same.
    #[error("digest taken")]
    DigestTaken,

    /// The key is of another type, or the store failed.
    #[error(transparent)]
    Keyspace(#[from] keyspace::Error),
}
