use std::collections::BTreeMap;

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange};

use super::World;
use crate::{
    encoding::{Body, Metadata, ZsetOrder, encode_member, encode_member_score, index_of_member, rdb::Value},
    keyspace::Reconciled,
};

/// Compares what the store holds with the records that living keys consist of, byte for byte. The metadata says which
/// version and which origin a key has, and where a list lies.
pub(super) async fn check(world: &World) {
    let codec = world.keyspace.codec();
    let databases = world.keyspace.databases().current();
    let (mut stored, mut in_sidecar) = (stored(world).await, 0);
    for ((db, name), (value, expires_at_ms)) in &world.model.0 {
        let physical = databases.physical(*db).unwrap();
        let metadata = stored.remove(&codec.metadata(physical, name)).unwrap();
        let metadata = Metadata::decode(&metadata).unwrap();
        assert_eq!(metadata.expires_at_ms, *expires_at_ms);
        let owner = metadata.origin.as_ref().unwrap_or(name);
        if metadata.origin.is_some() {
            let forwarding = codec.forwarding(physical, owner, metadata.version);
            assert_eq!(stored.remove(&forwarding).as_ref(), Some(name));
        }
        let mut take = |suffix: &[u8]| stored.remove(&codec.element(physical, owner, metadata.version, suffix));
        match (value, &metadata.body) {
            (Value::String(value), Body::String(found)) => assert_eq!(value, found),
            (Value::String(value), Body::Chunks { chunk_bytes, .. }) => {
                for (number, chunk) in (0_u32..).zip(value.chunks(*chunk_bytes as usize)) {
                    assert_eq!(take(&number.to_be_bytes()).as_deref(), Some(chunk));
                }
            }
            (Value::Hash(pairs), Body::Hash { count }) => {
                assert!(count.is_none_or(|count| count as usize == pairs.len()));
                pairs.iter().for_each(|(field, value)| assert_eq!(take(field).as_ref(), Some(value)));
            }
            (Value::Set(members), Body::Set { count }) => {
                assert!(count.is_none_or(|count| count as usize == members.len()));
                members.iter().for_each(|member| assert_eq!(take(member), Some(Bytes::new())));
            }
            (Value::List(elements), Body::List { count, head, tail }) => {
                assert_eq!((u64::from(*count), elements.len() as u64), (tail - head, tail - head));
                for (position, element) in (*head..).zip(elements) {
                    assert_eq!(take(&position.to_be_bytes()).as_ref(), Some(element));
                }
            }
            (Value::Zset(members), Body::Zset { count, order: ZsetOrder::Sidecar(_) }) => {
                assert_eq!(*count, members.len() as u32);
                for (member, score) in members {
                    let record = codec.member_index(physical, owner, metadata.version, &index_of_member(member));
                    assert_eq!(stored.remove(&record), Some(encode_member(*score, member)));
                }
                // There is none as long as the sorted set is as it was created.
                stored.remove(&codec.journal(physical, owner, metadata.version));
                in_sidecar += 1;
            }
            (Value::Zset(members), Body::Zset { count, .. }) => {
                assert_eq!(*count, members.len() as u32);
                for (member, score) in members {
                    assert_eq!(take(member).as_deref(), Some(&encode_member_score(*score)[..]));
                }
                for (member, score) in members {
                    let record = codec.score(physical, owner, metadata.version, *score, member);
                    assert_eq!(stored.remove(&record), Some(Bytes::new()));
                }
            }
            (value, body) => panic!("{value:?} is stored as {body:?}"),
        }
    }
    assert_eq!(stored, BTreeMap::new(), "records that belong to no key");
    if let Some(redis) = &world.redis {
        assert_eq!(world.keyspace.reconcile().await.unwrap(), Reconciled::default());
        assert_eq!(redis.keys(false).len(), 2 * in_sidecar, "an order and a revision for each sorted set");
    }
}

/// Every record of the store but for leases and the map of databases.
async fn stored(world: &World) -> BTreeMap<Bytes, Bytes> {
    let all = KeyRange::new(Bytes::new(), Bytes::from_static(&[0xff; 9]));
    let records = world.backend.snapshot().await.unwrap().scan(&all, Direction::Forward, usize::MAX).await.unwrap();
    let of_keys = records.into_iter().filter(|(record, _)| !record.starts_with(b"w#") && !record.starts_with(b"d#"));
    of_keys.collect()
}
