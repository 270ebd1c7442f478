use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange};

use super::{Result, Unit};
use crate::encoding::{Metadata, SLOTS, rank_of_record, slot, slot_rank, slots_in_order};

/// How many slots one look goes over, on a store that spreads keys by slot: at first, and at most. Most slots of a small
/// database are empty, and those of a large one are on many servers.
const SPAN_FIRST: u16 = 16;
const SPAN_MAX: u16 = 512;

/// How many times as many slots the next look goes over if one did not find enough.
const SPAN_GROWTH: u16 = 4;

/// The most looks that one page takes: enough to pass all slots of an empty database, unless others fill them.
const LOOKS_MAX: usize = 64;

/// From how many neighbours [`Unit::random_name`] chooses.
const NEIGHBOURS: usize = 32;

const AT_SLOT: u8 = 0;
const AFTER_NAME: u8 = 1;

/// Some of the living keys of a database, in the order of the store.
pub struct NamePage {
    /// The names and the metadata. There may be none although more pages follow.
    pub keys: Vec<(Bytes, Metadata)>,
    /// Where the next page begins, for [`Unit::names`]; `None` after the last page.
    pub next: Option<Bytes>,
}

impl Unit<'_> {
    /// A page of the keys of `db`: looks at `limit` keys at most, from `position` on or from the first one.
    ///
    /// A position is a few bytes about the last key of a page, and needs no key or page to be there still. On a store
    /// in one order it is that key's name. On one that spreads keys by slot it is `1` and the name, or `0` and two
    /// bytes of the slot that comes next. A key that is there from the first page to the last is on one of them.
    pub async fn names(&mut self, db: u8, position: Option<&[u8]>, limit: usize) -> Result<NamePage> {
        let (records, next) = self.metadata_page(db, position, limit).await?;
        let mut keys = Vec::with_capacity(records.len());
        for (name, value) in records {
            let metadata = Metadata::decode(&value)?;
            if !metadata.is_expired(self.now_ms()) {
                keys.push((name, metadata));
            }
        }
        Ok(NamePage { keys, next })
    }

    /// The names and metadata records on the page that [`Unit::names`] gives, those of expired keys too; and where the
    /// next page begins.
    pub async fn metadata_page(
        &mut self,
        db: u8,
        position: Option<&[u8]>,
        limit: usize,
    ) -> Result<(Vec<(Bytes, Bytes)>, Option<Bytes>)> {
        self.ready_to_read().await?;
        if self.keyspace().capabilities().range_partitioned {
            return self.metadata_page_by_slot(db, position, limit).await;
        }
        let physical = self.physical(db)?;
        let mut range = self.codec().metadata_range(physical);
        if let Some(name) = position {
            range = range.after(&self.codec().metadata(physical, name));
        }
        self.metadata_in(&range, Direction::Forward, limit).await
    }

    /// Reads ahead over as many slots as the last look has shown to be worth it, past whatever else lies there.
    async fn metadata_page_by_slot(
        &mut self,
        db: u8,
        position: Option<&[u8]>,
        limit: usize,
    ) -> Result<(Vec<(Bytes, Bytes)>, Option<Bytes>)> {
        let physical = self.physical(db)?;
        let (first, after) = slot_position(position);
        let (mut rank, mut after) = (slot_rank(first), after.map(Bytes::copy_from_slice));
        let (mut records, mut span) = (Vec::new(), SPAN_FIRST);
        for _ in 0..LOOKS_MAX {
            let last = rank.saturating_add(span - 1).min(SLOTS - 1);
            let (Some(mut ahead), Some(end)) = (self.metadata_at(physical, rank), self.metadata_at(physical, last))
            else {
                return Ok((records, None));
            };
            ahead.end = end.end;
            if let Some(name) = &after {
                ahead = ahead.after(&self.codec().metadata(physical, name));
            }
            let wanted = limit - records.len();
            let found = self.scan(&ahead, Direction::Forward, wanted).await?;
            let reached = found.last().filter(|_| found.len() >= wanted).map(|(record, _)| record.clone());
            let named = found.into_iter().filter_map(|(record, value)| Some((self.name_in(physical, &record)?, value)));
            records.extend(named);
            (rank, after, span) = match reached {
                None => (last + 1, None, (span * SPAN_GROWTH).min(SPAN_MAX)),
                Some(record) => {
                    let reached = rank_of_record(&record);
                    let is_over = self.metadata_at(physical, reached).is_some_and(|range| range.end <= record);
                    let passed = reached.saturating_sub(rank).max(1);
                    (reached + u16::from(is_over), self.name_in(physical, &record), passed)
                }
            };
            if records.len() >= limit {
                break;
            }
        }
        Ok((records, position_at(rank, after.as_ref())))
    }

    /// The metadata of the slot with so many before it; `None` after the last one.
    fn metadata_at(&self, physical: u8, rank: u16) -> Option<KeyRange> {
        let slot = slots_in_order().get(usize::from(rank))?;
        Some(self.codec().metadata_range_of_slot(physical, *slot))
    }

    /// The user key of a metadata record of this database; `None` for any other record.
    fn name_in(&self, physical: u8, record: &Bytes) -> Option<Bytes> {
        let (_, name) = self.codec().decode_metadata_key(record).filter(|&(db, _)| db == physical)?;
        Some(record.slice_ref(name))
    }

    /// The names and values of the first `limit` of a range of metadata, and the last name if there may be more.
    async fn metadata_in(
        &mut self,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<(Vec<(Bytes, Bytes)>, Option<Bytes>)> {
        let records = self.scan(range, direction, limit).await?;
        let is_full = records.len() >= limit;
        let named = records.into_iter().filter_map(|(record, value)| Some((self.name_of(&record)?, value)));
        let named: Vec<_> = named.collect();
        let last = named.last().filter(|_| is_full).map(|(name, _)| name.clone());
        Ok((named, last))
    }

    /// The living keys among the first `limit` of a range of metadata.
    async fn living(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<(Bytes, Metadata)>> {
        let (records, _) = self.metadata_in(range, direction, limit).await?;
        let decoded = records.into_iter().map(|(name, value)| Ok((name, Metadata::decode(&value)?)));
        let mut keys = decoded.collect::<Result<Vec<_>>>()?;
        keys.retain(|(_, metadata)| !metadata.is_expired(self.now_ms()));
        Ok(keys)
    }

    /// A key of `db`, by chance; `None` if there is none.
    ///
    /// Nobody knows the rank of a key in a store, so the chance is not the same for all: a place between the least and
    /// the greatest name is drawn, then one of its neighbours on one side. Names that stand apart are drawn more often
    /// than those that stand close together. O(1), except where nearly all keys have expired and await collection.
    pub async fn random_name(&mut self, db: u8) -> Result<Option<Bytes>> {
        self.ready_to_read().await?;
        let drawn = if self.keyspace().capabilities().range_partitioned {
            let rank = self.keyspace().random().below(u64::from(SLOTS)) as u16;
            self.choose_from(db, position_at(rank, None)).await?
        } else {
            let neighbours = self.neighbours_of_random_place(db).await?;
            self.choose(neighbours)
        };
        match drawn {
            Some(name) => Ok(Some(name)),
            None => self.choose_from(db, None).await,
        }
    }

    /// One of the keys on the first page from `position` on that has any.
    async fn choose_from(&mut self, db: u8, mut position: Option<Bytes>) -> Result<Option<Bytes>> {
        loop {
            let page = self.names(db, position.as_deref(), NEIGHBOURS).await?;
            let chosen = self.choose(page.keys);
            if chosen.is_some() || page.next.is_none() {
                return Ok(chosen);
            }
            position = page.next;
            tokio::task::yield_now().await;
        }
    }

    fn choose(&self, keys: Vec<(Bytes, Metadata)>) -> Option<Bytes> {
        let chosen = self.keyspace().random().below(keys.len() as u64);
        keys.into_iter().nth(usize::try_from(chosen).ok()?).map(|(name, _)| name)
    }

    async fn neighbours_of_random_place(&mut self, db: u8) -> Result<Vec<(Bytes, Metadata)>> {
        let physical = self.physical(db)?;
        let mut range = self.codec().metadata_range(physical);
        let first = self.scan(&range, Direction::Forward, 1).await?;
        let last = self.scan(&range, Direction::Backward, 1).await?;
        let (Some((first, _)), Some((last, _))) = (first.first(), last.first()) else { return Ok(Vec::new()) };
        let random = self.keyspace().random();
        let place = place_between(first, last, |bound| random.below(bound));
        let direction = if random.below(2) == 0 { Direction::Forward } else { Direction::Backward };
        match direction {
            Direction::Forward => range.start = place,
            Direction::Backward => range.end = place,
        }
        self.living(&range, direction, NEIGHBOURS).await
    }
}

/// The position after the key `name`.
pub(super) fn position_after(name: &Bytes, is_partitioned: bool) -> Bytes {
    if is_partitioned { [&[AFTER_NAME], &**name].concat().into() } else { name.clone() }
}

/// The position after the key `after`, or else where the slot with so many before it begins; `None` if all is over.
fn position_at(rank: u16, after: Option<&Bytes>) -> Option<Bytes> {
    let at_slot = |slot: &u16| [&[AT_SLOT], &slot.to_be_bytes()[..]].concat().into();
    after.map(|name| position_after(name, true)).or_else(|| slots_in_order().get(usize::from(rank)).map(at_slot))
}

/// The slot that a position is in, and the name after which it goes on there.
fn slot_position(position: Option<&[u8]>) -> (u16, Option<&[u8]>) {
    match position {
        Some([AFTER_NAME, name @ ..]) => (slot(name), Some(name)),
        Some(&[AT_SLOT, high, low]) => (u16::from_be_bytes([high, low]), None),
        _ => (slots_in_order().first().copied().unwrap_or_default(), None),
    }
}

/// A random string of bytes from `first` up to and about `last`: what both begin with, then eight bytes by chance.
fn place_between(first: &[u8], last: &[u8], below: impl FnOnce(u64) -> u64) -> Bytes {
    let common = first.iter().zip(last).take_while(|(first, last)| first == last).count();
    let number = |name: &[u8]| {
        let tail = name.iter().skip(common).chain(std::iter::repeat(&0)).take(8);
        tail.fold(0, |number, &byte| number << 8 | u64::from(byte))
    };
    let (low, high) = (number(first), number(last));
    let drawn = low.saturating_add(below(high.saturating_sub(low).saturating_add(1)));
    first.iter().take(common).copied().chain(drawn.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, sync::Arc};

    use respgate_backend_api::Capabilities;
    use respgate_backend_memory::MemoryBackend;

    use super::*;
    use crate::{
        keyspace::{Clock, Encodings, Intent, Key, Keyspace, ManualClock, fixture::keyspace_over},
        types::{set, string, zset},
    };

    /// A keyspace over a store in one order, and one over a store that spreads keys by slot.
    async fn keyspaces() -> [(Keyspace, Arc<ManualClock>); 2] {
        let by_slot = Capabilities { range_partitioned: true, ..MemoryBackend::CAPABILITIES };
        [
            keyspace_over(Arc::new(MemoryBackend::new()), Encodings::default()).await,
            keyspace_over(Arc::new(MemoryBackend::new().with_capabilities(by_slot)), Encodings::default()).await,
        ]
    }

    async fn put(keyspace: &Keyspace, name: &str, expires_at_ms: Option<i64>) {
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        let key = Key { db: 0, name: Bytes::copy_from_slice(name.as_bytes()) };
        string::set(&mut unit, &key, Bytes::new(), expires_at_ms).unwrap();
        unit.commit().await.unwrap();
    }

    async fn page(keyspace: &Keyspace, position: Option<&Bytes>, limit: usize) -> NamePage {
        let mut unit = keyspace.begin(Intent::Read).await.unwrap();
        unit.names(0, position.map(|position| &**position), limit).await.unwrap()
    }

    #[tokio::test]
    async fn pages_hold_every_key_that_was_there_all_the_time() {
        for (keyspace, clock) in keyspaces().await {
            let staying: BTreeSet<_> = (0..50).map(|i| Bytes::from(format!("stays {i}"))).collect();
            for name in &staying {
                put(&keyspace, std::str::from_utf8(name).unwrap(), None).await;
            }
            put(&keyspace, "", None).await;
            put(&keyspace, "expired", Some(clock.now_ms() as i64 + 5)).await;
            clock.advance_ms(6);
            let (mut seen, mut position, mut count) = (BTreeSet::new(), None, 0);
            loop {
                let page = page(&keyspace, position.as_ref(), 3).await;
                assert!(page.keys.len() <= 3);
                seen.extend(page.keys.into_iter().map(|(name, _)| name));
                position = page.next;
                if position.is_none() {
                    break;
                }
                put(&keyspace, &format!("comes {count}"), None).await;
                count += 1;
            }
            assert!(seen.is_superset(&staying) && seen.contains(&Bytes::new()));
            assert!(!seen.contains(&b"expired"[..]));
        }
    }

    /// Elements, and the keys of another database, lie in the same slots.
    #[tokio::test]
    async fn pages_hold_each_key_once_whatever_lies_between() {
        for (keyspace, _) in keyspaces().await {
            let mut expected = Vec::new();
            for number in 0..60 {
                let mut unit = keyspace.begin(Intent::Write).await.unwrap();
                let elements: Vec<Bytes> = (0..number).map(|element| format!("element {element}").into()).collect();
                let name = Bytes::from(format!("key {number}"));
                for db in 0..u8::from(number % 2 == 0) + 1 {
                    let key = Key { db, name: name.clone() };
                    let scored = elements.iter().map(|element| (element.clone(), 1.0)).collect();
                    match number % 3 {
                        0 => string::set(&mut unit, &key, Bytes::new(), None).unwrap(),
                        1 => drop(set::add(&mut unit, &key, &elements).await.unwrap()),
                        _ => drop(zset::replace(&mut unit, &key, scored).await.unwrap()),
                    }
                }
                unit.commit().await.unwrap();
                expected.push(name);
            }
            expected.sort_unstable();
            for limit in [1, 7, 1_000] {
                let (mut seen, mut position) = (Vec::new(), None);
                loop {
                    let page = page(&keyspace, position.as_ref(), limit).await;
                    seen.extend(page.keys.into_iter().map(|(name, _)| name));
                    position = page.next;
                    if position.is_none() {
                        break;
                    }
                }
                seen.sort_unstable();
                assert_eq!(seen, expected, "pages of {limit}");
            }
        }
    }

    #[tokio::test]
    async fn every_key_can_be_drawn_and_an_expired_one_cannot() {
        for (keyspace, clock) in keyspaces().await {
            let mut unit = keyspace.begin(Intent::Read).await.unwrap();
            assert_eq!(unit.random_name(0).await.unwrap(), None);
            for name in ["a", "b", "key:0001", "key:0002", "zzzzzzzzzz"] {
                put(&keyspace, name, None).await;
            }
            put(&keyspace, "key:0000", Some(clock.now_ms() as i64)).await;
            clock.advance_ms(1);
            let mut drawn = BTreeSet::new();
            for _ in 0..500 {
                let mut unit = keyspace.begin(Intent::Read).await.unwrap();
                drawn.extend(unit.random_name(0).await.unwrap());
            }
            assert_eq!(drawn.len(), 5, "{drawn:?}");
            assert!(!drawn.contains(&b"key:0000"[..]));
        }
    }

    #[test]
    fn a_random_place_lies_between_the_first_and_the_last_name() {
        assert_eq!(place_between(b"key:a", b"key:c", |_| 0), &b"key:a\0\0\0\0\0\0\0"[..]);
        assert_eq!(place_between(b"key:a", b"key:c", |bound| bound - 1), &b"key:c\0\0\0\0\0\0\0"[..]);
        assert_eq!(place_between(b"a", b"a", |bound| bound - 1), &b"a\0\0\0\0\0\0\0\0"[..]);
        assert_eq!(place_between(b"", b"\xff\xff\xff\xff\xff\xff\xff\xff", |bound| bound), &[0xff; 8][..]);
    }

    #[test]
    fn positions_by_slot_name_a_slot_or_the_last_key() {
        assert_eq!(slot_position(None), (slots_in_order()[0], None));
        assert_eq!(position_at(slot_rank(258), None).unwrap(), &[AT_SLOT, 1, 2][..]);
        assert_eq!(position_at(SLOTS, None), None);
        assert_eq!(slot_position(Some(&[AT_SLOT, 1, 2])), (258, None));
        assert_eq!(slot_position(Some(b"\x01foo")), (12182, Some(&b"foo"[..])));
    }
}
