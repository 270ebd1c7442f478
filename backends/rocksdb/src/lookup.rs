use std::cell::RefCell;

use bytes::Bytes;
use rocksdb::{DBRawIterator, ReadOptions};
use self_cell::self_cell;

use crate::engine::Engine;
use crate::family::Family;
use crate::pinned::PinnedSnapshot;
use crate::tuning::{self, Reach};

/// RocksDB's own result.
type Outcome<T> = Result<T, rocksdb::Error>;

type Cursor<'snapshot> = RefCell<DBRawIterator<'snapshot>>;

self_cell!(
    /// Lookups in a snapshot that mostly follow the order of keys, as those of a compaction do.
    ///
    /// The metadata of one collection is often near that of the last one. So a cursor stays there, and with it the block,
    /// which would otherwise be read for each of them anew: what clients read stays in the cache, and this is not kept.
    pub(crate) struct Lookups {
        owner: PinnedSnapshot,
        #[not_covariant]
        dependent: Cursor,
    }
);

/// Lookups in `snapshot`.
pub(crate) fn at(snapshot: PinnedSnapshot) -> Lookups {
    Lookups::new(snapshot, |snapshot| {
        let family = snapshot.borrow_owner().handle(Family::Metadata);
        let mut options = uncached(tuning::scan(Reach::Disk));
        options.set_max_skippable_internal_keys(tuning::INLINE_SKIPS_MAX);
        RefCell::new(snapshot.borrow_dependent().raw_iterator_cf_opt(family, options))
    })
}

impl Lookups {
    /// The value of a record. May wait for the disk.
    pub(crate) fn get(&self, engine: &Engine, key: &[u8]) -> Outcome<Option<Bytes>> {
        self.with_dependent(|snapshot, cursor| {
            let family = Family::of(key);
            // A cursor gives up among many deleted records; a lookup does not walk them.
            if family == Family::Metadata
                && let Ok(value) = find(&mut cursor.borrow_mut(), key)
            {
                return Ok(value);
            }
            let mut options = uncached(tuning::read(Reach::Disk));
            options.set_snapshot(snapshot.borrow_dependent());
            let found = engine.db().get_pinned_cf_opt(engine.handle(family), key, &options)?;
            Ok(found.map(|value| Bytes::copy_from_slice(&value)))
        })
    }
}

fn uncached(mut options: ReadOptions) -> ReadOptions {
    options.fill_cache(false);
    options
}

/// Goes to `key`, by single steps if it is near.
fn find(cursor: &mut DBRawIterator<'_>, key: &[u8]) -> Outcome<Option<Bytes>> {
    /// About what a search costs.
    const STEPS_MAX: usize = 8;

    let is_before = |cursor: &DBRawIterator<'_>| cursor.key().is_some_and(|at| at < key);
    let came_from_before = is_before(cursor);
    for _ in 0..STEPS_MAX {
        if !is_before(cursor) {
            break;
        }
        cursor.next();
    }
    let is_there = cursor.key().is_some_and(|at| at == key || at > key && came_from_before);
    if !is_there {
        cursor.seek(key);
    }
    cursor.status()?;
    Ok(cursor.item().filter(|(at, _)| *at == key).map(|(_, value)| Bytes::copy_from_slice(value)))
}
