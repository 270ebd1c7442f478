use std::sync::Arc;

use respgate_backend_api::KvBackend;
use respgate_backend_memory::MemoryBackend;

use super::{Encodings, Key, Keyspace, ManualClock, Options, Random};

/// When the clock of a [`keyspace`] starts, in milliseconds since the Unix epoch.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// An empty keyspace in memory, and the clock that it goes by.
pub(crate) async fn keyspace(encodings: Encodings) -> (Keyspace, Arc<ManualClock>) {
    keyspace_over(Arc::new(MemoryBackend::new()), encodings).await
}

/// A keyspace over this store, and the clock that it goes by.
pub(crate) async fn keyspace_over(backend: Arc<dyn KvBackend>, encodings: Encodings) -> (Keyspace, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at_ms(START_MS));
    let options = Options {
        namespace: "test".to_owned(),
        databases: 2,
        encodings,
        cache_bytes: 1 << 20,
        clock: Arc::<ManualClock>::clone(&clock),
        random: Random::seeded(0),
    };
    (Keyspace::open(backend, options).await.unwrap(), clock)
}

/// The key with this name in the first database.
pub(crate) fn key(name: &'static str) -> Key {
    Key { db: 0, name: name.into() }
}
