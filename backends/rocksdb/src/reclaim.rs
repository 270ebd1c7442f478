//! Disk space that deletions free.
//!
//! RocksDB returns it at its leisure: a deletion stays in a write buffer until that is full, the log that is kept for the
//! buffer stays with it, and what was deleted waits for a compaction to come by. Here a thread looks every so often
//! whether to hurry that is worth its price, so that space comes back without any further traffic too.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use respgate_backend_api::KeyRange;
use rocksdb::{BottommostLevelCompaction, CompactOptions, FlushOptions, Range, properties};

use crate::engine::Engine;
use crate::family::Family;
use crate::statistics;

/// How often the thread looks. Nothing is flushed more often than this because of deletions.
pub(crate) const LOOK: Duration = Duration::from_secs(5);

/// Less than this is left alone.
const BYTES_MIN: u64 = 1 << 20;

/// While more and more ranges are deleted, so many bytes are let come together.
const BUSY_BYTES_MIN: u64 = 64 << 20;

/// Something is done if that frees at least one of so many bytes. Otherwise it is left to RocksDB.
const PART_MIN: u64 = 10;

/// What has been deleted and still takes space.
#[derive(Default)]
pub(crate) struct Reclaim {
    /// Records that were deleted one by one since the last flush because of deletions.
    records: AtomicU64,
    /// Bytes of ranges that were deleted since then.
    range_bytes: AtomicU64,
    /// Deleted ranges whose files have not been rewritten, by family.
    ranges: Mutex<HashMap<Family, Deleted>>,
}

/// Deleted ranges that came together.
#[derive(Clone)]
struct Deleted {
    /// From the first of them to the last.
    span: KeyRange,
    bytes: u64,
    /// True if more came since the last look.
    is_growing: bool,
}

impl Reclaim {
    /// Notes that so many records are deleted one by one.
    pub(crate) fn add_records(&self, records: u64) {
        if records > 0 {
            self.records.fetch_add(records, Ordering::Relaxed);
        }
    }

    /// Notes that `range` has been deleted.
    pub(crate) fn add_range(&self, engine: &Engine, family: Family, range: KeyRange) {
        let bytes = bytes_on_disk(engine, family, &range);
        self.range_bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut ranges = self.ranges.lock();
        let deleted =
            ranges.entry(family).or_insert_with(|| Deleted { span: range.clone(), bytes: 0, is_growing: true });
        deleted.bytes += bytes;
        deleted.is_growing = true;
        deleted.span.start = deleted.span.start.clone().min(range.start);
        deleted.span.end = deleted.span.end.clone().max(range.end);
    }

    /// Takes the ranges of a family whose files are worth rewriting.
    fn take(&self, engine: &Engine, family: Family) -> Option<KeyRange> {
        let mut ranges = self.ranges.lock();
        let deleted = ranges.get_mut(&family)?;
        let bytes_min = if deleted.is_growing { BUSY_BYTES_MIN } else { BYTES_MIN };
        deleted.is_growing = false;
        let is_worth_it = deleted.bytes >= bytes_min.max(bytes_on_disk(engine, family, &deleted.span) / PART_MIN);
        if is_worth_it { ranges.remove(&family).map(|deleted| deleted.span) } else { None }
    }
}

/// Frees what is worth it. May take minutes.
pub(crate) fn look(engine: &Engine) {
    if flush_is_worth_it(engine) {
        flush(engine);
    }
    for family in Family::ALL {
        if let Some(span) = engine.reclaim.take(engine, family) {
            compact(engine, family, &span);
        }
    }
}

/// True if a flush would free much of the disk: the log at once, and what was deleted by the compactions that follow.
fn flush_is_worth_it(engine: &Engine) -> bool {
    let reclaim = &engine.reclaim;
    let (records, range_bytes) = (reclaim.records.load(Ordering::Relaxed), reclaim.range_bytes.load(Ordering::Relaxed));
    if records == 0 && range_bytes == 0 {
        return false;
    }
    let sorted_bytes = statistics::sum(engine, properties::LIVE_SST_FILES_SIZE);
    let record_bytes = sorted_bytes / statistics::sum(engine, properties::ESTIMATE_NUM_KEYS).max(1);
    let deleted_bytes = records.saturating_mul(record_bytes).saturating_add(range_bytes).min(sorted_bytes);
    deleted_bytes + statistics::wal_bytes(engine) >= BYTES_MIN.max(sorted_bytes / PART_MIN)
}

/// Flushes every family, because a log is kept for the sake of the last one that holds something of it.
fn flush(engine: &Engine) {
    let records = engine.reclaim.records.swap(0, Ordering::Relaxed);
    let range_bytes = engine.reclaim.range_bytes.swap(0, Ordering::Relaxed);
    let families = Family::ALL.map(|family| engine.handle(family));
    if let Err(error) = engine.db().flush_cfs_opt(&families, &FlushOptions::default()) {
        engine.reclaim.records.fetch_add(records, Ordering::Relaxed);
        engine.reclaim.range_bytes.fetch_add(range_bytes, Ordering::Relaxed);
        // Commits report what is wrong with the disk; this is about its space only.
        tracing::debug!(%error, "the space of deleted records could not be freed yet");
    }
}

/// Rewrites the files that hold `span`, one family at a time, since their disk is the requests' disk too.
fn compact(engine: &Engine, family: Family, span: &KeyRange) {
    let mut options = CompactOptions::default();
    // RocksDB's own compactions go on meanwhile.
    options.set_exclusive_manual_compaction(false);
    // What was deleted is met on the way down; the bottommost level need not be rewritten for its own sake.
    options.set_bottommost_level_compaction(BottommostLevelCompaction::Skip);
    engine.db().compact_range_cf_opt(engine.handle(family), Some(&span.start), Some(&span.end), &options);
}

/// Rewrites all files of all families, until the store is closed.
pub(crate) fn compact_everything(engine: &Engine) {
    let mut options = CompactOptions::default();
    options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
    for family in Family::ALL {
        engine.db().compact_range_cf_opt(engine.handle(family), None::<&[u8]>, None::<&[u8]>, &options);
    }
}

fn bytes_on_disk(engine: &Engine, family: Family, range: &KeyRange) -> u64 {
    let ranges = [Range::new(&range.start, &range.end)];
    engine.db().get_approximate_sizes_cf(engine.handle(family), &ranges).iter().sum()
}
