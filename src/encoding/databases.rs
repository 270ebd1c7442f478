use std::collections::BTreeSet;

use bytes::Bytes;

use super::DecodeError;

const RECORD: &str = "database map";
const FORMAT: u8 = 0;

/// Where the records of each database lie.
///
/// The index that SELECT takes is logical; the database byte in records is physical. So SWAPDB swaps two entries and
/// FLUSHDB points a database at a physical index that nothing uses, both in one small write, however much the databases
/// hold. The index that FLUSHDB left behind is retired until its records have been deleted.
///
/// While the store has no such record, every database lies at its own index: [`DatabaseMap::identity`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseMap {
    /// By logical index; no two are equal.
    physical: Vec<u8>,
    /// Physical indexes whose records are still to be deleted; none is in `physical`.
    retired: BTreeSet<u8>,
}

impl DatabaseMap {
    /// `count` databases, each at its own index.
    pub fn identity(count: u8) -> Self {
        Self { physical: (0..count).collect(), retired: BTreeSet::new() }
    }

    /// `u8` format (0), `u8` number of databases, their physical indexes, then the retired ones in ascending order.
    pub fn encode(&self) -> Bytes {
        let count = self.physical.len() as u8;
        [FORMAT, count].into_iter().chain(self.physical.iter().copied()).chain(self.retired.iter().copied()).collect()
    }

    /// Reads what [`Self::encode`] wrote.
    pub fn decode(record: &[u8]) -> Result<Self, DecodeError> {
        let too_short = DecodeError::TooShort { record: RECORD, bytes: record.len() };
        let (&[format, count], indexes) = record.split_first_chunk().ok_or(too_short)?;
        if format != FORMAT {
            return Err(DecodeError::UnknownFormat { record: RECORD, format });
        }
        let (physical, retired) = indexes.split_at_checked(usize::from(count)).ok_or(too_short)?;
        let used: BTreeSet<u8> = indexes.iter().copied().collect();
        if used.len() < indexes.len() {
            return Err(DecodeError::Impossible { record: RECORD, field: "index: it occurs twice" });
        }
        Ok(Self { physical: physical.to_vec(), retired: retired.iter().copied().collect() })
    }

    /// How many databases there are.
    pub fn count(&self) -> usize {
        self.physical.len()
    }

    /// The database byte in the records of a database; `None` if there is no such database.
    pub fn physical(&self, logical: u8) -> Option<u8> {
        self.physical.get(usize::from(logical)).copied()
    }

    /// Every physical index that a database lies at, in the order of the databases.
    pub fn mapped(&self) -> &[u8] {
        &self.physical
    }

    /// The physical indexes whose records are to be deleted, and then to be [reclaimed](Self::reclaim).
    pub fn retired(&self) -> impl Iterator<Item = u8> {
        self.retired.iter().copied()
    }

    /// Adds databases until there are `count`: each at its own index if that is free, otherwise at another. False if
    /// there are not enough free indexes; those that could be added then are.
    pub fn grow(&mut self, count: u8) -> bool {
        while let Ok(logical) = u8::try_from(self.physical.len())
            && logical < count
        {
            let own = Some(logical).filter(|&index| self.is_free(index));
            let Some(index) = own.or_else(|| self.free()) else { return false };
            self.physical.push(index);
        }
        true
    }

    /// Exchanges two databases. False, and nothing changes, if one of them does not exist.
    pub fn swap(&mut self, a: u8, b: u8) -> bool {
        let (a, b) = (usize::from(a), usize::from(b));
        let exist = a.max(b) < self.physical.len();
        if exist {
            self.physical.swap(a, b);
        }
        exist
    }

    /// Empties a database: it moves to a free physical index, and the one that it leaves is retired and returned.
    /// `None`, and nothing changes, if the database does not exist or no index is free.
    pub fn flush(&mut self, logical: u8) -> Option<u8> {
        let fresh = self.free()?;
        let entry = self.physical.get_mut(usize::from(logical))?;
        let old = std::mem::replace(entry, fresh);
        self.retired.insert(old);
        Some(old)
    }

    /// Makes a retired index free again, after its records have been deleted. False if it was not retired.
    pub fn reclaim(&mut self, physical: u8) -> bool {
        self.retired.remove(&physical)
    }

    /// The highest free index: the lowest are where databases lie that a larger `databases` setting would add.
    fn free(&self) -> Option<u8> {
        (0..=u8::MAX).rev().find(|&index| self.is_free(index))
    }

