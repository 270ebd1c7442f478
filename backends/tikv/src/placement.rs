//! What the client of the cluster does not tell: where regions begin, and who leads them. Only the placement driver's leader
//! knows that.

use std::collections::{BTreeSet, HashMap};

use prost::Message;
use respgate_backend_api::{Error, Result};
use tikv_client::SecurityManager;
use tonic::{client::Grpc, transport::Channel};

use crate::{TikvOptions, direct::call, failure::Failure};

/// Regions of one answer.
const PAGE: i32 = 1_024;

/// Regions that are looked at; what lies behind them passes for one.
const REGIONS_MAX: usize = 1 << 17;

/// The regions that hold `options.key_prefix`, in ascending order, and the addresses of the servers that lead them. They begin
/// where they do without what stands before each of our keys, and the first of them nowhere.
pub(crate) async fn regions(options: &TikvOptions) -> Result<(Vec<Placed>, HashMap<u64, String>)> {
    let mut leader = Leader::find(options).await?;
    let placed = leader.placed(options).await?;
    let servers: BTreeSet<u64> = placed.iter().map(|region| region.leader.server).collect();
    let mut addresses = HashMap::new();
    for server in servers {
        // There is none with number 0.
        let address = leader.address_of(server).await.ok().flatten();
        addresses.extend(address.map(|address| (server, address)));
    }
    Ok((placed, addresses))
}

/// A region, and where it is.
pub(crate) struct Placed {
    pub(crate) start: Vec<u8>,
    pub(crate) id: u64,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) leader: Peer,
}

/// The member of the placement driver that knows.
struct Leader {
    grpc: Grpc<Channel>,
    header: RequestHeader,
}

impl Leader {
    async fn find(options: &TikvOptions) -> Result<Self> {
        let security = security(options)?;
        let mut cause = Error::Unavailable("no placement driver is configured".to_owned());
        for endpoint in &options.pd_endpoints {
            match Self::through(&security, endpoint).await {
                Ok(leader) => return Ok(leader),
                Err(error) => cause = error,
            }
        }
        Err(cause)
    }

    /// Asks one member who leads.
    async fn through(security: &SecurityManager, endpoint: &str) -> Result<Self> {
        let mut any = Self { grpc: connect(security, endpoint).await?, header: RequestHeader::default() };
        let members: Members = any.ask("/pdpb.PD/GetMembers", HeaderOnly { header: None }).await?;
        let url = members.leader.and_then(|leader| leader.client_urls.into_iter().next());
        let url = url.ok_or_else(|| Error::Unavailable("the placement driver has no leader".to_owned()))?;
        Ok(Self { grpc: connect(security, &url).await?, header: members.header.unwrap_or_default() })
    }

    async fn placed(&mut self, options: &TikvOptions) -> Result<Vec<Placed>> {
        let keyspace = match &options.keyspace {
            Some(name) => self.keyspace_prefix(name).await?,
            None => Vec::new(),
        };
        let prefix = [&*keyspace, &*options.key_prefix].concat();
        let (mut placed, mut next) = (Vec::new(), encode(&prefix));
        while placed.len() < REGIONS_MAX {
            let Regions { regions, leaders } = self.regions_from(next).await?;
            let end = regions.last().map(|last| last.end_key.clone()).unwrap_or_default();
            let mut leaders = leaders.into_iter();
            for region in regions {
                // A region that nobody leads has one without a number.
                let leader = leaders.next().unwrap_or_default();
                let start = decode(&region.start_key);
                let start = match start.strip_prefix(&*prefix) {
                    _ if start <= prefix => Vec::new(),
                    Some(start) => start.to_vec(),
                    None => return Ok(placed),
                };
                placed.push(Placed { start, id: region.id, epoch: region.epoch, leader });
            }
            if end.is_empty() {
                break;
            }
            next = end;
        }
        Ok(placed)
    }

    async fn regions_from(&mut self, start_key: Vec<u8>) -> Result<Regions> {
        let request = ScanRegions { header: Some(self.header.clone()), start_key, limit: PAGE };
        self.ask("/pdpb.PD/ScanRegions", request).await
    }

    async fn address_of(&mut self, store_id: u64) -> Result<Option<String>> {
        let request = GetStore { header: Some(self.header.clone()), store_id };
        let found: FoundStore = self.ask("/pdpb.PD/GetStore", request).await?;
        Ok(found.store.map(|store| store.address))
    }

    /// What the client puts before each key of a keyspace.
    async fn keyspace_prefix(&mut self, name: &str) -> Result<Vec<u8>> {
        let request = LoadKeyspace { header: Some(self.header.clone()), name: name.to_owned() };
        let found: Keyspace = self.ask("/keyspacepb.Keyspace/LoadKeyspace", request).await?;
        let [_, id @ ..] = found.keyspace.unwrap_or_default().id.to_be_bytes();
        Ok([&b"x"[..], &id].concat())
    }

