use bytes::Bytes;
use respgate_backend_api::{Direction, KvBackend};

use crate::area::{Area, TAGS, put};

/// A key that was never written has no value; a key with an empty value has one.
pub async fn a_missing_key_differs_from_an_empty_value(store: &dyn KvBackend) {
    let area = Area::new(store, "missing").await;
    let (missing, empty) = (area.key("missing"), area.key("empty"));
    area.put(&empty, "").await;
    assert_eq!(area.get(&missing).await, None);
    assert_eq!(area.get(&empty).await, Some(Bytes::new()));
    let both = area.snapshot().await.multi_get(&[missing, empty.clone()]).await.unwrap();
    assert_eq!(both, [None, Some(Bytes::new())]);
    let pairs = area.snapshot().await.scan(&area.range("m#"), Direction::Forward, 10).await.unwrap();
    assert_eq!(pairs, [(empty, Bytes::new())]);
}

/// What was committed is what is read last, if the store has a way to tell.
pub async fn what_was_committed_last_is_read(store: &dyn KvBackend) {
    let area = Area::new(store, "latest").await;
    let (key, other) = (area.key("key"), area.key("other"));
    for round in 0..50 {
        let value = Bytes::from(round.to_string());
        area.write([put(&key, value.clone())]).await;
        if let Some(values) = store.read_latest(&[key.clone(), other.clone(), key.clone()]).await.unwrap() {
            assert_eq!(values, [Some(value.clone()), None, Some(value)]);
        }
        let begun = area.snapshot().await;
        area.write([put(&key, "newer"), put(&other, "")]).await;
        if let Some(values) = store.read_latest(std::slice::from_ref(&other)).await.unwrap() {
            assert_eq!(values, [Some(Bytes::new())]);
        }
        drop(begun);
        area.write([(other.clone(), None)]).await;
        if let Some(values) = store.read_latest(&[key.clone(), other.clone()]).await.unwrap() {
            assert_eq!(values, [Some(Bytes::from("newer")), None]);
        }
    }
}

/// Keys and values hold every byte, and keys that are prefixes of each other are different keys.
pub async fn keys_and_values_are_any_bytes(store: &dyn KvBackend) {
    let area = Area::new(store, "bytes").await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let mut keys: Vec<_> = (0..=255).map(|byte| area.key([byte])).collect();
    keys.extend([area.key(""), area.key([0, 0]), area.key([255, 255]), area.key(&every_byte)]);
    area.write(keys.iter().map(|key| put(key, [key, &every_byte[..]].concat()))).await;
    for key in &keys {
        assert_eq!(area.get(key).await.unwrap(), [key, &every_byte[..]].concat());
    }
}

/// Records of different tags never meet, whatever follows the tag, and one commit may span them all.
pub async fn every_tag_has_keys_of_its_own(store: &dyn KvBackend) {
    let area = Area::new(store, "tags").await;
    let keys = TAGS.map(|tag| area.tagged_key(tag, "same"));
    area.write(keys.iter().map(|key| put(key, key.clone()))).await;
    let snapshot = area.snapshot().await;
    let values = snapshot.multi_get(&keys).await.unwrap();
    assert_eq!(values, keys.clone().map(Some));
    for (tag, key) in TAGS.iter().zip(&keys) {
        assert_eq!(snapshot.get(key).await.unwrap().as_ref(), Some(key));
        for direction in [Direction::Forward, Direction::Backward] {
            let pairs = snapshot.scan(&area.range(tag), direction, 10).await.unwrap();
            assert_eq!(pairs, [(key.clone(), key.clone())]);
        }
    }
}

/// `multi_get` answers each key in its place, however often a key is asked for, missing ones included.
pub async fn multi_get_keeps_order_and_repetitions(store: &dyn KvBackend) {
    let area = Area::new(store, "multi_get").await;
    let (a, b, none) = (area.key("a"), area.tagged_key("s#", "b"), area.key("none"));
    area.write([put(&a, "1"), put(&b, "2")]).await;
    let keys = [b.clone(), none.clone(), a.clone(), b.clone(), b, none, a];
    let expected = [Some("2"), None, Some("1"), Some("2"), Some("2"), None, Some("1")];
    let snapshot = area.snapshot().await;
    assert_eq!(snapshot.multi_get(&keys).await.unwrap(), expected.map(|value| value.map(Bytes::from)));
    assert_eq!(snapshot.multi_get(&[]).await.unwrap(), []);

    let pairs = area.fill("s#", 1_000).await;
    let keys: Vec<_> = pairs.iter().rev().map(|(key, _)| key.clone()).collect();
    let values: Vec<_> = pairs.into_iter().rev().map(|(_, value)| Some(value)).collect();
    assert_eq!(area.snapshot().await.multi_get(&keys).await.unwrap(), values);
}

/// Values of megabytes, as large as the store admits, come back whole by every kind of read.
pub async fn large_values_are_whole(store: &dyn KvBackend) {
    let area = Area::new(store, "large").await;
    let limits = store.capabilities();
    let room = limits.value_bytes_max.min(limits.commit_bytes_max - 1_024);
    for bytes in [1 << 10, 1 << 16, 1 << 20, 6 << 20].into_iter().filter(|bytes| *bytes <= room) {
        let value: Bytes = (0..bytes).map(|i| (i % 251) as u8).collect();
        let key = area.key(bytes.to_string());
        area.put(&key, value.clone()).await;
        let snapshot = area.snapshot().await;
        assert!(snapshot.get(&key).await.unwrap().unwrap() == value);
        assert!(snapshot.multi_get(&[key.clone(), key.clone()]).await.unwrap() == [Some(value.clone()), Some(value)]);
    }
}
