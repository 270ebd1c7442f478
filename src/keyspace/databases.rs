use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use respgate_backend_api::{KvBackend, Snapshot};
use tokio::sync::Notify;

use super::{Error, Intent, Keyspace, Result, Scope};
use crate::encoding::{DatabaseMap, KeyCodec};

/// For how long a gateway may use the map that it has read, by the time of the store.
///
/// Short, because whoever changes the map waits that long, and long enough that reading it again costs next to nothing.
const LEASE_MS: u64 = 100;

/// How old the map may become before the next unit reads it again, so that [`Glance`]s need not wait for that.
///
/// The time of a placement driver moves on in steps of 50 ms.
const RENEWAL_MS: u64 = 40;

/// For how long a gateway may use the map without a snapshot, by its own time. Less than a lease, because clocks differ.
pub(super) const GLANCE: Duration = Duration::from_millis(80);

/// How long a commit that SWAPDB must not overtake may take.
const COMMIT_MS: u64 = 1_000;

/// Which physical database stands for each one that clients can select.
///
/// The map is a record of the store, and kept here so that units need not read it. FLUSHDB and SWAPDB change the map and
/// no other record; what a flush retired is deleted afterwards, by [`Keyspace::reclaim`].
///
/// A store that one process has for itself: the map is changed by units that hold every latch.
///
/// A store that gateways share: a map is used by units whose snapshot is at most a *lease* younger than the one that it was
/// read from. Whoever changes it first [announces](Keyspace::announce_change) that in the record, and waits for a lease.
/// A map that is announced to change is read by each unit for itself. So when the change is committed, no unit uses the
/// old map whose snapshot could be younger than the change. The map also tells which databases nothing has been written
/// to, for nobody could see that of so many slots at a glance.
pub struct Databases {
    count: u8,
    is_shared: bool,
    known: RwLock<Known>,
    /// The announcement that this gateway has waited for, and since when by the time of the store and by its own.
    announced: Mutex<Option<(u64, u64, Instant)>>,
    retired: Notify,
}

/// The map as last read or committed.
struct Known {
    map: Arc<DatabaseMap>,
    /// `None` if it may be used by nobody without reading it again.
    read_at: Option<ReadAt>,
}

/// When the map was read.
#[derive(Clone, Copy)]
struct ReadAt {
    /// The time of the snapshot.
    time_ms: u64,
    /// By the time of this process: before the snapshot was asked for, ...
    began: Instant,
    /// ... and when it was there.
    begun: Instant,
}

/// The right to go by a map of databases without a snapshot, for a little while.
pub(super) struct Glance {
    pub(super) map: Arc<DatabaseMap>,
    /// About the time of the store.
    pub(super) now_ms: u64,
    until: Instant,
}

impl Glance {
    /// False if what has been read might be of other databases by now.
    pub(super) fn is_valid(&self) -> bool {
        Instant::now() < self.until
    }
}

impl Databases {
    /// The map of a store: read from it, if one process has it for itself, and otherwise left to the units.
    pub(super) async fn open(backend: &dyn KvBackend, codec: &KeyCodec, count: u8) -> Result<Self> {
        let is_shared = backend.capabilities().shared;
        let unread = if is_shared { DatabaseMap::shared(count) } else { DatabaseMap::identity(count) };
        let known = RwLock::new(Known { map: Arc::new(unread), read_at: None });
        let databases = Self { count, is_shared, known, announced: Mutex::new(None), retired: Notify::new() };
        if !is_shared {
            let map = databases.read(&*backend.snapshot().await?, codec).await?;
            databases.publish(map);
        }
        Ok(databases)
    }

    /// The map as last committed here or, on a shared store, as last read.
    pub fn current(&self) -> Arc<DatabaseMap> {
        Arc::clone(&self.known.read().map)
    }

