use std::{error::Error as StdError, io, iter};

use respgate_backend_api::Error;
use tikv_client::{Error as ClientError, ProtoKeyError, ProtoRegionError};

/// gRPC's RESOURCE_EXHAUSTED and OUT_OF_RANGE: the answer is more than the server sends, or than we receive.
const TOO_LARGE: [i32; 2] = [8, 11];

/// What a failed request to the cluster means for the call that made it.
///
/// The texts name the cause and never a key, unlike those of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Somebody else changed or locked what this commit changes. It has written nothing that stays.
    Conflict,
    /// The request was refused before anything was done. The next one may find the server less busy, or the lock gone.
    Busy(String),
    /// The request was refused before anything was done, by a server that is no longer the right one.
    Moved(String),
    /// More than a server takes.
    TooLarge(String),
    /// More than a server, or we, would put into one answer.
    AnswerTooLarge,
    /// The disks of the cluster are full.
    Full(String),
    /// The cluster will not do it, however often it is asked.
    Denied(String),
    /// The answer was lost, or says nothing of what was done.
    Lost(String),
}

impl Failure {
    pub(crate) fn of(error: &ClientError) -> Self {
        match error {
            ClientError::MultipleKeyErrors(errors) | ClientError::ExtractedErrors(errors) => Self::of_all(errors),
            ClientError::PessimisticLockError { inner, .. } => Self::of(inner),
            ClientError::KeyError(error) => Self::of_key(error),
            ClientError::RegionError(error) => Self::of_region(error),
            // The server took the commit for one of two phases, of which the second was never sent.
            ClientError::OnePcFailure => Self::Conflict,
            ClientError::ResolveLockError(_) => Self::Busy("keys are locked by another client".to_owned()),
            ClientError::LeaderNotFound { .. }
            | ClientError::EntryNotFoundInRegionCache
            | ClientError::NoCurrentRegions
            | ClientError::RegionForKeyNotFound { .. }
            | ClientError::RegionForRangeNotFound { .. }
            | ClientError::RegionNotFoundInResponse { .. } => Self::Moved("a region has no leader".to_owned()),
            ClientError::Grpc(error) => Self::of_transport(error, "cannot connect"),
            ClientError::GrpcAPI(status) if TOO_LARGE.contains(&status.code().into()) => Self::AnswerTooLarge,
            ClientError::GrpcAPI(status) => Self::of_transport(status, status.code().description()),
            ClientError::UndeterminedError(_) => Self::Lost("the commit was not answered".to_owned()),
            ClientError::TxnNotFound(_) => Self::Conflict,
            ClientError::InternalError { .. } | ClientError::Channel(_) => {
                Self::Lost("the placement driver does not answer".to_owned())
            }
            _ => Self::Lost("the client of the cluster failed".to_owned()),
        }
    }

    /// The most serious of several: what may have happened must not be forgotten.
    fn of_all(errors: &[ClientError]) -> Self {
        let rank = |failure: &Self| match failure {
            Self::Lost(_) | Self::AnswerTooLarge => 5,
            Self::Full(_) => 4,
            Self::TooLarge(_) => 3,
            Self::Denied(_) => 2,
            Self::Conflict => 1,
            Self::Busy(_) | Self::Moved(_) => 0,
        };
        let failures = errors.iter().map(Self::of);
        failures.max_by_key(rank).unwrap_or_else(|| Self::Lost("an error without a cause".to_owned()))
    }

    fn of_key(error: &ProtoKeyError) -> Self {
        // `txn_not_found` is said of who holds a lock and has not locked its first key yet, or never will. It may be waiting
        // for one of ours, so one of the two has to give way. Or its locks are just being removed, which looks the same.
        let is_conflict = error.conflict.is_some()
            || error.deadlock.is_some()
            || error.txn_not_found.is_some()
            || error.commit_ts_expired.is_some()
            || error.commit_ts_too_large.is_some()
            || !error.retryable.is_empty();
        if is_conflict {
            Self::Conflict
        } else if error.locked.is_some() {
            Self::Busy("keys are locked by another client".to_owned())
        } else {
            Self::Denied("the transaction was aborted by the server".to_owned())
        }
    }

    fn of_region(error: &ProtoRegionError) -> Self {
        if error.raft_entry_too_large.is_some() {
            return Self::TooLarge("more than a server takes in one entry of its log".to_owned());
        }
        if error.disk_full.is_some() {
            return Self::Full("the disk of a server is full".to_owned());
        }
        if error.server_is_busy.is_some() {
            return Self::Busy("a server is busy".to_owned());
        }
        let cause = if error.not_leader.is_some() { "a region has no leader" } else { "a region is moving" };
        Self::Moved(cause.to_owned())
    }

    fn of_transport(error: &(dyn StdError + 'static), cause: &str) -> Self {
        let mut causes = iter::successors(Some(error), |&error| error.source());
        let is_refused = causes.any(|error| {
            error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        });
        if is_refused {
            Self::Moved("a server refuses connections".to_owned())
        } else {
            Self::Lost(format!("a server does not answer ({cause})"))
        }
    }

    /// What it means for a call that only reads.
    pub(crate) fn of_read(self) -> Error {
        Error::Unavailable(self.cause())
    }

    /// What it means for a commit that was given up.
    pub(crate) fn of_commit(self) -> Error {
        match self {
            Self::Conflict => Error::Conflict,
            Self::Busy(cause) | Self::Moved(cause) | Self::Denied(cause) => Error::Unavailable(cause),
            Self::TooLarge(cause) => Error::TooLarge(cause),
            Self::Full(cause) => Error::ReadOnly(cause),
            Self::AnswerTooLarge => Error::OutcomeUnknown(self.cause()),
            Self::Lost(cause) => Error::OutcomeUnknown(cause),
        }
    }

    fn cause(self) -> String {
        match self {
            Self::Conflict => "a lock is being removed".to_owned(),
            Self::AnswerTooLarge => "an answer was too large to be sent".to_owned(),
            Self::Busy(cause)
            | Self::Moved(cause)
            | Self::TooLarge(cause)
            | Self::Full(cause)
            | Self::Denied(cause)
            | Self::Lost(cause) => cause,
        }
    }
}

/// What every call answers after `close`.
pub(crate) fn closed() -> Error {
    Error::Unavailable("the store is closed".to_owned())
}
