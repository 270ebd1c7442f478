//! Getting space back: what dead keys have left behind, and keys that have expired unseen.

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange};

use super::{Intent, Key, Keyspace, Result, Scope};
use crate::encoding::{Garbage, Metadata, SLOTS};

/// How many records one unit looks at.
const PAGE: usize = 256;

/// Where a walk over all keys of all databases goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepPosition {
    db: u8,
    after: Option<Bytes>,
}

/// What one page of a sweep has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Keys looked at.
    pub seen: usize,
    /// Keys that had expired and are gone.
    pub expired: usize,
    /// Where the next page begins; `None` after the last key.
    pub next: Option<SweepPosition>,
}

impl Keyspace {
    /// Waits until a unit has left garbage behind.
    pub async fn littered(&self) {
        self.litter.notified().await;
    }

    /// Collects the garbage of some dead keys: deletes their elements, then the records that tell of them. Returns how
    /// many keys that were; none is left if it is none.
    ///
    /// Nobody can find the elements of a dead version, and whoever still reads them does so in a snapshot, so this needs
    /// no latch. A crash in between only means doing it again.
    pub async fn collect_garbage(&self) -> Result<usize> {
        let mut unit = self.begin(Intent::Write).await?;
        let mut page = Vec::new();
        for range in self.garbage_ranges() {
            page.extend(unit.scan(&range, Direction::Forward, PAGE - page.len()).await?);
            if page.len() >= PAGE {
                break;
            }
        }
        for (record, value) in &page {
            let Some(dead) = self.codec.decode_garbage_key(record) else { continue };
            for range in self.codec.garbage_ranges(dead.db, dead.key, dead.version, Garbage::decode(value)?) {
                self.backend.delete_range(range).await?;
            }
        }
        let collected = page.len();
        page.into_iter().for_each(|(record, _)| unit.delete_record(record));
        unit.commit().await?;
        Ok(collected)
    }

    /// Deletes the expired ones among the keys on the page from `position` on.
    ///
    /// Each is looked at again under its latch, so a key that was given more time meanwhile survives.
    pub async fn sweep_expired(&self, position: &SweepPosition) -> Result<Swept> {
        let mut unit = self.begin(Intent::Read).await?;
        let db = position.db;
        if unit.physical(db).is_err() {
            return Ok(Swept { seen: 0, expired: 0, next: None });
        }
        let (records, after) = unit.metadata_page(db, position.after.as_deref(), PAGE).await?;
        let (seen, now_ms) = (records.len(), unit.now_ms());
        drop(unit);
        let mut expired = 0;
        for (name, value) in records {
            if Metadata::decode(&value)?.is_expired(now_ms) {
                expired += usize::from(self.bury_expired(&Key { db, name }).await?);
            }
        }
        let next = match (after, db.checked_add(1)) {
            (Some(after), _) => Some(SweepPosition { db, after: Some(after) }),
            (None, Some(db)) => Some(SweepPosition { db, after: None }),
            (None, None) => None,
        };
        Ok(Swept { seen, expired, next })
    }

    /// Deletes `key` if it has expired. True if it had.
    async fn bury_expired(&self, key: &Key) -> Result<bool> {
        let _latches = self.latches.acquire(Scope::Keys(&[&key.name])).await;
        let mut unit = self.begin(Intent::Write).await?;
        unit.load(key).await?;
        let is_buried = unit.has_writes();
        unit.commit().await?;
        Ok(is_buried)
    }

