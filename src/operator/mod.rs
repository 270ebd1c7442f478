//! What operators do with a store: `respgate gc`, `verify`, `bigkeys` and `inspect`.
//!
//! Each is a walk over the store in pages. After every page it may be stopped, and then says from which [`Position`] it
//! can go on. What only reads runs beside a gateway, on the moment at which it began; what writes wants the store for
//! itself.

mod bigkeys;
mod gc;
mod inspect;
mod job;
mod position;
mod progress;
mod verify;
mod words;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod tests;

use std::{
    io::{self, Write},
    result,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use respgate_backend_api::KvBackend;
use tokio_util::sync::CancellationToken;

use crate::{
    command::open_sidecar,
    config::Settings,
    keyspace::{self, Encodings, Keyspace, Options, Random, SystemClock},
};

use job::Job;
pub use position::{BadPosition, Position};

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Delete what nobody can reach any more.
    Gc {
        /// Only say what would be deleted.
        is_dry: bool,
    },
    /// Check that all records fit together.
    Verify {
        /// Mend what does not.
        repairs: bool,
    },
    /// Find the largest keys.
    Bigkeys {
        /// Of one database only.
        db: Option<u8>,
        /// How many of each type are named.
        top: usize,
    },
    /// Show the records of a key.
    Inspect {
        /// The database.
        db: u8,
        /// Its name.
        key: Bytes,
        /// How many elements are shown.
        limit: usize,
    },
}

impl Task {
    /// True if the task changes the store.
    pub fn writes(&self) -> bool {
        matches!(self, Self::Gc { is_dry: false } | Self::Verify { repairs: true })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Gc { .. } => "gc",
            Self::Verify { .. } => "verify",
            Self::Bigkeys { .. } => "bigkeys",
            Self::Inspect { .. } => "inspect",
        }
    }
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is done, and as it should be.
    Done,
    /// All is done; something is not as it should be, or not there.
    Found,
    /// It was stopped.
    Stopped,
}

/// The result of a task, or of a part of one.
pub type Result<T> = result::Result<T, Error>;

/// Why a task ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed; its error says what to do.
    #[error(transparent)]
    Keyspace(#[from] keyspace::Error),

    /// Nobody takes what the task says.
    #[error("cannot print: {0}")]
    Output(#[from] io::Error),

    /// The task was given the position of another one.
    #[error("{0} is not a position of this command")]
    OtherPosition(Position),

    /// It was asked to stop.
    #[error("stopped")]
    Stopped,
}

impl From<respgate_backend_api::Error> for Error {
    fn from(error: respgate_backend_api::Error) -> Self {
        Self::Keyspace(error.into())
    }
}

/// Opens the configured namespace of a store. Nothing is cached: a walk meets each record once.
pub async fn open(backend: Arc<dyn KvBackend>, settings: &Settings) -> Result<Keyspace> {
    let options = Options {
        namespace: settings.store.namespace.clone(),
        databases: settings.server.databases,
        encodings: Encodings::default(),
        cache_bytes: 0,
        sidecar: open_sidecar(&settings.sidecar)?,
        grace: Duration::ZERO,
        clock: Arc::new(SystemClock),
        random: Random::from_entropy(),
    };
    Ok(Keyspace::open(backend, options).await?)
}

/// Runs `task` from a position on, or from the beginning, until it is done or `stop` is cancelled. Says what it finds on
/// `output`, and how far it is on standard error.
pub async fn run(
    task: &Task,
    from: Option<Position>,
    keyspace: &Keyspace,
    output: &mut dyn Write,
    stop: CancellationToken,
) -> Result<Outcome> {
    let mut job = Job::begin(task.name(), keyspace, output, stop).await?;
    let outcome = match task {
        Task::Gc { is_dry } => gc::run(&mut job, from, *is_dry).await,
        Task::Verify { repairs } => verify::run(&mut job, from, *repairs).await,
        Task::Bigkeys { db, top } => bigkeys::run(&mut job, from, *db, *top).await,
        Task::Inspect { db, key, limit } => inspect::run(&mut job, from, *db, key, *limit).await,
    };
    job.end(outcome)
}
