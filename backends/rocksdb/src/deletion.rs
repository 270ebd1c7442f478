use respgate_backend_api::{KeyRange, Result};
use rocksdb::WriteBatch;

use crate::engine::Engine;
use crate::error;
use crate::family::Family;
use crate::tuning::{self, Reach};

/// The most keys that are deleted one by one. A range tombstone takes one record for any number of keys, but every
/// later read of the family has to look at it until it reaches the bottommost level.
const SINGLE_DELETIONS_MAX: usize = 1_000;

/// Deletes every key in `range`, however long that takes, and has its space reclaimed in the background.
pub(crate) fn delete_range(engine: &Engine, range: KeyRange) -> Result<()> {
    let family = Family::of(&range.start);
    if let Some(singly) = single_deletions(engine, family, &range)? {
        if singly.is_empty() {
            return Ok(());
        }
        engine.reclaim.add_records(singly.len() as u64);
        let _shared = engine.commits.read();
        return engine.write_batch(singly);
    }
    let mut batch = WriteBatch::default();
    batch.delete_range_cf(engine.handle(family), &range.start, &range.end);
    {
        let _shared = engine.commits.read();
        engine.write_batch(batch)?;
    }
    engine.reclaim.add_range(engine, family, range);
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
