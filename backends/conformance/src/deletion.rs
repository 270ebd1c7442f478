use respgate_backend_api::{Direction, KeyRange, KvBackend};

use crate::area::Area;

/// Every key of the range goes, its start included; its end and the neighbours on both sides stay.
pub async fn delete_range_deletes_the_range_and_nothing_else(store: &dyn KvBackend) {
    let area = Area::new(store, "delete_range").await;
    let pairs = area.fill("s#", 10).await;
    let same_suffixes = area.fill("m#", 10).await;
    store.delete_range(KeyRange::new(pairs[3].0.clone(), pairs[7].0.clone())).await.unwrap();
    let snapshot = area.snapshot().await;
    let left = [&pairs[..3], &pairs[7..]].concat();
    assert_eq!(snapshot.scan(&area.range("s#"), Direction::Forward, 100).await.unwrap(), left);
    assert_eq!(snapshot.scan(&area.range("m#"), Direction::Forward, 100).await.unwrap(), same_suffixes);
    assert_eq!(snapshot.get(&pairs[3].0).await.unwrap(), None);
    assert_eq!(snapshot.get(&pairs[7].0).await.unwrap().as_ref(), Some(&pairs[7].1));
}

/// Ranges of no, few and thousands of keys are deleted alike, again and again; an empty range is no error.
pub async fn delete_range_takes_ranges_of_any_size(store: &dyn KvBackend) {
    let area = Area::new(store, "sizes").await;
    for count in [0, 1, 100, 5_000] {
        let pairs = area.fill("k#", count).await;
        for _ in 0..2 {
            store.delete_range(area.range("k#")).await.unwrap();
            let snapshot = area.snapshot().await;
            assert_eq!(snapshot.scan(&area.range("k#"), Direction::Forward, 10).await.unwrap(), []);
            assert_eq!(snapshot.scan(&area.range("k#"), Direction::Backward, 10).await.unwrap(), []);
        }
        if let Some((key, _)) = pairs.last() {
            assert_eq!(area.get(key).await, None);
        }
    }
    let pairs = area.fill("k#", 2).await;
    store.delete_range(KeyRange::new(pairs[1].0.clone(), pairs[0].0.clone())).await.unwrap();
    store.delete_range(KeyRange::new(pairs[0].0.clone(), pairs[0].0.clone())).await.unwrap();
    assert_eq!(area.snapshot().await.scan(&area.range("k#"), Direction::Forward, 10).await.unwrap(), pairs);
}

/// Keys that are written after `delete_range` returned are there, and only they.
pub async fn keys_may_return_after_delete_range(store: &dyn KvBackend) {
    let area = Area::new(store, "return").await;
    let old = area.fill("s#", 3_000).await;
    store.delete_range(area.range("s#")).await.unwrap();
    area.put(&old[1_500].0, "back").await;
    let pairs = area.snapshot().await.scan(&area.range("s#"), Direction::Forward, 10).await.unwrap();
    assert_eq!(pairs, [(old[1_500].0.clone(), "back".into())]);
}
