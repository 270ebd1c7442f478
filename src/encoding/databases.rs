use std::collections::BTreeSet;

use bytes::Bytes;

use super::DecodeError;

const RECORD: &str = "database map";

/// The map of a store that one process has for itself.
const FORMAT: u8 = 0;

/// The map of a store that several gateways share.
const FORMAT_SHARED: u8 = 1;

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
    /// What gateways that share the store have to tell each other.
    shared: Option<Shared>,
}

/// What is known of the databases of a store that several gateways share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shared {
    /// When somebody announced that the map is about to change; 0 if nobody has.
    announced_at_ms: u64,
    /// Those in `physical` that nothing has ever been written to.
    unused: BTreeSet<u8>,
}

impl DatabaseMap {
    /// `count` databases, each at its own index.
    pub fn identity(count: u8) -> Self {
        Self { physical: (0..count).collect(), retired: BTreeSet::new(), shared: None }
    }

    /// `count` databases, each at its own index, of a store that several gateways share and that has no records yet.
    pub fn shared(count: u8) -> Self {
        let unused = (0..count).collect();
        Self { shared: Some(Shared { announced_at_ms: 0, unused }), ..Self::identity(count) }
    }

    /// `u8` format, for a shared store `u64` time of the announcement, `u8` number of databases, their physical indexes,
    /// for a shared store one `u8` each that tells whether it is in use, then the retired ones in ascending order.
    pub fn encode(&self) -> Bytes {
        let count = self.physical.len() as u8;
        let mut record = Vec::with_capacity(2 * usize::from(u8::MAX));
        match &self.shared {
            None => record.extend([FORMAT, count]),
            Some(shared) => {
                record.push(FORMAT_SHARED);
                record.extend(shared.announced_at_ms.to_be_bytes());
                record.push(count);
            }
        }
        record.extend(&self.physical);
        if let Some(shared) = &self.shared {
            record.extend(self.physical.iter().map(|index| u8::from(!shared.unused.contains(index))));
        }
        record.extend(&self.retired);
        record.into()
    }

    /// Reads what [`Self::encode`] wrote.
    pub fn decode(record: &[u8]) -> Result<Self, DecodeError> {
        let too_short = DecodeError::TooShort { record: RECORD, bytes: record.len() };
        let (&format, rest) = record.split_first().ok_or(too_short)?;
        let (announced_at_ms, rest) = match format {
            FORMAT => (None, rest),
            FORMAT_SHARED => rest.split_first_chunk().map(|(time, rest)| (Some(time), rest)).ok_or(too_short)?,
            format => return Err(DecodeError::UnknownFormat { record: RECORD, format }),
        };
        let (&count, rest) = rest.split_first().ok_or(too_short)?;
        let (physical, rest) = rest.split_at_checked(usize::from(count)).ok_or(too_short)?;
        let used_bytes = if announced_at_ms.is_some() { physical.len() } else { 0 };
        let (used, retired) = rest.split_at_checked(used_bytes).ok_or(too_short)?;
        let indexes: BTreeSet<u8> = physical.iter().chain(retired).copied().collect();
        if indexes.len() < physical.len() + retired.len() {
            return Err(DecodeError::Impossible { record: RECORD, field: "index: it occurs twice" });
        }
        let unused = physical.iter().zip(used).filter(|(_, used)| **used == 0).map(|(index, _)| *index).collect();
        let shared = announced_at_ms.map(|time| Shared { announced_at_ms: u64::from_be_bytes(*time), unused });
        Ok(Self { physical: physical.to_vec(), retired: retired.iter().copied().collect(), shared })
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

    /// True if the records of a physical index are still to be deleted.
    pub fn is_retired(&self, physical: u8) -> bool {
        self.retired.contains(&physical)
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
            self.set_unused(index);
        }
        true
    }

    /// False if nothing has ever been written to a database since it was created or emptied. True if that is not known.
    pub fn is_in_use(&self, logical: u8) -> bool {
        self.shared.as_ref().zip(self.physical(logical)).is_none_or(|(shared, index)| !shared.unused.contains(&index))
    }

    /// Notes that something is written to a database. False if that was known.
    pub fn put_in_use(&mut self, logical: u8) -> bool {
        let index = self.physical(logical);
        self.shared.as_mut().zip(index).is_some_and(|(shared, index)| shared.unused.remove(&index))
    }

    /// When somebody announced that this map is about to change.
    pub fn announced_at_ms(&self) -> Option<u64> {
        self.shared.as_ref().map(|shared| shared.announced_at_ms).filter(|time| *time > 0)
    }

    /// Announces that this map is about to change, or with `None` that it is not any more.
    pub fn announce(&mut self, at_ms: Option<u64>) {
        if let Some(shared) = &mut self.shared {
            shared.announced_at_ms = at_ms.unwrap_or_default();
        }
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
        self.put_aside(old);
        self.set_unused(fresh);
        Some(old)
    }

    /// Makes a retired index free again, after its records have been deleted. False if it was not retired.
    pub fn reclaim(&mut self, physical: u8) -> bool {
        self.retired.remove(&physical)
    }

    fn set_unused(&mut self, index: u8) {
        if let Some(shared) = &mut self.shared {
            shared.unused.insert(index);
        }
    }

    fn put_aside(&mut self, index: u8) {
        if let Some(shared) = &mut self.shared {
            shared.unused.remove(&index);
        }
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
    fn golden_bytes_of_a_shared_store() {
        let mut map = DatabaseMap::shared(3);
        assert_eq!(map.encode(), &b"\x01\0\0\0\0\0\0\0\0\x03\x00\x01\x02\0\0\0"[..]);
        assert!(map.put_in_use(0) && !map.put_in_use(0) && map.put_in_use(2));
        assert!(map.swap(0, 1));
        assert_eq!([0, 1, 2, 9].map(|database| map.is_in_use(database)), [false, true, true, true]);
        assert_eq!(map.flush(2), Some(2));
        assert!(!map.is_in_use(2));
        map.announce(Some(0x18b_cfe5_6800));
        let record = b"\x01\x00\x00\x01\x8b\xcf\xe5\x68\x00\x03\x01\x00\xff\x00\x01\x00\x02";
        assert_eq!(map.encode(), &record[..]);
        assert_eq!(DatabaseMap::decode(record), Ok(map));
    }

    #[test]
    fn what_no_release_writes_is_refused() {
        let too_short = |bytes| Err(DecodeError::TooShort { record: "database map", bytes });
        assert_eq!(DatabaseMap::decode(b""), too_short(0));
        assert_eq!(DatabaseMap::decode(b"\x00\x02\x00"), too_short(3));
        let unknown_format = DecodeError::UnknownFormat { record: "database map", format: 2 };
        assert_eq!(DatabaseMap::decode(b"\x02\x00"), Err(unknown_format));
        assert_eq!(DatabaseMap::decode(b"\x01\x00"), too_short(2));
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
        fn no_two_databases_ever_share_an_index(changes in changes(), is_shared: bool) {
            let mut map = if is_shared { DatabaseMap::shared(4) } else { DatabaseMap::identity(4) };
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
