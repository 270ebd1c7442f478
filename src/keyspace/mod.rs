//! The keyspace: units of work over a store.
//!
//! A [`Unit`] reads one snapshot, sees its own earlier writes, and commits all of them or none. Everything that must
//! be the same for every type lives here and only here: live metadata and expiry, key-versions, the garbage that a
//! dead key leaves, latches, watches and the map of databases.

mod ahead;
mod cache;
mod clock;
mod collection;
mod consecutive;
mod cursor;
mod databases;
mod error;
#[cfg(test)]
pub(crate) mod fixture;
mod garbage;
mod glance;
mod hands;
mod inventory;
mod landmarks;
mod latches;
mod lease;
mod metadata;
mod names;
mod order;
mod orphans;
mod overlay;
mod pages;
mod place;
mod random;
mod reclaim;
mod reconcile;
mod records;
mod staging;
mod sweep;
mod tally;
mod unit;
mod version_cache;
mod walk;
mod watches;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use respgate_backend_api::{Capabilities, KvBackend};

use crate::{
    encoding::{KeyCodec, KeyVersions, slot_prefix},
    sidecar::Sidecar,
};

use cache::RecordCache;
use garbage::Litter;
use tally::Tally;
use version_cache::VersionCache;

pub use clock::{Clock, ManualClock, SystemClock};
pub use collection::Collection;
pub use databases::Databases;
pub use error::{Error, Result};
pub use hands::Hand;
pub use inventory::{Group, GroupPage, GroupPosition, KeyPage, KeyWalk, Pages};
pub use landmarks::Landmarks;
pub use latches::{LatchGuards, Latches, Scope};
pub use lease::{Duty, Lease, last_round_age_ms};
pub use names::NamePage;
pub use order::Order;
pub use random::Random;
pub use reconcile::Reconciled;
pub use sweep::Swept;
pub use tally::Census;
pub use unit::Unit;
pub use walk::Walk;
pub use watches::{Watch, Watches};

/// A Redis key: the number that SELECT takes, and the name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The database as clients number it. Which byte stands for it in the store is [`Databases`]' business.
    pub db: u8,
    /// The key as the client wrote it.
    pub name: Bytes,
}

/// Whether a unit may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Reads only, and takes no latch.
    Read,
    /// May write to the keys it has latched.
    Write,
}

/// Which of a type's encodings a new key gets. Keys that exist keep theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encodings {
    /// Strings longer than this are stored in chunks.
    pub string_chunk_threshold: usize,
    /// True for hashes that count their fields (encode-version 0), false for those that do not (1).
    pub counted_hashes: bool,
    /// True for sets that count their members (encode-version 0), false for those that do not (1).
    pub counted_sets: bool,
    /// True for sorted sets whose order is in the sidecar (encode-version 1), false for those that keep it in the store (0).
    pub zsets_in_sidecar: bool,
}

impl Default for Encodings {
    fn default() -> Self {
        Self { string_chunk_threshold: 64 * 1024, counted_hashes: true, counted_sets: true, zsets_in_sidecar: false }
    }
}

/// What a keyspace is opened with, beside the store.
pub struct Options {
    /// The namespace that prefixes every record.
    pub namespace: String,
    /// How many databases SELECT may choose from.
    pub databases: u8,
    /// How keys are stored that are created from now on.
    pub encodings: Encodings,
    /// Memory for records as last committed; none are kept of a store that others write to as well.
    pub cache_bytes: u64,
    /// For how long elements that belong to no key are left alone after they were created.
    pub grace: Duration,
    /// What keeps the order of sorted sets of encode-version 1.
    pub sidecar: Option<Sidecar>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Where chance comes from.
    pub random: Random,
}

