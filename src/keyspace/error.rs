use std::result;

use respgate_backend_api as backend;

use crate::{encoding, sidecar};

/// The result of a call to the keyspace.
pub type Result<T> = result::Result<T, Error>;

/// Why a unit could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The key holds another type. The client must use another command.
    #[error("wrong type")]
    WrongType,

    /// There is no such database. The client must select another.
    #[error("DB index is out of range")]
    NoSuchDatabase,

    /// The sidecar is away, or refuses. Whatever needs no order of a sorted set goes on; try later.
    #[error("sidecar unavailable: {0}")]
    Sidecar(String),

    /// The map of databases may not change yet: [announce](super::Keyspace::announce_change) the change for this long, and
    /// run the unit again.
    #[error("the change of databases has not been announced")]
    Unannounced {
        /// Milliseconds of the store's time.
        wait_ms: u64,
    },

    /// The store failed; its error says what to do.
    #[error(transparent)]
    Store(#[from] backend::Error),
}

impl From<sidecar::Unavailable> for Error {
    fn from(sidecar::Unavailable(cause): sidecar::Unavailable) -> Self {
        Self::Sidecar(cause)
    }
}

impl From<encoding::DecodeError> for Error {
    fn from(error: encoding::DecodeError) -> Self {
        Self::Store(backend::Error::Corrupt(error.to_string()))
    }
}

impl From<encoding::NamespaceTooLong> for Error {
    fn from(error: encoding::NamespaceTooLong) -> Self {
        Self::Store(backend::Error::CannotOpen(error.to_string()))
    }
}
