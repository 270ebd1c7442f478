//! The records of a unit's keys other than metadata: one by one, several in one call to the store, and ahead of those who
//! will ask for them.

use std::{
    future::{Future, poll_fn},
    pin::pin,
};

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange};

use super::{Intent, Result, Unit};

/// How many elements a unit reads ahead at first.
pub(super) const AHEAD_FIRST: u64 = 8;

/// How many it reads ahead at most.
const AHEAD_MAX: u64 = 64;

/// True if a value is short enough to be cached as an element.
pub(super) fn is_short(value: &Bytes) -> bool {
    const BYTES_MAX: usize = 4 * 1024;

    value.len() <= BYTES_MAX
}

/// Awaits `read`, and notes if it is not there at once.
async fn noting_a_wait<T>(has_waited: &mut bool, read: impl Future<Output = T>) -> T {
    let mut read = pin!(read);
    poll_fn(|context| {
        let polled = read.as_mut().poll(context);
        *has_waited |= polled.is_pending();
        polled
    })
    .await
}

impl Unit<'_> {
    /// The value of a record of a key that the unit has declared, own writes included.
    pub async fn read(&mut self, record: &Bytes) -> Result<Option<Bytes>> {
        if let Some(value) = self.known(record) {
            return Ok(value);
        }
        let snapshot = self.snapshot().await?;
        let value = noting_a_wait(&mut self.has_waited, snapshot.get(record)).await?;
        self.learn(record, &value);
        Ok(value)
    }

    /// The values of several records of keys that the unit has declared, own writes included, in one call to the store.
    pub async fn read_many(&mut self, records: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        /// Of more records than this it is not worth keeping each.
        const CACHED_MAX: usize = 128;

        let is_cached = records.len() <= CACHED_MAX;
        let mut values: Vec<Option<Option<Bytes>>> = if is_cached {
            records.iter().map(|record| self.known(record)).collect()
        } else {
            records.iter().map(|record| self.overlay.get(record).cloned()).collect()
        };
        let unknown = records.iter().zip(&values).filter(|(_, value)| value.is_none());
        let unknown: Vec<Bytes> = unknown.map(|(record, _)| record.clone()).collect();
        if !unknown.is_empty() {
            let read = self.fetch(&unknown).await?;
            if is_cached {
                unknown.iter().zip(&read).for_each(|(record, value)| self.learn(record, value));
            }
            let gaps = values.iter_mut().filter(|value| value.is_none());
            gaps.zip(read).for_each(|(gap, value)| *gap = Some(value));
        }
        Ok(values.into_iter().map(Option::flatten).collect())
    }

    /// The value of a record of any key, own writes included, as the snapshot has it.
    pub async fn peek(&mut self, record: &Bytes) -> Result<Option<Bytes>> {
        if let Some(value) = self.overlay.get(record) {
            return Ok(value.clone());
        }
        Ok(self.snapshot().await?.get(record).await?)
    }

    /// The values of several records as the snapshot has them.
    pub(super) async fn fetch(&mut self, records: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        let snapshot = self.snapshot().await?;
        Ok(noting_a_wait(&mut self.has_waited, snapshot.multi_get(records)).await?)
    }

    /// What the unit knows of a record without asking the store.
    fn known(&mut self, record: &Bytes) -> Option<Option<Bytes>> {
        if let Some(value) = self.overlay.get(record) {
            return Some(value.clone());
        }
        let cache = self.keyspace().cache.as_ref().filter(|_| self.codec().is_element(record))?;
        let value = cache.get(record)?;
        if !self.is_of_its_moment() {
            return None;
        }
        if self.intent == Intent::Write {
            // It will be known to the commit.
            self.overlay.remember(record.clone(), value.clone());
        }
        Some(value)
    }

    /// True if what has just been found in the cache is what a snapshot of the unit's moment says.
    pub(super) fn is_of_its_moment(&mut self) -> bool {
        match self.intent {
            // The key is latched, so it is what was committed last.
            Intent::Write => true,
            Intent::Read if self.keyspace().epoch() != self.epoch => false,
            Intent::Read => {
                self.trusts_cache |= self.snapshot.is_none();
                true
            }
        }
    }

    /// Keeps what the snapshot says about an element.
    fn learn(&mut self, record: &Bytes, value: &Option<Bytes>) {
        let Some(cache) = self.keyspace().cache.as_ref().filter(|_| self.codec().is_element(record)) else { return };
        if !value.as_ref().is_none_or(is_short) {
            return;
        }
        match self.intent {
            Intent::Write => self.overlay.remember(record.clone(), value.clone()),
            Intent::Read => cache.fill(record, value, self.epoch),
        }
    }

    /// How many elements to read before they are asked for: few at first, for nobody knows how long they are, and none once
    /// there was a long one.
    pub fn ahead(&self) -> u64 {
        self.ahead
    }

    /// True if the unit has had to wait for something that it read: the store is far away, or the records are on a disk.
    /// What is in memory is had as cheaply one by one.
    pub fn has_waited(&self) -> bool {
        self.has_waited
    }

    /// Reads elements that will be asked for one by one, in one call to the store.
    pub async fn read_ahead_each(&mut self, records: Vec<Bytes>) -> Result<()> {
        let mut unknown: Vec<Bytes> = records.into_iter().filter(|record| !self.knows(record)).collect();
        if let Some(cache) = &self.keyspace().cache {
            let recalled: Vec<_> = cache.get_many(&unknown).collect();
            let is_usable = recalled.iter().any(Option::is_some) && self.is_of_its_moment();
            let mut recalled = recalled.into_iter().map(|value| value.filter(|_| is_usable));
            unknown.retain(|record| match recalled.next().flatten() {
                Some(value) => {
                    self.overlay.remember(record.clone(), value);
                    false
                }
                None => true,
            });
        }
        if !unknown.is_empty() {
            let found = self.fetch(&unknown).await?;
            unknown.iter().zip(&found).for_each(|(record, value)| self.learn(record, value));
            self.remember_ahead(unknown.into_iter().zip(found));
        }
        Ok(())
    }

    /// Reads the elements in a short range that will be asked for one by one, in one call to the store.
    pub async fn scan_ahead(&mut self, range: &KeyRange) -> Result<()> {
        let found = self.snapshot().await?.scan(range, Direction::Forward, usize::MAX).await?;
        self.remember_ahead(found.into_iter().map(|(record, value)| (record, Some(value))));
        Ok(())
    }

    /// Keeps what was read ahead, without what is long.
    fn remember_ahead(&mut self, found: impl Iterator<Item = (Bytes, Option<Bytes>)>) {
        self.ahead = (self.ahead * 2).min(AHEAD_MAX);
        for (record, value) in found {
            if !value.as_ref().is_none_or(is_short) {
                self.ahead = 0;
            } else if !self.knows(&record) {
                self.overlay.remember(record, value);
            }
        }
    }

    /// True if the unit knows the value of a record without asking the store or the cache.
    pub fn knows(&self, record: &[u8]) -> bool {
        self.overlay.get(record).is_some()
    }

    /// True if the unit itself has deleted a record.
    pub fn has_deleted(&self, record: &[u8]) -> bool {
        self.overlay.has_deleted(record)
    }

    /// The value of a record if the unit itself has written it.
    pub fn written(&self, record: &[u8]) -> Option<Bytes> {
        self.overlay.written(record)
    }

    /// Writes a record other than metadata.
    pub fn put_record(&mut self, record: Bytes, value: impl Into<Bytes>) {
        self.overlay.write(record, Some(value.into()));
    }

    /// Deletes a record other than metadata.
    pub fn delete_record(&mut self, record: Bytes) {
        self.overlay.write(record, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::{Encodings, fixture::keyspace};

    #[tokio::test]
    async fn what_is_read_ahead_is_what_is_there_and_short() {
        let keyspace = keyspace(Encodings::default()).await.0;
        let codec = keyspace.codec();
        let [short, long, gone, own] =
            [b"short", b"long ", b"gone ", b"own  "].map(|name| codec.element(0, b"key", 1, name));
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        for (record, value) in [(&short, vec![1]), (&long, vec![2; 1 << 20]), (&own, vec![3])] {
            unit.put_record(record.clone(), value);
        }
        unit.commit().await.unwrap();
        let all = [&short, &long, &gone, &own].map(Bytes::clone);
        let expected = [Some(vec![1].into()), Some(vec![2; 1 << 20].into()), None, Some(Bytes::from("own"))];
        for intent in [Intent::Write, Intent::Read] {
            let mut unit = keyspace.begin(intent).await.unwrap();
            unit.put_record(own.clone(), "own");
            unit.read_ahead_each(vec![short.clone(), gone.clone(), own.clone()]).await.unwrap();
            assert!(unit.knows(&short) && unit.knows(&gone) && unit.ahead() > AHEAD_FIRST);
            unit.read_ahead_each(all.to_vec()).await.unwrap();
            assert!(!unit.knows(&long) && unit.ahead() == 0);
            assert_eq!(unit.read_many(&all).await.unwrap(), expected);
        }
    }
}
