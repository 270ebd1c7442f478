use proptest::prelude::*;
use respgate_backend_api::Direction;

use super::*;
use crate::{
    encoding::Garbage,
    keyspace::{
        Encodings, Intent, Keyspace,
        fixture::{START_MS, key, keyspace},
    },
    types,
};

const NO_LIMIT: u64 = u64::MAX;
const THRESHOLD: usize = 100;

/// A keyspace in which strings of more than [`THRESHOLD`] bytes are in chunks.
async fn short_strings() -> Keyspace {
    keyspace(Encodings { string_chunk_threshold: THRESHOLD, ..Encodings::default() }).await.0
}

/// Saves a string of chunks of 4 bytes each, which is empty as yet.
fn save_small_chunks(unit: &mut Unit<'_>, key: &Key) {
    let body = Body::Chunks { bytes: 0, chunk_bytes: 4 };
    let metadata = Metadata { version: unit.new_version(), expires_at_ms: None, body, origin: None };
    unit.save(key, &metadata).unwrap();
}

async fn body(unit: &mut Unit<'_>, key: &Key) -> Body {
    unit.load(key).await.unwrap().unwrap().body
}

/// How many dead keys wait for the collector.
async fn garbage(unit: &mut Unit<'_>) -> Vec<Garbage> {
    let range = unit.codec().garbage_range(0);
    let records = unit.scan(&range, Direction::Forward, 100).await.unwrap();
    records.iter().map(|(_, value)| Garbage::decode(value).unwrap()).collect()
}

#[tokio::test]
async fn a_string_moves_to_chunks_when_it_grows_and_keeps_its_expiry() {
    let keyspace = short_strings().await;
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    let (key, expires_at_ms) = (key("k"), Some(START_MS as i64 + 1_000));
    set(&mut unit, &key, Bytes::from(vec![b'a'; THRESHOLD]), expires_at_ms).unwrap();
    assert_eq!(body(&mut unit, &key).await, Body::String(Bytes::from(vec![b'a'; THRESHOLD])));

    assert_eq!(append(&mut unit, &key, &Bytes::from_static(b"b"), NO_LIMIT).await, Ok(THRESHOLD as u64 + 1));
    let metadata = unit.load(&key).await.unwrap().unwrap();
    assert_eq!(metadata.body, Body::Chunks { bytes: THRESHOLD as u64 + 1, chunk_bytes: 8 * 1024 });
    assert_eq!(metadata.expires_at_ms, expires_at_ms);
    let expected = [&[b'a'; THRESHOLD][..], b"b"].concat();
    assert_eq!(get(&mut unit, &key).await, Ok(Some(expected.into())));
}

#[tokio::test]
async fn a_long_value_is_set_in_chunks_and_read_back() {
    let keyspace = short_strings().await;
    let value: Bytes = (0..100_000_u32).map(|at| (at % 251) as u8).collect::<Vec<_>>().into();
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    set(&mut unit, &key("k"), value.clone(), None).unwrap();
    unit.commit().await.unwrap();

    let mut unit = keyspace.begin(Intent::Read).await.unwrap();
    assert_eq!(get(&mut unit, &key("k")).await, Ok(Some(value.clone())));
    assert_eq!(range(&mut unit, &key("k"), 8_190, 8_193).await, Ok(value.slice(8_190..8_194)));
    assert_eq!(range(&mut unit, &key("k"), -3, -1).await, Ok(value.slice(99_997..)));
}

#[tokio::test]
async fn a_string_of_more_chunks_than_a_page_is_read_whole() {
    let keyspace = short_strings().await;
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    save_small_chunks(&mut unit, &key("k"));
    let value: Bytes = (0..10_001_u32).map(|at| (at % 251) as u8).collect::<Vec<_>>().into();
    append(&mut unit, &key("k"), &value, NO_LIMIT).await.unwrap();
    assert_eq!(get(&mut unit, &key("k")).await, Ok(Some(value)));
}

