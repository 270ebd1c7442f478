use respgate_backend_api::{Direction, KeyRange, KvBackend};

use crate::area::{Area, put};

/// Forward scans ascend by unsigned bytes, backward scans descend, and both return every pair of the range.
pub async fn a_scan_returns_pairs_in_the_order_asked_for(store: &dyn KvBackend) {
    let area = Area::new(store, "order").await;
    let suffixes: [&[u8]; 8] = [b"", b"\x00", b"\x00\x00", b"\x00\xff", b"a", b"a\x00", b"\x80", b"\xff"];
    let mut pairs: Vec<_> = suffixes.map(|suffix| (area.key(suffix), area.key(suffix))).into();
    area.write(pairs.iter().map(|(key, value)| put(key, value.clone()))).await;
    let snapshot = area.snapshot().await;
    assert_eq!(snapshot.scan(&area.range("m#"), Direction::Forward, 100).await.unwrap(), pairs);
    pairs.reverse();
    assert_eq!(snapshot.scan(&area.range("m#"), Direction::Backward, 100).await.unwrap(), pairs);
}

/// A scan returns the start of its range and not its end, whether or not keys lie on them.
pub async fn a_scan_keeps_to_its_bounds(store: &dyn KvBackend) {
    let area = Area::new(store, "bounds").await;
    let pairs = area.fill("s#", 10).await;
    let snapshot = area.snapshot().await;
    let between = |i| area.tagged_key("s#", format!("{i:08}+"));
    let bounds = [
        (pairs[3].0.clone(), pairs[7].0.clone(), 3..7),
        (between(3), between(6), 4..7),
        (area.tagged_key("s#", ""), pairs[2].0.clone(), 0..2),
        (pairs[8].0.clone(), area.range("s#").end, 8..10),
    ];
    for (start, end, expected) in bounds {
        let range = KeyRange::new(start, end);
        let mut expected = pairs[expected].to_vec();
        assert_eq!(snapshot.scan(&range, Direction::Forward, 100).await.unwrap(), expected);
        expected.reverse();
        assert_eq!(snapshot.scan(&range, Direction::Backward, 100).await.unwrap(), expected);
    }
}

/// A scan returns as many pairs as its limit allows, from the end at which it begins, and fewer only if the range
/// holds no more.
pub async fn a_scan_keeps_to_its_limit(store: &dyn KvBackend) {
    let area = Area::new(store, "limit").await;
    let pairs = area.fill("k#", 10).await;
    let reversed: Vec<_> = pairs.iter().rev().cloned().collect();
    let snapshot = area.snapshot().await;
    for limit in [0, 1, 9, 10, 11, usize::MAX] {
        let count = limit.min(10);
        let forward = snapshot.scan(&area.range("k#"), Direction::Forward, limit).await.unwrap();
        let backward = snapshot.scan(&area.range("k#"), Direction::Backward, limit).await.unwrap();
        assert_eq!(forward, pairs[..count]);
        assert_eq!(backward, reversed[..count]);
    }
}

/// A range whose end is not above its start holds nothing, whatever the store holds; so does one between two keys.
pub async fn a_scan_of_an_empty_range_is_empty(store: &dyn KvBackend) {
    let area = Area::new(store, "empty").await;
    let pairs = area.fill("m#", 3).await;
    let snapshot = area.snapshot().await;
    let ranges = [
        KeyRange::new(pairs[1].0.clone(), pairs[1].0.clone()),
        KeyRange::new(pairs[2].0.clone(), pairs[0].0.clone()),
        KeyRange::new(area.key("00000001+"), area.key("00000001-")),
        area.range("s#"),
    ];
    for range in ranges {
        for direction in [Direction::Forward, Direction::Backward] {
            assert_eq!(snapshot.scan(&range, direction, 10).await.unwrap(), []);
        }
    }
}

/// A scan does not return deleted keys, nor do they count against its limit.
pub async fn a_scan_skips_what_was_deleted(store: &dyn KvBackend) {
    let area = Area::new(store, "skips").await;
    let pairs = area.fill("s#", 200).await;
    area.write(pairs[..199].iter().filter(|(key, _)| !key.ends_with(b"50")).map(|(key, _)| (key.clone(), None))).await;
    let left = [pairs[50].clone(), pairs[150].clone(), pairs[199].clone()];
    let snapshot = area.snapshot().await;
    assert_eq!(snapshot.scan(&area.range("s#"), Direction::Forward, 2).await.unwrap(), left[..2]);
    assert_eq!(snapshot.scan(&area.range("s#"), Direction::Backward, 1).await.unwrap(), left[2..]);
    assert_eq!(snapshot.scan(&area.range("s#"), Direction::Forward, 10).await.unwrap(), left);
}

/// A scan returns all that its limit allows in one call, however many pairs or bytes that is.
pub async fn a_scan_returns_thousands_of_pairs(store: &dyn KvBackend) {
    let area = Area::new(store, "thousands").await;
    let mut pairs = area.fill("s#", 6_000).await;
    let snapshot = area.snapshot().await;
    assert!(snapshot.scan(&area.range("s#"), Direction::Forward, 10_000).await.unwrap() == pairs);
    pairs.reverse();
    assert!(snapshot.scan(&area.range("s#"), Direction::Backward, 5_999).await.unwrap() == pairs[..5_999]);
}
