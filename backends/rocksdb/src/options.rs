use std::num::NonZero;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use respgate_backend_api::Access;

/// How a RocksDB store is kept. Plain data; [`Self::new`] gives the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RocksdbOptions {
    /// The directory of the data. With [`Access::Create`] it is created if it is missing; its parent must exist.
    pub path: PathBuf,
    /// What the store is opened for. Default: [`Access::Create`].
    pub access: Access,
    /// What a commit waits for. Default: [`SyncMode::Interval`].
    pub sync: SyncMode,
    /// The longest time for which acknowledged commits are in the operating system's hands only, with
    /// [`SyncMode::Interval`]. Default: 1 s.
    pub sync_interval: Duration,
    /// Memory for blocks of data, indexes and filters that were read from disk, in bytes. Default: 256 MiB.
    pub block_cache_bytes: usize,
    /// Memory for writes that are not yet in a sorted file, in bytes. Default: 128 MiB.
    ///
    /// Flushes begin when all families together reach it. While writers outrun the disk it may be exceeded, up to
    /// three times if they fill every family at once; then writers wait.
    pub write_buffer_bytes: usize,
    /// Flushes and compactions that may run at the same time. Default: the number of cores.
    pub background_jobs: usize,
    /// Files that are kept open. Default: 512.
    ///
    /// Bounded because connections need descriptors too. A file holds about 64 MiB, and opening one that was closed
    /// costs some tens of microseconds, on a thread that may wait.
    pub open_files_max: usize,
    /// How data is compressed. Default: [`Compression::Lz4Zstd`].
    pub compression: Compression,
}

impl RocksdbOptions {
    /// The defaults for a store at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            access: Access::Create,
            sync: SyncMode::Interval,
            sync_interval: Duration::from_secs(1),
            block_cache_bytes: 256 << 20,
            write_buffer_bytes: 128 << 20,
            background_jobs: thread::available_parallelism().map_or(2, NonZero::get),
            open_files_max: 512,
            compression: Compression::Lz4Zstd,
        }
    }
}

/// What has happened to a commit when it is acknowledged, and so what it survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// It is on the disk: it survives a power cut. Commits that arrive together share one sync.
    Always,
    /// The operating system has it, and puts it on the disk within the interval: it survives the end of the process.
    Interval,
    /// The operating system has it, and puts it on the disk when it likes: it survives the end of the process.
    Never,
}

/// How data is compressed on disk. Files of any setting can be read with any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// LZ4 everywhere.
    Lz4,
    /// LZ4, and Zstandard at the bottommost level, where most of the data lies and is rewritten least.
    Lz4Zstd,
}
