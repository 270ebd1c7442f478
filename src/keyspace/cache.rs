use std::{
    hash::{BuildHasher, BuildHasherDefault, Hasher},
    mem,
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::{Buf, Bytes};
use foldhash::quality::RandomState;
use quick_cache::{Weighter, sync};
use respgate_backend_api::Write;

/// A record's value, or `None` if it does not exist.
type Value = Option<Bytes>;

/// Records as last committed, for a store that this process has for itself: metadata, short strings with it, and elements
/// that are read one by one. [Pages](super::pages::Scan) of elements are kept with them.
///
/// An entry says what a read of its record from the store would say now, or it is not used. Whether several entries
/// belong to one moment is told by the [epoch](Self::epoch), which every commit moves on twice, before and after:
/// entries that were all found within one epoch, and a snapshot that was opened within it, are of one moment.
///
/// Records share a fixed number of [stamps](Stamp) by hash. A commit marks the stamps of what it changes, so that
/// every entry made before goes out of use, without being looked for: a write costs the cache one memory access. What
/// a reader has found in the store is kept only if nothing under its stamp has changed since the epoch that it noted
/// before it opened its snapshot, so that it cannot bring an old value back.
pub(super) struct RecordCache {
    /// By the hash of their names. Of two records of one hash there is room for one.
    entries: sync::Cache<u64, Entry, ByBytes, BuildHasherDefault<Hashed>>,
    stamps: Box<[AtomicU64]>,
    hasher: RandomState,
    epoch: AtomicU64,
}

#[derive(Clone)]
struct Entry {
    known: Known,
    /// The stamp when the value was the store's. The entry is in use for as long as it stays the same.
    stamp: Stamp,
}

/// A record in one piece: what takes time about an entry is to reach its memory, once for each piece.
#[derive(Clone)]
struct Known {
    /// The name, and behind it the value.
    bytes: Box<[u8]>,
    name_bytes: usize,
    exists: bool,
}

impl Known {
    fn new(name: &[u8], value: &Value) -> Self {
        let bytes = [name, value.as_deref().unwrap_or_default()].concat().into_boxed_slice();
        Self { bytes, name_bytes: name.len(), exists: value.is_some() }
    }

    fn is_of(&self, name: &[u8]) -> bool {
        self.name_bytes == name.len() && self.bytes.starts_with(name)
    }

    fn into_value(self) -> Value {
        let mut value = Bytes::from(self.bytes);
        value.advance(self.name_bytes);
        self.exists.then_some(value)
    }
}

/// Gives back the hash that it is given.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, _: &[u8]) {}
}

/// When something was last changed: the epoch after that, and in the low bits how many commits are changing it now.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp(u64);

impl Stamp {
    /// Bits for the commits that change records of one stamp at the same time.
    const COMMIT_BITS: u32 = 16;

    fn changed_at(self) -> u64 {
        self.0 >> Self::COMMIT_BITS
    }

    fn commits(self) -> u64 {
        self.0 & ((1 << Self::COMMIT_BITS) - 1)
    }

    fn is_settled(self) -> bool {
        self.commits() == 0
    }

    /// The stamp after a change at `epoch`, with so many commits still under way.
    fn changed(self, epoch: u64, commits: u64) -> Self {
        Self(self.changed_at().max(epoch) << Self::COMMIT_BITS | commits)
    }
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<u64, Entry> for ByBytes {
    fn weight(&self, _: &u64, entry: &Entry) -> u64 {
        /// About what an entry takes beside its bytes: the entry itself, the table's slot, the links, the allocation.
        const OVERHEAD_BYTES: usize = 96;

        (entry.known.bytes.len() + OVERHEAD_BYTES) as u64
    }
}

impl RecordCache {
    /// A cache that takes about `bytes` of memory once it is full.
    pub(super) fn new(bytes: u64) -> Self {
        /// What an entry is expected to take.
        const EXPECTED_ENTRY_BYTES: u64 = 256;
        /// So that a write seldom puts other entries out of use. Stamps take an eighth of the memory.
        const STAMPS_PER_ENTRY: u64 = 4;

        let expected = bytes / EXPECTED_ENTRY_BYTES;
        let stamps = (expected * STAMPS_PER_ENTRY).max(1);
        let capacity = bytes.saturating_sub(stamps * size_of::<AtomicU64>() as u64);
        let entries = sync::Cache::with(
            usize::try_from(expected).unwrap_or(usize::MAX),
            capacity,
            ByBytes,
            BuildHasherDefault::default(),
            sync::DefaultLifecycle::default(),
        );
        Self {
            entries,
            stamps: (0..stamps).map(|_| AtomicU64::new(0)).collect(),
            hasher: RandomState::default(),
            epoch: AtomicU64::new(0),
        }
    }

