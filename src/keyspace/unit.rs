use std::{collections::BTreeMap, mem, sync::Arc, time::Instant};

use bytes::Bytes;
use respgate_backend_api::{Snapshot, WriteSet};

use super::{
    Collection, Intent, Key, Keyspace, Order, Result,
    cache::Change,
    databases::Glance,
    overlay::Overlay,
    pages::changed_collections,
    place::Place,
    records::{AHEAD_FIRST, is_short},
};
use crate::encoding::{Body, DatabaseMap, KeyCodec, Metadata, ZsetOrder};

/// A unit of work: commands that read one snapshot, see their own writes, and commit all together or not at all.
///
/// Time stands still within a unit. Dropping a unit without [`Unit::commit`] leaves nothing in the store.
pub struct Unit<'k> {
    keyspace: &'k Keyspace,
    pub(super) intent: Intent,
    now_ms: i64,
    /// Opened by the first read: a unit that only overwrites reads nothing, and does without where nobody else writes.
    pub(super) snapshot: Option<Arc<dyn Snapshot>>,
    pub(super) databases: Arc<DatabaseMap>,
    /// The map of databases as the unit found it.
    databases_found: Arc<DatabaseMap>,
    pub(super) overlay: Overlay,
    /// How many elements to read ahead next.
    pub(super) ahead: u64,
    /// True if something that was read was not there at once.
    pub(super) has_waited: bool,
    /// Where the commits of this process stood before anything was read.
    pub(super) epoch: u64,
    /// True if the unit has read from the cache without a latch or a snapshot of the same moment.
    pub(super) trusts_cache: bool,
    /// True if the unit has read records as they were committed last, and can read nothing else.
    pub(super) is_glance: bool,
    /// Records of metadata that the cache did not know. What is not written is kept when the unit ends, what is with it.
    pub(super) learned: Vec<Bytes>,
    /// Garbage that the unit leaves to be collected: where, and how many elements.
    pub(super) litter: Vec<(Place, u64)>,
    litter_before: usize,
    /// Keys that the unit buried because they had expired.
    pub(super) expired: usize,
    /// The orders in the sidecar that the unit has met, by key-version.
    pub(super) orders: BTreeMap<u64, Order>,
    /// Keys written by commands that have ended well, and by the running one from `touched_before` on.
    pub(super) touched: Vec<Key>,
    touched_before: usize,
    /// The map of databases before the running command.
    databases_before: Arc<DatabaseMap>,
    guards: Vec<Bytes>,
}

impl<'k> Unit<'k> {
    pub(super) async fn begin(keyspace: &'k Keyspace, intent: Intent) -> Result<Self> {
        let mut unit = Self::begin_unread(keyspace, intent);
        if keyspace.capabilities.shared {
            unit.snapshot().await?;
        }
        Ok(unit)
    }

    /// Begins a unit that will probably not need the store. If it does, its time and its databases may move on.
    pub(super) fn begin_unread(keyspace: &'k Keyspace, intent: Intent) -> Self {
        // Noted before the map of databases is: a later map would have moved it on.
        let epoch = keyspace.epoch();
        let databases = keyspace.databases.current();
        Self {
            keyspace,
            intent,
            now_ms: to_ms(keyspace.clock.now_ms()),
            snapshot: None,
            databases_found: Arc::clone(&databases),
            databases_before: Arc::clone(&databases),
            databases,
            overlay: Overlay::default(),
            ahead: AHEAD_FIRST,
            has_waited: false,
            epoch,
            trusts_cache: false,
            is_glance: false,
            learned: Vec::new(),
            litter: Vec::new(),
            litter_before: 0,
            expired: 0,
            orders: BTreeMap::new(),
            touched: Vec::new(),
            touched_before: 0,
            guards: Vec::new(),
        }
    }

