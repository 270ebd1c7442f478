//! The walks over all that is stored, a step at a time: keys that have expired unseen, elements without a key, and orders in
//! the sidecar that differ from the store.

use std::iter::Peekable;

use bytes::{BufMut, Bytes};
use respgate_backend_api::{Direction, KeyRange};

use super::{Duty, Intent, Key, Keyspace, Lease, Result, Scope, Unit, ahead::RANGES_MAX, lease::Next, place::Place};
use crate::encoding::{Metadata, Owner};

/// About how many keys or collections one step looks at, and at most deletes, where the store is in this process: little
/// more work than a client's command, which may have to wait for it on a machine with few processors.
const PAGE: usize = 16;

/// The same where steps mostly wait for the store.
const REMOTE_PAGE: usize = 256;

/// How long a lease is not renewed, nor the position noted, while steps follow each other. Writing that down would cost as
/// much as a step.
const KEEP_MS: i64 = 100;

/// How often one step looks for something. Of a store by slots most of the places are empty, and others full of what is not
/// looked for.
const LOOKS_MAX: usize = 64;

/// What one step of a sweep has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Keys or collections looked at.
    pub seen: usize,
    /// Those that were expired, or orphans, or different.
    pub found: usize,
    /// How often the store was asked where there is something, which is most of the cost.
    pub looks: usize,
    /// True if the step came to the end of the share.
    pub is_round_over: bool,
    /// False if another gateway is known to have taken the lease.
    pub is_ours: bool,
}

/// The number of a place's garbage among the ranges that the sweep of orphans looks into: it lies before all elements.
const GARBAGE: u8 = 0;

/// Of what one step looks into: a place, which of its ranges, and that range, as far as it has not been looked at.
type Stretch = (Place, u8, KeyRange);

/// Where a sweep goes on. Ordered as the sweep walks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Position {
    place: Place,
    /// Which of the place's ranges.
    range: u8,
    /// The first record that has not been looked at.
    from: Bytes,
}

impl Position {
    /// `u8` database, `u16` slot, `u8` range, record.
    fn encode(&self) -> Bytes {
        let mut bytes = Vec::with_capacity(4 + self.from.len());
        bytes.put_u8(self.place.db);
        bytes.put_u16(self.place.slot.unwrap_or_default());
        bytes.put_u8(self.range);
        bytes.put_slice(&self.from);
        bytes.into()
    }

    /// Reads what [`Self::encode`] wrote; `None` for the beginning.
    fn decode(bytes: &Bytes, is_partitioned: bool) -> Option<Self> {
        let (&[db, high, low, range], _) = bytes.split_first_chunk()?;
        let slot = is_partitioned.then_some(u16::from_be_bytes([high, low]));
        Some(Self { place: Place { db, slot }, range, from: bytes.slice(4..) })
    }
}

impl Keyspace {
    /// Lays down the work that `lease` is for: somebody may take it up after the pause. Nothing happens if it was lost.
    pub async fn rest(&self, lease: &mut Lease) -> Result<()> {
        self.keep_lease(lease, Next::Rest).await.map(drop)
    }

    /// Does one step of the sweep that `lease` is for.
    ///
    /// Each thing that is to be deleted is looked at again under its latch, in a unit that conflicts with whoever changes
    /// it elsewhere: a key that was given more time meanwhile survives.
    pub async fn sweep(&self, lease: &mut Lease) -> Result<Swept> {
        let mut unit = self.begin(Intent::Read).await?;
        let is_partitioned = self.capabilities.range_partitioned;
        let start = Position::decode(&lease.state.position, is_partitioned);
        let mut swept = Swept { is_round_over: true, ..Swept::default() };
        let mut next = Bytes::new();
        let mut ranges = self.ranges_from(lease, start).peekable();
        while next.is_empty()
            && let Some((place, range, KeyRange { start: from, .. })) = ranges.peek()
        {
            if swept.looks >= LOOKS_MAX {
                next = Position { place: *place, range: *range, from: from.clone() }.encode();
                break;
            }
            let batch = batch_of_database(&mut ranges);
            if let Some(position) = self.sweep_batch(&mut unit, lease.duty, &batch, &mut swept).await? {
                next = position.encode();
            }
        }
        drop(ranges);
        let now_ms = unit.now_ms();
        drop(unit);
        swept.is_round_over = next.is_empty();
        if lease.duty == Duty::Orders && lease.share == 0 && swept.is_round_over {
            swept.found += self.delete_orphaned_orders().await?;
        }
        lease.state.position = next;
        let is_due = swept.is_round_over || now_ms >= lease.kept_at_ms() + KEEP_MS;
        swept.is_ours = !is_due || self.keep_lease(lease, Next::Work).await?;
        Ok(swept)
    }

    /// About how many keys or collections one step looks at.
    pub(super) fn sweep_page(&self) -> usize {
        if self.capabilities.shared { REMOTE_PAGE } else { PAGE }
    }

    /// Sweeps the ranges of a batch that are not empty. Gives where to go on if that was enough for one step.
    async fn sweep_batch(
        &self,
        unit: &mut Unit<'_>,
        duty: Duty,
        mut batch: &[Stretch],
        swept: &mut Swept,
    ) -> Result<Option<Position>> {
        loop {
            let is_found;
            (batch, is_found) = unit.look_ahead(batch, |(.., range)| range).await?;
            swept.looks += 1;
            let Some(((place, number, range), rest)) = batch.split_first() else { return Ok(None) };
            if swept.looks >= LOOKS_MAX {
                return Ok(Some(Position { place: *place, range: *number, from: range.start.clone() }));
            }
            if !is_found {
                continue;
            }
            let from = match duty {
                Duty::Expired => self.sweep_expired(unit, range, swept).await?,
                Duty::Orphans if *number == GARBAGE => {
                    // Left by a gateway that is gone, perhaps.
                    self.litter.add(*place, 0);
                    None
                }
                Duty::Orphans => self.sweep_orphans(unit, range.clone(), swept).await?,
                Duty::Orders => self.sweep_orders(unit, range, swept).await?,
                Duty::Versions => None,
            };
            if let Some(from) = from {
                return Ok(Some(Position { place: *place, range: *number, from }));
            }
            batch = rest;
        }
    }

