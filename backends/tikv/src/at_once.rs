//! Commits in one request to one region, whose leader writes and commits in one phase (1PC).

use std::collections::HashSet;

use bytes::Bytes;
use prost::Message;
use respgate_backend_api::{Error, Result, WriteSet};
use tokio::time::{Instant, timeout_at};

use crate::{
    cluster::Cluster,
    direct::{Context, Something, ask},
    failure::Failure,
};

/// How long locks live if the server takes two phases after all, in milliseconds; as the client has it.
const LOCK_TTL_MS: u64 = 3_000;

/// Commits `writes` for the transaction that began at `version`. `None` if that is left to the client of the cluster: nothing has
/// been done then that stands in its way.
pub(crate) async fn commit(
    cluster: &Cluster,
    version: u64,
    writes: &WriteSet,
    deadline: Instant,
) -> Option<Result<()>> {
    let WriteSet { writes: written, guards } = writes;
    let keys: Vec<Bytes> = written.iter().map(|(key, _)| key.clone()).collect();
    if writes.bytes() > cluster.limits.part_bytes_max || !are_among(guards, &keys) {
        return None;
    }
    let home = cluster.regions.home(&keys)?;
    let request = PrewriteRequest {
        context: Some(home.context.clone()),
        mutations: written.iter().map(|(key, value)| Mutation::of(cluster, key, value.as_ref())).collect(),
        primary_lock: keys.first().map(|key| cluster.keys.encode(key).into()).unwrap_or_default(),
        start_version: version,
        lock_ttl: LOCK_TTL_MS,
        txn_size: u64::MAX,
        try_one_pc: true,
    };
    let deadline = deadline.min(Instant::now() + cluster.request_timeout);
    let answer: PrewriteResponse = match timeout_at(deadline, ask(&home, "/tikvpb.Tikv/KvPrewrite", request)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            cluster.regions.doubt_server(&home);
            return match Failure::of(&error) {
                // It was not sent.
                Failure::Moved(_) => None,
                failure => Some(Err(failure.of_commit())),
            };
        }
        Err(_) => {
            cluster.regions.doubt_server(&home);
            return Some(Err(Error::OutcomeUnknown("the commit was not answered in time".to_owned())));
        }
    };
    match answer {
        PrewriteResponse { region_error: Some(_), .. } => {
            cluster.regions.doubt(&home);
            None
        }
        PrewriteResponse { one_pc_commit_ts: 1.., .. } => Some(Ok(())),
        // A single key that others were quicker with has no lock of ours.
        PrewriteResponse { errors, .. } if keys.len() == 1 && errors.iter().any(|error| error.conflict.is_some()) => {
            Some(Err(Error::Conflict))
        }
        _ => None,
    }
}

fn are_among(guards: &[Bytes], keys: &[Bytes]) -> bool {
    if let [key] = keys {
        return guards.iter().all(|guard| guard == key);
    }
    let keys: HashSet<&Bytes> = keys.iter().collect();
    guards.iter().all(|guard| keys.contains(guard))
}

#[derive(Clone, PartialEq, Message)]
struct PrewriteRequest {
    #[prost(message, optional, tag = "1")]
    context: Option<Context>,
    #[prost(message, repeated, tag = "2")]
    mutations: Vec<Mutation>,
    #[prost(bytes = "vec", tag = "3")]
    primary_lock: Vec<u8>,
    #[prost(uint64, tag = "4")]
    start_version: u64,
    #[prost(uint64, tag = "5")]
    lock_ttl: u64,
    #[prost(uint64, tag = "8")]
    txn_size: u64,
    #[prost(bool, tag = "13")]
    try_one_pc: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Mutation {
    /// 0 puts, 1 deletes.
    #[prost(int32, tag = "1")]
    operation: i32,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    #[prost(bytes = "bytes", tag = "3")]
    value: Bytes,
}

impl Mutation {
    fn of(cluster: &Cluster, key: &Bytes, value: Option<&Bytes>) -> Self {
        let key = cluster.keys.encode(key).into();
        Self { operation: i32::from(value.is_none()), key, value: value.cloned().unwrap_or_default() }
    }
}

#[derive(Clone, PartialEq, Message)]
struct PrewriteResponse {
    #[prost(message, optional, tag = "1")]
    region_error: Option<Something>,
    #[prost(message, repeated, tag = "2")]
    errors: Vec<KeyError>,
    #[prost(uint64, tag = "4")]
    one_pc_commit_ts: u64,
}

#[derive(Clone, PartialEq, Message)]
struct KeyError {
    #[prost(message, optional, tag = "4")]
    conflict: Option<Something>,
}
