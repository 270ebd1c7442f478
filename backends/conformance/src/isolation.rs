use bytes::Bytes;
use respgate_backend_api::{Direction, KvBackend};

use crate::area::{Area, put, write_set};

/// However often keys are put, overwritten and deleted after it was opened, a snapshot gives the same answers to
/// every kind of read, to reads made for the first time too.
pub async fn a_snapshot_never_changes(store: &dyn KvBackend) {
    let area = Area::new(store, "never changes").await;
    let (kept, overwritten, deleted, created) = (area.key("a"), area.key("b"), area.key("c"), area.key("d"));
    area.write([put(&kept, "1"), put(&overwritten, "1"), put(&deleted, "1")]).await;
    let snapshot = area.snapshot().await;
    for round in 0..3 {
        let value = format!("after {round}");
        area.write([put(&overwritten, value.clone()), (deleted.clone(), None), put(&created, value)]).await;
        area.write([put(&deleted, "back"), (created.clone(), None)]).await;

        let one = Bytes::from("1");
        assert_eq!(snapshot.get(&overwritten).await.unwrap(), Some(one.clone()));
        assert_eq!(snapshot.get(&created).await.unwrap(), None);
        let keys = [created.clone(), deleted.clone(), kept.clone()];
        assert_eq!(snapshot.multi_get(&keys).await.unwrap(), [None, Some(one.clone()), Some(one.clone())]);
        let mut pairs = [&kept, &overwritten, &deleted].map(|key| (key.clone(), one.clone()));
        assert_eq!(snapshot.scan(&area.range("m#"), Direction::Forward, 10).await.unwrap(), pairs);
        pairs.reverse();
        assert_eq!(snapshot.scan(&area.range("m#"), Direction::Backward, 10).await.unwrap(), pairs);
    }
}

/// A commit is not visible through the snapshot that it was made on.
pub async fn a_snapshot_does_not_see_its_own_commit(store: &dyn KvBackend) {
    let area = Area::new(store, "own commit").await;
    let key = area.key("k");
    area.put(&key, "1").await;
    let snapshot = area.snapshot().await;
    snapshot.commit(write_set([put(&key, "2")], [])).await.unwrap();
    assert_eq!(snapshot.get(&key).await.unwrap().unwrap(), "1");
    assert_eq!(area.get(&key).await.unwrap(), "2");
}

/// Snapshots opened between commits see one commit more each, read in any order and while others are dropped.
pub async fn each_snapshot_sees_its_own_moment(store: &dyn KvBackend) {
    let area = Area::new(store, "moments").await;
    let key = area.tagged_key("s#", "k");
    let mut snapshots = Vec::new();
    for round in 0..20 {
        area.put(&key, round.to_string()).await;
        snapshots.push((round, area.snapshot().await));
    }
    while let Some((round, snapshot)) = snapshots.pop() {
        assert_eq!(snapshot.get(&key).await.unwrap().unwrap(), round.to_string());
        if let Some((round, oldest)) = snapshots.first() {
            assert_eq!(oldest.get(&key).await.unwrap().unwrap(), round.to_string());
        }
    }
}