/// One namespace of a store, shared by all connections.
pub struct Keyspace {
    backend: Arc<dyn KvBackend>,
    capabilities: Capabilities,
    codec: KeyCodec,
    encodings: Encodings,
    clock: Arc<dyn Clock>,
    random: Random,
    versions: KeyVersions,
    databases: Databases,
    latches: Latches,
    watches: Arc<Watches>,
    /// `None` if others write to the store as well.
    cache: Option<RecordCache>,
    litter: Litter,
    tally: Tally,
    /// By which this process tells itself from others that use the store.
    identity: u64,
    /// For how long elements without a key are left alone.
    grace_ms: i64,
    /// Without one, sorted sets of encode-version 1 are out of reach.
    sidecar: Option<Sidecar>,
    hands: VersionCache<Hand>,
    landmarks: VersionCache<Landmarks>,
}

impl Keyspace {
    /// Opens the namespace. Of a store that no other process writes to, it reads the map of databases.
    pub async fn open(backend: Arc<dyn KvBackend>, options: Options) -> Result<Self> {
        let capabilities = backend.capabilities();
        let codec = KeyCodec::new(&options.namespace, capabilities.range_partitioned)?;
        let databases = Databases::open(&*backend, &codec, options.databases).await?;
        let versions = KeyVersions::new(options.random.next_u64());
        let identity = options.random.next_u64();
        Ok(Self {
            backend,
            capabilities,
            codec,
            encodings: options.encodings,
            clock: options.clock,
            random: options.random,
            versions,
            databases,
            latches: Latches::new(),
            watches: Arc::default(),
            cache: (!capabilities.shared && options.cache_bytes > 0).then(|| RecordCache::new(options.cache_bytes)),
            litter: Litter::default(),
            tally: Tally::default(),
            identity,
            grace_ms: i64::try_from(options.grace.as_millis()).unwrap_or(i64::MAX),
            sidecar: options.sidecar,
            hands: VersionCache::new(),
            landmarks: VersionCache::new(),
        })
    }

    /// Begins a unit of work. Before a unit that writes begins, the [latches](Self::latches) of the keys that it
    /// declares must be held.
    pub async fn begin(&self, intent: Intent) -> Result<Unit<'_>> {
        Unit::begin(self, intent).await
    }

    /// Begins a unit that only reads, and probably not from the store, which is not asked for anything yet.
    pub fn begin_idle(&self) -> Unit<'_> {
        Unit::begin_unread(self, Intent::Read)
    }

    /// Begins a unit that writes, and that units of other gateways cannot bring to conflict on `records`. It waits for those
    /// that are at it now. For a unit that has met many conflicts; the latches must be held as well.
    pub async fn begin_locking(&self, records: &[Bytes]) -> Result<Unit<'_>> {
        Unit::begin_locking(self, records).await
    }

    /// The latches that keep the units of this process apart.
    pub fn latches(&self) -> &Latches {
        &self.latches
    }

    /// The keys that transactions watch.
    pub fn watches(&self) -> &Arc<Watches> {
        &self.watches
    }

    /// The map of databases.
    pub fn databases(&self) -> &Databases {
        &self.databases
    }

    /// The number by which this process tells itself from others that use the store, chosen at random when it started.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// The store under this keyspace.
    pub fn backend(&self) -> &Arc<dyn KvBackend> {
        &self.backend
    }

    /// How keys become records.
    pub fn codec(&self) -> &KeyCodec {
        &self.codec
    }

    /// How new keys are stored.
    pub fn encodings(&self) -> Encodings {
        self.encodings
    }

    /// The number of the part of the store in which the keys of a slot lie; units that keep to one of them commit at the
    /// least cost. Keys of one slot are in one part, as far as this goes.
    pub fn partition(&self, slot: u16) -> u64 {
        if self.capabilities.range_partitioned { self.backend.partition(&slot_prefix(slot)) } else { 0 }
    }

    /// The clock by which keys expire where the store has none.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Where random choices come from.
    pub fn random(&self) -> &Random {
        &self.random
    }

    /// What is to be removed next from sets, by chance.
    pub fn hands(&self) -> &VersionCache<Hand> {
        &self.hands
    }

    /// What is known about large collections, for those who choose from them at random.
    pub fn landmarks(&self) -> &VersionCache<Landmarks> {
        &self.landmarks
    }

    /// Where the commits of this process stand.
    fn epoch(&self) -> u64 {
        self.cache.as_ref().map_or(0, RecordCache::epoch)
    }

    /// What the store can do.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
}