#[tokio::test]
async fn writing_far_behind_the_end_costs_what_is_written() {
    let keyspace = keyspace(Encodings::default()).await.0;
    let (key, far) = (key("k"), 500 << 20);
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    overwrite(&mut unit, &key, far, &Bytes::from_static(b"x"), NO_LIMIT).await.unwrap();
    assert!(unit.bytes() < 200, "{} bytes", unit.bytes());
    unit.commit().await.unwrap();

    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    assert_eq!(append(&mut unit, &key, &Bytes::from_static(b"y"), NO_LIMIT).await, Ok(far + 2));
    assert!(unit.bytes() < 200, "{} bytes", unit.bytes());
    assert_eq!(range(&mut unit, &key, far as i64 - 2, -1).await, Ok(Bytes::from_static(b"\0\0xy")));
    assert_eq!(range(&mut unit, &key, 0, 2).await, Ok(Bytes::from_static(b"\0\0\0")));
}

#[tokio::test]
async fn a_string_is_no_longer_than_the_limit() {
    let keyspace = short_strings().await;
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    let two = Bytes::from_static(b"ab");
    assert_eq!(append(&mut unit, &key("k"), &two, 1).await, Err(types::Error::StringTooLong));
    assert_eq!(overwrite(&mut unit, &key("k"), 999, &two, 1_000).await, Err(types::Error::StringTooLong));
    assert_eq!(overwrite(&mut unit, &key("k"), u64::MAX, &two, NO_LIMIT).await, Err(types::Error::StringTooLong));
    assert_eq!(unit.load(&key("k")).await, Ok(None));
    assert_eq!(overwrite(&mut unit, &key("k"), 998, &two, 1_000).await, Ok(1_000));
    assert_eq!(append(&mut unit, &key("k"), &two, 1_001).await, Err(types::Error::StringTooLong));
    assert_eq!(overwrite(&mut unit, &key("k"), 5_000, &Bytes::new(), 1_000).await, Ok(1_000));
}

#[tokio::test]
async fn chunks_that_nobody_refers_to_are_garbage() {
    let keyspace = short_strings().await;
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    let long = Bytes::from(vec![b'1'; THRESHOLD + 1]);
    for name in ["taken", "replaced", "expired", "kept"] {
        set(&mut unit, &key(name), long.clone(), None).unwrap();
    }
    assert_eq!(garbage(&mut unit).await, []);

    assert_eq!(take(&mut unit, &key("taken")).await, Ok(Some(long.clone())));
    let options = SetOptions { returns_old: true, ..SetOptions::default() };
    let outcome = set_with(&mut unit, &key("replaced"), Bytes::new(), options).await;
    assert_eq!(outcome, Ok(SetOutcome { was_set: true, old: Some(long) }));
    let metadata = unit.load(&key("expired")).await.unwrap().unwrap();
    set_expiry(&mut unit, &key("expired"), metadata, Expiry::At(START_MS as i64)).unwrap();
    assert_eq!(unit.load(&key("expired")).await, Ok(None));

    assert_eq!(garbage(&mut unit).await, [Garbage { kind: Type::String, encode_version: 1, elements: 1 }; 3]);
}

#[tokio::test]
async fn numbers_count_even_in_chunks() {
    let keyspace = short_strings().await;
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    let key = key("k");
    save_small_chunks(&mut unit, &key);
    append(&mut unit, &key, &Bytes::from_static(b"1234567"), NO_LIMIT).await.unwrap();
    assert_eq!(increment(&mut unit, &key, 3).await, Ok(1_234_570));
    assert_eq!(increment(&mut unit, &key, i64::MAX).await, Err(types::Error::Overflow));
    assert_eq!(increment_float(&mut unit, &key, b"0.5").await, Ok(Bytes::from_static(b"1234570.5")));
    assert_eq!(increment(&mut unit, &key, 1).await, Err(types::Error::NotInteger));
    assert_eq!(increment_float(&mut unit, &key, b"inf").await, Err(types::Error::NotFinite));
    set(&mut unit, &key, Bytes::from(vec![b'1'; 6_000]), None).unwrap();
    assert_eq!(increment_float(&mut unit, &key, b"1").await, Err(types::Error::NotFloat));
}

