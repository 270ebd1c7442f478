//! The embedded store, opened as the settings say.

use respgate_backend_api::Result;
use respgate_backend_rocksdb::{RocksdbBackend, RocksdbOptions, SyncMode};

use crate::config::{RocksdbSettings, Sync};

/// Opens the store in the configured directory.
pub fn open(settings: &RocksdbSettings) -> Result<RocksdbBackend> {
    let defaults = RocksdbOptions::new(&settings.dir);
    RocksdbBackend::open(&RocksdbOptions {
        sync: match settings.sync {
            Sync::Always => SyncMode::Always,
            Sync::Interval => SyncMode::Interval,
            Sync::Never => SyncMode::Never,
        },
        sync_interval: settings.sync_interval.as_duration(),
        block_cache_bytes: settings.block_cache.as_usize(),
        write_buffer_bytes: settings.write_buffers.as_usize(),
        background_jobs: match settings.background_jobs {
            0 => defaults.background_jobs,
            jobs => jobs,
        },
        open_files_max: settings.open_files_max,
        ..defaults
    })
}
