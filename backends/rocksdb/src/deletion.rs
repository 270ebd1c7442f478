use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use respgate_backend_api::{KeyRange, Result};
use rocksdb::{CompactOptions, Range, WriteBatch};
use tokio::task;

use crate::engine::Engine;
use crate::error;
use crate::family::Family;
use crate::tuning::{self, Reach};

/// The most keys that are deleted one by one. A range tombstone takes one record for any number of keys, but every
/// later read of the family has to look at it until it reaches the bottommost level.
const SINGLE_DELETIONS_MAX: usize = 1_000;

/// Ranges of fewer bytes on disk are left to RocksDB's own compactions.
const COMPACTED_BYTES_MIN: u64 = 64 << 20;

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
    let on_disk = engine.db().get_approximate_sizes_cf(engine.handle(family), &[Range::new(&range.start, &range.end)]);
    if on_disk.iter().sum::<u64>() >= COMPACTED_BYTES_MIN {
        reclaim(engine, range);
    }
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

/// Ranges whose space is to be reclaimed, one after the other.
#[derive(Default)]
pub(crate) struct Reclaim {
    queue: Mutex<VecDeque<KeyRange>>,
}

/// Has the files that held `range` rewritten without it. One compaction runs at a time, since its disk is the
/// requests' disk too.
fn reclaim(engine: &Arc<Engine>, range: KeyRange) {
    let mut queue = engine.reclaim.queue.lock();
    queue.push_back(range);
    // The range that is being reclaimed stays in the queue, so whoever finds it empty starts the work.
    if queue.len() == 1 {
        let engine = Arc::clone(engine);
        task::spawn_blocking(move || reclaim_all(&engine));
    }
}

fn reclaim_all(engine: &Engine) {
    let mut options = CompactOptions::default();
    // RocksDB's own compactions go on meanwhile.
    options.set_exclusive_manual_compaction(false);
    loop {
        let Some(range) = engine.reclaim.queue.lock().front().cloned() else { return };
        if engine.check_open().is_ok() {
            let family = engine.handle(Family::of(&range.start));
            engine.db().compact_range_cf_opt(family, Some(&range.start), Some(&range.end), &options);
        }
        let mut queue = engine.reclaim.queue.lock();
        queue.pop_front();
        if queue.is_empty() {
            return;
        }
    }
}
