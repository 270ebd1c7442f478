use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use parking_lot::{Mutex, RwLock};
use respgate_backend_api::{Access, Error, Result, Write};
use rocksdb::{Cache, ColumnFamily, DB, WriteBatch, WriteOptions};
use self_cell::self_cell;
use tokio::task;

use crate::error;
use crate::family::{Families, Family};
use crate::fetch::Fetches;
use crate::group::Group;
use crate::open;
use crate::options::{RocksdbOptions, SyncMode};
use crate::readers::Readers;
use crate::reaper::{Reaper, Reaping};
use crate::reclaim::Reclaim;
use crate::tuning;

self_cell!(
    /// The database together with the handles that borrow from it.
    struct Database {
        owner: DB,
        #[covariant]
        dependent: Families,
    }
);

/// The open database and what all its users share. The files are released when the last user drops it.
pub(crate) struct Engine {
    pub(crate) cache: Cache,
    path: PathBuf,
    access: Access,
    sync: SyncMode,
    durable: WriteOptions,
    patient: WriteOptions,
    impatient: WriteOptions,
    /// Commits without guards share it. A commit with guards holds it alone, so that nothing is written between its
    /// check and its write.
    pub(crate) commits: RwLock<()>,
    pub(crate) group: Group,
    pub(crate) fetches: Fetches,
    pub(crate) reclaim: Reclaim,
    pub(crate) readers: Readers,
    closed: AtomicBool,
    failure: Failure,
    /// True while there are commits that were not synced.
    unsynced: AtomicBool,
    database: Database,
    /// Its receiver learns that the database is gone: fields are dropped in the order of their declaration.
    _open: mpsc::Sender<()>,
}

impl Engine {
    /// Opens the database, whose compactions ask `reaper`. When the files are released again, the receiver is
    /// disconnected.
    pub(crate) fn open(
        options: &RocksdbOptions,
        reaper: Option<Arc<dyn Reaper>>,
    ) -> Result<(Arc<Self>, mpsc::Receiver<()>)> {
        // An entry's size is not known beforehand, so the cache sizes its table as it goes.
        let estimated_entry_charge = 0;
        let cache = Cache::new_hyper_clock_cache(options.block_cache_bytes, estimated_entry_charge);
        let reaping = reaper.map(Reaping::new);
        let db = open::database(options, &cache, reaping.as_ref())?;
        let missing = || Error::CannotOpen("the database was opened without its column families".into());
        let database = Database::try_new(db, |db| Families::of(db).ok_or_else(missing))?;
        let (open, released) = mpsc::channel();
        let engine = Arc::new(Self {
            cache,
            path: options.path.clone(),
            access: options.access,
            sync: options.sync,
            durable: tuning::durable_write(),
            patient: WriteOptions::default(),
            impatient: tuning::impatient_write(),
            commits: RwLock::new(()),
            group: Group::default(),
            fetches: Fetches::default(),
            reclaim: Reclaim::default(),
            readers: Readers::default(),
            closed: AtomicBool::new(false),
            failure: Failure::default(),
            unsynced: AtomicBool::new(false),
            database,
            _open: open,
        });
        if let Some(reaping) = reaping {
            reaping.begin(&engine);
        }
        Ok((engine, released))
    }

    pub(crate) fn db(&self) -> &DB {
        self.database.borrow_owner()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn handle(&self, family: Family) -> &ColumnFamily {
        self.database.borrow_dependent().handle(family)
    }

    /// Fails once the store is closed. Every call asks this first.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(error::closed()) } else { Ok(()) }
    }

    /// Fails if nothing can be written: the store is closed, or open for reading only.
    fn check_open_for_writes(&self) -> Result<()> {
        self.check_open()?;
        match self.access {
            Access::Create | Access::Write => Ok(()),
            Access::Read => Err(Error::ReadOnly("it was opened for reading".into())),
        }
    }

