use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange, KvBackend};
use respgate_backend_rocksdb::{RocksdbBackend, RocksdbOptions};
use tempfile::TempDir;
use tokio::{sync::watch, task::JoinSet};

use super::KeyspaceReaper;
use crate::{
    encoding::{KeyCodec, Metadata, Type},
    keyspace::{
        Clock, Encodings, Intent, Key, Keyspace, ManualClock, Options, Random, Scope, SystemClock,
        fixture::{START_MS, key},
    },
    types::{hash, key as keys, key::IfExists, list, string, zset},
};

const NAMESPACE: &str = "test";

struct Store {
    backend: Arc<RocksdbBackend>,
    keyspace: Keyspace,
    codec: KeyCodec,
    _directory: TempDir,
}

/// A keyspace without anything that works in the background, over files that compactions rewrite often.
async fn open(clock: Arc<dyn Clock>, grace: Duration) -> Store {
    let directory = TempDir::new().unwrap();
    let codec = KeyCodec::new(NAMESPACE, false).unwrap();
    let reaper = KeyspaceReaper::new(codec.clone(), Arc::clone(&clock), grace);
    let options = RocksdbOptions { write_buffer_bytes: 1 << 20, ..RocksdbOptions::new(directory.path()) };
    let backend = Arc::new(RocksdbBackend::open_reaped(&options, Arc::new(reaper)).unwrap());
    let options = Options {
        namespace: NAMESPACE.to_owned(),
        databases: 2,
        encodings: Encodings::default(),
        sidecar: None,
        cache_bytes: 1 << 20,
        clock,
        grace,
        random: Random::seeded(0),
    };
    let keyspace = Keyspace::open(Arc::<RocksdbBackend>::clone(&backend), options).await.unwrap();
    Store { backend, keyspace, codec, _directory: directory }
}

impl Store {
    /// How many records there are of each tag: `m`, `s`, `k` and `f`.
    async fn records(&self) -> [usize; 4] {
        let snapshot = self.backend.snapshot().await.unwrap();
        let mut counts = [0; 4];
        for (count, tag) in counts.iter_mut().zip([&b"m#"[..], b"s#", b"k#", b"f#"]) {
            let range = KeyRange::prefix(tag);
            *count = snapshot.scan(&range, Direction::Forward, usize::MAX).await.unwrap().len();
        }
        counts
    }
}