    fn is_free(&self, index: u8) -> bool {
        !self.physical.contains(&index) && !self.retired.contains(&index)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_bytes() {
        let mut map = DatabaseMap::identity(3);
        assert_eq!(map.encode(), &b"\x00\x03\x00\x01\x02"[..]);
        assert!(map.swap(0, 2));
        assert_eq!(map.encode(), &b"\x00\x03\x02\x01\x00"[..]);
        assert_eq!(map.flush(1), Some(1));
        assert_eq!(map.flush(0), Some(2));
        assert_eq!(map.encode(), &b"\x00\x03\xfe\xff\x00\x01\x02"[..]);
        assert_eq!(DatabaseMap::decode(b"\x00\x03\xfe\xff\x00\x01\x02"), Ok(map));
    }

    #[test]
    fn what_no_release_writes_is_refused() {
        let too_short = |bytes| Err(DecodeError::TooShort { record: "database map", bytes });
        assert_eq!(DatabaseMap::decode(b""), too_short(0));
        assert_eq!(DatabaseMap::decode(b"\x00\x02\x00"), too_short(3));
        let unknown_format = DecodeError::UnknownFormat { record: "database map", format: 1 };
        assert_eq!(DatabaseMap::decode(b"\x01\x00"), Err(unknown_format));
        let twice = Err(DecodeError::Impossible { record: "database map", field: "index: it occurs twice" });
        assert_eq!(DatabaseMap::decode(b"\x00\x02\x05\x05"), twice);
        assert_eq!(DatabaseMap::decode(b"\x00\x01\x05\x05"), twice);
    }

    #[test]
    fn databases_that_do_not_exist_are_left_alone() {
        let mut map = DatabaseMap::identity(2);
        assert_eq!(map.physical(2), None);
        assert!(!map.swap(0, 2));
        assert_eq!(map.flush(2), None);
        assert!(!map.reclaim(0));
        assert_eq!(map, DatabaseMap::identity(2));
    }

    #[test]
    fn flushing_ends_when_no_index_is_free_and_goes_on_when_one_is_reclaimed() {
        let mut map = DatabaseMap::identity(16);
        for _ in 16..=u8::MAX {
            assert!(map.flush(7).is_some());
        }
        let full = map.clone();
        assert_eq!(map.flush(7), None);
        assert_eq!(map, full);
        assert!(map.reclaim(7));
        assert!(map.flush(7).is_some());
        assert_eq!(map.physical(7), Some(7));
    }

    #[test]
    fn databases_are_added_at_their_own_index_where_it_is_free() {
        let mut map = DatabaseMap::identity(2);
        assert!(map.grow(255));
        assert_eq!(map, DatabaseMap::identity(255));
        assert_eq!(map.flush(0), Some(0));
        assert!(map.grow(1), "never shrinks");
        assert_eq!(map.count(), 255);

        let mut map = DatabaseMap::decode(b"\x00\x01\x01\x02").unwrap();
        assert!(map.grow(4));
        assert_eq!(map.mapped(), [1, 255, 254, 3]);
        assert_eq!(map.retired().collect::<Vec<_>>(), [2]);

        for _ in 0..250 {
            map.flush(0);
        }
        assert!(!map.grow(9));
        assert!(map.count() < 9);
    }

    #[derive(Clone, Debug)]
    enum Change {
        Swap(u8, u8),
        Flush(u8),
        Reclaim(u8),
        Grow(u8),
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let change = prop_oneof![
            (0..20u8, 0..20u8).prop_map(|(a, b)| Change::Swap(a, b)),
            (0..20u8).prop_map(Change::Flush),
            any::<u8>().prop_map(Change::Reclaim),
            (0..20u8).prop_map(Change::Grow),
        ];
        prop::collection::vec(change, 0..300)
    }

    proptest! {
        #[test]
        fn no_two_databases_ever_share_an_index(changes in changes()) {
            let mut map = DatabaseMap::identity(4);
            for change in changes {
                let before = map.clone();
                match change {
                    Change::Swap(a, b) => drop(map.swap(a, b)),
                    Change::Grow(count) => drop(map.grow(count)),
                    Change::Reclaim(index) => prop_assert_eq!(map.reclaim(index), before.retired.contains(&index)),
                    Change::Flush(logical) => {
                        let old = map.flush(logical);
                        prop_assert!(old.is_none() || old == before.physical(logical));
                    }
                }
                // Decoding refuses an index that occurs twice.
                prop_assert_eq!(DatabaseMap::decode(&map.encode()), Ok(map.clone()));
            }
        }
    }
}
