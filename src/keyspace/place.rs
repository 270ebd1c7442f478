use std::{cmp::Ordering, ops::Range};

use respgate_backend_api::KeyRange;

use super::Keyspace;
use crate::encoding::{KeyCodec, SLOTS, slot_rank, slots_in_order};

/// Into how many shares the slots are cut on stores that several gateways use.
const SHARES: u8 = 16;

/// Where records of keys lie side by side: a physical database, and on range-partitioned stores one slot of it.
/// Ordered by database, and then as in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) db: u8,
    pub(super) slot: Option<u16>,
}

impl Place {
    /// The metadata of the place's keys.
    pub(super) fn metadata(self, codec: &KeyCodec) -> KeyRange {
        match self.slot {
            Some(slot) => codec.metadata_range_of_slot(self.db, slot),
            None => codec.metadata_range(self.db),
        }
    }

    /// The elements, scores and members of the place's keys.
    pub(super) fn elements(self, codec: &KeyCodec) -> Vec<KeyRange> {
        match self.slot {
            Some(slot) => codec.element_ranges_of_slot(self.db, slot),
            None => codec.element_ranges(self.db),
        }
    }

    /// What dead keys have left behind in the place.
    pub(super) fn garbage(self, codec: &KeyCodec) -> KeyRange {
        match self.slot {
            Some(slot) => codec.garbage_range_of_slot(self.db, slot),
            None => codec.garbage_range(self.db),
        }
    }

    /// Every record of the place.
    pub(super) fn everything(self, codec: &KeyCodec) -> Vec<KeyRange> {
        match self.slot {
            Some(slot) => codec.database_ranges_of_slot(self.db, slot),
            None => codec.database_ranges(self.db),
        }
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.db, self.slot.map(slot_rank)).cmp(&(other.db, other.slot.map(slot_rank)))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Keyspace {
    /// Into how many shares work on all keys is cut, so that gateways can divide it among themselves.
    pub fn shares(&self) -> u8 {
        if self.capabilities.range_partitioned { SHARES } else { 1 }
    }

    /// The places of a share in all databases that clients can select, in ascending order.
    pub(super) fn places_of_share(&self, share: u8) -> Vec<Place> {
        let mut databases = self.databases.current().mapped().to_vec();
        databases.sort_unstable();
        databases.into_iter().flat_map(|db| self.places(db, ranks_of_share(share))).collect()
    }

    /// All places of a physical database.
    pub(super) fn places_of_database(&self, db: u8) -> impl Iterator<Item = Place> + use<> {
        self.places(db, 0..SLOTS)
    }

    fn places(&self, db: u8, ranks: Range<u16>) -> impl Iterator<Item = Place> + use<> {
        let is_partitioned = self.capabilities.range_partitioned;
        let ranks = if is_partitioned { ranks } else { 0..1 };
        let slots = slots_in_order().get(usize::from(ranks.start)..usize::from(ranks.end)).unwrap_or_default();
        slots.iter().map(move |&slot| Place { db, slot: is_partitioned.then_some(slot) })
    }
}

/// Neighbouring slots, in the order of the store: a look for the next record then stays within few regions.
fn ranks_of_share(share: u8) -> Range<u16> {
    let slots = SLOTS / u16::from(SHARES);
    let first = u16::from(share) * slots;
    first..first + slots
}
