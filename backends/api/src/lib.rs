//! What Respgate asks of a key-value store.
//!
//! A store is anything that can open a [`Snapshot`], read it, and commit a [`WriteSet`] on top of it. Everything that
//! makes a Redis out of that (types, expiry, units of work, latches, retries, the overlay of a unit's own writes) is
//! written once, above this crate. Each method states its laws; `respgate-backend-conformance` holds one test a law,
//! and every backend runs all of them.

mod access;
mod error;
mod range;
mod write_set;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

pub use access::Access;
pub use error::{Error, Result};
pub use range::{Direction, KeyRange};
pub use write_set::{Write, WriteSet};

/// A key-value store that keeps ordered binary keys.
///
/// Keys are compared as unsigned bytes. A backend may be used from any number of tasks at once, and no call may block
/// the thread that polls it for longer than memory takes: work that may reach a disk goes to a thread that may wait.
#[async_trait]
pub trait KvBackend: Send + Sync + 'static {
    /// What this store can do and where its limits are. Constant over the life of the backend.
    fn capabilities(&self) -> Capabilities;

    /// Opens a snapshot: every commit that returned before this call began is in it, and nothing that is committed
    /// after this call returned ever will be.
    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>>;

    /// Opens a snapshot as [`Self::snapshot`] does, and from before its moment on until it is committed or dropped keeps
    /// others from changing `keys`: for a unit that has met too many conflicts.
    ///
    /// Fails with [`Error::Conflict`] if others hold the keys for too long. Its commit does not conflict on guards among
    /// `keys`; guards on other keys may conflict whatever happened to them. Costs more than an ordinary snapshot. A store
    /// that never lets a unit starve may take it for one.
    async fn locking_snapshot(&self, keys: &[Bytes]) -> Result<Arc<dyn Snapshot>>;

    /// The values of `keys`, in their order, each as it was committed last: it has everything that was committed to that key
    /// by calls that returned before this one began. They need not be of one moment.
    ///
    /// `None` if a snapshot tells that as cheaply, or where this way is closed for the moment.
    async fn read_latest(&self, _keys: &[Bytes]) -> Result<Option<Vec<Option<Bytes>>>> {
        Ok(None)
    }

    /// Applies `writes`, one per key and in ascending order of keys: all of them or none. It returns when the store has them.
    ///
    /// The same as a [`Snapshot::commit`] without guards on a snapshot opened now, for who has nothing to read before; a
    /// store where that is cheaper says how.
    async fn write(&self, writes: Vec<Write>) -> Result<()> {
        self.snapshot().await?.commit(WriteSet { writes, guards: Vec::new() }).await
    }

    /// Deletes every key in `range` that was there when the call began.
    ///
    /// Not atomic: a crash or an error may leave some of the keys, and snapshots opened meanwhile may see any part of
    /// them. Snapshots opened before the call are unaffected where the store keeps old versions. Cheap in relation
    /// to the number of keys where the store can; calling it again is harmless. For ranges that nothing refers to.
    async fn delete_range(&self, range: KeyRange) -> Result<()>;

    /// Forgets the versions of records that nobody can be reading any more, where the store leaves that to its users: what
    /// open snapshots see stays. False if there is nothing to be done here, now or later; a store that forgets by itself
    /// needs no more than this. One of the store's users calls it about once a minute.
    async fn forget_versions(&self) -> Result<bool> {
        Ok(false)
    }

    /// The number of the part of the store that `key` lies in, as far as is known without asking. A commit within one part
    /// is cheaper than one that spans several, and commits to different parts do not hold each other up.
    ///
    /// Only a hint: parts may split, merge and move at any time. A store that is all of one piece has part 0.
    fn partition(&self, _key: &[u8]) -> u64 {
        0
    }

    /// `Ok` if the store would take a read and a write now; otherwise the reason why not.
    async fn health(&self) -> Result<()>;

    /// Figures about the store, cheap enough to be asked for every second.
    async fn statistics(&self) -> Result<Statistics>;

    /// Makes every acknowledged commit as durable as the store can, then releases its files and connections.
    /// Later calls fail with [`Error::Unavailable`], on open snapshots too; calling `close` again is harmless.
    async fn close(&self) -> Result<()>;
}

/// A consistent view of a store at one moment, and the base for at most one commit.
///
/// All reads, whenever and in whatever order they are made, see the same moment. Dropping a snapshot, used or not,
/// releases what it holds and leaves nothing in the store.
#[async_trait]
pub trait Snapshot: Send + Sync {
    /// The moment of this snapshot by the store's own clock, in milliseconds since the Unix epoch. `None` if the
    /// store has no clock that all its users share.
    fn time_ms(&self) -> Option<u64>;

    /// The value of `key`; `None` if it has none. An empty value is a value.
    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// The values of `keys`, in their order, repetitions included: as many results as keys, in as few round trips as
    /// the store allows.
    async fn multi_get(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>>;

    /// At most `limit` pairs of `range`, ascending for [`Direction::Forward`], descending for
    /// [`Direction::Backward`]. Fewer than `limit` pairs mean that the range holds no more.
    ///
    /// The cost follows the pairs returned, not the size of the range. `range` lies within one record tag.
    async fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<(Bytes, Bytes)>>;

    /// Applies `writes`, all of them or none, and returns when the store has them.
    ///
    /// Fails with [`Error::Conflict`], and writes nothing, if any key in [`WriteSet::guards`] has changed since this
    /// snapshot; whether a key that has its old value again has changed is up to the store. Keys that are written but
    /// not guarded are written whatever happened to them meanwhile, unless the store's protocol cannot tell (then it
    /// may report a conflict too). Deleting a key that does not exist is no error. After [`Error::OutcomeUnknown`] the
    /// writes may or may not be there, all of them or none.
    ///
    /// Called at most once on a snapshot. An empty write set without guards always succeeds.
    async fn commit(&self, writes: WriteSet) -> Result<()>;
}

/// What a store can do, and where its limits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Neighbouring keys live on one machine, so keys need a prefix that spreads the load (the slot prefix).
    pub range_partitioned: bool,
    /// Other processes write to the same store, so latches within this process do not isolate units.
    pub shared: bool,
    /// The longest key in bytes.
    pub key_bytes_max: usize,
    /// The longest value in bytes.
    pub value_bytes_max: usize,
    /// The most bytes of keys and values that one commit may carry.
    pub commit_bytes_max: usize,
    /// Up to so many bytes of keys and values a commit within one part is the cheapest; see [`KvBackend::partition`].
    pub part_bytes_max: usize,
}

/// Figures about a store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Bytes on disk; 0 for a store that has none.
    pub disk_bytes: u64,
    /// Bytes of memory held for caches, write buffers and indexes.
    pub memory_bytes: u64,
    /// The store's own figures, by name, as they are shown to operators.
    pub figures: Vec<(&'static str, u64)>,
}
