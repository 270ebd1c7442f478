use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use respgate_backend_api::{Direction, Error, KeyRange, KvBackend, Result, WriteSet};
use respgate_backend_conformance as conformance;
use respgate_test_cluster::{TestCluster, real_cluster};

use crate::{TikvBackend, TikvOptions};

/// Two keys that are in different regions once [`split`] has been called.
const KEYS: [&str; 2] = ["a#key", "z#key"];

fn options(pd: &str) -> TikvOptions {
    TikvOptions { timeout: Duration::from_secs(4), ..TikvOptions::new([pd]) }
}

fn split(cluster: &TestCluster) {
    cluster.split(b"m");
}

async fn open(options: TikvOptions) -> Arc<TikvBackend> {
    let store = TikvBackend::open(options);
    store.connected().await;
    Arc::new(store)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms() {
    let cluster = if real_cluster().is_none() { TestCluster::start() } else { None };
    let Some(pd) = cluster.as_ref().map(|cluster| cluster.pd().to_owned()).or_else(real_cluster) else { return };
    // What others keep in a real cluster is none of our business.
    let options = TikvOptions { key_prefix: "respgate-test:".into(), ..options(&pd) };
    conformance::run_all(open(options).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms_on_many_regions() {
    if real_cluster().is_some() {
        return;
    }
    let Some(cluster) = TestCluster::start() else { return };
    for tag in ["d#", "i#", "k#", "m#conformance:i", "m#conformance:t", "s#conformance:m", "s#conformance:n"] {
        cluster.split(tag.as_bytes());
    }
    conformance::run_all(open(options(cluster.pd())).await).await;
}

/// Parts are regions, whatever stands before our keys in the cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn regions_are_known() {
    let Some(cluster) = TestCluster::start() else { return };
    let prefixed = TikvOptions { key_prefix: "prefix:".into(), ..options(cluster.pd()) };
    let in_keyspace = TikvOptions { keyspace: Some("first".to_owned()), ..prefixed.clone() };
    for before in ["", "prefix:", "x\0\0\u{1}prefix:"] {
        for key in ["a key of many bytes", "m"] {
            cluster.split([before, key].concat().as_bytes());
        }
    }
    for options in [options(cluster.pd()), prefixed, in_keyspace] {
        let store = open(options).await;
        let part = |key: &str| store.partition(key.as_bytes());
        let learnt = async {
            while part("a") == part("m") {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), learnt).await.unwrap();
        assert_eq!(part("a key of many byte") + 1, part("a key of many bytes"));
        assert_eq!(part("a key of many bytes"), part("l"));
        assert_eq!(part("l") + 1, part("m"));
    }
}

async fn put(store: &TikvBackend, keys: &[&'static str], value: &'static str, guards: &[&'static str]) -> Result<()> {
    let writes = keys.iter().map(|key| (Bytes::from(*key), Some(Bytes::from(value)))).collect();
    let guards = guards.iter().map(|key| Bytes::from(*key)).collect();
    store.snapshot().await?.commit(WriteSet { writes, guards }).await
}

async fn get(store: &TikvBackend, key: &str) -> Option<Bytes> {
    store.snapshot().await.unwrap().get(key.as_bytes()).await.unwrap()
}

fn is_unknown(outcome: &Result<()>) -> bool {
    matches!(outcome, Err(Error::OutcomeUnknown(_)))
}

/// The answer to the one request of a small commit is lost, with and without the commit being done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_in_one_phase_is_an_unknown_outcome() {
    let Some(cluster) = TestCluster::start() else { return };
    let store = open(options(cluster.pd())).await;
    cluster.fault("KvPrewrite", "after", 1);
    assert!(is_unknown(&put(&store, &["key"], "1", &[]).await));
    assert_eq!(get(&store, "key").await.unwrap(), "1");
    cluster.fault("KvPrewrite", "before", 1);
    assert!(is_unknown(&put(&store, &["key"], "2", &[]).await));
    assert_eq!(get(&store, "key").await.unwrap(), "1");
}

/// The answer to the second phase is lost. Undoing it would take away one half.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_in_two_phases_is_an_unknown_outcome_and_stays_whole() {
    let Some(cluster) = TestCluster::start() else { return };
    split(&cluster);
    let store = open(options(cluster.pd())).await;
    for (round, kind) in ["after", "before"].into_iter().enumerate() {
        let value = ["1", "2"][round];
        cluster.fault("KvCommit", kind, 1);
        assert!(is_unknown(&put(&store, &KEYS, value, &[]).await), "{kind}");
        // The second one waits for locks that nobody removes, until they are too old.
        let values = [get(&store, KEYS[0]).await, get(&store, KEYS[1]).await];
        assert_eq!(values, [Some(Bytes::from("1")), Some(Bytes::from("1"))], "{kind}");
        let rpcs = cluster.take_rpcs();
        assert!(!rpcs.contains_key("KvBatchRollback"), "{rpcs:?}");
    }
}

/// A server that says that it is busy has done nothing: the commit goes on later, and once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_are_not_failures() {
    let Some(cluster) = TestCluster::start() else { return };
    split(&cluster);
    let store = open(options(cluster.pd())).await;
    for method in ["KvPrewrite", "KvCommit", "KvGet", "KvBatchGet", "KvScan"] {
        for kind in ["busy", "leaderless"] {
            cluster.fault(method, kind, 2);
            assert_eq!(put(&store, &KEYS, "1", &["k#guard"]).await, Ok(()), "{method} {kind}");
            assert_eq!(get(&store, KEYS[0]).await.unwrap(), "1", "{method} {kind}");
            let snapshot = store.snapshot().await.unwrap();
            let values = snapshot.multi_get(&KEYS.map(Bytes::from)).await.unwrap();
            assert_eq!(values, [Some(Bytes::from("1")), Some(Bytes::from("1"))], "{method} {kind}");
            let all = KeyRange::new("a", "zz");
            for direction in [Direction::Forward, Direction::Backward] {
                assert_eq!(snapshot.scan(&all, direction, 9).await.unwrap().len(), 2, "{method} {kind}");
            }
            cluster.heal();
        }
    }
}

/// Servers that are silent hold nobody up for longer than the deadline, and are used again when they speak.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_ends_at_the_deadline() {
    const TOO_LONG: Duration = Duration::from_secs(20);

    let Some(cluster) = TestCluster::start() else { return };
    let store = open(options(cluster.pd())).await;
    assert_eq!(put(&store, &["key"], "1", &[]).await, Ok(()));
    for method in ["Tso", "KvGet", "KvPrewrite"] {
        cluster.fault(method, "hang", 0);
        let write = tokio::time::timeout(TOO_LONG, put(&store, &["key"], "2", &[])).await.unwrap();
        match method {
            "Tso" => assert!(matches!(write, Err(Error::Unavailable(_))), "{write:?}"),
            "KvPrewrite" => assert!(is_unknown(&write), "{write:?}"),
            _ => assert_eq!(write, Ok(())),
        }
        if method == "KvGet" {
            let snapshot = store.snapshot().await.unwrap();
            let read = tokio::time::timeout(TOO_LONG, snapshot.get(b"key")).await.unwrap();
            assert!(matches!(read, Err(Error::Unavailable(_))), "{read:?}");
        }
        cluster.heal();
        let until = tokio::time::Instant::now() + TOO_LONG;
        while store.health().await.is_err() {
            assert!(tokio::time::Instant::now() < until, "{method}");
            tokio::task::yield_now().await;
        }
    }
}