    /// Begins a unit that reads without a snapshot.
    pub(super) fn begin_glance(keyspace: &'k Keyspace, glance: &Glance) -> Self {
        let mut unit = Self::begin_unread(keyspace, Intent::Read);
        unit.is_glance = true;
        unit.now_ms = to_ms(glance.now_ms);
        unit.go_by(Arc::clone(&glance.map));
        unit
    }

    /// Begins a unit that others cannot bring to conflict on `records`.
    pub(super) async fn begin_locking(keyspace: &'k Keyspace, records: &[Bytes]) -> Result<Self> {
        let mut unit = Self::begin_unread(keyspace, Intent::Write);
        let began = Instant::now();
        unit.join(keyspace.backend.locking_snapshot(records).await?, began).await?;
        Ok(unit)
    }

    /// Goes by the time and the databases of a snapshot of a shared store, which was asked for at `began`.
    async fn join(&mut self, snapshot: Arc<dyn Snapshot>, began: Instant) -> Result<()> {
        self.now_ms = snapshot.time_ms().map_or(self.now_ms, to_ms);
        self.go_by(self.keyspace.databases.at(&*snapshot, &self.keyspace.codec, began).await?);
        self.snapshot = Some(snapshot);
        Ok(())
    }

    /// Goes by this map of databases from now on.
    pub(super) fn go_by(&mut self, map: Arc<DatabaseMap>) {
        self.databases_found = Arc::clone(&map);
        self.databases_before = Arc::clone(&map);
        self.databases = map;
    }

    /// True if the unit would change the map of databases.
    pub(super) fn has_changed_databases(&self) -> bool {
        !Arc::ptr_eq(&self.databases, &self.databases_found)
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

    /// True if the unit would change the store.
    pub fn has_writes(&self) -> bool {
        self.overlay.has_writes()
    }

    /// Begins a command: what follows can be taken back by [`Unit::undo_command`].
    pub fn begin_command(&mut self) {
        self.overlay.begin_command();
        self.touched_before = self.touched.len();
        self.litter_before = self.litter.len();
        self.databases_before = Arc::clone(&self.databases);
    }

    /// Takes back what the running command has written: a command that fails contributes no writes.
    pub fn undo_command(&mut self) {
        self.overlay.undo_command();
        self.touched.truncate(self.touched_before);
        self.litter.truncate(self.litter_before);
        self.databases = Arc::clone(&self.databases_before);
    }

    /// Where the elements of `key`, whose metadata is `metadata`, are kept.
    pub fn collection(&self, key: &Key, metadata: &Metadata) -> Result<Collection<'k>> {
        let owner = metadata.origin.as_ref().unwrap_or(&key.name).clone();
        let is_indexed = matches!(metadata.body, Body::Zset { order: ZsetOrder::Sidecar(_), .. });
        Ok(Collection::new(self.codec(), self.physical(key.db)?, owner, metadata.version, is_indexed))
    }

    /// Keeps what the snapshot says about metadata that the unit does not change.
    fn keep_learned(&mut self) {
        let Some(cache) = &self.keyspace.cache else { return };
        for record in mem::take(&mut self.learned) {
            if !self.overlay.has_written(&record)
                && let Some(value) = self.overlay.get(&record)
            {
                cache.fill(&record, value, self.epoch);
            }
        }
    }

    /// Makes the commit fail with a conflict if `record` is no longer as the unit has read it.
    pub(super) fn guard(&mut self, record: Bytes) {
        self.guards.push(record);
    }

    /// The records that the unit relies on, and that make its commit fail if others change them.
    pub fn guards(&self) -> &[Bytes] {
        &self.guards
    }