    /// The map that a unit on a shared store goes by, whose snapshot this is, and which asked for it at `began`.
    pub(super) async fn at(
        &self,
        snapshot: &dyn Snapshot,
        codec: &KeyCodec,
        began: Instant,
    ) -> Result<Arc<DatabaseMap>> {
        let now_ms = snapshot.time_ms();
        if let Some(map) = now_ms.and_then(|now_ms| self.leased(now_ms, began)) {
            return Ok(map);
        }
        let begun = Instant::now();
        let map = self.read(snapshot, codec).await?;
        let mut known = self.known.write();
        if now_ms >= known.read_at.map(|read_at| read_at.time_ms) {
            let now_ms = now_ms.filter(|_| map.announced_at_ms().is_none());
            let read_at = now_ms.map(|time_ms| ReadAt { time_ms, began, begun });
            *known = Known { map: Arc::clone(&map), read_at };
        }
        drop(known);
        self.announce_retired();
        Ok(map)
    }

    /// The known map, if a snapshot of this time that was asked for at `began` may use it: one that is surely younger than
    /// what the map was read from.
    fn leased(&self, now_ms: u64, began: Instant) -> Option<Arc<DatabaseMap>> {
        let known = self.known.read();
        let ReadAt { time_ms, begun, .. } = known.read_at?;
        let is_younger = time_ms < now_ms || begun <= began;
        (is_younger && now_ms < time_ms + RENEWAL_MS).then(|| Arc::clone(&known.map))
    }

    /// The known map, for whoever reads what was committed last and is done before [`GLANCE`] is over. Nobody can have changed
    /// the map by then: who announces that after it was read waits for a lease, by their own time too, which goes nearly as
    /// fast as ours.
    pub(super) fn glance(&self) -> Option<Glance> {
        let known = self.known.read();
        let ReadAt { time_ms, began, .. } = known.read_at?;
        let now_ms = time_ms + u64::try_from(began.elapsed().as_millis()).ok()?;
        Some(Glance { map: Arc::clone(&known.map), now_ms, until: began + GLANCE }).filter(Glance::is_valid)
    }

    /// The map as a snapshot has it.
    pub(super) async fn read(&self, snapshot: &dyn Snapshot, codec: &KeyCodec) -> Result<Arc<DatabaseMap>> {
        let mut map = match snapshot.get(&codec.databases()).await? {
            Some(record) => DatabaseMap::decode(&record)?,
            None if self.is_shared => DatabaseMap::shared(self.count),
            None => DatabaseMap::identity(self.count),
        };
        if !map.grow(self.count) {
            let cause = format!("{} databases do not fit beside those that are being deleted", self.count);
            return Err(respgate_backend_api::Error::CannotOpen(cause).into());
        }
        Ok(Arc::new(map))
    }

    /// Waits until a flush has retired a physical database, or one was left over from before.
    pub async fn retired(&self) {
        self.retired.notified().await;
    }

    /// Makes a committed map the current one. Called while every latch is held.
    pub(super) fn publish(&self, map: Arc<DatabaseMap>) {
        *self.known.write() = Known { map, read_at: None };
        self.announce_retired();
    }

    fn announce_retired(&self) {
        if self.known.read().map.retired().next().is_some() {
            self.retired.notify_one();
        }
    }

    /// True if `map` was announced to change, and this gateway has waited for so long since.
    fn may_change(&self, map: &DatabaseMap, now_ms: u64, wait_ms: u64) -> bool {
        let announced = *self.announced.lock();
        announced.is_some_and(|(at_ms, since_ms, since)| {
            // The time of the store goes in steps, and forward when another driver takes over.
            map.announced_at_ms() == Some(at_ms)
                && now_ms > since_ms.saturating_add(wait_ms)
                && since.elapsed() > Duration::from_millis(wait_ms)
        })
    }
}

