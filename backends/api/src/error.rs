use std::result;

/// The result of a call to a store.
pub type Result<T> = result::Result<T, Error>;

/// Why a store did not do what it was asked. A kind exists only where the caller would act differently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Somebody else changed what the unit had read. Nothing was written: run the unit again on a new snapshot.
    #[error("write conflict")]
    Conflict,

    /// The store has not been reached since this process started. Nothing was written: it will be ready soon.
    #[error("store not reached yet: {0}")]
    NotReady(String),

    /// The store cannot be reached, is overloaded or is closed. Nothing was written: try later.
    #[error("store unavailable: {0}")]
    Unavailable(String),

    /// The answer to a commit was lost. It may have been applied: never repeat it, never undo it, tell the client.
    #[error("outcome unknown: {0}")]
    OutcomeUnknown(String),

    /// A key, a value or a whole commit is larger than the store takes. Nothing was written: send less.
    #[error("too large for the store: {0}")]
    TooLarge(String),

    /// The disk is full or failing, so the store takes no writes; reads go on. An operator must act.
    #[error("store is read-only: {0}")]
    ReadOnly(String),

    /// Stored bytes are damaged or of a format that this release does not know. An operator must act.
    #[error("stored data unreadable: {0}")]
    Corrupt(String),

    /// The store cannot be opened as configured (missing, locked, no permission). An operator must act.
    #[error("{0}")]
    CannotOpen(String),
}
