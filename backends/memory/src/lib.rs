//! A store in memory: the reference for what the laws of [`KvBackend`] mean, and the double that tests run on.

mod versioned_map;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::{MappedRwLockReadGuard, MappedRwLockWriteGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use respgate_backend_api::{
    Capabilities, Direction, Error, KeyRange, KvBackend, Result, Snapshot, Statistics, Write, WriteSet,
};

use versioned_map::VersionedMap;

/// Tells the time in milliseconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A [`KvBackend`] that keeps everything in an ordered map and loses it when it is closed or dropped.
///
/// It takes every law literally: snapshots are exact, guards conflict on any write to the key, limits are enforced.
/// [`Self::with_capabilities`] and [`Self::with_clock`] let it stand in for stores of another shape.
pub struct MemoryBackend {
    store: Arc<Store>,
    capabilities: Capabilities,
    clock: Option<Clock>,
}

impl MemoryBackend {
    /// What a new store says of itself: one process, no partitions, limits that tests do not meet by accident.
    pub const CAPABILITIES: Capabilities = Capabilities {
        range_partitioned: false,
        shared: false,
        key_bytes_max: 64 << 10,
        value_bytes_max: 1 << 30,
        commit_bytes_max: 2 << 30,
        part_bytes_max: 2 << 30,
    };

    /// An empty store.
    pub fn new() -> Self {
        Self { store: Arc::new(Store::default()), capabilities: Self::CAPABILITIES, clock: None }
    }

    /// The same store, saying of itself what `capabilities` say, and keeping to their limits.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Capabilities) -> Self {
        Self { capabilities, ..self }
    }

    /// The same store with a clock of its own: snapshots carry the time at which they were opened.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock: Some(clock), ..self }
    }
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBackend").field("capabilities", &self.capabilities).finish_non_exhaustive()
    }
}

#[async_trait]
impl KvBackend for MemoryBackend {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(MemorySnapshot {
            reader: self.store.write()?.acquire(),
            store: Arc::clone(&self.store),
            capabilities: self.capabilities,
            time_ms: self.clock.as_ref().map(|clock| clock()),
        }))
    }

    /// Nobody is away for long between a snapshot and its commit, so no unit starves.
    async fn locking_snapshot(&self, _: &[Bytes]) -> Result<Arc<dyn Snapshot>> {
        self.snapshot().await
    }

    /// For the sake of those who are tested on this store.
    async fn read_latest(&self, keys: &[Bytes]) -> Result<Option<Vec<Option<Bytes>>>> {
        Ok(if self.capabilities.shared { Some(self.snapshot().await?.multi_get(keys).await?) } else { None })
    }

    async fn delete_range(&self, range: KeyRange) -> Result<()> {
        self.store.write()?.delete_range(&range);
        Ok(())
    }

    async fn health(&self) -> Result<()> {
        self.store.read().map(drop)
    }

    async fn statistics(&self) -> Result<Statistics> {
        let map = self.store.read()?;
        Ok(Statistics {
            disk_bytes: 0,
            memory_bytes: map.bytes() as u64,
            figures: vec![("keys", map.keys() as u64), ("snapshots", map.readers() as u64)],
        })
    }

    async fn close(&self) -> Result<()> {
        self.store.map.write().take();
        Ok(())
    }
}

/// The map that a backend and its snapshots share; without one the store is closed.
struct Store {
    map: RwLock<Option<VersionedMap>>,
}

impl Store {
    fn read(&self) -> Result<MappedRwLockReadGuard<'_, VersionedMap>> {
        RwLockReadGuard::try_map(self.map.read(), Option::as_ref).map_err(|_| closed())
    }

    fn write(&self) -> Result<MappedRwLockWriteGuard<'_, VersionedMap>> {
        RwLockWriteGuard::try_map(self.map.write(), Option::as_mut).map_err(|_| closed())
    }
}

impl Default for Store {
    fn default() -> Self {
        Self { map: RwLock::new(Some(VersionedMap::default())) }
    }
}

fn closed() -> Error {
    Error::Unavailable("the store is closed".into())
}

