use std::{mem, sync::Arc};

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange, Snapshot, WriteSet};

use super::{Error, Intent, Key, Keyspace, Result, overlay::Overlay};
use crate::encoding::{DatabaseMap, Garbage, KeyCodec, Metadata, Type};

/// A unit of work: commands that read one snapshot, see their own writes, and commit all together or not at all.
///
/// Time stands still within a unit. Dropping a unit without [`Unit::commit`] leaves nothing in the store.
pub struct Unit<'k> {
    keyspace: &'k Keyspace,
    intent: Intent,
    now_ms: i64,
    /// Opened by the first read, or by the commit: a unit that only overwrites reads nothing.
    snapshot: Option<Arc<dyn Snapshot>>,
    pub(super) databases: Arc<DatabaseMap>,
    /// The map of databases as the unit found it.
    databases_found: Arc<DatabaseMap>,
    overlay: Overlay,
    /// Keys written by commands that have ended well, and by the running one from `touched_before` on.
    touched: Vec<Key>,
    touched_before: usize,
    /// The map of databases before the running command.
    databases_before: Arc<DatabaseMap>,
    guards: Vec<Bytes>,
}

impl<'k> Unit<'k> {
    pub(super) async fn begin(keyspace: &'k Keyspace, intent: Intent) -> Result<Self> {
        let databases = keyspace.databases.current();
        let mut unit = Self {
            keyspace,
            intent,
            now_ms: to_ms(keyspace.clock.now_ms()),
            snapshot: None,
            databases_found: Arc::clone(&databases),
            databases_before: Arc::clone(&databases),
            databases,
            overlay: Overlay::default(),
            touched: Vec::new(),
            touched_before: 0,
            guards: Vec::new(),
        };
        if keyspace.capabilities.shared {
            let snapshot = unit.snapshot().await?;
            unit.now_ms = snapshot.time_ms().map_or(unit.now_ms, to_ms);
        }
        Ok(unit)
    }

