//! A store in an embedded RocksDB: the default, for data that one machine can hold.
//!
//! Records are routed to column families by their tag (`family`); the options and the reasons for them are in
//! `tuning`. Nothing that may wait runs on the threads that poll: reads try memory first, commits try not to wait,
//! and what remains goes to threads that may (`snapshot`).
//!
//! Space comes back in three ways: a thread flushes and compacts after deletions where that is worth it (`reclaim`),
//! compactions leave out what is dead (`reaper`), and RocksDB does the rest.
//!
//! One process owns the directory. So guards are needed by nobody who keeps latches on the keys that it touches; they
//! are checked by comparing values, under a lock that excludes all other commits.

mod deletion;
mod engine;
mod error;
mod family;
mod fetch;
mod group;
mod limits;
mod lookup;
mod open;
mod options;
mod periodic;
mod pinned;
mod readers;
mod reaper;
mod reclaim;
mod snapshot;
mod statistics;
#[cfg(test)]
mod tests;
mod tuning;

use std::fmt;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use respgate_backend_api::{Access, Capabilities, Error, KeyRange, KvBackend, Result, Snapshot, Statistics, Write};

use engine::{Engine, blocking};
pub use options::{Compression, RocksdbOptions, SyncMode};
use periodic::Periodic;
pub use reaper::{Judge, Past, Reaper};
use snapshot::RocksdbSnapshot;

/// How long [`KvBackend::close`] waits for snapshots that are still open, whose owners keep the files open too.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// A [`KvBackend`] that keeps its data in a directory, which no other process may write at the same time.
pub struct RocksdbBackend {
    /// `None` once closed.
    open: RwLock<Option<Open>>,
}

struct Open {
    engine: Arc<Engine>,
    /// Brings commits to the disk every so often, with [`SyncMode::Interval`]. A failure is logged, makes RocksDB refuse
    /// commits until it has recovered, and is tried again at the next interval.
    log_sync: Option<Periodic>,
    reclaim: Option<Periodic>,
    /// Disconnected when the files are released.
    released: Mutex<mpsc::Receiver<()>>,
}

impl RocksdbBackend {
    /// Opens the store at [`RocksdbOptions::path`], or creates it. Blocks, for seconds after a crash under load.
    ///
    /// Opened for reading it shows the moment of the call, holds every log that is not in a sorted file yet in memory,
    /// and every file open; commits fail with [`Error::ReadOnly`].
    ///
    /// Fails with [`Error::CannotOpen`] if the directory is in use by another writer, cannot be written, or was written by a newer
    /// release, and with [`Error::Corrupt`] if its files are damaged; the message is one line and names the directory.
    pub fn open(options: &RocksdbOptions) -> Result<Self> {
        Self::open_with(options, None)
    }

    /// The same with compactions that leave out what `reaper` calls dead.
    pub fn open_reaped(options: &RocksdbOptions, reaper: Arc<dyn Reaper>) -> Result<Self> {
        Self::open_with(options, Some(reaper))
    }

    /// Rewrites every file, without what has been deleted or is dead, and returns when that is done.
    pub async fn compact(&self) -> Result<()> {
        let engine = self.engine()?;
        blocking(move || {
            reclaim::compact_everything(&engine);
            engine.check_open()
        })
        .await
    }

    fn open_with(options: &RocksdbOptions, reaper: Option<Arc<dyn Reaper>>) -> Result<Self> {
        let (engine, released) = Engine::open(options, reaper)?;
        let periodic = |name, pause, work: fn(&Engine)| {
            let cannot_start = |error| {
                engine.end_background_work();
                Error::CannotOpen(format!("cannot start the thread {name}: {error}"))
            };
            Periodic::start(name, Arc::clone(&engine), pause, work).map_err(cannot_start)
        };
        let is_writer = options.access != Access::Read;
        let log_sync = match options.sync {
            SyncMode::Interval if is_writer => Some(periodic("log-sync", options.sync_interval, |engine| {
                // The engine has logged the failure, if any, and the commits that follow report it.
                let _logged = engine.sync_log();
            })?),
            _ => None,
        };
        let reclaim = is_writer.then(|| periodic("reclaim", reclaim::LOOK, reclaim::look)).transpose()?;
        let open = Open { engine, log_sync, reclaim, released: Mutex::new(released) };
        Ok(Self { open: RwLock::new(Some(open)) })
    }

    fn engine(&self) -> Result<Arc<Engine>> {
        self.open.read().as_ref().map(|open| Arc::clone(&open.engine)).ok_or_else(error::closed)
    }
}

impl fmt::Debug for RocksdbBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksdbBackend").finish_non_exhaustive()
    }
}

impl Drop for RocksdbBackend {
    fn drop(&mut self) {
        // Not closed: compactions must end while the engine is there.
        if let Some(open) = self.open.get_mut() {
            open.engine.end_background_work();
        }
    }
}

#[async_trait]
impl KvBackend for RocksdbBackend {
    fn capabilities(&self) -> Capabilities {
        limits::CAPABILITIES
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(RocksdbSnapshot::new(self.engine()?)))
    }

    /// Latches keep the units of the one process apart, so none starves.
    async fn locking_snapshot(&self, _: &[Bytes]) -> Result<Arc<dyn Snapshot>> {
        self.snapshot().await
    }

    async fn write(&self, writes: Vec<Write>) -> Result<()> {
        let engine = self.engine()?;
        engine.check_open()?;
        group::write(&engine, writes).await
    }

    async fn delete_range(&self, range: KeyRange) -> Result<()> {
        let engine = self.engine()?;
        if range.is_empty() {
            return Ok(());
        }
        blocking(move || deletion::delete_range(&engine, range)).await
    }

    async fn health(&self) -> Result<()> {
        let engine = self.engine()?;
        blocking(move || engine.check_writable()).await
    }

    async fn statistics(&self) -> Result<Statistics> {
        let engine = self.engine()?;
        blocking(move || Ok(statistics::of(&engine))).await
    }

    async fn close(&self) -> Result<()> {
        let Some(open) = self.open.write().take() else { return Ok(()) };
        blocking(move || open.close()).await
    }
}

impl Open {
    fn close(self) -> Result<()> {
        let Self { engine, log_sync, reclaim, released } = self;
        if let Some(log_sync) = log_sync {
            log_sync.stop();
        }
        let synced = engine.close();
        // What it was at has been cancelled.
        if let Some(reclaim) = reclaim {
            reclaim.stop();
        }
        drop(engine);
        if released.into_inner().recv_timeout(RELEASE_TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("snapshots are still open: the data directory stays in use until they are dropped");
        }
        synced
    }
}
