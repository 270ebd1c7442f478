use bytes::Bytes;

use super::{Error, Intent, Key, Result, Unit, place::Place};
use crate::encoding::{Metadata, Type, slot};

/// A record with its value, or `None` if it does not exist.
type Known = (Bytes, Option<Bytes>);

impl Unit<'_> {
    /// Reads the metadata of `keys` ahead: from the cache, and what that does not know in one call to the store.
    pub async fn read_ahead(&mut self, keys: &[Key]) -> Result<()> {
        let (mut known, mut unknown) = self.recall(keys)?;
        if self.intent == Intent::Read {
            let needs_store = |(_, value): &Known| value.as_ref().is_some_and(|value| !Metadata::is_whole(value));
            if !unknown.is_empty() || known.iter().any(needs_store) {
                (known, unknown) = self.join_snapshot(keys, known, unknown).await?;
            }
            self.trusts_cache |= self.snapshot.is_none() && !known.is_empty();
        }
        for (record, value) in known {
            self.overlay.remember(record, value);
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let values = self.fetch(&unknown).await?;
        for (record, value) in unknown.into_iter().zip(values) {
            match &self.keyspace().cache {
                Some(cache) if self.intent == Intent::Read => cache.fill(&record, &value, self.epoch),
                Some(_) => self.learned.push(record.clone()),
                None => {}
            }
            self.overlay.remember(record, value);
        }
        Ok(())
    }

    /// Looks for the metadata of `keys` in the cache: what it knows, and the records of which it knows nothing.
    ///
    /// What a unit that writes finds there is what the store says, because it has latched its keys. For others it is
    /// of the unit's moment only if nothing has been committed since that.
    fn recall(&mut self, keys: &[Key]) -> Result<(Vec<Known>, Vec<Bytes>)> {
        let mut wanted = Vec::with_capacity(keys.len());
        for key in keys {
            let record = self.metadata_record(key)?;
            if self.overlay.get(&record).is_none() {
                wanted.push(record);
            }
        }
        let Some(cache) = &self.keyspace().cache else { return Ok((Vec::new(), wanted)) };
        let (mut known, mut unknown) = (Vec::with_capacity(wanted.len()), Vec::new());
        let recalled: Vec<_> = cache.get_many(&wanted).collect();
        for (record, value) in wanted.into_iter().zip(recalled) {
            match value {
                Some(value) => known.push((record, value)),
                None => unknown.push(record),
            }
        }
        if self.intent == Intent::Read && !known.is_empty() && self.keyspace().epoch() != self.epoch {
            unknown.extend(known.drain(..).map(|(record, _)| record));
        }
        Ok((known, unknown))
    }

    /// Opens the snapshot, and lets go of what is known if that may be of another moment, or of other databases.
    async fn join_snapshot(
        &mut self,
        keys: &[Key],
        known: Vec<Known>,
        unknown: Vec<Bytes>,
    ) -> Result<(Vec<Known>, Vec<Bytes>)> {
        let (epoch, databases) = (self.epoch, self.databases.clone());
        self.snapshot().await?;
        if self.keyspace().epoch() == epoch && *self.databases == *databases {
            return Ok((known, unknown));
        }
        let records: Result<Vec<Bytes>> = keys.iter().map(|key| self.metadata_record(key)).collect();
        Ok((Vec::new(), records?.into_iter().filter(|record| self.overlay.get(record).is_none()).collect()))
    }

    /// The metadata of `key`, if the key is alive. An expired key does not exist; a unit that writes buries it.
    pub async fn load(&mut self, key: &Key) -> Result<Option<Metadata>> {
        let mut record = self.metadata_record(key)?;
        if self.overlay.get(&record).is_none() {
            self.read_ahead(std::slice::from_ref(key)).await?;
            // The snapshot may have come with another map of databases.
            record = self.metadata_record(key)?;
        }
        let Some(Some(value)) = self.overlay.get(&record) else { return Ok(None) };
        let metadata = Metadata::decode(value)?;
        if !metadata.is_expired(self.now_ms()) {
            return Ok(Some(metadata));
        }
        if self.intent == Intent::Write {
            self.overlay.write(record, None);
            self.bury(key, &metadata)?;
            self.expired += 1;
        }
        Ok(None)
    }

    /// The metadata of `key`, if the key is alive.
    ///
    /// # Errors
    /// [`Error::WrongType`] if it is of another type than `kind`.
    pub async fn load_as(&mut self, key: &Key, kind: Type) -> Result<Option<Metadata>> {
        match self.load(key).await? {
            Some(metadata) if metadata.kind() != kind => Err(Error::WrongType),
            metadata => Ok(metadata),
        }
    }

    /// The metadata of several keys, as [`Unit::load`] gives it, read in one call to the store.
    pub async fn load_many(&mut self, keys: &[Key]) -> Result<Vec<Option<Metadata>>> {
        if keys.len() > 1 {
            self.read_ahead(keys).await?;
        }
        let mut loaded = Vec::with_capacity(keys.len());
        for key in keys {
            loaded.push(self.load(key).await?);
        }
        Ok(loaded)
    }

    /// The metadata of keys that the unit has not declared, read in one call to the store. Having no latch on them it
    /// leaves them alone even if they have expired.
    pub async fn peek_many(&mut self, keys: &[Key]) -> Result<Vec<Option<Metadata>>> {
        self.ready_to_read().await?;
        let mut records = Vec::with_capacity(keys.len());
        for key in keys {
            records.push(self.codec().metadata(self.physical(key.db)?, &key.name));
        }
        let mut values = Vec::with_capacity(records.len());
        let snapshot = self.snapshot().await?;
        for (record, stored) in records.iter().zip(snapshot.multi_get(&records).await?) {
            values.push(self.overlay.get(record).cloned().unwrap_or(stored));
        }
        let decoded = values.into_iter().map(|value| value.map(|value| Metadata::decode(&value)).transpose());
        decoded.map(|metadata| Ok(metadata?.filter(|metadata| !metadata.is_expired(self.now_ms())))).collect()
    }

    /// Writes the metadata of `key`, whatever was there. Who replaces a key that may have elements buries it first.
    pub fn save(&mut self, key: &Key, metadata: &Metadata) -> Result<()> {
        let record = self.metadata_record(key)?;
        self.overlay.write(record, Some(metadata.encode()));
        self.touch(key);
        Ok(())
    }

    /// Deletes `key`, whose metadata is `metadata`, in O(1): its elements become garbage.
    pub fn remove(&mut self, key: &Key, metadata: &Metadata) -> Result<()> {
        self.delete_metadata(key)?;
        self.bury(key, metadata)
    }

    /// Deletes `key`, whose metadata is `metadata`, and of whose elements none is left.
    pub fn forget(&mut self, key: &Key, metadata: &Metadata) -> Result<()> {
        self.delete_metadata(key)?;
        self.end_forwarding(key, metadata)
    }

    /// Gives the value and the expiry of `from`, which are `metadata`, to `to`, in the same database and in O(1): elements
    /// stay where they are. Nothing may be at `to` any more.
    pub fn rename(&mut self, from: &Key, to: &Key, metadata: Metadata) -> Result<()> {
        self.delete_metadata(from)?;
        if !metadata.has_elements() {
            return self.save(to, &metadata);
        }
        let owner = metadata.origin.as_ref().unwrap_or(&from.name).clone();
        let forwarding = self.codec().forwarding(self.physical(to.db)?, &owner, metadata.version);
        let is_back = owner == to.name;
        self.overlay.write(forwarding, (!is_back).then(|| to.name.clone()));
        self.save(to, &Metadata { origin: (!is_back).then_some(owner), ..metadata })
    }

    /// Records that the elements of `metadata`, once under `key`, belong to nobody any more.
    pub fn bury(&mut self, key: &Key, metadata: &Metadata) -> Result<()> {
        if let Some(garbage) = metadata.garbage() {
            let owner = metadata.origin.as_ref().unwrap_or(&key.name);
            let record = self.codec().garbage(self.physical(key.db)?, owner, metadata.version);
            self.overlay.write(record, Some(garbage.encode()));
            let slot = self.keyspace().capabilities.range_partitioned.then(|| slot(owner));
            self.litter.push((Place { db: self.physical(key.db)?, slot }, garbage.elements));
        }
        self.end_forwarding(key, metadata)
    }

    /// Deletes the record that tells the sweep of orphans where the key of some elements went.
    fn end_forwarding(&mut self, key: &Key, metadata: &Metadata) -> Result<()> {
        if let Some(origin) = &metadata.origin {
            let forwarding = self.codec().forwarding(self.physical(key.db)?, origin, metadata.version);
            self.overlay.write(forwarding, None);
        }
        Ok(())
    }

    fn delete_metadata(&mut self, key: &Key) -> Result<()> {
        let record = self.metadata_record(key)?;
        self.overlay.write(record, None);
        self.touch(key);
        Ok(())
    }

    /// Notes that `key` has changed, for those who watch it. [`Unit::save`] and [`Unit::remove`] do this by themselves.
    pub fn touch(&mut self, key: &Key) {
        self.touched.push(key.clone());
    }

    /// The metadata record of `key` as it is stored, if the key is alive: another one after each change that other gateways
    /// make.
    pub async fn state(&mut self, key: &Key) -> Result<Option<Bytes>> {
        if self.load(key).await?.is_none() {
            return Ok(None);
        }
        let record = self.metadata_record(key)?;
        Ok(self.overlay.get(&record).cloned().flatten())
    }

    /// Gives the metadata of all keys that have changed a new stamp, whether it has changed itself or not.
    pub(super) fn stamp_changes(&mut self) -> Result<()> {
        let stamp = self.new_version();
        for key in std::mem::take(&mut self.touched) {
            let record = self.codec().metadata(self.physical(key.db)?, &key.name);
            if let Some(Some(value)) = self.overlay.get(&record) {
                let stamped = Metadata::stamp(value, stamp)?;
                self.overlay.write(record, Some(stamped));
            }
            self.touched.push(key);
        }
        Ok(())
    }

    /// The record key of `key`'s metadata, which the unit guards where others may write to the store.
    fn metadata_record(&mut self, key: &Key) -> Result<Bytes> {
        let record = self.codec().metadata(self.physical(key.db)?, &key.name);
        if self.intent == Intent::Write && self.keyspace().capabilities.shared {
            self.guard(record.clone());
        }
        Ok(record)
    }

    /// A unit that takes no latch must read through the map of databases that belongs to its snapshot.
    pub async fn ready_to_read(&mut self) -> Result<()> {
        if self.snapshot.is_none() && self.intent == Intent::Read {
            self.snapshot().await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use bytes::Bytes;
    use respgate_backend_api::Direction;

    use crate::{
        keyspace::{
            Encodings, Error, Intent, Keyspace, Scope, Unit,
            fixture::{key, keyspace},
        },
        types::{
            hash,
            list::{self, End},
            set, string,
            zset::{self, AddOptions, Range, Span},
        },
    };

    async fn write_all(keyspace: &Keyspace, number: u64) {
        let _latches = keyspace.latches().acquire(Scope::Keys(&[b"x", b"y", b"hash", b"list", b"set", b"zset"])).await;
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        if number.is_multiple_of(2) {
            // What has been read is kept by the cache when it is written; what has not is only forgotten.
            unit.read_ahead(&[key("x"), key("y")]).await.unwrap();
        }
        for name in ["x", "y"] {
            string::set(&mut unit, &key(name), number.to_string().into(), None).unwrap();
        }
        let fields = ["x", "y"].map(|field| (field.into(), number.to_string().into()));
        hash::set(&mut unit, &key("hash"), &fields).await.unwrap();
        rewrite(&mut unit, number).await.unwrap();
        unit.commit().await.unwrap();
    }

    /// Changes every element of a list, a set and a sorted set, which keep their versions.
    async fn rewrite(unit: &mut Unit<'_>, number: u64) -> Result<(), crate::types::Error> {
        let element = Bytes::from(number.to_string());
        if number == 0 {
            list::push(unit, &key("list"), End::Tail, &[element.clone(), element.clone()]).await?;
        } else {
            list::set(unit, &key("list"), 0, &element).await?;
            list::set(unit, &key("list"), 1, &element).await?;
            set::remove(unit, &key("set"), &[(number - 1).to_string().into()]).await?;
        }
        set::add(unit, &key("set"), &[element]).await?;
        let members = ["a", "b"].map(|member| (member.into(), number as f64));
        zset::add(unit, &key("zset"), &members, AddOptions::default()).await?;
        Ok(())
    }

    /// Two strings, two fields of a hash, and all elements of a list, a set and a sorted set.
    async fn read_all(keyspace: &Keyspace) -> Result<Vec<u64>, crate::types::Error> {
        let mut unit = keyspace.begin(Intent::Read).await?;
        let values = [
            string::get(&mut unit, &key("x")).await?,
            string::get(&mut unit, &key("y")).await?,
            hash::get(&mut unit, &key("hash"), b"x").await?,
            hash::get(&mut unit, &key("hash"), b"y").await?,
        ];
        let mut values: Vec<Bytes> = values.into_iter().flatten().collect();
        values.extend(list::range(&mut unit, &key("list"), 0, -1).await?);
        values.extend(set::all(&mut unit, &key("set")).await?.unwrap());
        let everything =
            Range { span: Span::Ranks(0, -1), direction: Direction::Forward, offset: 0, limit: usize::MAX };
        let scores = zset::range(&mut unit, &key("zset"), &everything).await?;
        let numbers = values.iter().map(|value| std::str::from_utf8(value).unwrap().parse().unwrap());
        Ok(numbers.chain(scores.into_iter().map(|(_, score)| score as u64)).collect())
    }

    /// One task writes ever greater numbers to several keys at once; others must never see two different ones, nor one that
    /// is less than before.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn readers_see_one_moment_and_never_go_back() {
        let keyspace = Arc::new(keyspace(Encodings::default()).await.0);
        write_all(&keyspace, 0).await;
        let is_over = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = (0..3)
            .map(|_| {
                let (keyspace, is_over) = (Arc::clone(&keyspace), Arc::clone(&is_over));
                tokio::spawn(async move {
                    let (mut last, mut reads) = (0, 0_u64);
                    while !is_over.load(Ordering::SeqCst) {
                        match read_all(&keyspace).await {
                            Ok(numbers) => {
                                let first = numbers[0];
                                assert_eq!(numbers, [first; 9]);
                                assert!(first >= last, "{first} after {last}");
                                (last, reads) = (first, reads + 1);
                            }
                            // What a unit is run again for.
                            Err(crate::types::Error::Keyspace(Error::Store(respgate_backend_api::Error::Conflict))) => {
                            }
                            Err(error) => panic!("{error}"),
                        }
                        tokio::task::yield_now().await;
                    }
                    reads
                })
            })
            .collect();
        for number in 1..10_000 {
            write_all(&keyspace, number).await;
        }
        is_over.store(true, Ordering::SeqCst);
        for reader in readers {
            assert!(reader.await.unwrap() > 0);
        }
    }
}