/// What a locking snapshot has locked nobody else changes, and its own commit does not conflict.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locking_snapshot_goes_first() {
    let Some(cluster) = TestCluster::start() else { return };
    let store = open(options(cluster.pd())).await;
    assert_eq!(put(&store, &["key"], "0", &[]).await, Ok(()));
    let early = store.snapshot().await.unwrap();
    let locking = store.locking_snapshot(&["key".into()]).await.unwrap();
    let other = Arc::clone(&store);
    let other = tokio::spawn(async move { put(&other, &["key"], "2", &["key"]).await });
    let writes = vec![(Bytes::from("key"), Some(Bytes::from("1")))];
    let set = WriteSet { writes, guards: vec!["key".into()] };
    assert_eq!(locking.commit(set.clone()).await, Ok(()));
    assert_eq!(early.commit(set).await, Err(Error::Conflict));
    // The other one began before that was committed, or after it.
    let value = match other.await.unwrap() {
        Ok(()) => "2",
        Err(error) => {
            assert_eq!(error, Error::Conflict);
            "1"
        }
    };
    assert_eq!(get(&store, "key").await.unwrap(), value);
    drop(store.locking_snapshot(&["key".into()]).await.unwrap());
    // Whoever meets the lock while it is being removed gives way.
    while let Err(error) = put(&store, &["key"], "3", &["key"]).await {
        assert_eq!(error, Error::Conflict);
    }
    assert_eq!(cluster.locks(), 0);
}

/// Old versions go when they are older than the lag, but not what a snapshot of this process reads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_that_nobody_reads_are_forgotten() {
    let Some(cluster) = TestCluster::start() else { return };
    let lagging = open(options(cluster.pd())).await;
    let eager = open(TikvOptions { gc_lag: Some(Duration::ZERO), ..options(cluster.pd()) }).await;
    let off = open(TikvOptions { gc_lag: None, ..options(cluster.pd()) }).await;
    let old = Some(Bytes::from("1"));
    assert_eq!(put(&eager, &["key"], "1", &[]).await, Ok(()));
    let elsewhere = lagging.snapshot().await.unwrap();
    let here = eager.snapshot().await.unwrap();
    assert_eq!(put(&eager, &["key"], "2", &[]).await, Ok(()));
    assert_eq!(off.forget_versions().await, Ok(false));
    for store in [&lagging, &eager] {
        let before = cluster.collected();
        assert_eq!(store.forget_versions().await, Ok(true));
        collected_after(&cluster, before).await;
        assert_eq!(elsewhere.get(b"key").await.unwrap(), old);
        assert_eq!(here.get(b"key").await.unwrap(), old);
    }
    drop(here);
    let before = cluster.collected();
    assert_eq!(eager.forget_versions().await, Ok(true));
    collected_after(&cluster, before).await;
    // A snapshot that is older than the lag of who forgets, which must not be, shows that the version is gone.
    assert_ne!(elsewhere.get(b"key").await, Ok(old));
    assert_eq!(get(&eager, "key").await.unwrap(), "2");
}

async fn collected_after(cluster: &TestCluster, before: u64) {
    let until = tokio::time::Instant::now() + Duration::from_secs(20);
    while cluster.collected() <= before {
        assert!(tokio::time::Instant::now() < until);
        tokio::task::yield_now().await;
    }
}

/// A store that cannot be reached says so at once, and is there once it can be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_cluster_is_waited_for() {
    let Some(cluster) = TestCluster::start() else { return };
    cluster.stop_pd();
    let store = TikvBackend::open(options(cluster.pd()));
    assert!(matches!(store.health().await, Err(Error::NotReady(_))));
    cluster.start_pd();
    store.connected().await;
    assert_eq!(store.health().await, Ok(()));
    store.close().await.unwrap();
    assert!(matches!(store.health().await, Err(Error::Unavailable(_))));
}
