//! What was committed last, without a timestamp.
//!
//! A unit that needs one record needs no moment of the cluster: whatever the record is while the region's leader looks at it
//! is an answer, as TiDB has it for its point gets. The client of the cluster reads at timestamps of the oracle only; this
//! asks the leader itself, for the greatest version there may be, which TiKV takes for the last one. It does not wait for
//! anything: where there is a lock in the way, or the region is somewhere else, the caller opens a snapshot instead.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use prost::Message;
use tikv_client::Error;
use tokio::time::timeout;

use crate::{
    cluster::Cluster,
    direct::{Context, Something, ask},
    failure::Failure,
    regions::Home,
};

/// How long a server may take. The other way takes longer, but has all the time there is.
const PATIENCE: Duration = Duration::from_millis(250);

/// The values of `keys`, if all of them are in a region that answers at once.
pub(crate) async fn read_latest(cluster: &Cluster, keys: &[Bytes]) -> Option<Vec<Option<Bytes>>> {
    let home = cluster.regions.home(keys)?;
    let asked = keys.iter().map(|key| cluster.keys.encode(key).into());
    let answer = match keys {
        [_] => timeout(PATIENCE, get(&home, asked.collect())).await,
        _ => timeout(PATIENCE, batch_get(&home, asked.collect())).await,
    };
    match answer {
        Ok(Ok(Answer::Values(values))) => Some(values),
        Ok(Ok(Answer::Locked)) => None,
        Ok(Ok(Answer::Moved)) => {
            cluster.regions.doubt(&home);
            None
        }
        Ok(Err(error)) => {
            if Failure::of(&error) != Failure::AnswerTooLarge {
                cluster.regions.doubt_server(&home);
            }
            None
        }
        Err(_) => {
            cluster.regions.doubt_server(&home);
            None
        }
    }
}

enum Answer {
    Values(Vec<Option<Bytes>>),
    /// By somebody who has not committed yet, perhaps.
    Locked,
    /// The region is not there.
    Moved,
}

async fn get(home: &Home, keys: Vec<Vec<u8>>) -> Result<Answer, Error> {
    let key = keys.into_iter().next().unwrap_or_default();
    let request = GetRequest { context: Some(home.context.clone()), key, version: u64::MAX };
    let found: GetResponse = ask(home, "/tikvpb.Tikv/KvGet", request).await?;
    Ok(match found {
        GetResponse { region_error: Some(_), .. } => Answer::Moved,
        GetResponse { error: Some(_), .. } => Answer::Locked,
        GetResponse { value, not_found, .. } => Answer::Values(vec![(!not_found).then(|| value.into())]),
    })
}

async fn batch_get(home: &Home, keys: Vec<Vec<u8>>) -> Result<Answer, Error> {
    let mut distinct = keys.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let request = BatchGetRequest { context: Some(home.context.clone()), keys: distinct, version: u64::MAX };
    let found: BatchGetResponse = ask(home, "/tikvpb.Tikv/KvBatchGet", request).await?;
    if found.region_error.is_some() {
        return Ok(Answer::Moved);
    }
    if found.error.is_some() || found.pairs.iter().any(|pair| pair.error.is_some()) {
        return Ok(Answer::Locked);
    }
    let values: HashMap<Vec<u8>, Bytes> = found.pairs.into_iter().map(|pair| (pair.key, pair.value.into())).collect();
    Ok(Answer::Values(keys.iter().map(|key| values.get(key).cloned()).collect()))
}

#[derive(Clone, PartialEq, Message)]
struct GetRequest {
    #[prost(message, optional, tag = "1")]
    context: Option<Context>,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    #[prost(uint64, tag = "3")]
    version: u64,
}

#[derive(Clone, PartialEq, Message)]
struct GetResponse {
    #[prost(message, optional, tag = "1")]
    region_error: Option<Something>,
    #[prost(message, optional, tag = "2")]
    error: Option<Something>,
    #[prost(bytes = "vec", tag = "3")]
    value: Vec<u8>,
    #[prost(bool, tag = "4")]
    not_found: bool,
}

#[derive(Clone, PartialEq, Message)]
struct BatchGetRequest {
    #[prost(message, optional, tag = "1")]
    context: Option<Context>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    keys: Vec<Vec<u8>>,
    #[prost(uint64, tag = "3")]
    version: u64,
}

#[derive(Clone, PartialEq, Message)]
struct BatchGetResponse {
    #[prost(message, optional, tag = "1")]
    region_error: Option<Something>,
    #[prost(message, repeated, tag = "2")]
    pairs: Vec<Pair>,
    #[prost(message, optional, tag = "5")]
    error: Option<Something>,
}

#[derive(Clone, PartialEq, Message)]
struct Pair {
    #[prost(message, optional, tag = "1")]
    error: Option<Something>,
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    value: Vec<u8>,
}
