//! The embedded store, opened as the settings say.

mod reaper;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use respgate_backend_api::{Access, Error, Result};
use respgate_backend_rocksdb::{RocksdbBackend, RocksdbOptions, SyncMode};

use crate::{
    config::{RocksdbSettings, Settings, Sync},
    encoding::KeyCodec,
    keyspace::SystemClock,
};
use reaper::KeyspaceReaper;

/// Opens the store in the configured directory.
pub fn open(settings: &Settings, access: Access) -> Result<RocksdbBackend> {
    let options = options(&settings.rocksdb, access);
    if access == Access::Read {
        return RocksdbBackend::open(&options);
    }
    let slot_prefix = false;
    let codec = KeyCodec::new(&settings.store.namespace, slot_prefix);
    let codec = codec.map_err(|error| Error::CannotOpen(error.to_string()))?;
    let reaper = KeyspaceReaper::new(codec, Arc::new(SystemClock), settings.background.grace.as_duration());
    RocksdbBackend::open_reaped(&options, Arc::new(reaper))
}

fn options(settings: &RocksdbSettings, access: Access) -> RocksdbOptions {
    let defaults = RocksdbOptions::new(&settings.dir);
    RocksdbOptions {
        access,
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
    }
}