fn pairs(count: usize, value: &Bytes) -> Vec<(Bytes, Bytes)> {
    (0..count).map(|number| (Bytes::from(format!("field:{number}")), value.clone())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compactions_alone_remove_what_is_dead_and_nothing_else() {
    let grace = Duration::from_secs(600);
    let clock = Arc::new(ManualClock::at_ms(START_MS));
    let store = open(Arc::<ManualClock>::clone(&clock), grace).await;
    let value = Bytes::from_static(b"value");
    let mut unit = store.keyspace.begin(Intent::Write).await.unwrap();
    for name in ["overwritten", "old", "stays"] {
        hash::set(&mut unit, &key(name), &pairs(10, &value)).await.unwrap();
    }
    keys::rename(&mut unit, &key("old"), &key("new"), IfExists::Keep).await.unwrap();
    zset::replace(&mut unit, &key("scores"), vec![(value.clone(), 1.0)]).await.unwrap();
    list::push(&mut unit, &key("expired list"), list::End::Tail, std::slice::from_ref(&value)).await.unwrap();
    keys::expire(&mut unit, &key("expired list"), START_MS as i64 + 1, keys::Condition::default()).await.unwrap();
    string::set(&mut unit, &key("expired"), value.clone(), Some(START_MS as i64 + 1)).unwrap();
    string::set(&mut unit, &key("lives on"), value.clone(), Some(START_MS as i64 + 1_000_000)).unwrap();
    unit.commit().await.unwrap();
    let mut unit = store.keyspace.begin(Intent::Write).await.unwrap();
    // Written unread, so that no garbage record tells of what was there.
    string::set(&mut unit, &key("overwritten"), value.clone(), None).unwrap();
    string::set(&mut unit, &key("scores"), value.clone(), None).unwrap();
    unit.commit().await.unwrap();

    let everything = [7, 32, 1, 1];
    assert_eq!(store.records().await, everything);
    clock.advance_ms(2);
    store.backend.compact().await.unwrap();
    assert_eq!(store.records().await, everything, "within the grace");
    clock.advance_ms(600_000);
    let reader = store.backend.snapshot().await.unwrap();
    store.backend.compact().await.unwrap();
    assert_eq!(store.records().await, everything, "while somebody reads what was before");
    drop(reader);
    store.backend.compact().await.unwrap();
    assert_eq!(store.records().await, [6, 21, 0, 1]);
    let mut unit = store.keyspace.begin(Intent::Read).await.unwrap();
    assert_eq!(hash::all(&mut unit, &key("new")).await.unwrap(), pairs(10, &value));
    assert_eq!(hash::all(&mut unit, &key("stays")).await.unwrap(), pairs(10, &value));
    assert_eq!(string::get(&mut unit, &key("lives on")).await.unwrap(), Some(value));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_of_other_namespaces_are_left_alone() {
    let clock = Arc::new(ManualClock::at_ms(START_MS));
    let store = open(Arc::<ManualClock>::clone(&clock), Duration::ZERO).await;
    let other = KeyCodec::new("other", false).unwrap();
    let orphan = other.element(0, b"key", START_MS << 11, b"field");
    let mut unit = store.keyspace.begin(Intent::Write).await.unwrap();
    unit.put_record(orphan.clone(), Bytes::new());
    unit.put_record(store.codec.element(0, b"key", START_MS << 11, b"field"), Bytes::new());
    unit.commit().await.unwrap();
    clock.advance_ms(1);
    store.backend.compact().await.unwrap();
    assert_eq!(store.records().await, [0, 1, 0, 0]);
    assert!(store.backend.snapshot().await.unwrap().get(&orphan).await.unwrap().is_some());
}

const KEYS: u64 = 8;
const FIELDS: usize = 30;
const ROUNDS: u64 = 60;
const WRITES: usize = 50;

fn name(number: u64) -> Key {
    Key { db: 0, name: format!("key:{}", number % KEYS).into() }
}

/// Writes hashes, sorted sets and strings that expire soon to a few keys, deletes and renames them, and overwrites them
/// unread.
async fn write(store: &Store, random: &Random) {
    let (one, other) = (name(random.next_u64()), name(random.next_u64()));
    let _latches = store.keyspace.latches().acquire(Scope::Keys(&[&one.name, &other.name])).await;
    let mut unit = store.keyspace.begin(Intent::Write).await.unwrap();
    let value = Bytes::from(random.next_u64().to_string());
    let soon_ms = unit.now_ms() + random.below(20) as i64;
    match random.below(6) {
        0 => {
            keys::delete(&mut unit, std::slice::from_ref(&one)).await.unwrap();
            hash::set(&mut unit, &one, &pairs(FIELDS, &value)).await.unwrap();
        }
        1 => {
            let members = pairs(FIELDS, &value).into_iter().map(|(field, _)| (field, random.below(5) as f64));
            zset::replace(&mut unit, &one, members.collect()).await.unwrap();
        }
        2 | 3 if keys::kind(&mut unit, &one).await.unwrap().is_some() => {
            keys::rename(&mut unit, &one, &other, IfExists::Replace).await.unwrap();
        }
        4 => string::set(&mut unit, &one, value, None).unwrap(),
        5 => string::set(&mut unit, &one, value, Some(soon_ms)).unwrap(),
        _ => drop(keys::delete(&mut unit, &[one]).await.unwrap()),
    }
    unit.commit().await.unwrap();
}

/// Reads every key through one snapshot, at the end of which it finds every element.
async fn read(store: &Store, until: impl Future<Output = ()>) {
    let now_ms = SystemClock.now_ms().cast_signed();
    let snapshot = store.backend.snapshot().await.unwrap();
    let mut found = Vec::new();
    for number in 0..KEYS {
        let record = store.codec.metadata(0, &name(number).name);
        if let Some(value) = snapshot.get(&record).await.unwrap() {
            found.push((name(number), record, value));
        }
    }
    until.await;
    for (key, record, value) in found {
        let metadata = Metadata::decode(&value).unwrap();
        if metadata.is_expired(now_ms) {
            continue;
        }
        assert_eq!(snapshot.get(&record).await.unwrap(), Some(value), "{key:?}");
        let Some(garbage) = metadata.garbage() else { continue };
        let owner = metadata.origin.as_ref().unwrap_or(&key.name);
        for range in store.codec.garbage_ranges(0, owner, metadata.version, garbage) {
            let elements = snapshot.scan(&range, Direction::Forward, usize::MAX).await.unwrap();
            assert_eq!(elements.len(), FIELDS, "{key:?} {metadata:?}");
        }
    }
}

/// Nothing is spared for its youth here, so it is the order of readers and compactions alone that protects them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn compactions_never_take_from_a_reader() {
    let store = Arc::new(open(Arc::new(SystemClock), Duration::ZERO).await);
    let (count, rounds) = watch::channel(0);
    let mut tasks = JoinSet::new();
    for seed in 0..2 {
        let (store, mut rounds) = (Arc::clone(&store), rounds.clone());
        tasks.spawn(async move {
            let random = Random::seeded(seed);
            for round in 0..ROUNDS {
                rounds.wait_for(|&now| now >= round).await.unwrap();
                for _ in 0..WRITES {
                    write(&store, &random).await;
                }
            }
        });
    }
    for seed in 0..3 {
        let (store, mut rounds) = (Arc::clone(&store), rounds.clone());
        tasks.spawn(async move {
            let random = Random::seeded(seed);
            let mut round = 0;
            while round < ROUNDS {
                let end = round + random.below(3);
                let until = async { drop(rounds.wait_for(|&now| now >= end.min(ROUNDS)).await.unwrap()) };
                read(&store, until).await;
                round = end + random.below(3);
                rounds.wait_for(|&now| now >= round.min(ROUNDS)).await.unwrap();
            }
        });
    }
    for round in 1..=ROUNDS {
        store.backend.compact().await.unwrap();
        count.send(round).unwrap();
    }
    tasks.join_all().await;
    let mut unit = store.keyspace.begin(Intent::Read).await.unwrap();
    let (mut elements, mut scores) = (0, 0);
    for number in 0..KEYS {
        let kind = keys::kind(&mut unit, &name(number)).await.unwrap();
        elements += if matches!(kind, Some(Type::Hash | Type::Zset)) { FIELDS } else { 0 };
        scores += if kind == Some(Type::Zset) { FIELDS } else { 0 };
    }
    drop(unit);
    // The last ones may be of this very millisecond.
    while !matches!(store.records().await, [_, s, k, _] if (s, k) == (elements, scores)) {
        store.backend.compact().await.unwrap();
    }
}
