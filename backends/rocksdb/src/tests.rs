use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use respgate_backend_api::{Access, Direction, Error, KeyRange, KvBackend, WriteSet};
use respgate_backend_conformance as conformance;
use tempfile::TempDir;

use crate::{Compression, RocksdbBackend, RocksdbOptions, SyncMode};

/// Small buffers, so that tests meet flushes, files on disk and caches that do not hold everything.
fn small(path: &Path) -> RocksdbOptions {
    RocksdbOptions {
        sync_interval: Duration::from_millis(5),
        block_cache_bytes: 4 << 20,
        write_buffer_bytes: 2 << 20,
        open_files_max: 16,
        ..RocksdbOptions::new(path)
    }
}

fn open(options: &RocksdbOptions) -> Arc<dyn KvBackend> {
    Arc::new(RocksdbBackend::open(options).unwrap())
}

fn put(pairs: impl IntoIterator<Item = (Bytes, Bytes)>) -> WriteSet {
    let mut writes: Vec<_> = pairs.into_iter().map(|(key, value)| (key, Some(value))).collect();
    writes.sort_unstable();
    WriteSet { writes, guards: Vec::new() }
}

async fn commit(store: &dyn KvBackend, writes: WriteSet) {
    store.snapshot().await.unwrap().commit(writes).await.unwrap();
}

async fn figure(store: &dyn KvBackend, name: &str) -> u64 {
    store.statistics().await.unwrap().figures.into_iter().find(|(found, _)| *found == name).unwrap().1
}

/// `bytes` bytes that do not compress.
fn noise(seed: u64, bytes: usize) -> Bytes {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    std::iter::repeat_with(|| next().to_be_bytes()).flatten().take(bytes).collect()
}