    async fn ask<Q, A>(&mut self, method: &'static str, question: Q) -> Result<A>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        call(&mut self.grpc, method, question).await.map_err(|error| unavailable(&error))
    }
}

/// How servers of the cluster are connected to.
pub(crate) fn security(options: &TikvOptions) -> Result<SecurityManager> {
    match &options.tls {
        Some(tls) => SecurityManager::load(&tls.ca, &tls.cert, &tls.key).map_err(|error| unavailable(&error)),
        None => Ok(SecurityManager::default()),
    }
}

async fn connect(security: &SecurityManager, endpoint: &str) -> Result<Grpc<Channel>> {
    security.connect(endpoint, Grpc::new).await.map_err(|error| unavailable(&error))
}

fn unavailable(error: &tikv_client::Error) -> Error {
    Failure::of(error).of_read()
}

/// How the placement driver writes keys: in groups of eight bytes, each with a byte that says how many of them count.
fn encode(key: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity((key.len() / 8 + 1) * 9);
    let (groups, rest) = key.as_chunks::<8>();
    for group in groups {
        encoded.extend_from_slice(group);
        encoded.push(u8::MAX);
    }
    let padding = 8 - rest.len();
    encoded.extend_from_slice(rest);
    encoded.resize(encoded.len() + padding, 0);
    encoded.push(u8::MAX - u8::try_from(padding).unwrap_or(8));
    encoded
}

/// The key that the placement driver has written so. What is no such key gives as much of it as is one.
fn decode(encoded: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(encoded.len());
    let (groups, _) = encoded.as_chunks::<9>();
    for [group @ .., mark] in groups {
        let padding = usize::from(u8::MAX - mark);
        key.extend_from_slice(group.get(..8_usize.saturating_sub(padding)).unwrap_or_default());
    }
    key
}

#[derive(Clone, PartialEq, Message)]
struct RequestHeader {
    #[prost(uint64, tag = "1")]
    cluster_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct HeaderOnly {
    #[prost(message, optional, tag = "1")]
    header: Option<RequestHeader>,
}

#[derive(Clone, PartialEq, Message)]
struct Members {
    /// A header of an answer has the cluster's number in the same place.
    #[prost(message, optional, tag = "1")]
    header: Option<RequestHeader>,
    #[prost(message, optional, tag = "3")]
    leader: Option<Member>,
}

#[derive(Clone, PartialEq, Message)]
struct Member {
    #[prost(string, repeated, tag = "4")]
    client_urls: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ScanRegions {
    #[prost(message, optional, tag = "1")]
    header: Option<RequestHeader>,
    #[prost(bytes = "vec", tag = "2")]
    start_key: Vec<u8>,
    #[prost(int32, tag = "3")]
    limit: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Regions {
    #[prost(message, repeated, tag = "2")]
    regions: Vec<Region>,
    /// In the same order.
    #[prost(message, repeated, tag = "3")]
    leaders: Vec<Peer>,
}

#[derive(Clone, PartialEq, Message)]
struct Region {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(bytes = "vec", tag = "2")]
    start_key: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    end_key: Vec<u8>,
    #[prost(message, optional, tag = "4")]
    epoch: Option<Epoch>,
}

/// How often a region has changed.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Epoch {
    #[prost(uint64, tag = "1")]
    members: u64,
    #[prost(uint64, tag = "2")]
    bounds: u64,
}

/// A region's copy on a server.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Peer {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) server: u64,
}

#[derive(Clone, PartialEq, Message)]
struct GetStore {
    #[prost(message, optional, tag = "1")]
    header: Option<RequestHeader>,
    #[prost(uint64, tag = "2")]
    store_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct FoundStore {
    #[prost(message, optional, tag = "2")]
    store: Option<Store>,
}

#[derive(Clone, PartialEq, Message)]
struct Store {
    #[prost(string, tag = "2")]
    address: String,
}

#[derive(Clone, PartialEq, Message)]
struct LoadKeyspace {
    #[prost(message, optional, tag = "1")]
    header: Option<RequestHeader>,
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Keyspace {
    #[prost(message, optional, tag = "2")]
    keyspace: Option<KeyspaceMeta>,
}

#[derive(Clone, PartialEq, Message)]
struct KeyspaceMeta {
    #[prost(uint32, tag = "1")]
    id: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_the_placement_driver_does() {
        let written: [(&[u8], &[u8]); 3] = [
            (b"", b"\0\0\0\0\0\0\0\0\xf7"),
            (b"abc", b"abc\0\0\0\0\0\xfa"),
            (b"abcdefgh", b"abcdefgh\xff\0\0\0\0\0\0\0\0\xf7"),
        ];
        for (key, encoded) in written {
            assert_eq!(encode(key), encoded);
            assert_eq!(decode(encoded), key);
        }
        assert_eq!(decode(b"abcdefgh\xffi"), b"abcdefgh", "cut off");
    }
}
