use std::sync::Arc;

use super::*;
use crate::{
    keyspace::{
        Encodings, Key, Keyspace, ManualClock,
        fixture::{START_MS, key, keyspace, keyspaces},
    },
    types::{key as keys, string},
};

async fn census(keyspace: &Keyspace) -> Census {
    let counted = keyspace.begin(Intent::Read).await.unwrap().census(0).await.unwrap();
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    assert_eq!(unit.census(0).await.unwrap(), counted, "one by one, and by what has changed");
    counted
}

async fn set(keyspace: &Keyspace, name: String, expires_at_ms: Option<i64>) {
    let key = Key { db: 0, name: name.into() };
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    string::set(&mut unit, &key, "v".into(), expires_at_ms).unwrap();
    unit.commit().await.unwrap();
}

#[tokio::test]
async fn keys_are_counted_as_they_come_and_go() {
    for (_, keyspace, clock) in keyspaces().await {
        assert_eq!(census(&keyspace).await.keys, 0);
        for _ in 0..2 {
            for number in 0..10 {
                set(&keyspace, number.to_string(), Some(START_MS as i64 + 5).filter(|_| number < 3)).await;
            }
            assert_eq!(census(&keyspace).await, Census { keys: 10, expiring: 3 });
        }
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        keys::delete(&mut unit, &[key("0"), key("9")]).await.unwrap();
        unit.commit().await.unwrap();
        assert_eq!(census(&keyspace).await, Census { keys: 8, expiring: 2 });
        set(&keyspace, "1".to_owned(), None).await;
        clock.advance_ms(6);
        assert_eq!(census(&keyspace).await, Census { keys: 7, expiring: 0 });
    }
}

#[tokio::test]
async fn a_flushed_database_is_empty_and_so_is_its_number_when_it_comes_back() {
    for (_, keyspace, _) in keyspaces().await {
        for _ in 0..300 {
            set(&keyspace, "a".to_owned(), None).await;
            assert_eq!(census(&keyspace).await.keys, 1);
            let latches = keyspace.latches().acquire(Scope::Everything).await;
            let mut unit = keyspace.begin(Intent::Write).await.unwrap();
            unit.flush_databases([0]).await.unwrap();
            unit.commit().await.unwrap();
            drop(latches);
            assert_eq!(census(&keyspace).await.keys, 0);
            keyspace.reclaim().await.unwrap();
            if keyspace.capabilities().range_partitioned {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_commit_that_is_given_up_makes_the_next_count_start_again() {
    let (keyspace, _): (Keyspace, Arc<ManualClock>) = keyspace(Encodings::default()).await;
    assert_eq!(census(&keyspace).await.keys, 0);
    let names = keyspace.tally.announce(std::iter::once(Bytes::from("m#"))).unwrap();
    drop(names);
    assert!(!keyspace.tally.is_awake.load(Ordering::Acquire));
    set(&keyspace, "a".to_owned(), None).await;
    assert_eq!(census(&keyspace).await.keys, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn counts_are_right_among_commits() {
    const KEYS: u64 = 64;

    let keyspace = Arc::new(keyspace(Encodings::default()).await.0);
    let writers: Vec<_> = (0..3_u64)
        .map(|writer| {
            let keyspace = Arc::clone(&keyspace);
            tokio::spawn(async move {
                for round in 0..3_000_u64 {
                    let name = format!("{}", (round * 7 + writer * 13) % KEYS);
                    let _latches = keyspace.latches().acquire(Scope::Keys(&[name.as_bytes()])).await;
                    if round % 3 == 0 {
                        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
                        let key = Key { db: 0, name: name.clone().into() };
                        keys::delete(&mut unit, &[key]).await.unwrap();
                        unit.commit().await.unwrap();
                    } else {
                        set(&keyspace, name.clone(), None).await;
                    }
                }
            })
        })
        .collect();
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        let counted = keyspace.begin(Intent::Read).await.unwrap().census(0).await.unwrap();
        assert!(counted.keys <= KEYS, "{counted:?}");
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert!(census(&keyspace).await.keys > 0);
}