    /// Where the commits stand. Entries and snapshots seen while it stays the same are of one moment.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// What is known of a record.
    pub(super) fn get(&self, record: &[u8]) -> Option<Value> {
        self.get_under(record, record)
    }

    /// What is known of each of several records.
    ///
    /// All stamps are looked at before the first entry: most of the time goes into waiting for memory, which the processor
    /// does for several at once if none depends on another.
    pub(super) fn get_many<'r>(&self, records: &'r [Bytes]) -> impl Iterator<Item = Option<Value>> {
        let stamped: Vec<(&'r Bytes, u64, Option<Stamp>)> = records
            .iter()
            .map(|record| {
                let hash = self.hash(record);
                (record, hash, self.settled_stamp(hash))
            })
            .collect();
        stamped.into_iter().map(|(record, hash, stamp)| self.find(hash, record, stamp?))
    }

    /// What is known by the name `name`, and goes out of use with what `stamped` names.
    pub(super) fn get_under(&self, stamped: &[u8], name: &[u8]) -> Option<Value> {
        let (stamped, hash) = self.hashes(stamped, name);
        self.find(hash, name, self.settled_stamp(stamped)?)
    }

    fn settled_stamp(&self, hash: u64) -> Option<Stamp> {
        Some(Stamp(self.stamp(hash)?.load(Ordering::SeqCst))).filter(|stamp| stamp.is_settled())
    }

    fn find(&self, hash: u64, name: &[u8], stamp: Stamp) -> Option<Value> {
        let entry = self.entries.get(&hash).filter(|entry| entry.stamp == stamp && entry.known.is_of(name))?;
        Some(entry.known.into_value())
    }

    /// Keeps what a snapshot says about a record. `seen` is the epoch as noted before the snapshot was opened.
    pub(super) fn fill(&self, record: &[u8], value: &Value, seen: u64) {
        self.fill_under(record, record, value, seen);
    }

    /// Keeps what a snapshot says by the name `name`, until what `stamped` names is changed.
    pub(super) fn fill_under(&self, stamped: &[u8], name: &[u8], value: &Value, seen: u64) {
        let (stamped, hash) = self.hashes(stamped, name);
        let Some(stamp) = self.stamp(stamped) else { return };
        let stamp = Stamp(stamp.load(Ordering::SeqCst));
        if stamp.is_settled() && stamp.changed_at() <= seen {
            self.entries.insert(hash, Entry { known: Known::new(name, value), stamp });
        }
    }

    /// Announces a commit that changes these records and collections, which its unit has latched.
    pub(super) fn begin_commit<'w>(&self, changes: impl Iterator<Item = Change<'w>>) -> Commit<'_> {
        let changes = changes.map(|change| {
            let hash = self.hash(change.stamped);
            if let Some(stamp) = self.stamp(hash) {
                stamp.fetch_add(1, Ordering::SeqCst);
            }
            (hash, change.kept.map(|(_, value)| Known::new(change.stamped, value)))
        });
        let changes = changes.collect();
        self.advance();
        Commit { cache: self, changes, succeeded: false }
    }

    /// Lets all entries go out of use, as if everything had changed.
    pub(super) async fn expire_all(&self) {
        /// A fraction of a millisecond of work.
        const STAMPS_AT_ONCE: usize = 65_536;

        let epoch = self.advance();
        for stamps in self.stamps.chunks(STAMPS_AT_ONCE) {
            for stamp in stamps {
                update(stamp, |stamp| stamp.changed(epoch, stamp.commits()));
            }
            tokio::task::yield_now().await;
        }
    }

    /// How many bytes the entries take.
    #[cfg(test)]
    pub(super) fn weight(&self) -> u64 {
        self.entries.weight()
    }

    fn advance(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn hash(&self, name: &[u8]) -> u64 {
        self.hasher.hash_one(name)
    }

    /// The hashes of two names, which mostly are the same.
    fn hashes(&self, stamped: &[u8], name: &[u8]) -> (u64, u64) {
        let hash = self.hash(name);
        (if stamped == name { hash } else { self.hash(stamped) }, hash)
    }

    /// The stamp of a record, by its hash.
    fn stamp(&self, hash: u64) -> Option<&AtomicU64> {
        self.stamps.get(usize::try_from(hash % self.stamps.len() as u64).ok()?)
    }
}

/// Changes a stamp, and returns what it was changed to.
fn update(stamp: &AtomicU64, change: impl Fn(Stamp) -> Stamp) -> Stamp {
    let changed = |old| Some(change(Stamp(old)).0);
    let (Ok(old) | Err(old)) = stamp.fetch_update(Ordering::SeqCst, Ordering::SeqCst, changed);
    change(Stamp(old))
}

