//! Getting space back: what dead keys have left behind.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use parking_lot::Mutex;
use respgate_backend_api::Direction;
use tokio::sync::Notify;

use super::{Intent, Keyspace, Result, place::Place};
use crate::{encoding::Garbage, sidecar::Names};

/// How many dead keys one unit collects.
const PAGE: usize = 256;

/// Where garbage is known to be.
#[derive(Default)]
pub(super) struct Litter {
    places: Mutex<BTreeSet<Place>>,
    added: Notify,
    /// Elements that this process knows to be dead and has not yet collected.
    elements: AtomicU64,
}

impl Litter {
    /// Notes that there may be garbage at `place`: so many elements, as far as they are counted.
    pub(super) fn add(&self, place: Place, elements: u64) {
        self.elements.fetch_add(elements, Ordering::Relaxed);
        self.places.lock().insert(place);
        self.added.notify_one();
    }

    fn collected(&self, elements: u64) {
        let less = |pending: u64| Some(pending.saturating_sub(elements));
        // Always succeeds: `less` always has a value.
        let _ = self.elements.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

impl Keyspace {
    /// Waits until there may be garbage that has not been collected.
    pub async fn littered(&self) {
        while self.litter.places.lock().is_empty() {
            self.litter.added.notified().await;
        }
    }

    /// How many elements are known to be dead and not yet collected. Encodings that do not count theirs add nothing.
    pub fn garbage_pending(&self) -> u64 {
        self.litter.elements.load(Ordering::Relaxed)
    }

    /// Looks for garbage that was left by an earlier process: at once in a store in one order. Elsewhere the sweep of orphans
    /// finds it, place by place.
    pub async fn survey_garbage(&self) -> Result<()> {
        if self.capabilities.range_partitioned {
            return Ok(());
        }
        for place in self.places_of_share(0) {
            let mut unit = self.begin(Intent::Read).await?;
            let (mut range, mut elements, mut found) = (place.garbage(&self.codec), 0, 0);
            loop {
                let page = unit.scan(&range, Direction::Forward, PAGE).await?;
                for (_, value) in &page {
                    elements += Garbage::decode(value)?.elements;
                }
                found += page.len();
                match page.last() {
                    Some((last, _)) if page.len() == PAGE => range = range.after(last),
                    _ => break,
                }
            }
            if found > 0 {
                self.litter.add(place, elements);
            }
        }
        Ok(())
    }

    /// Collects the garbage of some dead keys at one place: deletes their elements, then the records that tell of them.
    /// Returns how many keys that were; `None` if no garbage is known.
    ///
    /// Nobody can find the elements of a dead version, and whoever still reads them does so in a snapshot, so this needs
    /// no latch. A crash in between only means doing it again.
    pub async fn collect_garbage(&self) -> Result<Option<usize>> {
        let Some(place) = self.litter.places.lock().pop_first() else { return Ok(None) };
        let collected = self.collect_at(place).await;
        if !matches!(collected, Ok(keys) if keys < PAGE) {
            self.litter.add(place, 0);
        }
        collected.map(Some)
    }

    async fn collect_at(&self, place: Place) -> Result<usize> {
        let mut unit = self.begin(Intent::Write).await?;
        let page = unit.scan(&place.garbage(&self.codec), Direction::Forward, PAGE).await?;
        let (keys, mut elements) = (page.len(), 0);
        let mut in_sidecar = Vec::new();
        for (record, value) in page {
            if let Some(dead) = self.codec.decode_garbage_key(&record) {
                let garbage = Garbage::decode(&value)?;
                for range in self.codec.garbage_ranges(dead.db, dead.key, dead.version, garbage) {
                    self.backend.delete_range(range).await?;
                }
                if garbage.is_in_sidecar() && self.sidecar.is_some() {
                    in_sidecar.push((record, garbage.elements));
                    continue;
                }
                elements += garbage.elements;
            }
            unit.delete_record(record);
        }
        // A sidecar that is away must not keep the rest from being collected.
        let deleted = self.delete_orders(in_sidecar.iter().map(|(record, _)| record)).await;
        if deleted.is_ok() {
            for (record, dead) in in_sidecar {
                elements += dead;
                unit.delete_record(record);
            }
        }
        unit.commit().await?;
        self.litter.collected(elements);
        deleted.map(|()| keys)
    }

    /// Deletes from the sidecar the orders that garbage records tell of.
    async fn delete_orders(&self, garbage: impl Iterator<Item = &Bytes>) -> Result<()> {
        let Some(sidecar) = &self.sidecar else { return Ok(()) };
        let dead = garbage.filter_map(|record| self.codec.decode_garbage_key(record));
        let names = dead.map(|dead| Names::new(&self.codec, dead.db, dead.key, dead.version));
        Ok(sidecar.delete(&names.collect::<Vec<_>>()).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        keyspace::fixture::{key, keyspaces, records},
        types::{hash, key as keys, string, zset},
    };

    #[tokio::test]
    async fn a_deleted_key_leaves_nothing_after_collection() {
        for (backend, keyspace, _) in keyspaces().await {
            let mut unit = keyspace.begin(Intent::Write).await.unwrap();
            let pairs: Vec<_> = (0..2_000).map(|i| (format!("f{i}").into(), "v".into())).collect();
            hash::set(&mut unit, &key("hash"), &pairs).await.unwrap();
            zset::replace(&mut unit, &key("zset"), vec![("a".into(), 1.0), ("b".into(), 2.0)]).await.unwrap();
            string::set(&mut unit, &key("string"), "v".into(), None).unwrap();
            unit.commit().await.unwrap();
            assert_eq!(keyspace.collect_garbage().await.unwrap(), None);

            let mut unit = keyspace.begin(Intent::Write).await.unwrap();
            let names = ["hash", "zset", "string"].map(key);
            assert_eq!(keys::delete(&mut unit, &names).await.unwrap(), 3);
            unit.commit().await.unwrap();
            assert_eq!(keyspace.garbage_pending(), 2_002);
            keyspace.littered().await;
            let mut collected = 0;
            while let Some(keys) = keyspace.collect_garbage().await.unwrap() {
                collected += keys;
            }
            assert_eq!((collected, keyspace.garbage_pending()), (2, 0));
            assert_eq!(records(&*backend).await, 0);
        }
    }

    #[tokio::test]
    async fn garbage_of_an_earlier_process_is_found() {
        let (backend, keyspace, _) = keyspaces().await.swap_remove(0);
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        hash::set(&mut unit, &key("hash"), &[("f".into(), "v".into())]).await.unwrap();
        keys::delete(&mut unit, &[key("hash")]).await.unwrap();
        unit.commit().await.unwrap();
        drop(keyspace);
        let (keyspace, _) = super::super::fixture::keyspace_over(backend.clone(), Default::default()).await;
        keyspace.survey_garbage().await.unwrap();
        assert_eq!(keyspace.garbage_pending(), 1);
        assert_eq!(keyspace.collect_garbage().await.unwrap(), Some(1));
        assert_eq!(records(&*backend).await, 0);
    }
}
