use respgate_backend_api::Error;

use super::Type;

/// A stored value that this release cannot read: damaged, or written by a newer release. An operator must act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The value ends before its last field.
    #[error("{record} record of {bytes} bytes is too short")]
    TooShort {
        /// What the value was read as.
        record: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// The value goes on after its last field.
    #[error("{record} record has {bytes} bytes too many")]
    TooLong {
        /// What the value was read as.
        record: &'static str,
        /// How many bytes follow the last field.
        bytes: usize,
    },
    /// A type number that this release does not know.
    #[error("unknown type {0}")]
    UnknownType(u8),
    /// An encode-version that this release does not know for the type.
    #[error("unknown encode-version {encode_version} of type {}", kind.name())]
    UnknownEncodeVersion {
        /// The type found beside it.
        kind: Type,
        /// The encode-version found.
        encode_version: u8,
    },
    /// The first byte of a record names a format that this release does not know.
    #[error("unknown format {format} of a {record} record")]
    UnknownFormat {
        /// What the value was read as.
        record: &'static str,
        /// The format found.
        format: u8,
    },
    /// A field holds what no release writes.
    #[error("{record} record has an impossible {field}")]
    Impossible {
        /// What the value was read as.
        record: &'static str,
        /// The field.
        field: &'static str,
    },
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::Corrupt(error.to_string())
    }
}
