use bytes::Bytes;

use super::*;
use crate::{
    encoding::rdb::Value,
    keyspace::{
        Encodings, Intent, Keyspace,
        fixture::{START_MS, key, keyspace},
    },
    types::hash,
};

const NOW_MS: i64 = START_MS as i64;

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// One value of each kind, and strings of both encodings.
fn values() -> Vec<Value> {
    let names: Vec<Bytes> = (0..600).map(|i| Bytes::from(format!("{i:04}"))).collect();
    vec![
        Value::String(bytes("a string")),
        Value::String(vec![7; 200_000].into()),
        Value::Hash(names.iter().map(|name| (name.clone(), name.clone())).collect()),
        Value::Set(names.clone()),
        Value::Zset(names.iter().zip(-300..).map(|(name, score)| (name.clone(), f64::from(score))).collect()),
        Value::List(names.into_iter().rev().collect()),
    ]
}

async fn write(keyspace: &Keyspace) -> Unit<'_> {
    keyspace.begin(Intent::Write).await.unwrap()
}

async fn read(keyspace: &Keyspace, key: &Key) -> Option<Value> {
    value(&mut keyspace.begin(Intent::Read).await.unwrap(), key).await.unwrap()
}

#[tokio::test]
async fn values_are_restored_whole() {
    let (keyspace, _) = keyspace(Encodings::default()).await;
    for value in values() {
        let mut unit = write(&keyspace).await;
        delete(&mut unit, &[key("a")]).await.unwrap();
        restore(&mut unit, &key("a"), value.clone(), Some(NOW_MS + 9)).await.unwrap();
        assert_eq!(expires_at(&mut unit, &key("a")).await.unwrap(), Some(Some(NOW_MS + 9)));
        unit.commit().await.unwrap();
        assert_eq!(read(&keyspace, &key("a")).await, Some(value));
    }
}

#[tokio::test]
async fn copies_have_elements_of_their_own() {
    let elsewhere = Key { db: 1, name: bytes("a") };
    for value in values() {
        let (keyspace, _) = keyspace(Encodings::default()).await;
        let mut unit = write(&keyspace).await;
        restore(&mut unit, &key("a"), value.clone(), Some(NOW_MS + 9)).await.unwrap();
        unit.commit().await.unwrap();
        let mut unit = write(&keyspace).await;
        assert!(copy(&mut unit, &key("a"), &key("b"), IfExists::Keep).await.unwrap());
        assert!(!copy(&mut unit, &key("a"), &key("b"), IfExists::Keep).await.unwrap());
        assert!(copy(&mut unit, &key("a"), &key("b"), IfExists::Replace).await.unwrap());
        assert!(move_to(&mut unit, &key("a"), 1).await.unwrap());
        assert_eq!(expires_at(&mut unit, &key("b")).await.unwrap(), Some(Some(NOW_MS + 9)));
        unit.commit().await.unwrap();
        assert_eq!(read(&keyspace, &key("a")).await, None);
        assert_eq!(read(&keyspace, &key("b")).await, Some(value.clone()));
        assert_eq!(read(&keyspace, &elsewhere).await, Some(value));
    }
}

#[tokio::test]
async fn a_renamed_key_keeps_its_elements_and_gets_on_with_a_new_one_of_its_old_name() {
    let (keyspace, _) = keyspace(Encodings::default()).await;
    let (old, new) = ([(bytes("f"), bytes("old"))], [(bytes("g"), bytes("new"))]);
    let mut unit = write(&keyspace).await;
    hash::set(&mut unit, &key("a"), &old).await.unwrap();
    assert!(rename(&mut unit, &key("a"), &key("b"), IfExists::Replace).await.unwrap());
    hash::set(&mut unit, &key("a"), &new).await.unwrap();
    assert!(!rename(&mut unit, &key("a"), &key("b"), IfExists::Keep).await.unwrap());
    unit.commit().await.unwrap();
    assert_eq!(read(&keyspace, &key("a")).await, Some(Value::Hash(new.to_vec())));
    assert_eq!(read(&keyspace, &key("b")).await, Some(Value::Hash(old.to_vec())));
    assert_eq!(forwardings(&keyspace).await, [bytes("b")]);

    let mut unit = write(&keyspace).await;
    assert!(rename(&mut unit, &key("b"), &key("a"), IfExists::Replace).await.unwrap());
    assert_eq!(unit.load(&key("a")).await.unwrap().unwrap().origin, None);
    unit.commit().await.unwrap();
    assert_eq!(read(&keyspace, &key("a")).await, Some(Value::Hash(old.to_vec())));
    assert_eq!(read(&keyspace, &key("b")).await, None);
    assert!(forwardings(&keyspace).await.is_empty());
}