struct MemorySnapshot {
    store: Arc<Store>,
    reader: u64,
    capabilities: Capabilities,
    time_ms: Option<u64>,
}

impl Drop for MemorySnapshot {
    fn drop(&mut self) {
        if let Ok(mut map) = self.store.write() {
            map.release(self.reader);
        }
    }
}

#[async_trait]
impl Snapshot for MemorySnapshot {
    fn time_ms(&self) -> Option<u64> {
        self.time_ms
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        Ok(self.store.read()?.get(self.reader, key))
    }

    async fn multi_get(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        let map = self.store.read()?;
        Ok(keys.iter().map(|key| map.get(self.reader, key)).collect())
    }

    async fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<(Bytes, Bytes)>> {
        Ok(self.store.read()?.scan(self.reader, range, direction, limit))
    }

    async fn commit(&self, writes: WriteSet) -> Result<()> {
        check_limits(&self.capabilities, &writes)?;
        let mut map = self.store.write()?;
        if writes.guards.iter().any(|key| map.changed_since(self.reader, key)) {
            return Err(Error::Conflict);
        }
        map.apply(writes.writes);
        Ok(())
    }
}

fn check_limits(limits: &Capabilities, writes: &WriteSet) -> Result<()> {
    let too_large = |(key, value): &Write| {
        key.len() > limits.key_bytes_max || value.as_ref().is_some_and(|value| value.len() > limits.value_bytes_max)
    };
    if writes.writes.iter().any(too_large) {
        return Err(Error::TooLarge("a key or a value exceeds its limit".into()));
    }
    if writes.bytes() > limits.commit_bytes_max {
        return Err(Error::TooLarge("the commit exceeds its limit".into()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &'static str, value: &'static str) -> WriteSet {
        WriteSet { writes: vec![(key.into(), Some(value.into()))], guards: Vec::new() }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn conforms() {
        respgate_backend_conformance::run_all(Arc::new(MemoryBackend::new())).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn conforms_in_the_shape_of_a_shared_partitioned_store() {
        let capabilities = Capabilities {
            range_partitioned: true,
            shared: true,
            key_bytes_max: 4_000,
            value_bytes_max: 7 << 20,
            commit_bytes_max: 8 << 20,
            part_bytes_max: 8 << 20,
        };
        let store = MemoryBackend::new().with_capabilities(capabilities).with_clock(Arc::new(|| 1_234));
        respgate_backend_conformance::run_all(Arc::new(store)).await;
    }

    #[tokio::test]
    async fn a_snapshot_carries_the_time_at_which_it_was_opened() {
        let store = MemoryBackend::new().with_clock(Arc::new(|| 1_234));
        assert_eq!(store.snapshot().await.unwrap().time_ms(), Some(1_234));
        assert_eq!(MemoryBackend::new().snapshot().await.unwrap().time_ms(), None);
    }

    #[tokio::test]
    async fn limits_are_those_of_the_capabilities() {
        let limits =
            Capabilities { key_bytes_max: 4, value_bytes_max: 2, commit_bytes_max: 5, ..MemoryBackend::CAPABILITIES };
        let store = MemoryBackend::new().with_capabilities(limits);
        let commit = async |writes| store.snapshot().await.unwrap().commit(writes).await;
        assert_eq!(commit(set("m#k", "12")).await, Ok(()));
        assert!(matches!(commit(set("m#key", "1")).await, Err(Error::TooLarge(_))));
        assert!(matches!(commit(set("m#k", "123")).await, Err(Error::TooLarge(_))));
        assert!(matches!(commit(set("m#ke", "12")).await, Err(Error::TooLarge(_))));
    }

    #[tokio::test]
    async fn dropping_a_snapshot_leaves_nothing() {
        let store = MemoryBackend::new();
        let reader = store.snapshot().await.unwrap();
        for value in ["1", "2", "3"] {
            store.snapshot().await.unwrap().commit(set("m#k", value)).await.unwrap();
        }
        drop(reader);
        let statistics = store.statistics().await.unwrap();
        assert_eq!(statistics.figures, [("keys", 1), ("snapshots", 0)]);
        assert_eq!(statistics.memory_bytes, 4);
    }
}
