use std::{sync::Arc, time::Duration};

use parking_lot::RwLock;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{TikvOptions, cluster::Cluster, placement::region_starts};

/// How old what is known may become while it is used. Regions split and merge in minutes, and a commit across regions that
/// passed for one only costs more.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// Where regions begin, as far as is known.
#[derive(Default)]
pub(crate) struct Regions {
    starts: RwLock<Arc<[Vec<u8>]>>,
    is_wanted: Notify,
}

impl Regions {
    /// The number of the region that `key` lies in; all are one until they are known.
    pub(crate) fn number(&self, key: &[u8]) -> u64 {
        self.is_wanted.notify_one();
        self.starts.read().partition_point(|start| **start <= *key) as u64
    }
}

/// Learns where the regions are, at first and again for as long as somebody asks, until the store is closed.
pub(crate) async fn keep_known(cluster: Arc<Cluster>, options: TikvOptions) {
    cluster.connection.connected().await;
    while cluster.connection.check_open().is_ok() {
        match timeout(options.timeout, region_starts(&options)).await {
            Ok(Ok(starts)) => *cluster.regions.starts.write() = starts.into(),
            Ok(Err(error)) => tracing::debug!(%error, "the regions are not known"),
            Err(_) => tracing::debug!("the placement driver does not tell the regions"),
        }
        sleep(REFRESH_INTERVAL).await;
        cluster.regions.is_wanted.notified().await;
    }
}
