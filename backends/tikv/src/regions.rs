use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::{Mutex, RwLock};
use respgate_backend_api::Result;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tonic::transport::Channel;

use crate::{
    TikvOptions,
    cluster::Cluster,
    direct::Context,
    placement::{Placed, regions, security},
};

/// How old what is known may become while it is used. Regions split and merge in minutes, and the client finds them all the
/// same, at some cost.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// How soon to ask again once something is known to be wrong.
const REPAIR_INTERVAL: Duration = Duration::from_millis(500);

/// Where regions begin and who leads them, as far as is known.
#[derive(Default)]
pub(crate) struct Regions {
    map: RwLock<Arc<Map>>,
    /// The addresses of servers that did not answer. One that has fallen silent may never do so on the same connection.
    silent: Mutex<HashSet<String>>,
    is_wanted: Notify,
    is_wrong: Notify,
}

#[derive(Default)]
struct Map {
    /// Where all but the first begin.
    starts: Vec<Vec<u8>>,
    /// In their order; without those that nobody leads or that cannot be reached.
    homes: Vec<Option<Arc<Home>>>,
}

/// Where a region is.
pub(crate) struct Home {
    pub(crate) context: Context,
    address: String,
    pub(crate) server: Channel,
    is_wrong: AtomicBool,
}

impl Regions {
    /// The number of the region that `key` lies in; all are one until they are known.
    pub(crate) fn number(&self, key: &[u8]) -> u64 {
        self.is_wanted.notify_one();
        self.map.read().number(key) as u64
    }

    /// Where the region is that all of `keys` lie in, if there is one and that is known.
    pub(crate) fn home(&self, keys: &[Bytes]) -> Option<Arc<Home>> {
        self.is_wanted.notify_one();
        let map = self.map.read();
        let (first, others) = keys.split_first()?;
        let number = map.number(first);
        let home = map.homes.get(number)?.as_ref().filter(|home| !home.is_wrong.load(Ordering::Relaxed))?;
        others.iter().all(|key| map.number(key) == number).then(|| Arc::clone(home))
    }

    /// Says that the server of a region does not answer.
    pub(crate) fn doubt_server(&self, home: &Home) {
        self.silent.lock().insert(home.address.clone());
        self.doubt(home);
    }

    /// Says that a region is not there any more.
    pub(crate) fn doubt(&self, home: &Home) {
        if !home.is_wrong.swap(true, Ordering::Relaxed) {
            self.is_wrong.notify_one();
        }
    }
}

impl Map {
    fn number(&self, key: &[u8]) -> usize {
        self.starts.partition_point(|start| **start <= *key)
    }
}

/// Learns where the regions are, at first and again for as long as somebody asks, until the store is closed.
pub(crate) async fn keep_known(cluster: Arc<Cluster>, options: TikvOptions) {
    let mut servers = HashMap::new();
    cluster.connection.connected().await;
    while cluster.connection.check_open().is_ok() {
        let silent = mem::take(&mut *cluster.regions.silent.lock());
        servers.retain(|address, _| !silent.contains(address));
        match timeout(options.timeout, learn(&options, &mut servers)).await {
            Ok(Ok(map)) => *cluster.regions.map.write() = Arc::new(map),
            Ok(Err(error)) => tracing::debug!(%error, "the regions are not known"),
            Err(_) => tracing::debug!("the placement driver does not tell the regions"),
        }
        tokio::select! {
            () = sleep(REFRESH_INTERVAL) => cluster.regions.is_wanted.notified().await,
            () = cluster.regions.is_wrong.notified() => sleep(REPAIR_INTERVAL).await,
        }
    }
}

/// Asks where the regions are, and connects to servers that are new among `servers`.
async fn learn(options: &TikvOptions, servers: &mut HashMap<String, Channel>) -> Result<Map> {
    let (placed, addresses) = regions(options).await?;
    let starts = placed.iter().skip(1).map(|region| region.start.clone()).collect();
    // In a keyspace, keys have something before them that only the client knows how to put there.
    if options.keyspace.is_some() || !options.is_direct {
        return Ok(Map { starts, homes: Vec::new() });
    }
    let security = security(options)?;
    servers.retain(|address, _| addresses.values().any(|known| known == address));
    let new = addresses.values().filter(|address| !servers.contains_key(*address));
    let patience = options.request_timeout.min(options.timeout / 4);
    let connected = join_all(new.map(async |address| {
        let server = timeout(patience, security.connect(address, |server| server)).await;
        Some((address.clone(), server.ok()?.ok()?))
    }));
    servers.extend(connected.await.into_iter().flatten());
    let homes = placed.into_iter().map(|Placed { id, epoch, leader, .. }| {
        let address = addresses.get(&leader.server)?.clone();
        let server = servers.get(&address)?.clone();
        let context = Context { region: id, epoch, peer: Some(leader) };
        Some(Arc::new(Home { context, address, server, is_wrong: AtomicBool::new(false) }))
    });
    Ok(Map { starts, homes: homes.collect() })
}