#[tokio::test]
async fn plain_writes_do_not_read() {
    let keyspace = short_strings().await;
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    let hash = Metadata { version: 1, expires_at_ms: None, body: Body::Hash { count: Some(1) }, origin: None };
    unit.save(&key("k"), &hash).unwrap();
    let options = SetOptions { expiry: Expiry::At(START_MS as i64 + 1), ..SetOptions::default() };
    set_with(&mut unit, &key("k"), Bytes::from_static(b"v"), options).await.unwrap();
    // The hash was not looked at: the sweep will find its fields.
    assert_eq!(garbage(&mut unit).await, []);
    assert_eq!(get(&mut unit, &key("k")).await, Ok(Some(Bytes::from_static(b"v"))));
}

/// One thing that happens to a string.
#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>),
    Append(Vec<u8>),
    Overwrite(u64, Vec<u8>),
    Range(i64, i64),
    Commit,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..30);
    let index = || -150_i64..150;
    let step = prop_oneof![
        1 => bytes().prop_map(Step::Set),
        4 => bytes().prop_map(Step::Append),
        4 => (0_u64..150, bytes()).prop_map(|(offset, bytes)| Step::Overwrite(offset, bytes)),
        6 => (index(), index()).prop_map(|(start, end)| Step::Range(start, end)),
        2 => Just(Step::Commit),
    ];
    proptest::collection::vec(step, 1..40)
}

/// What GETRANGE is documented to give.
fn model_range(value: &[u8], start: i64, end: i64) -> Vec<u8> {
    let length = value.len() as i64;
    let from_start = |index: i64| if index < 0 { (index + length).max(0) } else { index };
    let is_shown = |at: i64| (from_start(start)..=from_start(end)).contains(&at) && !(start < 0 && end < start);
    value.iter().enumerate().filter(|(at, _)| is_shown(*at as i64)).map(|(_, byte)| *byte).collect()
}

async fn follow(steps: Vec<Step>, begin_with_chunks: bool) {
    let (keyspace, key) = (short_strings().await, key("k"));
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    let mut model = Vec::new();
    set(&mut unit, &key, Bytes::new(), None).unwrap();
    if begin_with_chunks {
        save_small_chunks(&mut unit, &key);
    }
    for step in steps {
        match step {
            Step::Set(value) => {
                model.clone_from(&value);
                set(&mut unit, &key, value.into(), None).unwrap();
            }
            Step::Append(tail) => {
                model.extend_from_slice(&tail);
                let length = append(&mut unit, &key, &tail.into(), NO_LIMIT).await;
                assert_eq!(length, Ok(model.len() as u64));
            }
            Step::Overwrite(offset, patch) => {
                let (start, end) = (offset as usize, offset as usize + patch.len());
                if !patch.is_empty() {
                    model.resize(model.len().max(end), 0);
                    model[start..end].copy_from_slice(&patch);
                }
                let length = overwrite(&mut unit, &key, offset, &patch.into(), NO_LIMIT).await;
                assert_eq!(length, Ok(model.len() as u64));
            }
            Step::Range(start, end) => {
                let found = range(&mut unit, &key, start, end).await.unwrap();
                assert_eq!(found, model_range(&model, start, end), "{start} to {end}");
            }
            Step::Commit => {
                unit.commit().await.unwrap();
                unit = keyspace.begin(Intent::Write).await.unwrap();
            }
        }
        assert_eq!(get(&mut unit, &key).await, Ok(Some(model.clone().into())));
    }
}

proptest! {
    #[test]
    fn however_it_is_stored_a_string_is_a_sequence_of_bytes(steps in steps(), begin_with_chunks in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(follow(steps, begin_with_chunks));
    }
}
