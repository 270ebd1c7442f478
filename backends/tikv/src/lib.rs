//! A TiKV cluster as a store: any number of gateways may share it.
//!
//! Built on `tikv-client`, through its transactions: a snapshot is a timestamp of the placement driver's oracle, a commit
//! an optimistic transaction that began at that timestamp. `README.md` beside this crate tells what each operation
//! costs, and which of the client's ways are worked around where.

mod at_once;
mod cluster;
mod commit;
mod connection;
mod deletion;
mod direct;
mod failure;
mod keys;
mod latest;
mod limits;
mod options;
mod pending;
mod placement;
mod regions;
mod snapshot;
#[cfg(test)]
mod tests;
mod versions;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use respgate_backend_api::{Capabilities, KeyRange, KvBackend, Result, Snapshot, Statistics};
use tokio::task::JoinHandle;

use cluster::{Cluster, Counts};
use pending::Pending;
use snapshot::TikvSnapshot;

pub use options::{TikvOptions, TlsFiles};

/// A [`KvBackend`] in a TiKV cluster.
pub struct TikvBackend {
    cluster: Arc<Cluster>,
    in_background: [JoinHandle<()>; 2],
}

impl TikvBackend {
    /// A store in the cluster that `options` name. Returns at once and connects in the background, again and again until
    /// it succeeds; until then calls fail with [`NotReady`](respgate_backend_api::Error::NotReady). Call it within a
    /// tokio runtime.
    pub fn open(options: TikvOptions) -> Self {
        let cluster = Arc::new(Cluster::new(&options));
        let in_background = [
            tokio::spawn(regions::keep_known(Arc::clone(&cluster), options.clone())),
            tokio::spawn(connection::keep_connected(Arc::clone(&cluster), options)),
        ];
        Self { cluster, in_background }
    }

    /// Waits until the cluster has been reached.
    pub async fn connected(&self) {
        self.cluster.connection.connected().await;
    }
}

impl fmt::Debug for TikvBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TikvBackend").finish_non_exhaustive()
    }
}

impl Drop for TikvBackend {
    fn drop(&mut self) {
        self.in_background.iter().for_each(JoinHandle::abort);
    }
}

#[async_trait]
impl KvBackend for TikvBackend {
    fn capabilities(&self) -> Capabilities {
        self.cluster.limits
    }

    async fn snapshot(&self) -> Result<Arc<dyn Snapshot>> {
        let pending = Pending::optimistic(&self.cluster).await?;
        Counts::add(&self.cluster.counts.snapshots);
        Ok(Arc::new(TikvSnapshot::new(&self.cluster, pending.begun_at(), pending)))
    }

    async fn locking_snapshot(&self, keys: &[Bytes]) -> Result<Arc<dyn Snapshot>> {
        let pending = Pending::locking(&self.cluster, keys).await?;
        // The locks are newer than the transaction, and whatever was committed before them must be seen.
        let read_at = self.cluster.now().await?;
        Counts::add(&self.cluster.counts.snapshots);
        Ok(Arc::new(TikvSnapshot::new(&self.cluster, read_at, pending)))
    }

    async fn read_latest(&self, keys: &[Bytes]) -> Result<Option<Vec<Option<Bytes>>>> {
        self.cluster.connection.check_open()?;
        Ok(latest::read_latest(&self.cluster, keys).await)
    }

    async fn delete_range(&self, range: KeyRange) -> Result<()> {
        self.cluster.connection.check_open()?;
        deletion::delete_range(self, range).await
    }

    async fn forget_versions(&self) -> Result<bool> {
        versions::forget(&self.cluster).await
    }

    fn partition(&self, key: &[u8]) -> u64 {
        self.cluster.regions.number(key)
    }

    async fn health(&self) -> Result<()> {
        // A timestamp says that there is a placement driver, the read that there is a leader for at least one region.
        self.snapshot().await?.get(b"d#").await.map(drop)
    }

    async fn statistics(&self) -> Result<Statistics> {
        self.cluster.connection.check_open()?;
        Ok(Statistics { disk_bytes: 0, memory_bytes: 0, figures: self.cluster.counts.figures() })
    }

    async fn close(&self) -> Result<()> {
        self.cluster.connection.close();
        Ok(())
    }
}
