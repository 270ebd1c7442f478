use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange, Write};

/// An ordered map that can be read as it was after any commit that a live reader still sees.
///
/// Each key has a history of versions. A version is dropped as soon as no reader can see it, so without readers the
/// map holds exactly one version per key. Commits are numbered from 1; a reader is the number of the last commit that
/// it sees.
#[derive(Debug, Default)]
pub(crate) struct VersionedMap {
    /// Never an empty history, and never one that begins with a deletion which every reader sees.
    histories: BTreeMap<Bytes, Vec<Version>>,
    last_commit: u64,
    /// How many live readers there are of each commit.
    readers: BTreeMap<u64, usize>,
    /// Keys of which a version became old or a deletion, by the commit that did it: what pruning has to visit.
    superseded: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

#[derive(Debug)]
struct Version {
    commit: u64,
    /// `None` is a deletion.
    value: Option<Bytes>,
}

impl Version {
    fn bytes(&self) -> usize {
        self.value.as_ref().map_or(0, Bytes::len)
    }
}

impl VersionedMap {
    /// Registers a reader of the map as it is now. Every reader must be given back to [`Self::release`].
    pub(crate) fn acquire(&mut self) -> u64 {
        *self.readers.entry(self.last_commit).or_default() += 1;
        self.last_commit
    }

    /// Forgets one reader, and with it the versions that only it could see.
    pub(crate) fn release(&mut self, reader: u64) {
        let Some(count) = self.readers.get_mut(&reader) else { return };
        *count -= 1;
        if *count == 0 {
            self.readers.remove(&reader);
            self.prune();
        }
    }

    /// The value of `key` that `reader` sees.
    pub(crate) fn get(&self, reader: u64, key: &[u8]) -> Option<Bytes> {
        self.histories.get(key).and_then(|history| visible(history, reader)).cloned()
    }

    /// At most `limit` pairs of `range` that `reader` sees, in the given direction.
    pub(crate) fn scan(
        &self,
        reader: u64,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Vec<(Bytes, Bytes)> {
        if range.is_empty() {
            return Vec::new();
        }
        let histories = self.histories.range(range.start.clone()..range.end.clone());
        let pair = |(key, history): (&Bytes, &Vec<Version>)| Some((key.clone(), visible(history, reader)?.clone()));
        match direction {
            Direction::Forward => histories.filter_map(pair).take(limit).collect(),
            Direction::Backward => histories.rev().filter_map(pair).take(limit).collect(),
        }
    }

    /// True if `key` was written or deleted after the commit that `reader` sees last.
    pub(crate) fn changed_since(&self, reader: u64, key: &[u8]) -> bool {
        self.histories.get(key).and_then(|history| history.last()).is_some_and(|version| version.commit > reader)
    }

    /// Applies `writes` as one commit.
    pub(crate) fn apply(&mut self, writes: impl IntoIterator<Item = Write>) {
        self.last_commit += 1;
        for (key, value) in writes {
            self.write(key, value);
        }
        self.prune();
    }

    /// Deletes, as one commit, every key in `range`.
    pub(crate) fn delete_range(&mut self, range: &KeyRange) {
        let doomed = self.scan(self.last_commit, range, Direction::Forward, usize::MAX);
        self.apply(doomed.into_iter().map(|(key, _)| (key, None)));
    }

    /// The number of keys, counting those that only a reader still sees.
    pub(crate) fn keys(&self) -> usize {
        self.histories.len()
    }

    /// The number of live readers.
    pub(crate) fn readers(&self) -> usize {
        self.readers.values().sum()
    }

    /// Bytes of all keys and of all versions of their values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn write(&mut self, key: Bytes, value: Option<Bytes>) {
        let known = self.histories.get_mut(&*key);
        if known.is_none() && value.is_none() {
            return;
        }
        if known.is_some() {
            self.superseded.push_back((self.last_commit, key.clone()));
        }
        // A copy, because a small value may be a slice of a large buffer that it would keep alive.
        let value = value.map(|value| Bytes::copy_from_slice(&value));
        let version = Version { commit: self.last_commit, value };
        self.bytes += version.bytes();
        if let Some(history) = known {
            history.push(version);
        } else {
            self.bytes += key.len();
            self.histories.insert(Bytes::copy_from_slice(&key), vec![version]);
        }
    }

    /// Drops the versions that no reader can see any more.
    fn prune(&mut self) {
        let horizon = self.readers.first_key_value().map_or(self.last_commit, |(oldest, _)| *oldest);
        while self.superseded.front().is_some_and(|(commit, _)| *commit <= horizon) {
            if let Some((_, key)) = self.superseded.pop_front() {
                self.prune_key(&key, horizon);
            }
        }
    }

    fn prune_key(&mut self, key: &Bytes, horizon: u64) {
        let Some(history) = self.histories.get_mut(key) else { return };
        // Readers at the horizon see the last of these versions; if that is a deletion, they need none of them.
        let seen = history.partition_point(|version| version.commit <= horizon);
        let newest_seen = history.iter().take(seen).next_back();
        let unneeded = match newest_seen {
            Some(version) if version.value.is_some() => seen - 1,
            _ => seen,
        };
        self.bytes -= history.drain(..unneeded).map(|version| version.bytes()).sum::<usize>();
        if history.is_empty() {
            self.histories.remove(key);
            self.bytes -= key.len();
        }
    }
}

fn visible(history: &[Version], reader: u64) -> Option<&Bytes> {
    history.iter().rev().find(|version| version.commit <= reader)?.value.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(map: &mut VersionedMap, key: &'static str, value: &'static str) {
        map.apply([(key.into(), Some(value.into()))]);
    }

    fn delete(map: &mut VersionedMap, key: &'static str) {
        map.apply([(key.into(), None)]);
    }

    #[test]
    fn a_reader_sees_what_was_there_when_it_was_acquired() {
        let mut map = VersionedMap::default();
        put(&mut map, "k", "1");
        let first = map.acquire();
        put(&mut map, "k", "2");
        let second = map.acquire();
        delete(&mut map, "k");
        let third = map.acquire();
        assert_eq!(map.get(first, b"k").unwrap(), "1");
        assert_eq!(map.get(second, b"k").unwrap(), "2");
        assert_eq!(map.get(third, b"k"), None);
    }

    #[test]
    fn old_versions_go_with_the_last_reader_that_sees_them() {
        let mut map = VersionedMap::default();
        put(&mut map, "k", "1");
        let first = map.acquire();
        put(&mut map, "k", "22");
        let second = map.acquire();
        put(&mut map, "k", "333");
        assert_eq!(map.bytes(), 1 + 1 + 2 + 3);
        map.release(second);
        map.release(first);
        assert_eq!(map.bytes(), 1 + 3);
        assert_eq!(map.readers(), 0);
    }

    #[test]
    fn a_deleted_key_leaves_nothing() {
        let mut map = VersionedMap::default();
        put(&mut map, "k", "1");
        let reader = map.acquire();
        delete(&mut map, "k");
        put(&mut map, "k", "2");
        delete(&mut map, "k");
        assert_eq!(map.keys(), 1);
        map.release(reader);
        assert_eq!((map.keys(), map.bytes(), map.superseded.len()), (0, 0, 0));
    }

    #[test]
    fn a_deletion_is_a_change_while_a_reader_sees_the_key() {
        let mut map = VersionedMap::default();
        put(&mut map, "k", "1");
        let reader = map.acquire();
        delete(&mut map, "k");
        assert!(map.changed_since(reader, b"k"));
        assert!(!map.changed_since(map.last_commit, b"k"));
    }
}
