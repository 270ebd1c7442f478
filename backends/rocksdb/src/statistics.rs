use std::ffi::CStr;
use std::fs;

use respgate_backend_api::Statistics;
use rocksdb::{CStrLike, properties};

use crate::engine::Engine;
use crate::family::Family;

/// The figures of RocksDB that operators look at. A figure that RocksDB does not tell is 0.
pub(crate) fn of(engine: &Engine) -> Statistics {
    let sst_bytes = sum(engine, properties::LIVE_SST_FILES_SIZE);
    let wal_bytes = wal_bytes(engine);
    let block_cache_bytes = engine.cache.get_usage() as u64;
    let write_buffer_bytes = sum(engine, properties::SIZE_ALL_MEM_TABLES);
    let table_reader_bytes = sum(engine, properties::ESTIMATE_TABLE_READERS_MEM);
    Statistics {
        disk_bytes: sum(engine, properties::TOTAL_SST_FILES_SIZE) + wal_bytes,
        memory_bytes: block_cache_bytes + write_buffer_bytes + table_reader_bytes,
        figures: vec![
            ("keys_estimated", sum(engine, properties::ESTIMATE_NUM_KEYS)),
            ("sst_bytes", sst_bytes),
            ("wal_bytes", wal_bytes),
            ("block_cache_bytes", block_cache_bytes),
            ("block_cache_pinned_bytes", engine.cache.get_pinned_usage() as u64),
            ("write_buffer_bytes", write_buffer_bytes),
            ("table_reader_bytes", table_reader_bytes),
            ("level0_files", sum(engine, &properties::num_files_at_level(0))),
            ("pending_compaction_bytes", sum(engine, properties::ESTIMATE_PENDING_COMPACTION_BYTES)),
            ("running_compactions", whole(engine, properties::NUM_RUNNING_COMPACTIONS)),
            ("running_flushes", whole(engine, properties::NUM_RUNNING_FLUSHES)),
            ("writes_stopped", whole(engine, properties::IS_WRITE_STOPPED)),
            ("delayed_write_bytes_per_second", whole(engine, properties::ACTUAL_DELAYED_WRITE_RATE)),
            ("snapshots", whole(engine, properties::NUM_SNAPSHOTS)),
            ("background_errors", whole(engine, properties::BACKGROUND_ERRORS)),
        ],
    }
}

/// A property that the whole database has once.
fn whole(engine: &Engine, property: impl CStrLike) -> u64 {
    engine.db().property_int_value(property).ok().flatten().unwrap_or(0)
}

/// The sum of a property over all families.
pub(crate) fn sum(engine: &Engine, property: &CStr) -> u64 {
    let of = |family| engine.db().property_int_value_cf(engine.handle(family), property).ok().flatten();
    Family::ALL.into_iter().filter_map(of).sum()
}

/// The bytes of the logs, which RocksDB does not tell. A file that goes meanwhile counts nothing.
pub(crate) fn wal_bytes(engine: &Engine) -> u64 {
    let Ok(entries) = fs::read_dir(engine.path()) else { return 0 };
    let logs = entries.flatten().filter(|entry| entry.path().extension().is_some_and(|extension| extension == "log"));
    logs.filter_map(|log| log.metadata().ok()).map(|metadata| metadata.len()).sum()
}