    /// Writes all of `writes`, if that needs nobody to wait: neither for a disk, nor for another commit, nor for
    /// RocksDB to catch up. `None`: it would, and nothing was written.
    pub(crate) fn try_write<'w>(&self, writes: impl Iterator<Item = &'w Write> + Clone) -> Option<Result<()>> {
        if self.sync == SyncMode::Always {
            return None;
        }
        let _shared = self.commits.try_read()?;
        if let Err(refused) = self.check_open_for_writes() {
            return Some(Err(refused));
        }
        match self.db().write_opt(self.batch(writes), &self.impatient) {
            Err(error) if error::is_incomplete(&error) => None,
            written => Some(self.written(written)),
        }
    }

    /// Writes all of `writes`, however long that takes. The caller holds [`Self::commits`].
    pub(crate) fn write<'w>(&self, writes: impl Iterator<Item = &'w Write> + Clone) -> Result<()> {
        self.write_batch(self.batch(writes))
    }

    /// Writes `batch`, however long that takes. The caller holds [`Self::commits`].
    pub(crate) fn write_batch(&self, batch: WriteBatch) -> Result<()> {
        // Asked again here, because `close` lets whoever holds the lock finish, and nobody begin.
        self.check_open_for_writes()?;
        let options = if self.sync == SyncMode::Always { &self.durable } else { &self.patient };
        self.written(self.db().write_opt(batch, options))
    }

    /// Fails if writes fail at present.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_open_for_writes()?;
        if !self.failure.is_present() {
            return Ok(());
        }
        // A batch without writes goes through the same checks, so this learns whether RocksDB has recovered.
        self.written(self.db().write_opt(WriteBatch::default(), &self.durable))
    }

    /// Brings every commit that has returned to the disk.
    pub(crate) fn sync_log(&self) -> Result<()> {
        if !self.unsynced.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.db().flush_wal(true).map_err(|error| {
            self.unsynced.store(true, Ordering::Release);
            self.failed(error)
        })
    }

    /// Turns all later calls away, and waits until what has begun is written and synced and no background work runs.
    pub(crate) fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        let _alone = self.commits.write();
        let synced = self.sync_log();
        self.end_background_work();
        synced
    }

    /// Ends flushes and compactions, and lets none begin any more.
    pub(crate) fn end_background_work(&self) {
        let wait = true;
        self.db().cancel_all_background_work(wait);
    }

    fn batch<'w>(&self, writes: impl Iterator<Item = &'w Write> + Clone) -> WriteBatch {
        /// RocksDB adds a tag, a family and two lengths to a write; this is their most for keys below 2 MiB.
        const OVERHEAD: usize = 16;
        let bytes = |(key, value): &Write| OVERHEAD + key.len() + value.as_ref().map_or(0, |value| value.len());
        let mut deletions = 0;
        let mut batch = WriteBatch::with_capacity_bytes(OVERHEAD + writes.clone().map(bytes).sum::<usize>());
        for (key, value) in writes {
            let family = self.handle(Family::of(key));
            match value {
                Some(value) => batch.put_cf(family, key, value),
                None => {
                    deletions += 1;
                    batch.delete_cf(family, key);
                }
            }
        }
        self.reclaim.add_records(deletions);
        batch
    }

    fn written(&self, written: std::result::Result<(), rocksdb::Error>) -> Result<()> {
        match written {
            Ok(()) => {
                if self.sync == SyncMode::Interval && !self.unsynced.load(Ordering::Relaxed) {
                    self.unsynced.store(true, Ordering::Release);
                }
                self.failure.clear();
                Ok(())
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: rocksdb::Error) -> Error {
        let error = error::of_write(error);
        if matches!(error, Error::ReadOnly(_)) {
            self.failure.set(&error);
        }
        error
    }
}

/// Whether the disk refuses writes, for the log and for the health of the store. RocksDB itself fails writes while it
/// cannot be sure of its files, and recovers by itself, within seconds, where the cause is a disk that was full.
#[derive(Default)]
struct Failure {
    /// Read by every commit, so it does without the lock.
    present: AtomicBool,
    change: Mutex<()>,
}

impl Failure {
    fn is_present(&self) -> bool {
        self.present.load(Ordering::Relaxed)
    }

    fn set(&self, error: &Error) {
        let _change = self.change.lock();
        if !self.present.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "the disk takes no writes; commits fail until it does");
        }
    }

    fn clear(&self) {
        if !self.is_present() {
            return;
        }
        let _change = self.change.lock();
        if self.present.swap(false, Ordering::Relaxed) {
            tracing::info!("the disk takes writes again");
        }
    }
}

/// Runs `work` on a thread that may wait.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        Err(_) => Err(Error::Unavailable("the process is shutting down".into())),
    }
}
