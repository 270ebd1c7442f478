use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use respgate_backend_api::{KeyRange, Result};
use rocksdb::{BottommostLevelCompaction, CompactOptions, Range, WriteBatch};
use tokio::task;

use crate::engine::Engine;
use crate::error;
use crate::family::Family;
use crate::tuning::{self, Reach};

/// The most keys that are deleted one by one. A range tombstone takes one record for any number of keys, but every
/// later read of the family has to look at it until it reaches the bottommost level.
const SINGLE_DELETIONS_MAX: usize = 1_000;

/// Files are rewritten once deleted ranges of so many bytes have come together.
const COMPACTED_BYTES_MIN: u64 = 64 << 20;

/// Files are rewritten if at least one of so many of their bytes has been deleted. The others are left to RocksDB's own
/// compactions.
const COMPACTED_PART_MIN: u64 = 10;

/// Deletes every key in `range`, however long that takes, and has its space reclaimed in the background.
pub(crate) fn delete_range(engine: &Arc<Engine>, range: KeyRange) -> Result<()> {
    let family = Family::of(&range.start);
    if let Some(singly) = single_deletions(engine, family, &range)? {
        let _shared = engine.commits.read();
        return if singly.is_empty() { Ok(()) } else { engine.write_batch(singly) };
    }
    let mut batch = WriteBatch::default();
    batch.delete_range_cf(engine.handle(family), &range.start, &range.end);
    {
        let _shared = engine.commits.read();
        engine.write_batch(batch)?;
    }
    engine.reclaim.add(engine, family, range);
    Ok(())
}

/// A deletion for each key in `range`; `None` if there are more than [`SINGLE_DELETIONS_MAX`].
fn single_deletions(engine: &Engine, family: Family, range: &KeyRange) -> Result<Option<WriteBatch>> {
    let handle = engine.handle(family);
    let mut options = tuning::scan(Reach::Disk);
    options.set_iterate_range(&*range.start..&*range.end);
    let mut iterator = engine.db().raw_iterator_cf_opt(handle, options);
    let mut batch = WriteBatch::default();
    iterator.seek_to_first();
    while let Some(key) = iterator.key() {
        if batch.len() >= SINGLE_DELETIONS_MAX {
            return Ok(None);
        }
        batch.delete_cf(handle, key);
        iterator.next();
    }
    iterator.status().map_err(error::of_read)?;
    Ok(Some(batch))
}

/// What has been deleted and still takes space.
#[derive(Default)]
pub(crate) struct Reclaim {
    /// Deleted ranges that are not worth a compaction yet, by family.
    pending: Mutex<HashMap<Family, Deleted>>,
    /// Ranges to be compacted, one after the other.
    queue: Mutex<VecDeque<(Family, KeyRange)>>,
}

/// Deleted ranges that came together.
struct Deleted {
    /// From the first of them to the last.
    span: KeyRange,
    bytes: u64,
}

impl Reclaim {
    /// Notes that `range` has been deleted, and has files rewritten without it once that is worth it.
    fn add(&self, engine: &Arc<Engine>, family: Family, range: KeyRange) {
        let bytes = bytes_on_disk(engine, family, &range);
        let mut pending = self.pending.lock();
        let deleted = pending.entry(family).or_insert_with(|| Deleted { span: range.clone(), bytes: 0 });
        deleted.bytes += bytes;
        deleted.span.start = deleted.span.start.clone().min(range.start);
        deleted.span.end = deleted.span.end.clone().max(range.end);
        let is_worth_it = deleted.bytes >= COMPACTED_BYTES_MIN
            && deleted.bytes >= bytes_on_disk(engine, family, &deleted.span) / COMPACTED_PART_MIN;
        if is_worth_it && let Some(deleted) = pending.remove(&family) {
            drop(pending);
            self.compact(engine, family, deleted.span);
        }
    }

    /// Has the files that held `span` rewritten. One compaction runs at a time, since its disk is the requests' disk too.
    fn compact(&self, engine: &Arc<Engine>, family: Family, span: KeyRange) {
        let mut queue = self.queue.lock();
        queue.push_back((family, span));
        // The span that is being compacted stays in the queue, so whoever finds it empty starts the work.
        if queue.len() == 1 {
            let engine = Arc::clone(engine);
            task::spawn_blocking(move || compact_all(&engine));
        }
    }
}

/// Rewrites all files of all families.
pub(crate) fn compact_everything(engine: &Engine) -> Result<()> {
    let mut options = CompactOptions::default();
    options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
    for family in Family::ALL {
        engine.check_open()?;
        engine.db().compact_range_cf_opt(engine.handle(family), None::<&[u8]>, None::<&[u8]>, &options);
    }
    Ok(())
}

fn bytes_on_disk(engine: &Engine, family: Family, range: &KeyRange) -> u64 {
    let ranges = [Range::new(&range.start, &range.end)];
    engine.db().get_approximate_sizes_cf(engine.handle(family), &ranges).iter().sum()
}

fn compact_all(engine: &Engine) {
    let mut options = CompactOptions::default();
    // RocksDB's own compactions go on meanwhile.
    options.set_exclusive_manual_compaction(false);
    // What was deleted is not at the bottommost level alone, so there is no need to rewrite that for its own sake.
    options.set_bottommost_level_compaction(BottommostLevelCompaction::Skip);
    loop {
        let Some((family, span)) = engine.reclaim.queue.lock().front().cloned() else { return };
        if engine.check_open().is_ok() {
            let handle = engine.handle(family);
            engine.db().compact_range_cf_opt(handle, Some(&span.start), Some(&span.end), &options);
        }
        let mut queue = engine.reclaim.queue.lock();
        queue.pop_front();
        if queue.is_empty() {
            return;
        }
    }
}
