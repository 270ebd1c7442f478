use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
};

use async_trait::async_trait;
use bytes::Bytes;
use respgate_backend_api::{Capabilities, Direction, KeyRange, KvBackend, Result, Snapshot, Statistics, WriteSet};
use respgate_backend_memory::MemoryBackend;
use tokio::task::yield_now;

/// How a future ended.
pub(super) enum Outcome<T> {
    Done(T),
    GivenUp,
}

/// Polls `future` at most so often, then drops it: the process has died in the middle of it.
pub(super) async fn run_for<T>(future: impl Future<Output = T>, polls: usize) -> Outcome<T> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Poll::Ready(value) = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await {
            return Outcome::Done(value);
        }
        // What it waits for may need others to go on.
        yield_now().await;
    }
    Outcome::GivenUp
}

/// A store that waits before and after every write, so that a crash can come at either moment.
pub(super) struct Yielding(MemoryBackend);

impl Yielding {
    pub(super) fn over(store: MemoryBackend) -> Self {
        Self(store)
    }
}

#[async_trait]
impl KvBackend for Yielding {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(YieldingSnapshot(self.0.snapshot().await?)))
    }

    async fn locking_snapshot(&self, keys: &[Bytes]) -> Result<Arc<dyn Snapshot>> {
        Ok(Arc::new(YieldingSnapshot(self.0.locking_snapshot(keys).await?)))
    }

    async fn delete_range(&self, range: KeyRange) -> Result<()> {
        yield_now().await;
        self.0.delete_range(range).await?;
        yield_now().await;
        Ok(())
    }

    async fn forget_versions(&self) -> Result<bool> {
        self.0.forget_versions().await
    }

    async fn health(&self) -> Result<()> {
        self.0.health().await
    }

    async fn statistics(&self) -> Result<Statistics> {
        self.0.statistics().await
    }

    async fn close(&self) -> Result<()> {
        self.0.close().await
    }
}

struct YieldingSnapshot(Arc<dyn Snapshot>);

#[async_trait]
impl Snapshot for YieldingSnapshot {
    fn time_ms(&self) -> Option<u64> {
        self.0.time_ms()
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.0.get(key).await
    }

    async fn multi_get(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        self.0.multi_get(keys).await
    }

    async fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<(Bytes, Bytes)>> {
        self.0.scan(range, direction, limit).await
    }

    async fn commit(&self, writes: WriteSet) -> Result<()> {
        yield_now().await;
        self.0.commit(writes).await?;
        yield_now().await;
        Ok(())
    }
}