async fn conforms(sync: SyncMode) {
    let dir = TempDir::new().unwrap();
    let options = RocksdbOptions { sync, ..small(dir.path()) };
    conformance::run_all(open(&options)).await;
    conformance::a_reopened_store_has_every_commit(async || open(&options)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms_with_sync_always() {
    conforms(SyncMode::Always).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms_with_sync_interval() {
    conforms(SyncMode::Interval).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conforms_with_sync_never() {
    conforms(SyncMode::Never).await;
}

#[tokio::test]
async fn conforms_on_one_thread_with_the_defaults() {
    let dir = TempDir::new().unwrap();
    conformance::run_all(open(&RocksdbOptions::new(dir.path()))).await;
}

#[tokio::test]
async fn files_of_one_compression_are_read_with_any_other() {
    let dir = TempDir::new().unwrap();
    let settings = [Compression::Lz4Zstd, Compression::None, Compression::Lz4];
    for (number, compression) in (0_u8..).zip(settings) {
        let store = open(&RocksdbOptions { compression, ..small(dir.path()) });
        for block in 0..40 {
            let pairs = (0..100_u8).map(|i| (Bytes::from(vec![b's', b'#', number, block, i]), vec![i; 1_000].into()));
            commit(&*store, put(pairs)).await;
        }
        let range = KeyRange::prefix(&b"s#"[..]);
        let found = store.snapshot().await.unwrap().scan(&range, Direction::Forward, usize::MAX).await.unwrap();
        assert_eq!(found.len(), 4_000 * (usize::from(number) + 1));
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn data_larger_than_memory_is_read_from_disk() {
    let dir = TempDir::new().unwrap();
    let store = open(&small(dir.path()));
    let pairs: Vec<_> = (0..2_000_u64).map(|i| (Bytes::from(format!("m#{i:05}")), noise(i, 10_000))).collect();
    for chunk in pairs.chunks(50) {
        commit(&*store, put(chunk.iter().cloned())).await;
    }
    // Opening writes what the log holds to files, whether the background work got to it or not.
    store.close().await.unwrap();
    let store = open(&small(dir.path()));
    assert!(figure(&*store, "sst_bytes").await > 8 << 20);
    let snapshot = store.snapshot().await.unwrap();
    let mut keys: Vec<_> = pairs.iter().map(|(key, _)| key.clone()).collect();
    keys.insert(7, "m#missing".into());
    let values = snapshot.multi_get(&keys).await.unwrap();
    assert_eq!(values[7], None);
    assert!(values.into_iter().flatten().eq(pairs.iter().map(|(_, value)| value.clone())));
    for (key, value) in &pairs {
        assert!(snapshot.get(key).await.unwrap().as_ref() == Some(value));
    }
    let range = KeyRange::prefix(&b"m#"[..]);
    assert!(snapshot.scan(&range, Direction::Forward, 3_000).await.unwrap() == pairs);
    let backward = snapshot.scan(&range, Direction::Backward, 1_500).await.unwrap();
    assert!(backward.iter().eq(pairs.iter().rev().take(1_500)));
    assert!(figure(&*store, "block_cache_bytes").await <= 6 << 20);
}

/// RocksDB's batched lookup gave empty values for keys whose blocks were not in the cache, when it was asked to stay in
/// memory and other keys of the batch were there.
#[tokio::test]
async fn values_that_are_partly_in_memory_are_all_found() {
    const KEYS: u64 = 50_000;

    let dir = TempDir::new().unwrap();
    let store = open(&small(dir.path()));
    let key = |number: u64| Bytes::from(format!("m#{number:08}"));
    for first in (0..KEYS).step_by(500) {
        commit(&*store, put((first..first + 500).map(|number| (key(number), noise(number, 200))))).await;
    }
    for round in 0..500_u64 {
        let numbers: Vec<u64> = (1..=16).map(|step| (round * 7_919 + step * step * 3_001) % KEYS).collect();
        let keys: Vec<Bytes> = numbers.iter().copied().map(key).collect();
        let values = store.snapshot().await.unwrap().multi_get(&keys).await.unwrap();
        for (number, value) in numbers.into_iter().zip(values) {
            assert!(value == Some(noise(number, 200)), "round {round}, key {number}");
        }
    }
}

#[tokio::test]
async fn a_directory_is_free_again_after_close() {
    let dir = TempDir::new().unwrap();
    for sync in [SyncMode::Always, SyncMode::Interval, SyncMode::Never] {
        let options = RocksdbOptions { sync, ..small(dir.path()) };
        let store = open(&options);
        commit(&*store, put([("m#k".into(), "v".into())])).await;
        assert!(matches!(RocksdbBackend::open(&options), Err(Error::CannotOpen(_))));
        store.close().await.unwrap();
        open(&options).close().await.unwrap();
    }
}

#[tokio::test]
async fn space_returns_after_a_large_range_is_deleted() {
    let dir = TempDir::new().unwrap();
    let store = open(&small(dir.path()));
    for chunk in 0..200_u64 {
        let pairs =
            (0..100).map(|i| (Bytes::from(format!("s#{:06}", chunk * 100 + i)), noise(chunk * 100 + i, 10_000)));
        commit(&*store, put(pairs)).await;
    }
    let before = store.statistics().await.unwrap().disk_bytes;
    assert!(before > 180 << 20, "{before}");
    store.delete_range(KeyRange::prefix(&b"s#"[..])).await.unwrap();
    while figure(&*store, "sst_bytes").await > before / 10 {
        tokio::task::yield_now().await;
    }
    store.close().await.unwrap();
}

#[tokio::test]
async fn space_returns_after_records_are_deleted_one_by_one() {
    let dir = TempDir::new().unwrap();
    let store = open(&RocksdbOptions::new(dir.path()));
    let keys: Vec<_> = (0..20_000).map(|i| Bytes::from(format!("m#{i:06}"))).collect();
    for keys in keys.chunks(500) {
        commit(&*store, put(keys.iter().map(|key| (key.clone(), noise(1, 500))))).await;
    }
    let before = store.statistics().await.unwrap().disk_bytes;
    assert!(before > 9 << 20, "{before}");
    for keys in keys.chunks(500) {
        let writes = keys.iter().map(|key| (key.clone(), None)).collect();
        commit(&*store, WriteSet { writes, guards: Vec::new() }).await;
    }
    // Nobody writes any more: neither the log nor the records would go by themselves.
    while store.statistics().await.unwrap().disk_bytes > before / 10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_snapshot_outlives_a_deleted_range() {
    let dir = TempDir::new().unwrap();
    let store = open(&small(dir.path()));
    let pairs: Vec<_> = (0..5_000).map(|i| (Bytes::from(format!("k#{i:06}")), Bytes::new())).collect();
    commit(&*store, put(pairs.iter().cloned())).await;
    let before = store.snapshot().await.unwrap();
    store.delete_range(KeyRange::prefix(&b"k#"[..])).await.unwrap();
    assert!(before.scan(&KeyRange::prefix(&b"k#"[..]), Direction::Forward, 10_000).await.unwrap() == pairs);
}

#[tokio::test]
async fn a_reader_sees_the_moment_at_which_it_opened_and_cannot_write() {
    let dir = TempDir::new().unwrap();
    let writer = open(&small(dir.path()));
    commit(&*writer, put([("m#a".into(), "1".into()), ("k#a".into(), "".into())])).await;
    let reader = open(&RocksdbOptions { access: Access::Read, ..small(dir.path()) });
    commit(&*writer, put([("m#a".into(), "2".into())])).await;
    writer.close().await.unwrap();

    let snapshot = reader.snapshot().await.unwrap();
    let keys = ["m#a".into(), "m#b".into(), "k#a".into()];
    assert_eq!(snapshot.multi_get(&keys).await.unwrap(), [Some("1".into()), None, Some("".into())]);
    let range = KeyRange::prefix(&b"m#"[..]);
    assert_eq!(snapshot.scan(&range, Direction::Backward, 9).await.unwrap(), [("m#a".into(), "1".into())]);
    for guards in [vec![], vec!["m#a".into()]] {
        let writes = WriteSet { guards, ..put([("m#b".into(), "1".into())]) };
        assert!(matches!(reader.snapshot().await.unwrap().commit(writes).await, Err(Error::ReadOnly(_))));
    }
    assert!(matches!(reader.delete_range(range).await, Err(Error::ReadOnly(_))));
    assert!(matches!(reader.health().await, Err(Error::ReadOnly(_))));
    drop(snapshot);
    reader.close().await.unwrap();
    let again = open(&RocksdbOptions { access: Access::Write, ..small(dir.path()) });
    assert_eq!(again.snapshot().await.unwrap().get(b"m#a").await.unwrap(), Some("2".into()));
    assert_eq!(again.snapshot().await.unwrap().get(b"m#b").await.unwrap(), None);
}

/// Without care a reader misses what went from the logs into files while it opened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_beside_a_writer_misses_nothing_that_came_before_what_it_sees() {
    let dir = TempDir::new().unwrap();
    // A buffer is full every few milliseconds.
    let options = RocksdbOptions { write_buffer_bytes: 8 << 20, ..small(dir.path()) };
    let writer = open(&options);
    let is_over = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn({
        let (writer, is_over) = (Arc::clone(&writer), Arc::clone(&is_over));
        async move {
            let mut number = 0_u64;
            while !is_over.load(Ordering::SeqCst) {
                let pairs = (number..number + 10).map(|i| (Bytes::from(format!("s#{i:012}")), noise(i, 1_000)));
                commit(&*writer, put(pairs)).await;
                number += 10;
            }
        }
    });
    let mut seen = 0;
    for _ in 0..10 {
        let reader = open(&RocksdbOptions { access: Access::Read, ..options.clone() });
        let range = KeyRange::prefix(&b"s#"[..]);
        let found = reader.snapshot().await.unwrap().scan(&range, Direction::Forward, usize::MAX).await.unwrap();
        assert!(found.len() >= seen);
        seen = found.len();
        for (number, (key, _)) in found.iter().enumerate() {
            assert_eq!(key, &format!("s#{number:012}"));
        }
        reader.close().await.unwrap();
    }
    assert!(seen > 0);
    is_over.store(true, Ordering::SeqCst);
    writing.await.unwrap();
}

#[test]
fn only_a_new_store_is_created() {
    let dir = TempDir::new().unwrap();
    for access in [Access::Write, Access::Read] {
        let path = dir.path().join("missing");
        assert!(matches!(
            RocksdbBackend::open(&RocksdbOptions { access, ..small(&path) }),
            Err(Error::CannotOpen(reason)) if reason.ends_with("there is no database in it")
        ));
        assert!(!path.exists());
    }
}
