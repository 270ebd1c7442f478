use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::try_join_all;
use respgate_backend_api::{Direction, Error, KeyRange, Result, Snapshot, WriteSet};
use rocksdb::{DBPinnableSlice, ReadOptions};

use crate::engine::{Engine, blocking};
use crate::error::{self, is_incomplete};
use crate::family::Family;
use crate::fetch::fetch;
use crate::group;
use crate::limits;
use crate::pinned::PinnedSnapshot;
use crate::readers::Reader;
use crate::tuning::{self, Reach};

/// The most bytes that a scan collects on the thread that polls it: about a millisecond of work.
const INLINE_BYTES_MAX: usize = 128 << 10;

/// The most keys that are looked up on the thread that polls: about a millisecond of work.
const INLINE_KEYS_MAX: usize = 1_024;

/// The most threads that look up keys for one call.
const PARTS_MAX: usize = 16;

/// RocksDB's own result, before its errors are told apart.
type Outcome<T> = std::result::Result<T, rocksdb::Error>;

/// The database at one moment. Shared with threads that read from disk on its behalf.
pub(crate) struct View {
    /// Made once, because every read in memory needs them.
    memory_reads: ReadOptions,
    snapshot: PinnedSnapshot,
    _reader: Reader,
}

impl View {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let reader = Reader::announce(Arc::clone(&engine));
        let snapshot = PinnedSnapshot::of(engine);
        let mut memory_reads = tuning::read(Reach::Memory);
        memory_reads.set_snapshot(snapshot.borrow_dependent());
        Self { memory_reads, snapshot, _reader: reader }
    }

    fn engine(&self) -> &Arc<Engine> {
        self.snapshot.borrow_owner()
    }

    fn disk_reads(&self) -> ReadOptions {
        let mut options = tuning::read(Reach::Disk);
        options.set_snapshot(self.snapshot.borrow_dependent());
        options
    }

    fn get(&self, key: &[u8], options: &ReadOptions) -> Outcome<Option<Bytes>> {
        let engine = self.engine();
        let found = engine.db().get_pinned_cf_opt(engine.handle(Family::of(key)), key, options)?;
        Ok(found.as_ref().map(copy))
    }

    /// The values of those keys that memory tells of, and the slots of the others.
    ///
    /// One lookup a key: RocksDB's batched lookup, asked to stay in memory, gives empty values for some of the keys
    /// that are not there (seen with 11.8).
    fn multi_get_in_memory(&self, keys: &[Bytes]) -> Outcome<(Vec<Option<Bytes>>, Vec<usize>)> {
        let mut values = Vec::with_capacity(keys.len());
        let mut unreached = Vec::new();
        for (slot, key) in keys.iter().enumerate() {
            values.push(match self.get(key, &self.memory_reads) {
                Err(error) if is_incomplete(&error) => {
                    unreached.push(slot);
                    None
                }
                found => found?,
            });
        }
        Ok((values, unreached))
    }

    /// The value of each key, with the slot that it stands beside, from disk if need be.
    fn multi_get_from_disk(&self, wanted: &[(usize, Bytes)]) -> Outcome<Vec<(usize, Option<Bytes>)>> {
        let engine = self.engine();
        let options = self.disk_reads();
        let mut values = Vec::with_capacity(wanted.len());
        for family in Family::ALL {
            let of_family = wanted.iter().filter(|(_, key)| Family::of(key) == family);
            let (slots, keys): (Vec<_>, Vec<_>) = of_family.map(|(slot, key)| (*slot, key)).unzip();
            if keys.is_empty() {
                continue;
            }
            let sorted = false;
            let found = engine.db().batched_multi_get_cf_opt(engine.handle(family), keys, sorted, &options);
            for (slot, found) in slots.into_iter().zip(found) {
                values.push((slot, found?.as_ref().map(copy)));
            }
        }
        Ok(values)
    }

    /// Adds to `pairs` those that follow them in `scan`, and says whether the scan is finished. It is not if
    /// `bytes_max` bytes were added before that, or if the scan failed.
    fn scan(
        &self,
        scan: &Scan,
        mut options: ReadOptions,
        bytes_max: usize,
        pairs: &mut Vec<(Bytes, Bytes)>,
    ) -> Outcome<bool> {
        let family = self.engine().handle(Family::of(&scan.range.start));
        let rest = scan.rest(pairs.last());
        // Both bounds, so that the iterator stops at the range's ends instead of walking what lies beyond.
        options.set_iterate_range(&*rest.start..&*rest.end);
        let mut iterator = self.snapshot.borrow_dependent().raw_iterator_cf_opt(family, options);
        match scan.direction {
            Direction::Forward => iterator.seek_to_first(),
            Direction::Backward => iterator.seek_to_last(),
        }
        let mut bytes = 0;
        while let Some((key, value)) = iterator.item() {
            bytes += key.len() + value.len();
            pairs.push((Bytes::copy_from_slice(key), Bytes::copy_from_slice(value)));
            if pairs.len() >= scan.limit {
                return Ok(true);
            }
            if bytes >= bytes_max {
                return Ok(false);
            }
            match scan.direction {
                Direction::Forward => iterator.next(),
                Direction::Backward => iterator.prev(),
            }
        }
        iterator.status().map(|()| true)
    }

    /// Checks guards and writes, on a thread that may wait.
    fn commit(&self, writes: &WriteSet) -> Result<()> {
        let engine = self.engine();
        let _alone = engine.commits.write();
        self.check_guards(&writes.guards)?;
        if writes.writes.is_empty() { Ok(()) } else { engine.write(writes.writes.iter()) }
    }

    /// Compares the guarded keys' values with what they are now. The caller lets nobody commit.
    fn check_guards(&self, guards: &[Bytes]) -> Result<()> {
        let engine = self.engine();
        if self.snapshot.borrow_dependent().sequence_number() == engine.db().latest_sequence_number() {
            return Ok(());
        }
        let (then, now) = (self.disk_reads(), tuning::read(Reach::Disk));
        for key in guards {
            let family = engine.handle(Family::of(key));
            let value = |options| engine.db().get_pinned_cf_opt(family, key, options).map_err(error::of_read);
            if value(&then)?.as_deref() != value(&now)?.as_deref() {
                return Err(Error::Conflict);
            }
        }
        Ok(())
    }
}

