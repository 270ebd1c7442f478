use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
};

use bytes::Bytes;
use respgate_backend_api::{self as backend, Capabilities, Direction, KvBackend};
use respgate_backend_memory::MemoryBackend;

use crate::{
    keyspace::{
        Encodings, Error, Intent, Keyspace, ManualClock,
        fixture::{key, keyspace_with},
    },
    sidecar::fixture::Redis,
    types::{
        self,
        zset::{self, AddOptions, Range, Scored, Span},
    },
};

pub(crate) const IN_SIDECAR: Encodings =
    Encodings { string_chunk_threshold: 64, counted_hashes: true, counted_sets: true, zsets_in_sidecar: true };

/// A store and a sidecar, and gateways in front of both.
pub(crate) struct Site {
    pub(crate) redis: Redis,
    pub(crate) backend: Arc<dyn KvBackend>,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self { redis: Redis::start(), backend: Arc::new(MemoryBackend::new()) }
    }

    /// Where commits of different gateways may meet.
    pub(crate) fn shared_backend() -> Arc<dyn KvBackend> {
        let capabilities = Capabilities { shared: true, ..MemoryBackend::CAPABILITIES };
        Arc::new(MemoryBackend::new().with_capabilities(capabilities))
    }

    pub(crate) async fn gateway(&self) -> Keyspace {
        self.gateway_and_clock().await.0
    }

    /// Each gateway has a time of its own, or two of them would give keys the same versions.
    pub(crate) async fn gateway_and_clock(&self) -> (Keyspace, Arc<ManualClock>) {
        static STARTED: AtomicU64 = AtomicU64::new(0);

        let (backend, seed) = (Arc::clone(&self.backend), STARTED.fetch_add(1, Ordering::Relaxed));
        let (keyspace, clock) = keyspace_with(backend, IN_SIDECAR, seed, Some(self.redis.sidecar())).await;
        clock.advance_ms(seed);
        (keyspace, clock)
    }
}

pub(crate) fn member(number: usize) -> Bytes {
    Bytes::from(if number.is_multiple_of(2) { format!("{number}") } else { format!("{number}: longer than an index") })
}

pub(crate) fn members(numbers: std::ops::Range<usize>) -> Vec<Scored> {
    numbers.map(|number| (member(number), (number / 3) as f64)).collect()
}

pub(crate) async fn add(keyspace: &Keyspace, name: &'static str, members: &[Scored]) -> types::Result<()> {
    let mut unit = keyspace.begin(Intent::Write).await?;
    zset::add(&mut unit, &key(name), members, AddOptions::default()).await?;
    Ok(unit.commit().await?)
}

/// A whole sorted set in its order, as a client gets it: a unit that meets a conflict is run again, in the end with latches.
pub(crate) async fn read(keyspace: &Keyspace, name: &'static str) -> types::Result<Vec<Scored>> {
    let all = Range { span: Span::Ranks(0, -1), direction: Direction::Forward, offset: 0, limit: usize::MAX };
    for intent in [Intent::Read, Intent::Write] {
        let mut unit = keyspace.begin(intent).await?;
        match zset::range(&mut unit, &key(name), &all).await {
            Err(types::Error::Keyspace(Error::Store(backend::Error::Conflict))) => {}
            other => return other,
        }
    }
    panic!("a unit that writes met a conflict");
}

pub(crate) fn in_order(mut members: Vec<Scored>) -> Vec<Scored> {
    members.sort_by(zset::order);
    members
}

/// What a process does that ends with it, down to what it has only just begun to send.
pub(crate) fn in_a_process<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Polls a future so many times, and no more if it has not ended by then.
pub(crate) async fn crash_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(Some(ended)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