    /// The ranges of a share that lie at or after a position, those of one database after the other in the order of the
    /// store.
    fn ranges_from(&self, lease: &Lease, start: Option<Position>) -> impl Iterator<Item = Stretch> + use<'_> {
        let duty = lease.duty;
        let ranges = self.places_of_share(lease.share).into_iter().flat_map(move |place| {
            let mut ranges = match duty {
                Duty::Expired | Duty::Orders => vec![place.metadata(&self.codec)],
                Duty::Versions => Vec::new(),
                Duty::Orphans => [vec![place.garbage(&self.codec)], place.elements(&self.codec)].concat(),
            };
            ranges.sort_unstable_by(|one, other| one.start.cmp(&other.start));
            (0..).zip(ranges).map(move |(number, range)| (place, number, range))
        });
        ranges.filter_map(move |(place, number, range)| {
            let Some(start) = &start else { return Some((place, number, range)) };
            match (place, number).cmp(&(start.place, start.range)) {
                std::cmp::Ordering::Less => None,
                std::cmp::Ordering::Equal => Some((place, number, KeyRange { start: start.from.clone(), ..range })),
                std::cmp::Ordering::Greater => Some((place, number, range)),
            }
        })
    }

    /// Deletes the expired keys among the first ones of a range of metadata. Gives where to go on in it.
    async fn sweep_expired(&self, unit: &mut Unit<'_>, range: &KeyRange, swept: &mut Swept) -> Result<Option<Bytes>> {
        let limit = self.sweep_page() - swept.seen;
        let page = unit.scan(range, Direction::Forward, limit).await?;
        let mut expired = Vec::new();
        for (record, value) in &page {
            if Metadata::decode(value)?.is_expired(unit.now_ms()) {
                expired.extend(self.key_of(unit, record));
            }
        }
        swept.seen += page.len();
        swept.found += self.bury_expired(&expired).await?;
        Ok(page.last().filter(|_| page.len() == limit).map(|(last, _)| range.after(last).start))
    }

    /// The key that a metadata record belongs to; `None` if clients can no longer select its database.
    pub(super) fn key_of(&self, unit: &Unit<'_>, record: &Bytes) -> Option<Key> {
        let (physical, name) = self.codec.decode_metadata_key(record)?;
        let db = unit.databases.mapped().iter().position(|&mapped| mapped == physical)?;
        Some(Key { db: u8::try_from(db).ok()?, name: record.slice_ref(name) })
    }

    /// Deletes those of `keys` that have expired, in one unit. Returns how many that were.
    pub async fn bury_expired(&self, keys: &[Key]) -> Result<usize> {
        if keys.is_empty() {
            return Ok(0);
        }
        let names: Vec<&[u8]> = keys.iter().map(|key| &*key.name).collect();
        let _latches = self.latches.acquire(Scope::Keys(&names)).await;
        let mut unit = self.begin(Intent::Write).await?;
        unit.read_ahead(keys).await?;
        for key in keys {
            // A unit that writes buries what has expired when it meets it.
            unit.load(key).await?;
        }
        let buried = unit.expired;
        unit.commit().await?;
        Ok(buried)
    }

    /// Turns the orphans among the first collections of a range of elements into garbage. Gives where to go on in it.
    async fn sweep_orphans(
        &self,
        unit: &mut Unit<'_>,
        mut range: KeyRange,
        swept: &mut Swept,
    ) -> Result<Option<Bytes>> {
        while swept.seen < self.sweep_page() && swept.looks < LOOKS_MAX {
            swept.looks += 1;
            let first = unit.scan(&range, Direction::Forward, 1).await?;
            let Some((record, _)) = first.first() else { return Ok(None) };
            let Some(owner) = self.codec.decode_owner(record) else {
                // Not a record that this release can have written: it is left alone.
                range = range.after(record);
                continue;
            };
            swept.seen += 1;
            if unit.is_orphan(owner, self.grace_ms).await? {
                swept.found += usize::from(self.bury_orphan(owner, self.codec.is_member(record)).await?);
            }
            range.start = self.codec.range_of_owner(record).map_or_else(|| range.end.clone(), |owned| owned.end);
        }
        Ok(Some(range.start))
    }

    /// Makes the elements of `owner` garbage if they are still orphans. True if they were.
    async fn bury_orphan(&self, owner: Owner<'_>, is_member: bool) -> Result<bool> {
        let _latches = self.latches.acquire(Scope::Keys(&[owner.key])).await;
        let mut unit = self.begin(Intent::Write).await?;
        let is_orphan = unit.is_orphan(owner, self.grace_ms).await?;
        if is_orphan {
            unit.bury_orphan(owner, is_member);
        }
        unit.commit().await?;
        Ok(is_orphan)
    }
}

/// The next ranges that one look may go over: all of one database, in the order of the store.
fn batch_of_database(ranges: &mut Peekable<impl Iterator<Item = Stretch>>) -> Vec<Stretch> {
    let db = ranges.peek().map(|(place, ..)| place.db);
    let same = std::iter::from_fn(|| ranges.next_if(|(place, ..)| Some(place.db) == db));
    same.take(RANGES_MAX).collect()
}

#[cfg(test)]
mod tests;