impl Keyspace {
    /// Announces that the map of databases is about to change, if nobody has, and waits until `wait_ms` milliseconds of the
    /// store's time have passed since.
    pub async fn announce_change(&self, wait_ms: u64) -> Result<()> {
        let announced_at_ms = loop {
            match self.try_to_announce().await {
                Err(Error::Store(respgate_backend_api::Error::Conflict)) => tokio::task::yield_now().await,
                announced => break announced?,
            }
        };
        let known = self.databases.announced.lock().filter(|(at_ms, ..)| *at_ms == announced_at_ms);
        let (since_ms, since) = match known {
            Some((_, since_ms, since)) => (since_ms, since),
            None => (self.store_time_ms().await?, Instant::now()),
        };
        *self.databases.announced.lock() = Some((announced_at_ms, since_ms, since));
        let mut left_ms = wait_ms;
        while left_ms > 0 {
            tokio::time::sleep(Duration::from_millis(left_ms)).await;
            left_ms = (since_ms.saturating_add(wait_ms) + 1).saturating_sub(self.store_time_ms().await?);
        }
        Ok(())
    }

    /// When the change of the map was announced, by this gateway if it was not yet.
    async fn try_to_announce(&self) -> Result<u64> {
        let mut unit = self.begin(Intent::Write).await?;
        let snapshot = unit.snapshot().await?;
        let mut map = DatabaseMap::clone(&*self.databases.read(&*snapshot, &self.codec).await?);
        if let Some(at_ms) = map.announced_at_ms() {
            return Ok(at_ms);
        }
        let at_ms = u64::try_from(unit.now_ms()).unwrap_or_default();
        map.announce(Some(at_ms));
        unit.put_databases(map);
        unit.commit().await?;
        Ok(at_ms)
    }

    async fn store_time_ms(&self) -> Result<u64> {
        Ok(self.backend.snapshot().await?.time_ms().unwrap_or_else(|| self.clock.now_ms()))
    }

    /// Deletes the records of every retired database and makes its number free again. Returns how many there were.
    ///
    /// Nothing refers to a retired database, so units go on meanwhile; a crash in between only means doing it again.
    pub async fn reclaim(&self) -> Result<usize> {
        let retired: Vec<u8> = self.databases.current().retired().collect();
        for &physical in &retired {
            if self.capabilities.shared {
                self.forget_database(physical).await?;
                self.reclaim_shared(physical).await?;
                continue;
            }
            // The number may come back with other keys.
            if let Some(cache) = &self.cache {
                cache.expire_all().await;
            }
            for place in self.places_of_database(physical) {
                for range in place.everything(&self.codec) {
                    self.backend.delete_range(range).await?;
                }
            }
            self.tally.forget(physical).await;
            self.forget_database(physical).await?;
            let _latches = self.latches.acquire(Scope::Everything).await;
            let mut unit = self.begin(Intent::Write).await?;
            unit.set_database_free(physical);
            unit.commit().await?;
        }
        Ok(retired.len())
    }
}

