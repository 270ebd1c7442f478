use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use respgate_backend_api::{Capabilities, Direction, KeyRange, KvBackend};
use respgate_backend_memory::MemoryBackend;

use super::{Encodings, Key, Keyspace, ManualClock, Options, Random};
use crate::sidecar::Sidecar;

/// When the clock of a [`keyspace`] starts, in milliseconds since the Unix epoch.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// The time of grace of every keyspace here.
pub(crate) const GRACE: Duration = Duration::from_secs(600);

/// An empty keyspace in memory, and the clock that it goes by.
pub(crate) async fn keyspace(encodings: Encodings) -> (Keyspace, Arc<ManualClock>) {
    keyspace_over(Arc::new(MemoryBackend::new()), encodings).await
}

/// A keyspace over this store, and the clock that it goes by.
pub(crate) async fn keyspace_over(backend: Arc<dyn KvBackend>, encodings: Encodings) -> (Keyspace, Arc<ManualClock>) {
    keyspace_with(backend, encodings, 0, None).await
}

/// A keyspace over this store that makes other random choices than others.
pub(crate) async fn keyspace_with_random(backend: Arc<dyn KvBackend>, seed: u64) -> (Keyspace, Arc<ManualClock>) {
    keyspace_with(backend, Encodings::default(), seed, None).await
}

/// A keyspace over this store and this sidecar that makes its own random choices, and the clock that it goes by.
pub(crate) async fn keyspace_with(
    backend: Arc<dyn KvBackend>,
    encodings: Encodings,
    seed: u64,
    sidecar: Option<Sidecar>,
) -> (Keyspace, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at_ms(START_MS));
    let options = Options {
        namespace: "test".to_owned(),
        databases: 2,
        encodings,
        cache_bytes: 1 << 20,
        grace: GRACE,
        sidecar,
        clock: Arc::<ManualClock>::clone(&clock),
        random: Random::seeded(seed),
    };
    (Keyspace::open(backend, options).await.unwrap(), clock)
}

/// An empty keyspace over a store in one order, and one over a range-partitioned store.
pub(crate) async fn keyspaces() -> Vec<(Arc<dyn KvBackend>, Keyspace, Arc<ManualClock>)> {
    let by_slot = Capabilities { range_partitioned: true, ..MemoryBackend::CAPABILITIES };
    let mut keyspaces = Vec::new();
    for backend in [MemoryBackend::new(), MemoryBackend::new().with_capabilities(by_slot)] {
        let backend: Arc<dyn KvBackend> = Arc::new(backend);
        let (keyspace, clock) = keyspace_over(Arc::clone(&backend), Encodings::default()).await;
        keyspaces.push((backend, keyspace, clock));
    }
    keyspaces
}

/// How many records a store holds beside leases.
pub(crate) async fn records(backend: &dyn KvBackend) -> usize {
    let all = KeyRange::new(Bytes::new(), Bytes::from_static(&[0xff; 9]));
    let records = backend.snapshot().await.unwrap().scan(&all, Direction::Forward, usize::MAX).await.unwrap();
    records.into_iter().filter(|(record, _)| !record.starts_with(b"w#")).count()
}

/// The key with this name in the first database.
pub(crate) fn key(name: &'static str) -> Key {
    Key { db: 0, name: name.into() }
}
