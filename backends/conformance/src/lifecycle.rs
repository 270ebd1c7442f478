use std::collections::HashSet;
use std::sync::Arc;

use respgate_backend_api::{Direction, Error, KvBackend, Result};

use crate::area::{Area, put, write_set};

/// A store says the same of itself whenever it is asked, and admits keys, values and commits that hold something.
pub async fn capabilities_are_constant(store: &dyn KvBackend) {
    let capabilities = store.capabilities();
    assert!(capabilities.key_bytes_max >= 1_024);
    assert!(capabilities.value_bytes_max >= 1 << 10);
    assert!(capabilities.commit_bytes_max >= capabilities.key_bytes_max + capabilities.value_bytes_max);
    let area = Area::new(store, "capabilities").await;
    area.put(&area.key("k"), "1").await;
    assert_eq!(store.capabilities(), capabilities);
}

/// An open store is healthy.
pub async fn an_open_store_is_healthy(store: &dyn KvBackend) {
    assert_eq!(store.health().await, Ok(()));
}

/// Each figure of the statistics is named once, and every call gives the same names in the same order.
pub async fn statistics_tell_names_once(store: &dyn KvBackend) {
    let names = async || {
        let statistics = store.statistics().await.unwrap();
        statistics.figures.iter().map(|(name, _)| *name).collect::<Vec<_>>()
    };
    let first = names().await;
    assert_eq!(first.iter().collect::<HashSet<_>>().len(), first.len());
    assert_eq!(names().await, first);
}

/// A store has a clock or it has none; if it has one, it never goes back, and a snapshot keeps its time.
pub async fn time_stands_still_in_a_snapshot_and_never_goes_back(store: &dyn KvBackend) {
    let area = Area::new(store, "time").await;
    let first = area.snapshot().await;
    let time_ms = first.time_ms();
    area.put(&area.key("k"), "1").await;
    let second = area.snapshot().await;
    assert_eq!(first.time_ms(), time_ms);
    assert_eq!(second.time_ms().is_some(), time_ms.is_some());
    assert!(second.time_ms() >= time_ms);
}

/// After `close`, every call fails with `Unavailable`, on snapshots that are still open too, and writes nothing;
/// closing again is harmless. The store stays closed.
pub async fn a_closed_store_answers_unavailable(store: &dyn KvBackend) {
    let area = Area::new(store, "closed").await;
    let key = area.key("k");
    area.put(&key, "1").await;
    let snapshot = area.snapshot().await;
    assert_eq!(store.close().await, Ok(()));
    assert_eq!(store.close().await, Ok(()));

    assert_unavailable(store.snapshot().await);
    assert_unavailable(store.write(vec![put(&key, "2")]).await);
    assert_unavailable(store.delete_range(area.range("m#")).await);
    assert_unavailable(store.health().await);
    assert_unavailable(store.statistics().await);
    assert_unavailable(snapshot.get(&key).await);
    assert_unavailable(snapshot.multi_get(&[key.clone(), key.clone()]).await);
    assert_unavailable(snapshot.scan(&area.range("m#"), Direction::Forward, 1).await);
    assert_unavailable(snapshot.commit(write_set([put(&key, "2")], [])).await);
}

/// A store that keeps its data has, after `close` and opening it again, every put and every deletion.
///
/// `open` opens the same store each time; the last one is closed.
pub async fn a_reopened_store_has_every_commit(open: impl AsyncFn() -> Arc<dyn KvBackend>) {
    let store = open().await;
    let area = Area::new(&*store, "reopened").await;
    let mut pairs = area.fill("s#", 3_000).await;
    area.delete(&pairs[0].0).await;
    let range = area.range("s#");
    store.close().await.unwrap();
    drop(store);

    let store = open().await;
    let found = store.snapshot().await.unwrap().scan(&range, Direction::Forward, 10_000).await.unwrap();
    pairs.remove(0);
    assert!(found == pairs);
    store.close().await.unwrap();
}

fn assert_unavailable<T>(answer: Result<T>) {
    assert!(matches!(answer, Err(Error::Unavailable(_))), "a closed store answered {:?}", answer.err());
}