/// One record that a commit changes, or one collection.
pub(super) struct Change<'w> {
    /// What the record or the collection is called.
    pub(super) stamped: &'w [u8],
    /// The record's new value if it is worth an entry. Otherwise it only becomes unknown.
    pub(super) kept: Option<&'w Write>,
}

/// A commit under way. Dropped without [`Commit::succeeded`], it leaves what it would have changed unknown.
pub(super) struct Commit<'c> {
    cache: &'c RecordCache,
    /// The hashes of what changes, and what is worth an entry.
    changes: Vec<(u64, Option<Known>)>,
    succeeded: bool,
}

impl Commit<'_> {
    /// The commit has changed the store.
    pub(super) fn succeeded(mut self) {
        self.succeeded = true;
    }
}

impl Drop for Commit<'_> {
    fn drop(&mut self) {
        let epoch = self.cache.advance();
        for (hash, known) in mem::take(&mut self.changes) {
            let Some(stamp) = self.cache.stamp(hash) else { continue };
            let stamp = update(stamp, |stamp| stamp.changed(epoch, stamp.commits().saturating_sub(1)));
            if let Some(known) = known.filter(|_| self.succeeded && stamp.is_settled()) {
                self.cache.entries.insert(hash, Entry { known, stamp });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &[u8] = b"m#record";

    fn cache() -> RecordCache {
        RecordCache::new(1 << 20)
    }

    fn value(text: &'static str) -> Value {
        Some(Bytes::from(text))
    }

    fn begin_commit(cache: &RecordCache, value: Value, is_kept: bool) -> Commit<'_> {
        let write = (Bytes::from(RECORD), value);
        cache.begin_commit(std::iter::once(Change { stamped: RECORD, kept: is_kept.then_some(&write) }))
    }

    #[test]
    fn a_commit_is_seen_when_it_has_ended_and_not_before() {
        let cache = cache();
        cache.fill(RECORD, &value("old"), cache.epoch());
        assert_eq!(cache.get(RECORD), Some(value("old")));
        let commit = begin_commit(&cache, value("new"), true);
        assert_eq!(cache.get(RECORD), None);
        commit.succeeded();
        assert_eq!(cache.get(RECORD), Some(value("new")));
        begin_commit(&cache, None, true).succeeded();
        assert_eq!(cache.get(RECORD), Some(None));
    }

    #[test]
    fn what_is_written_unread_is_only_forgotten() {
        let cache = cache();
        cache.fill(RECORD, &value("old"), cache.epoch());
        begin_commit(&cache, value("new"), false).succeeded();
        assert_eq!(cache.get(RECORD), None);
    }

    #[test]
    fn a_failed_commit_leaves_nothing_known() {
        let cache = cache();
        cache.fill(RECORD, &value("old"), cache.epoch());
        drop(begin_commit(&cache, value("new"), true));
        assert_eq!(cache.get(RECORD), None);
    }

    #[test]
    fn commits_under_one_stamp_do_not_hide_each_other() {
        let cache = cache();
        let (first, second) = (begin_commit(&cache, value("1"), true), begin_commit(&cache, value("2"), true));
        first.succeeded();
        cache.fill(RECORD, &value("1"), cache.epoch());
        assert_eq!(cache.get(RECORD), None);
        second.succeeded();
        assert_eq!(cache.get(RECORD), Some(value("2")));
    }

    #[tokio::test]
    async fn what_a_reader_saw_before_a_change_is_not_taken() {
        let cache = cache();
        let before = cache.epoch();
        let commit = begin_commit(&cache, value("new"), false);
        let during = cache.epoch();
        cache.fill(RECORD, &value("old"), during);
        assert_eq!(cache.get(RECORD), None);
        drop(commit);
        for seen in [before, during] {
            cache.fill(RECORD, &value("old"), seen);
            assert_eq!(cache.get(RECORD), None);
        }
        cache.fill(RECORD, &value("new"), cache.epoch());
        assert_eq!(cache.get(RECORD), Some(value("new")));
        let seen = cache.epoch();
        cache.expire_all().await;
        assert_eq!(cache.get(RECORD), None);
        cache.fill(RECORD, &value("new"), seen);
        assert_eq!(cache.get(RECORD), None);
    }

    #[test]
    fn every_commit_moves_the_epoch_on_before_and_after() {
        let cache = cache();
        let before = cache.epoch();
        let commit = begin_commit(&cache, None, false);
        let during = cache.epoch();
        commit.succeeded();
        assert!(before < during && during < cache.epoch());
    }

    #[test]
    fn memory_is_bounded() {
        let cache = cache();
        for number in 0..20_000_u32 {
            cache.fill(&number.to_be_bytes(), &Some(Bytes::from(vec![0; 100])), cache.epoch());
        }
        let weight = cache.weight();
        assert!(weight <= 1 << 20 && weight > 1 << 19, "{weight}");
    }
}
