use std::sync::Arc;

use bytes::Bytes;
use respgate_backend_api::{KeyRange, KvBackend, Snapshot, Write, WriteSet};

/// The tags of records, and one that no record has.
pub(crate) const TAGS: [&str; 7] = ["m#", "s#", "k#", "i#", "g#", "d#", "z#"];

/// The keys of one law in a store.
pub(crate) struct Area<'a> {
    store: &'a dyn KvBackend,
    law: &'static str,
}

impl<'a> Area<'a> {
    /// The keys of `law`, none of which exists.
    pub(crate) async fn new(store: &'a dyn KvBackend, law: &'static str) -> Self {
        let area = Self { store, law };
        for tag in TAGS {
            store.delete_range(area.range(tag)).await.unwrap();
        }
        area
    }

    /// A key of this law that has `tag`.
    pub(crate) fn tagged_key(&self, tag: &str, suffix: impl AsRef<[u8]>) -> Bytes {
        [format!("{tag}conformance:{}:", self.law).as_bytes(), suffix.as_ref()].concat().into()
    }

    /// A key of the tag that most laws use.
    pub(crate) fn key(&self, suffix: impl AsRef<[u8]>) -> Bytes {
        self.tagged_key("m#", suffix)
    }

    /// All keys of this law that have `tag`.
    pub(crate) fn range(&self, tag: &str) -> KeyRange {
        KeyRange::prefix(self.tagged_key(tag, b""))
    }

    pub(crate) async fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.store.snapshot().await.unwrap()
    }

    pub(crate) async fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.snapshot().await.get(key).await.unwrap()
    }

    pub(crate) async fn put(&self, key: &Bytes, value: impl Into<Bytes>) {
        self.write([(key.clone(), Some(value.into()))]).await;
    }

    pub(crate) async fn delete(&self, key: &Bytes) {
        self.write([(key.clone(), None)]).await;
    }

    pub(crate) async fn write(&self, writes: impl IntoIterator<Item = Write>) {
        self.snapshot().await.commit(write_set(writes, [])).await.unwrap();
    }

    /// Puts `count` pairs of keys that end in the pair's number as eight decimal digits, and returns them in order.
    pub(crate) async fn fill(&self, tag: &str, count: usize) -> Vec<(Bytes, Bytes)> {
        let pair = |i| (self.tagged_key(tag, format!("{i:08}")), Bytes::from(format!("value {i}")));
        let pairs: Vec<_> = (0..count).map(pair).collect();
        self.write(pairs.iter().map(|(key, value)| (key.clone(), Some(value.clone())))).await;
        pairs
    }
}

/// A write set of `writes`, in any order, that relies on `guards`.
pub(crate) fn write_set(writes: impl IntoIterator<Item = Write>, guards: impl IntoIterator<Item = Bytes>) -> WriteSet {
    let mut writes: Vec<_> = writes.into_iter().collect();
    writes.sort_unstable();
    WriteSet { writes, guards: guards.into_iter().collect() }
}

/// A put of `value` to `key`.
pub(crate) fn put(key: &Bytes, value: impl Into<Bytes>) -> Write {
    (key.clone(), Some(value.into()))
}
