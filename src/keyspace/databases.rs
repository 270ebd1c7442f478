use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;
use respgate_backend_api::KvBackend;
use tokio::sync::Notify;

use super::{Error, Intent, Keyspace, Result, Scope};
use crate::encoding::{DatabaseMap, KeyCodec};

/// Which physical database stands for each one that clients can select.
///
/// The map is a record of the store, changed by units that hold every latch, and kept here so that other units need
/// not read it. FLUSHDB and SWAPDB change the map and no other record; what a flush retired is deleted afterwards,
/// by [`Keyspace::reclaim`].
pub struct Databases {
    current: RwLock<Arc<DatabaseMap>>,
    retired: Notify,
}

impl Databases {
    pub(super) async fn load(backend: &dyn KvBackend, codec: &KeyCodec, count: u8) -> Result<Self> {
        let mut map = match backend.snapshot().await?.get(&codec.databases()).await? {
            Some(record) => DatabaseMap::decode(&record)?,
            None => DatabaseMap::identity(count),
        };
        if !map.grow(count) {
            let cause = format!("{count} databases do not fit beside those that are being deleted");
            return Err(respgate_backend_api::Error::CannotOpen(cause).into());
        }
        let databases = Self { current: RwLock::new(Arc::new(map)), retired: Notify::new() };
        databases.announce_retired();
        Ok(databases)
    }

    /// The map as last committed.
    pub fn current(&self) -> Arc<DatabaseMap> {
        Arc::clone(&self.current.read())
    }

    /// Waits until a flush has retired a physical database, or one was left over from before.
    pub async fn retired(&self) {
        self.retired.notified().await;
    }

    /// Makes a committed map the current one. Called while every latch is held.
    pub(super) fn publish(&self, map: Arc<DatabaseMap>) {
        *self.current.write() = map;
        self.announce_retired();
    }

    fn announce_retired(&self) {
        if self.current.read().retired().next().is_some() {
            self.retired.notify_one();
        }
    }
}

impl Keyspace {
    /// Deletes the records of every retired database and makes its number free again. Returns how many there were.
    ///
    /// Nothing refers to a retired database, so units go on meanwhile; a crash in between only means doing it again.
    pub async fn reclaim(&self) -> Result<usize> {
        let retired: Vec<u8> = self.databases.current().retired().collect();
        for &physical in &retired {
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
            unit.change_databases(|map| {
                map.reclaim(physical);
                Ok(())
            })?;
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
        self.change_databases(|map| {
            map.swap(first, second);
            Ok(())
        })
    }

    /// Empties a database, in O(1). The unit must have declared [`Scope::Everything`].
    ///
    /// # Errors
    /// The store is [`Unavailable`](respgate_backend_api::Error::Unavailable) while more flushed databases than there
    /// are spare numbers wait to be deleted.
    pub async fn flush_database(&mut self, db: u8) -> Result<()> {
        if self.is_database_empty(db).await? {
            return Ok(());
        }
        self.change_databases(|map| match map.flush(db) {
            Some(_) => Ok(()),
            None => {
                let cause = "too many flushed databases wait to be deleted, try again";
                Err(respgate_backend_api::Error::Unavailable(cause.to_owned()).into())
            }
        })
    }

    async fn is_database_empty(&mut self, db: u8) -> Result<bool> {
        let mut position = None;
        loop {
            let (records, next) = self.metadata_page(db, position.as_deref(), 1).await?;
            if !records.is_empty() || next.is_none() {
                return Ok(records.is_empty());
            }
            position = next;
        }
    }

    pub(super) fn change_databases(&mut self, change: impl FnOnce(&mut DatabaseMap) -> Result<()>) -> Result<()> {
        let mut map = DatabaseMap::clone(&self.databases);
        change(&mut map)?;
        let record = self.codec().databases();
        self.put_record(record, map.encode());
        self.databases = Arc::new(map);
        Ok(())
    }

    /// The user key of a metadata record.
    pub fn name_of(&self, record: &Bytes) -> Option<Bytes> {
        let (_, name) = self.codec().decode_metadata_key(record)?;
        Some(record.slice_ref(name))
    }
}