/// What a scan was asked for.
#[derive(Clone)]
struct Scan {
    range: KeyRange,
    direction: Direction,
    limit: usize,
}

impl Scan {
    /// The part of the range that follows a pair which was found already.
    fn rest(&self, last: Option<&(Bytes, Bytes)>) -> KeyRange {
        let KeyRange { start, end } = self.range.clone();
        match (last, self.direction) {
            (None, _) => KeyRange { start, end },
            // The least key above another is that key with a zero byte behind it.
            (Some((key, _)), Direction::Forward) => KeyRange::new([key, &b"\0"[..]].concat(), end),
            (Some((key, _)), Direction::Backward) => KeyRange::new(start, key.clone()),
        }
    }
}

fn copy(value: &DBPinnableSlice<'_>) -> Bytes {
    Bytes::copy_from_slice(value)
}

/// A [`View`] as the layers above see it.
///
/// Reads first ask memory alone, on the thread that polls them; what memory does not tell is read on a thread that
/// may wait for the disk.
pub(crate) struct RocksdbSnapshot {
    view: Arc<View>,
}

impl RocksdbSnapshot {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self { view: Arc::new(View::new(engine)) }
    }
}

#[async_trait]
impl Snapshot for RocksdbSnapshot {
    fn time_ms(&self) -> Option<u64> {
        None
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.view.engine().check_open()?;
        match self.view.get(key, &self.view.memory_reads) {
            Err(error) if is_incomplete(&error) => {}
            found => return found.map_err(error::of_read),
        }
        let (view, key) = (Arc::clone(&self.view), Bytes::copy_from_slice(key));
        fetch(self.view.engine(), 1, move || view.get(&key, &view.disk_reads()).map_err(error::of_read)).await
    }

    async fn multi_get(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        self.view.engine().check_open()?;
        let (mut values, unreached) = if keys.len() <= INLINE_KEYS_MAX {
            self.view.multi_get_in_memory(keys).map_err(error::of_read)?
        } else {
            (vec![None; keys.len()], (0..keys.len()).collect())
        };
        if unreached.is_empty() {
            return Ok(values);
        }
        let wanted: Vec<_> = unreached.into_iter().filter_map(|slot| Some((slot, keys.get(slot)?.clone()))).collect();
        // Lookups that have to wait for the disk are made side by side.
        let part = self.view.engine().fetches.handful().max(wanted.len().div_ceil(PARTS_MAX));
        let parts = wanted.chunks(part).map(|part| {
            let (view, part) = (Arc::clone(&self.view), part.to_vec());
            fetch(self.view.engine(), part.len(), move || view.multi_get_from_disk(&part).map_err(error::of_read))
        });
        for (slot, found) in try_join_all(parts).await?.into_iter().flatten() {
            if let Some(value) = values.get_mut(slot) {
                *value = found;
            }
        }
        Ok(values)
    }

    async fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<(Bytes, Bytes)>> {
        self.view.engine().check_open()?;
        if range.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let scan = Scan { range: range.clone(), direction, limit };
        let mut pairs = Vec::new();
        match self.view.scan(&scan, tuning::scan(Reach::Memory), INLINE_BYTES_MAX, &mut pairs) {
            Ok(true) => return Ok(pairs),
            Ok(false) => {}
            Err(error) if is_incomplete(&error) => {}
            Err(error) => return Err(error::of_read(error)),
        }
        let view = Arc::clone(&self.view);
        blocking(move || {
            view.scan(&scan, tuning::scan(Reach::Disk), usize::MAX, &mut pairs).map_err(error::of_read)?;
            Ok(pairs)
        })
        .await
    }

    async fn commit(&self, writes: WriteSet) -> Result<()> {
        let engine = self.view.engine();
        engine.check_open()?;
        if writes.guards.is_empty() {
            return group::write(engine, writes.writes).await;
        }
        limits::check(&writes.writes)?;
        let view = Arc::clone(&self.view);
        blocking(move || view.commit(&writes)).await
    }
}