#[tokio::test]
async fn the_way_to_a_renamed_key_goes_with_it() {
    for is_emptied in [false, true] {
        let (keyspace, _) = keyspace(Encodings::default()).await;
        let mut unit = write(&keyspace).await;
        hash::set(&mut unit, &key("a"), &[(bytes("f"), bytes("v"))]).await.unwrap();
        assert!(rename(&mut unit, &key("a"), &key("b"), IfExists::Replace).await.unwrap());
        assert!(rename(&mut unit, &key("b"), &key("c"), IfExists::Replace).await.unwrap());
        unit.commit().await.unwrap();
        assert_eq!(forwardings(&keyspace).await, [bytes("c")]);
        let mut unit = write(&keyspace).await;
        if is_emptied {
            assert_eq!(hash::delete(&mut unit, &key("c"), &[bytes("f")]).await.unwrap(), 1);
        } else {
            assert_eq!(delete(&mut unit, &[key("c")]).await.unwrap(), 1);
        }
        unit.commit().await.unwrap();
        assert!(forwardings(&keyspace).await.is_empty());
    }
}

/// The values of all forwarding records.
async fn forwardings(keyspace: &Keyspace) -> Vec<Bytes> {
    let range = respgate_backend_api::KeyRange::prefix(&b"f#"[..]);
    let snapshot = keyspace.backend().snapshot().await.unwrap();
    let records = snapshot.scan(&range, respgate_backend_api::Direction::Forward, 10).await.unwrap();
    records.into_iter().map(|(_, name)| name).collect()
}

#[tokio::test]
async fn a_key_renamed_to_itself_stays_and_a_missing_one_is_an_error() {
    let (keyspace, _) = keyspace(Encodings::default()).await;
    let mut unit = write(&keyspace).await;
    assert_eq!(rename(&mut unit, &key("a"), &key("a"), IfExists::Replace).await, Err(Error::NoSuchKey));
    restore(&mut unit, &key("a"), Value::String(bytes("x")), None).await.unwrap();
    assert!(rename(&mut unit, &key("a"), &key("a"), IfExists::Replace).await.unwrap());
    assert!(!rename(&mut unit, &key("a"), &key("a"), IfExists::Keep).await.unwrap());
    assert_eq!(count_existing(&mut unit, &[key("a"), key("a"), key("b")]).await.unwrap(), 2);
}

#[tokio::test]
async fn what_is_deleted_replaced_or_expired_is_left_to_the_collector() {
    let (keyspace, clock) = keyspace(Encodings::default()).await;
    let members = Value::Set(vec![bytes("m")]);
    let mut unit = write(&keyspace).await;
    for name in ["deleted", "replaced", "moved", "expired"] {
        restore(&mut unit, &key(name), members.clone(), Some(NOW_MS + 1).filter(|_| name == "expired")).await.unwrap();
    }
    restore(&mut unit, &key("string"), Value::String(bytes("x")), None).await.unwrap();
    unit.commit().await.unwrap();
    clock.advance_ms(2);
    let mut unit = write(&keyspace).await;
    assert_eq!(delete(&mut unit, &[key("deleted"), key("deleted"), key("expired")]).await.unwrap(), 1);
    assert!(rename(&mut unit, &key("string"), &key("replaced"), IfExists::Replace).await.unwrap());
    assert!(move_to(&mut unit, &key("moved"), 1).await.unwrap());
    unit.commit().await.unwrap();
    let garbage = keyspace.codec().garbage_range(keyspace.databases().current().physical(0).unwrap());
    let snapshot = keyspace.backend().snapshot().await.unwrap();
    let garbage = snapshot.scan(&garbage, respgate_backend_api::Direction::Forward, 10).await.unwrap();
    let names: Vec<_> =
        garbage.iter().map(|(record, _)| keyspace.codec().decode_garbage_key(record).unwrap().key).collect();
    assert_eq!(names, [&b"moved"[..], b"deleted", b"expired", b"replaced"]);
}

#[tokio::test]
async fn a_time_that_has_come_deletes() {
    let (keyspace, _) = keyspace(Encodings::default()).await;
    let any = Condition::default();
    let mut unit = write(&keyspace).await;
    for at_ms in [i64::MIN, -1, 0, NOW_MS - 1, NOW_MS] {
        restore(&mut unit, &key("a"), Value::String(bytes("x")), None).await.unwrap();
        assert!(expire(&mut unit, &key("a"), at_ms, any).await.unwrap());
        assert_eq!(kind(&mut unit, &key("a")).await.unwrap(), None, "{at_ms}");
        assert!(!expire(&mut unit, &key("a"), NOW_MS + 1, any).await.unwrap());
    }
    restore(&mut unit, &key("a"), Value::String(bytes("x")), None).await.unwrap();
    assert!(expire(&mut unit, &key("a"), NOW_MS + 1, any).await.unwrap());
    assert!(persist(&mut unit, &key("a")).await.unwrap());
    assert!(!persist(&mut unit, &key("a")).await.unwrap());
    assert_eq!(expires_at(&mut unit, &key("a")).await.unwrap(), Some(None));
}