    /// The unit's time, in milliseconds since the Unix epoch.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// The keyspace that the unit works on.
    pub fn keyspace(&self) -> &'k Keyspace {
        self.keyspace
    }

    /// How keys become records.
    pub fn codec(&self) -> &'k KeyCodec {
        &self.keyspace.codec
    }

    /// A version for a key that is created now; no other key ever had or gets it.
    pub fn new_version(&self) -> u64 {
        self.keyspace.versions.next(u64::try_from(self.now_ms).unwrap_or_default())
    }

    /// At least the bytes that the unit would commit now.
    pub fn bytes(&self) -> usize {
        self.overlay.bytes()
    }

    /// Begins a command: what follows can be taken back by [`Unit::undo_command`].
    pub fn begin_command(&mut self) {
        self.overlay.begin_command();
        self.touched_before = self.touched.len();
        self.databases_before = Arc::clone(&self.databases);
    }

    /// Takes back what the running command has written: a command that fails contributes no writes.
    pub fn undo_command(&mut self) {
        self.overlay.undo_command();
        self.touched.truncate(self.touched_before);
        self.databases = Arc::clone(&self.databases_before);
    }

    /// Reads the metadata of `keys` ahead, in one call to the store.
    pub async fn read_ahead(&mut self, keys: &[Key]) -> Result<()> {
        let snapshot = self.snapshot().await?;
        let mut records = Vec::with_capacity(keys.len());
        for key in keys {
            let record = self.metadata_record(key)?;
            if self.overlay.get(&record).is_none() {
                records.push(record);
            }
        }
        let values = snapshot.multi_get(&records).await?;
        for (record, value) in records.into_iter().zip(values) {
            self.overlay.remember(record, value);
        }
        Ok(())
    }

    /// The metadata of `key`, if the key is alive. An expired key does not exist; a unit that writes buries it.
    pub async fn load(&mut self, key: &Key) -> Result<Option<Metadata>> {
        self.ready_to_read().await?;
        let record = self.metadata_record(key)?;
        let Some(value) = self.read(&record).await? else { return Ok(None) };
        let metadata = Metadata::decode(&value)?;
        if !metadata.is_expired(self.now_ms) {
            return Ok(Some(metadata));
        }
        if self.intent == Intent::Write {
            self.overlay.write(record, None);
            self.bury(key, &metadata)?;
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
        let values = self.read_many(records).await?;
        let decoded = values.into_iter().map(|value| value.map(|value| Metadata::decode(&value)).transpose());
        decoded.map(|metadata| Ok(metadata?.filter(|metadata| !metadata.is_expired(self.now_ms)))).collect()
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
        self.forget(key)?;
        self.bury(key, metadata)
    }

    /// Deletes the metadata of `key` and nothing else, for a key whose elements live on under another name.
    pub fn forget(&mut self, key: &Key) -> Result<()> {
        let record = self.metadata_record(key)?;
        self.overlay.write(record, None);
        self.touch(key);
        Ok(())
    }

    /// Records that the elements of `metadata`, once under `key`, belong to nobody any more.
    pub fn bury(&mut self, key: &Key, metadata: &Metadata) -> Result<()> {
        if let Some(garbage) = metadata.garbage() {
            let owner = metadata.origin.as_ref().unwrap_or(&key.name);
            let record = self.codec().garbage(self.physical(key.db)?, owner, metadata.version);
            self.overlay.write(record, Some(garbage.encode()));
        }
        Ok(())
    }

    /// Notes that `key` has changed, for those who watch it. [`Unit::save`] and [`Unit::remove`] do this by themselves.
    pub fn touch(&mut self, key: &Key) {
        self.touched.push(key.clone());
    }

    /// Where the elements of `key`, whose metadata is `metadata`, are kept.
    pub fn collection(&self, key: &Key, metadata: &Metadata) -> Result<Collection<'k>> {
        Ok(Collection {
            codec: self.codec(),
            db: self.physical(key.db)?,
            owner: metadata.origin.as_ref().unwrap_or(&key.name).clone(),
            version: metadata.version,
        })
    }

    /// The value of a record, own writes included.
    pub async fn read(&mut self, record: &Bytes) -> Result<Option<Bytes>> {
        if let Some(value) = self.overlay.get(record) {
            return Ok(value.clone());
        }
        Ok(self.snapshot().await?.get(record).await?)
    }

    /// The values of several records, own writes included, in one call to the store.
    pub async fn read_many(&mut self, records: Vec<Bytes>) -> Result<Vec<Option<Bytes>>> {
        let mut values: Vec<Option<Option<Bytes>>> =
            records.iter().map(|record| self.overlay.get(record).cloned()).collect();
        let unknown: Vec<Bytes> =
            records.into_iter().zip(&values).filter(|(_, value)| value.is_none()).map(|(record, _)| record).collect();
        if !unknown.is_empty() {
            let read = self.snapshot().await?.multi_get(&unknown).await?;
            let gaps = values.iter_mut().filter(|value| value.is_none());
            gaps.zip(read).for_each(|(gap, value)| *gap = Some(value));
        }
        Ok(values.into_iter().map(Option::flatten).collect())
    }

    /// At most `limit` records of `range`, own writes included. Fewer mean that there are no more.
    pub async fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<(Bytes, Bytes)>> {
        let snapshot = self.snapshot().await?;
        Ok(self.overlay.scan(&*snapshot, range, direction, limit).await?)
    }

    /// Writes a record other than metadata.
    pub fn put_record(&mut self, record: Bytes, value: impl Into<Bytes>) {
        self.overlay.write(record, Some(value.into()));
    }

    /// Deletes a record other than metadata.
    pub fn delete_record(&mut self, record: Bytes) {
        self.overlay.write(record, None);
    }

    /// Makes the commit fail with a conflict if `record` is no longer as the unit has read it.
    pub(super) fn guard(&mut self, record: Bytes) {
        self.guards.push(record);
    }

    /// Commits everything that the unit has written, and tells those who watch.
    ///
    /// # Errors
    /// [`Conflict`](respgate_backend_api::Error::Conflict): nothing was written, run the unit again.
    pub async fn commit(mut self) -> Result<()> {
        if !self.overlay.has_writes() {
            // A change that changed nothing, such as a list of one element that is rotated, is still one to who watches.
            self.keyspace.watches.mark_changed(&self.touched);
            return Ok(());
        }
        let snapshot = self.snapshot().await?;
        let guards = mem::take(&mut self.guards);
        snapshot.commit(WriteSet { writes: self.overlay.into_writes(), guards }).await?;
        if !Arc::ptr_eq(&self.databases, &self.databases_found) {
            self.keyspace.databases.publish(self.databases);
        }
        self.keyspace.watches.mark_changed(&self.touched);
        Ok(())
    }

    /// The record key of `key`'s metadata, which the unit guards where others may write to the store.
    fn metadata_record(&mut self, key: &Key) -> Result<Bytes> {
        let record = self.codec().metadata(self.physical(key.db)?, &key.name);
        if self.keyspace.capabilities.shared && self.intent == Intent::Write {
            self.guards.push(record.clone());
        }
        Ok(record)
    }

    /// A unit that takes no latch must read through the map of databases that belongs to its snapshot.
    pub(super) async fn ready_to_read(&mut self) -> Result<()> {
        if self.snapshot.is_none() && self.intent == Intent::Read {
            self.snapshot().await?;
        }
        Ok(())
    }

    async fn snapshot(&mut self) -> Result<Arc<dyn Snapshot>> {
        if let Some(snapshot) = &self.snapshot {
            return Ok(Arc::clone(snapshot));
        }
        loop {
            let snapshot = self.keyspace.backend.snapshot().await?;
            let databases = self.keyspace.databases.current();
            // A unit that writes holds latches, so nobody can have changed the map since it began.
            if self.intent == Intent::Write || Arc::ptr_eq(&databases, &self.databases) {
                self.snapshot = Some(Arc::clone(&snapshot));
                return Ok(snapshot);
            }
            self.databases_found = Arc::clone(&databases);
            self.databases = databases;
        }
    }
}

/// Where the elements of one version of one key are kept. Elements stay where they were written when their key is
/// renamed, so the owner may be a former name.
#[derive(Clone)]
pub struct Collection<'k> {
    codec: &'k KeyCodec,
    db: u8,
    owner: Bytes,
    version: u64,
}

impl Collection<'_> {
    /// The record of the element with this suffix.
    pub fn element(&self, suffix: &[u8]) -> Bytes {
        self.codec.element(self.db, &self.owner, self.version, suffix)
    }

    /// The records of all elements.
    pub fn elements(&self) -> KeyRange {
        self.codec.elements(self.db, &self.owner, self.version)
    }

    /// The suffix of one of [`Self::elements`]' records.
    pub fn suffix(&self, record: &Bytes) -> Bytes {
        self.codec.suffix(&self.owner, record).unwrap_or_default()
    }

    /// The record of the score index for a member with this score.
    pub fn score(&self, score: f64, member: &[u8]) -> Bytes {
        self.codec.score(self.db, &self.owner, self.version, score, member)
    }

    /// The records of the whole score index.
    pub fn scores(&self) -> KeyRange {
        self.codec.scores(self.db, &self.owner, self.version)
    }

    /// The ranges of all records that a collection of this kind consists of, beside its metadata.
    pub fn ranges(&self, kind: Garbage) -> Vec<KeyRange> {
        self.codec.garbage_ranges(self.db, &self.owner, self.version, kind)
    }
}

fn to_ms(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
