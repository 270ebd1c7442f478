use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{
    keyspace::{
        Key,
        fixture::{GRACE, key, keyspaces, records},
    },
    types::{
        hash,
        key::{IfExists, delete, expire, rename},
        set, string, zset,
    },
};

/// Sweeps every share to its end. Returns how much was found.
async fn sweep(keyspace: &Keyspace, duty: Duty) -> usize {
    let mut found = 0;
    for share in 0..keyspace.shares() {
        let mut lease = keyspace.take_lease(duty, share, Duration::ZERO).await.unwrap().unwrap();
        loop {
            let swept = keyspace.sweep(&mut lease).await.unwrap();
            assert!(swept.is_ours);
            found += swept.found;
            if swept.is_round_over {
                break;
            }
        }
        keyspace.rest(&mut lease).await.unwrap();
    }
    found
}

async fn collect(keyspace: &Keyspace) {
    while keyspace.collect_garbage().await.unwrap().is_some() {}
}

async fn write(keyspace: &Keyspace) -> Unit<'_> {
    keyspace.begin(Intent::Write).await.unwrap()
}

async fn fill(keyspace: &Keyspace) {
    let mut unit = write(keyspace).await;
    let pairs: Vec<_> = (0..2_000).map(|i| (format!("f{i}").into(), "v".into())).collect();
    hash::set(&mut unit, &key("hash"), &pairs).await.unwrap();
    zset::replace(&mut unit, &key("zset"), vec![("a".into(), 1.0), ("b".into(), 2.0)]).await.unwrap();
    set::add(&mut unit, &key("set"), &["m".into()]).await.unwrap();
    string::set(&mut unit, &key("string"), "v".into(), None).unwrap();
    string::set(&mut unit, &key("long"), vec![b'v'; 100_000].into(), None).unwrap();
    unit.commit().await.unwrap();
}

/// The records of "zset", of "set", of "string" and of "long".
const ZSET: usize = 1 + 2 * 2;
const SET: usize = 1 + 1;
const STRING: usize = 1;
const LONG: usize = 1 + 100_000_usize.div_ceil(8 * 1024);

#[tokio::test]
async fn expired_keys_go_and_others_stay() {
    for (backend, keyspace, clock) in keyspaces().await {
        fill(&keyspace).await;
        let mut unit = write(&keyspace).await;
        for name in ["hash", "string"] {
            let at_ms = unit.now_ms() + 5;
            assert!(expire(&mut unit, &key(name), at_ms, Default::default()).await.unwrap());
        }
        unit.commit().await.unwrap();
        assert_eq!(sweep(&keyspace, Duty::Expired).await, 0);
        clock.advance_ms(6);
        assert_eq!(sweep(&keyspace, Duty::Expired).await, 2);
        collect(&keyspace).await;
        assert_eq!(records(&*backend).await, ZSET + SET + LONG);
    }
}

#[tokio::test]
async fn many_expired_keys_are_swept_wherever_they_lie() {
    for (backend, keyspace, clock) in keyspaces().await {
        let mut unit = write(&keyspace).await;
        let at_ms = unit.now_ms() + 1;
        for number in 0..1_000_u16 {
            let key = Key { db: (number % 2) as u8, name: number.to_string().into() };
            string::set(&mut unit, &key, "v".into(), Some(at_ms).filter(|_| number % 5 > 0)).unwrap();
        }
        unit.commit().await.unwrap();
        clock.advance_ms(2);
        assert_eq!(sweep(&keyspace, Duty::Expired).await, 800);
        assert_eq!(records(&*backend).await, 200);
    }
}

#[tokio::test]
async fn what_a_blind_write_leaves_is_found_after_a_time_of_grace() {
    for (backend, keyspace, clock) in keyspaces().await {
        fill(&keyspace).await;
        for name in ["hash", "zset", "long"] {
            let mut unit = write(&keyspace).await;
            string::set(&mut unit, &key(name), "v".into(), None).unwrap();
            unit.commit().await.unwrap();
        }
        clock.advance_ms(GRACE.as_millis() as u64 - 1);
        assert_eq!(sweep(&keyspace, Duty::Orphans).await, 0);
        clock.advance_ms(1);
        // The sorted set has two kinds of records, and is found by the first.
        assert_eq!(sweep(&keyspace, Duty::Orphans).await, 3);
        collect(&keyspace).await;
        assert_eq!(records(&*backend).await, 3 + SET + STRING);
        assert_eq!(sweep(&keyspace, Duty::Orphans).await, 0);
    }
}

#[tokio::test]
async fn a_renamed_key_keeps_its_elements_whatever_has_its_old_name() {
    for (backend, keyspace, clock) in keyspaces().await {
        fill(&keyspace).await;
        for (from, to) in [("hash", "a"), ("a", "b"), ("zset", "hash")] {
            let mut unit = write(&keyspace).await;
            assert!(rename(&mut unit, &key(from), &key(to), IfExists::Keep).await.unwrap());
            unit.commit().await.unwrap();
        }
        let before = records(&*backend).await;
        clock.advance_ms(GRACE.as_millis() as u64);
        assert_eq!(sweep(&keyspace, Duty::Orphans).await, 0);
        collect(&keyspace).await;
        assert_eq!(records(&*backend).await, before);

        // A write that does not know what it replaces leaves the forwarding record too.
        let mut unit = write(&keyspace).await;
        string::set(&mut unit, &key("b"), "v".into(), None).unwrap();
        unit.commit().await.unwrap();
        assert_eq!(sweep(&keyspace, Duty::Orphans).await, 1);
        collect(&keyspace).await;
        const FORWARDING: usize = 1;
        assert_eq!(records(&*backend).await, 1 + ZSET + FORWARDING + SET + STRING + LONG);
    }
}

#[tokio::test]
async fn garbage_that_nobody_collects_is_found() {
    for (backend, keyspace, clock) in keyspaces().await {
        fill(&keyspace).await;
        let mut unit = write(&keyspace).await;
        delete(&mut unit, &["hash", "zset", "set", "string", "long"].map(key)).await.unwrap();
        unit.commit().await.unwrap();
        drop(keyspace);
        let (keyspace, _) = crate::keyspace::fixture::keyspace_over(backend.clone(), Default::default()).await;
        clock.advance_ms(GRACE.as_millis() as u64);
        assert_eq!(sweep(&keyspace, Duty::Orphans).await, 0, "it is known to be garbage");
        collect(&keyspace).await;
        assert_eq!(records(&*backend).await, 0);
    }
}

proptest! {
    #[test]
    fn a_position_is_read_as_it_was_written(db: u8, slot: u16, range: u8, from: Vec<u8>, is_partitioned: bool) {
        let place = Place { db, slot: is_partitioned.then_some(slot) };
        let position = Position { place, range, from: from.into() };
        prop_assert_eq!(Position::decode(&position.encode(), is_partitioned), Some(position));
    }
}
