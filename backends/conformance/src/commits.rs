use bytes::Bytes;
use respgate_backend_api::{Error, KvBackend, WriteSet};

use crate::area::{Area, put, write_set};

/// A snapshot that is opened after a commit returned sees it.
pub async fn a_commit_is_seen_by_the_next_snapshot(store: &dyn KvBackend) {
    let area = Area::new(store, "seen").await;
    let key = area.key("k");
    for round in 0..50 {
        let value = round.to_string();
        area.put(&key, value.clone()).await;
        assert_eq!(area.get(&key).await.unwrap(), value);
    }
}

/// One commit puts, overwrites and deletes keys of several tags at once.
pub async fn a_commit_puts_and_deletes_together(store: &dyn KvBackend) {
    let area = Area::new(store, "together").await;
    let keys = [area.key("old"), area.tagged_key("s#", "old"), area.tagged_key("k#", "new")];
    area.write([put(&keys[0], "1"), put(&keys[1], "2")]).await;
    area.write([put(&keys[0], "3"), (keys[1].clone(), None), put(&keys[2], "4")]).await;
    let values = area.snapshot().await.multi_get(&keys).await.unwrap();
    assert_eq!(values, [Some(Bytes::from("3")), None, Some(Bytes::from("4"))]);
}

/// What is written without a snapshot is there like what a snapshot commits: all of it, or nothing if it is too large.
pub async fn a_write_needs_no_snapshot(store: &dyn KvBackend) {
    let area = Area::new(store, "no snapshot").await;
    let keys = [area.key("new"), area.key("old"), area.tagged_key("s#", "new")];
    area.put(&keys[1], "1").await;
    let before = area.snapshot().await;
    let WriteSet { writes, .. } = write_set([put(&keys[0], "2"), (keys[1].clone(), None), put(&keys[2], "3")], []);
    assert_eq!(store.write(writes).await, Ok(()));
    let values = area.snapshot().await.multi_get(&keys).await.unwrap();
    assert_eq!(values, [Some(Bytes::from("2")), None, Some(Bytes::from("3"))]);
    assert_eq!(before.multi_get(&keys).await.unwrap(), [None, Some(Bytes::from("1")), None]);
    assert_eq!(store.write(Vec::new()).await, Ok(()));

    let too_long = area.key(vec![b'x'; store.capabilities().key_bytes_max]);
    let WriteSet { writes, .. } = write_set([put(&keys[1], "4"), put(&too_long, "5")], []);
    assert!(matches!(store.write(writes).await, Err(Error::TooLarge(_))));
    assert_eq!(area.get(&keys[1]).await, None);
}

/// A write set without writes and guards commits, whatever happened since the snapshot.
pub async fn an_empty_commit_succeeds(store: &dyn KvBackend) {
    let area = Area::new(store, "empty commit").await;
    let snapshot = area.snapshot().await;
    area.put(&area.key("k"), "1").await;
    assert_eq!(snapshot.commit(WriteSet::default()).await, Ok(()));
}

/// Deleting what is not there succeeds and changes nothing.
pub async fn deleting_a_missing_key_succeeds(store: &dyn KvBackend) {
    let area = Area::new(store, "missing delete").await;
    let key = area.key("k");
    area.delete(&key).await;
    assert_eq!(area.get(&key).await, None);
}

/// A snapshot that is dropped without a commit, after reads, leaves the store as it was.
pub async fn a_snapshot_that_is_dropped_writes_nothing(store: &dyn KvBackend) {
    let area = Area::new(store, "dropped").await;
    let key = area.key("k");
    area.put(&key, "1").await;
    let snapshot = area.snapshot().await;
    assert_eq!(snapshot.get(&key).await.unwrap().unwrap(), "1");
    drop(snapshot);
    assert_eq!(area.get(&key).await.unwrap(), "1");
    // Nothing of the dropped snapshot stands in the way of the next writer.
    area.put(&key, "2").await;
    assert_eq!(area.get(&key).await.unwrap(), "2");
}

/// The longest key and the largest value are taken; one byte more fails with `TooLarge`, and with it the whole
/// commit. Limits above 64 MiB are not tried.
pub async fn what_is_too_large_is_refused_whole(store: &dyn KvBackend) {
    const TRIED_MAX: usize = 64 << 20;
    let area = Area::new(store, "too large").await;
    let limits = store.capabilities();
    let neighbour = area.key("");
    let commit = async |key: Bytes, value: Bytes| {
        let writes = write_set([put(&neighbour, "n"), put(&key, value)], []);
        area.snapshot().await.commit(writes).await
    };
    if limits.key_bytes_max <= TRIED_MAX {
        let long = |bytes: usize| area.key(vec![b'x'; bytes - neighbour.len()]);
        assert!(matches!(commit(long(limits.key_bytes_max + 1), "v".into()).await, Err(Error::TooLarge(_))));
        assert_eq!(area.get(&neighbour).await, None);
        assert_eq!(commit(long(limits.key_bytes_max), "v".into()).await, Ok(()));
        assert_eq!(area.get(&long(limits.key_bytes_max)).await.unwrap(), "v");
        area.write([(neighbour.clone(), None), (long(limits.key_bytes_max), None)]).await;
    }
    if limits.value_bytes_max <= TRIED_MAX {
        let large = |bytes: usize| Bytes::from(vec![b'x'; bytes]);
        assert!(matches!(commit(area.key("k"), large(limits.value_bytes_max + 1)).await, Err(Error::TooLarge(_))));
        assert_eq!(area.get(&neighbour).await, None);
        assert_eq!(commit(area.key("k"), large(limits.value_bytes_max)).await, Ok(()));
        assert_eq!(area.get(&area.key("k")).await.unwrap().len(), limits.value_bytes_max);
    }
}