    /// Commits everything that the unit has written, and tells those who watch.
    ///
    /// # Errors
    /// [`Conflict`](respgate_backend_api::Error::Conflict): nothing was written, run the unit again.
    pub async fn commit(mut self) -> Result<()> {
        self.keep_learned();
        if !self.overlay.has_writes() {
            // A change that changed nothing, such as a list of one element that is rotated, is still one to who watches.
            self.keyspace.watches.mark_changed(&self.touched);
            return Ok(());
        }
        let order_updates = self.journal_orders();
        if self.keyspace.capabilities.shared {
            let snapshot = self.snapshot().await?;
            self.stamp_changes()?;
            self.put_databases_in_use(&*snapshot).await?;
        }
        let has_changed_databases = self.has_changed_databases();
        let guards = mem::take(&mut self.guards);
        let snapshot = if guards.is_empty() { self.snapshot.take() } else { Some(self.snapshot().await?) };
        let (writes, read_before) = self.overlay.into_writes();
        let announced = self.keyspace.cache.as_ref().map(|cache| {
            let codec = &self.keyspace.codec;
            let records = writes.iter().filter_map(|write| {
                let (record, value) = write;
                let is_metadata = codec.is_metadata(record);
                if !is_metadata && !codec.is_element(record) {
                    return None;
                }
                // What was read is likely to be read again, except for an element that is gone.
                let is_kept = read_before.contains_key(record) && (is_metadata || value.as_ref().is_some_and(is_short));
                Some(Change { stamped: record, kept: is_kept.then_some(write) })
            });
            let collections = changed_collections(codec, &writes).map(|stamped| Change { stamped, kept: None });
            cache.begin_commit(records.chain(collections))
        });
        let names = self.keyspace.announce_names(&writes, |record| read_before.get(record)?.as_ref());
        let committed = match snapshot {
            Some(snapshot) => snapshot.commit(WriteSet { writes, guards }).await,
            None => self.keyspace.backend.write(writes).await,
        };
        if let Some(names) = names {
            names.over();
        }
        committed?;
        if has_changed_databases {
            self.keyspace.databases.publish(self.databases);
        }
        // After the map: who notes the epoch that begins now must not find the old one.
        if let Some(announced) = announced {
            announced.succeeded();
        }
        for (place, elements) in self.litter {
            self.keyspace.litter.add(place, elements);
        }
        self.keyspace.watches.mark_changed(&self.touched);
        self.keyspace.update_orders(&order_updates).await;
        Ok(())
    }

    /// The snapshot that the unit reads.
    ///
    /// # Errors
    /// A [`Conflict`](respgate_backend_api::Error::Conflict) if the unit has read what may be older, from the cache or in a
    /// [glance](Keyspace::glance).
    pub(super) async fn snapshot(&mut self) -> Result<Arc<dyn Snapshot>> {
        if let Some(snapshot) = &self.snapshot {
            return Ok(Arc::clone(snapshot));
        }
        if self.is_glance {
            // What the unit has read already is of no moment.
            return Err(respgate_backend_api::Error::Conflict.into());
        }
        if self.keyspace.capabilities.shared {
            let began = Instant::now();
            let snapshot = self.keyspace.backend.snapshot().await?;
            self.join(Arc::clone(&snapshot), began).await?;
            return Ok(snapshot);
        }
        loop {
            let epoch = self.keyspace.epoch();
            let snapshot = self.keyspace.backend.snapshot().await?;
            if !self.trusts_cache {
                self.epoch = epoch;
            } else if self.keyspace.epoch() != self.epoch {
                return Err(respgate_backend_api::Error::Conflict.into());
            }
            let databases = self.keyspace.databases.current();
            // A unit that writes holds latches, so nobody can have changed the map since it began.
            if self.intent == Intent::Write || Arc::ptr_eq(&databases, &self.databases) {
                self.snapshot = Some(Arc::clone(&snapshot));
                return Ok(snapshot);
            }
            if self.trusts_cache {
                // What the unit found there was in other databases.
                return Err(respgate_backend_api::Error::Conflict.into());
            }
            self.databases_found = Arc::clone(&databases);
            self.databases = databases;
        }
    }
}

fn to_ms(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}