impl super::Unit<'_> {
    /// The number that stands for database `db` in records.
    ///
    /// # Errors
    /// [`Error::NoSuchDatabase`] if clients cannot select it.
    pub fn physical(&self, db: u8) -> Result<u8> {
        self.databases.physical(db).ok_or(Error::NoSuchDatabase)
    }

    /// Exchanges two databases, in O(1). The unit must have declared [`Scope::Everything`].
    pub fn swap_databases(&mut self, first: u8, second: u8) -> Result<()> {
        self.physical(first).and(self.physical(second))?;
        self.change_databases(LEASE_MS + COMMIT_MS, |map| {
            map.swap(first, second);
            Ok(())
        })
    }

    /// Empties databases, each in O(1). The unit must have declared [`Scope::Everything`].
    ///
    /// # Errors
    /// The store is [`Unavailable`](respgate_backend_api::Error::Unavailable) while more flushed databases than there
    /// are spare numbers wait to be deleted.
    pub async fn flush_databases(&mut self, dbs: impl IntoIterator<Item = u8>) -> Result<()> {
        // That a database is in use is announced by nobody: the map may be too old to tell.
        if self.keyspace().capabilities().shared && !self.has_changed_databases() {
            self.reread_databases().await?;
        }
        let mut used = Vec::new();
        for db in dbs {
            if !self.is_database_empty(db).await? {
                used.push(db);
            }
        }
        if used.is_empty() {
            return Ok(());
        }
        self.change_databases(LEASE_MS, |map| {
            if used.into_iter().all(|db| map.flush(db).is_some()) {
                return Ok(());
            }
            let cause = "too many flushed databases wait to be deleted, try again";
            Err(respgate_backend_api::Error::Unavailable(cause.to_owned()).into())
        })
    }

    async fn is_database_empty(&mut self, db: u8) -> Result<bool> {
        if self.keyspace().capabilities().shared {
            self.physical(db)?;
            return Ok(!self.databases.is_in_use(db) && self.touched.iter().all(|key| key.db != db));
        }
        let mut position = None;
        loop {
            let (records, next) = self.metadata_page(db, position.as_deref(), 1).await?;
            if !records.is_empty() || next.is_none() {
                return Ok(records.is_empty());
            }
            position = next;
        }
    }

    /// Changes the map; on a shared store, if that was announced for at least `wait_ms`.
    fn change_databases(&mut self, wait_ms: u64, change: impl FnOnce(&mut DatabaseMap) -> Result<()>) -> Result<()> {
        let mut map = DatabaseMap::clone(&self.databases);
        let keyspace = self.keyspace();
        if keyspace.capabilities().shared {
            let now_ms = u64::try_from(self.now_ms()).unwrap_or_default();
            if !self.has_changed_databases() && !keyspace.databases.may_change(&map, now_ms, wait_ms) {
                return Err(Error::Unannounced { wait_ms });
            }
            map.announce(None);
            // Under the names that they have now.
            for key in &self.touched {
                map.put_in_use(key.db);
            }
        }
        change(&mut map)?;
        self.put_databases(map);
        Ok(())
    }

    /// Goes by the map as the unit's own snapshot has it, and conflicts if it is not that any more at the end.
    pub(super) async fn reread_databases(&mut self) -> Result<&DatabaseMap> {
        let snapshot = self.snapshot().await?;
        let map = self.keyspace().databases.read(&*snapshot, self.codec()).await?;
        self.go_by(map);
        self.guard(self.codec().databases());
        Ok(&self.databases)
    }

    /// Makes the number of a retired database free again: no unit goes by that number, so it needs no announcement.
    pub(super) fn set_database_free(&mut self, physical: u8) {
        let mut map = DatabaseMap::clone(&self.databases);
        if map.reclaim(physical) {
            self.put_databases(map);
        }
    }

    fn put_databases(&mut self, map: DatabaseMap) {
        let record = self.codec().databases();
        if self.keyspace().capabilities().shared {
            self.guard(record.clone());
        }
        self.put_record(record, map.encode());
        self.databases = Arc::new(map);
    }

    /// Notes in the map, if need be, that something is written to these databases. Who flushes them would otherwise take
    /// them for empty.
    pub(super) async fn put_databases_in_use(&mut self, snapshot: &dyn Snapshot) -> Result<()> {
        let unused: BTreeSet<u8> =
            self.touched.iter().map(|key| key.db).filter(|db| !self.databases.is_in_use(*db)).collect();
        if unused.is_empty() {
            return Ok(());
        }
        // The map that the unit goes by may be a little older, and lack what others have noted.
        let mut map = if self.has_changed_databases() {
            DatabaseMap::clone(&self.databases)
        } else {
            DatabaseMap::clone(&*self.keyspace().databases.read(snapshot, self.codec()).await?)
        };
        let changed = unused.into_iter().filter(|db| map.put_in_use(*db)).count();
        if changed > 0 {
            self.put_databases(map);
        }
        Ok(())
    }

    /// The user key of a metadata record.
    pub fn name_of(&self, record: &Bytes) -> Option<Bytes> {
        let (_, name) = self.codec().decode_metadata_key(record)?;
        Some(record.slice_ref(name))
    }
}

#[cfg(test)]
mod tests;