    fn garbage_ranges(&self) -> Vec<KeyRange> {
        let databases = self.databases.current();
        let used = databases.mapped().iter().copied();
        if self.capabilities.range_partitioned {
            used.flat_map(|db| (0..SLOTS).map(move |slot| self.codec.garbage_range_of_slot(db, slot))).collect()
        } else {
            used.map(|db| self.codec.garbage_range(db)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use respgate_backend_api::{Capabilities, KvBackend};
    use respgate_backend_memory::MemoryBackend;
    use std::sync::Arc;

    use super::*;
    use crate::{
        keyspace::{
            Clock, Encodings, ManualClock,
            fixture::{key, keyspace_over},
        },
        types::{hash, key as keys, string, zset},
    };

    async fn keyspaces() -> Vec<(Arc<dyn KvBackend>, Keyspace, Arc<ManualClock>)> {
        let by_slot = Capabilities { range_partitioned: true, ..MemoryBackend::CAPABILITIES };
        let mut keyspaces = Vec::new();
        for backend in [MemoryBackend::new(), MemoryBackend::new().with_capabilities(by_slot)] {
            let backend: Arc<dyn KvBackend> = Arc::new(backend);
            let (keyspace, clock) = keyspace_over(Arc::clone(&backend), Encodings::default()).await;
            keyspaces.push((backend, keyspace, clock));
        }
        keyspaces
    }

    async fn records(backend: &dyn KvBackend) -> usize {
        let all = KeyRange::new(Bytes::new(), Bytes::from_static(&[0xff; 9]));
        backend.snapshot().await.unwrap().scan(&all, Direction::Forward, usize::MAX).await.unwrap().len()
    }

    async fn fill(keyspace: &Keyspace) {
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        let pairs: Vec<_> = (0..2_000).map(|i| (Bytes::from(format!("f{i}")), Bytes::from("v"))).collect();
        hash::set(&mut unit, &key("hash"), &pairs).await.unwrap();
        let members = vec![(Bytes::from("a"), 1.0), (Bytes::from("b"), 2.0)];
        zset::replace(&mut unit, &key("zset"), members).await.unwrap();
        string::set(&mut unit, &key("string"), Bytes::from("v"), None).unwrap();
        unit.commit().await.unwrap();
    }

    async fn expire(keyspace: &Keyspace, names: &[&'static str], at_ms: u64) {
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        for name in names {
            let metadata = unit.load(&key(name)).await.unwrap().unwrap();
            let expires_at_ms = Some(i64::try_from(at_ms).unwrap());
            unit.save(&key(name), &Metadata { expires_at_ms, ..metadata }).unwrap();
        }
        unit.commit().await.unwrap();
    }

    async fn sweep(keyspace: &Keyspace) -> usize {
        let (mut position, mut expired) = (Some(SweepPosition::default()), 0);
        while let Some(from) = position {
            let swept = keyspace.sweep_expired(&from).await.unwrap();
            expired += swept.expired;
            position = swept.next;
        }
        expired
    }

    #[tokio::test]
    async fn a_deleted_key_leaves_nothing_after_collection() {
        for (backend, keyspace, _) in keyspaces().await {
            fill(&keyspace).await;
            let mut unit = keyspace.begin(Intent::Write).await.unwrap();
            let names = ["hash", "zset", "string"].map(key);
            assert_eq!(keys::delete(&mut unit, &names).await.unwrap(), 3);
            unit.commit().await.unwrap();
            keyspace.littered().await;
            assert_eq!(keyspace.collect_garbage().await.unwrap(), 2);
            assert_eq!(records(&*backend).await, 0);
            assert_eq!(keyspace.collect_garbage().await.unwrap(), 0);
        }
    }

    #[tokio::test]
    async fn expired_keys_go_and_others_stay() {
        for (backend, keyspace, clock) in keyspaces().await {
            fill(&keyspace).await;
            expire(&keyspace, &["hash", "string"], clock.now_ms() + 5).await;
            assert_eq!(sweep(&keyspace).await, 0);
            clock.advance_ms(6);
            assert_eq!(sweep(&keyspace).await, 2);
            while keyspace.collect_garbage().await.unwrap() > 0 {}
            // The metadata of the sorted set, and two records for each of its two members.
            assert_eq!(records(&*backend).await, 5);
        }
    }
}
