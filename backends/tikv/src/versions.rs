use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use respgate_backend_api::{Error, Result};
use tikv_client::{Timestamp, TimestampExt};
use tokio::time::timeout;

use crate::cluster::Cluster;

/// How long it may take: every region is asked for locks that a gateway left behind.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The moments that are being read here.
#[derive(Default)]
pub(crate) struct Moments(Mutex<BTreeMap<u64, usize>>);

impl Moments {
    fn first(&self) -> Option<u64> {
        self.0.lock().first_key_value().map(|(&version, _)| version)
    }
}

/// A moment that must stay readable until this is dropped.
pub(crate) struct Moment {
    cluster: Arc<Cluster>,
    version: u64,
}

impl Moment {
    pub(crate) fn new(cluster: &Arc<Cluster>, read_at: &Timestamp) -> Self {
        let version = read_at.version();
        *cluster.moments.0.lock().entry(version).or_default() += 1;
        Self { cluster: Arc::clone(cluster), version }
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        let mut moments = self.cluster.moments.0.lock();
        if let Some(readers) = moments.get_mut(&self.version) {
            *readers -= 1;
            if *readers == 0 {
                moments.remove(&self.version);
            }
        }
    }
}

/// Moves the cluster's safe point: to the lag before now, but not past what is being read here. False if that is not ours
/// to do.
///
/// A snapshot is noted a little after its moment, and those of other gateways are not known. Both are younger than the lag.
pub(crate) async fn forget(cluster: &Cluster) -> Result<bool> {
    let Some(lag) = cluster.gc_lag else { return Ok(false) };
    let mut safe_point = cluster.now().await?;
    safe_point.physical -= i64::try_from(lag.as_millis()).unwrap_or(i64::MAX);
    if let Some(first) = cluster.moments.first().filter(|&first| first < safe_point.version()) {
        safe_point = Timestamp::from_version(first);
    }
    let client = cluster.connection.client()?;
    match timeout(TIMEOUT, client.gc(safe_point)).await {
        // What it says is whether somebody else was further already.
        Ok(Ok(_)) => Ok(true),
        Ok(Err(error)) => Err(cluster.failure(&error).of_read()),
        Err(_) => Err(Error::Unavailable("old versions could not be forgotten in time".to_owned())),
    }
}
