//! Lists: an element for each position, from the head's up to but without the tail's, without gaps.
//!
//! Pushes and pops move an end; whatever changes the middle moves the shorter side.

mod edit;

use std::collections::BTreeSet;

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange};

use super::{Error, Result};
use crate::{
    encoding::{Body, LIST_START, Metadata, Type},
    keyspace::{Collection, Key, Unit},
};

pub use edit::{Place, insert, remove, trim};

/// Elements that one scan takes at most.
const PAGE: usize = 1_000;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where LPUSH pushes.
    Head,
    /// Where RPUSH pushes.
    Tail,
}

/// A list at hand.
struct List<'k> {
    key: Key,
    metadata: Metadata,
    elements: Collection<'k>,
    head: u64,
    tail: u64,
}

impl<'k> List<'k> {
    async fn find(unit: &mut Unit<'k>, key: &Key) -> Result<Option<Self>> {
        let Some(metadata) = unit.load_as(key, Type::List).await? else { return Ok(None) };
        let Body::List { head, tail, .. } = metadata.body else { return Ok(None) };
        let elements = unit.collection(key, &metadata)?;
        Ok(Some(Self { key: key.clone(), metadata, elements, head, tail }))
    }

    fn create(unit: &mut Unit<'k>, key: &Key) -> Result<Self> {
        let (head, tail) = (LIST_START, LIST_START);
        let body = Body::List { count: 0, head, tail };
        let metadata = Metadata { version: unit.new_version(), expires_at_ms: None, body, origin: None };
        let elements = unit.collection(key, &metadata)?;
        Ok(Self { key: key.clone(), metadata, elements, head, tail })
    }

    fn len(&self) -> u64 {
        self.tail.saturating_sub(self.head)
    }

    fn record(&self, position: u64) -> Bytes {
        self.elements.element(&position.to_be_bytes())
    }

    /// The position of the element with this index, counted from the tail if negative.
    fn position(&self, index: i64) -> Option<u64> {
        let offset = index.unsigned_abs();
        let position = if index < 0 { self.tail.checked_sub(offset)? } else { self.head.checked_add(offset)? };
        (self.head..self.tail).contains(&position).then_some(position)
    }

    /// The elements at these positions, in their order.
    async fn read(&self, unit: &mut Unit<'_>, mut from: u64, to: u64) -> Result<Vec<Bytes>> {
        let mut found = Vec::new();
        while from < to {
            let limit = usize::try_from(to - from).unwrap_or(PAGE).min(PAGE);
            let range = KeyRange::new(self.record(from), self.record(to));
            let page = unit.scan(&range, Direction::Forward, limit).await?;
            if page.is_empty() {
                break;
            }
            from += page.len() as u64;
            found.extend(page.into_iter().map(|(_, element)| element));
        }
        Ok(found)
    }

    /// Reads more than one element at once at the end from which the unit has just taken one: in a pipeline of pops, the next
    /// ones will be asked for. The unit does not know the first of them.
    async fn read_ahead(&self, unit: &mut Unit<'_>, end: End) -> Result<()> {
        let ahead = unit.ahead();
        let (taken, from, to) = match end {
            End::Head => (self.head.wrapping_sub(1), self.head, self.tail.min(self.head.saturating_add(ahead))),
            End::Tail => (self.tail, self.head.max(self.tail.saturating_sub(ahead)), self.tail),
        };
        if from < to && unit.has_deleted(&self.record(taken)) {
            // What was deleted lies outside of it.
            unit.scan_ahead(&KeyRange::new(self.record(from), self.record(to))).await?;
        }
        Ok(())
    }

    /// Saves where the list begins and ends, or deletes the key if nothing is left of it.
    fn settle(mut self, unit: &mut Unit<'_>) -> Result<()> {
        if self.len() == 0 {
            return Ok(unit.forget(&self.key, &self.metadata)?);
        }
        let count = u32::try_from(self.len()).unwrap_or(u32::MAX);
        self.metadata.body = Body::List { count, head: self.head, tail: self.tail };
        Ok(unit.save(&self.key, &self.metadata)?)
    }
}

/// How many elements there are. O(1).
pub async fn len(unit: &mut Unit<'_>, key: &Key) -> Result<u64> {
    Ok(List::find(unit, key).await?.map_or(0, |list| list.len()))
}

/// Pushes elements, one after the other. Returns how many there are then. O(1) for each.
pub async fn push(unit: &mut Unit<'_>, key: &Key, end: End, elements: &[Bytes]) -> Result<u64> {
    let mut list = match List::find(unit, key).await? {
        Some(list) => list,
        None => List::create(unit, key)?,
    };
    for element in elements {
        let position = match end {
            End::Head => {
                list.head -= 1;
                list.head
            }
            End::Tail => {
                list.tail += 1;
                list.tail - 1
            }
        };
        unit.put_record(list.record(position), element.clone());
    }
    let len = list.len();
    list.settle(unit)?;
    Ok(len)
}

/// Takes up to `count` elements from an end, in the order in which they are taken; `None` if there is no such list.
pub async fn pop(unit: &mut Unit<'_>, key: &Key, end: End, count: u64) -> Result<Option<Vec<Bytes>>> {
    let Some(mut list) = List::find(unit, key).await? else { return Ok(None) };
    let count = count.min(list.len());
    let (from, to) = match end {
        End::Head => (list.head, list.head + count),
        End::Tail => (list.tail - count, list.tail),
    };
    if count == 0 {
        return Ok(Some(Vec::new()));
    }
    // Read by position: a queue leaves deleted records at its head, which a scan would walk.
    let records: Vec<Bytes> = (from..to).map(|position| list.record(position)).collect();
    let first = match end {
        End::Head => records.first(),
        End::Tail => records.last(),
    };
    if first.is_some_and(|first| !unit.knows(first)) {
        list.read_ahead(unit, end).await?;
    }
    let mut popped: Vec<Bytes> = unit.read_many(&records).await?.into_iter().flatten().collect();
    records.into_iter().for_each(|record| unit.delete_record(record));
    match end {
        End::Head => list.head = to,
        End::Tail => {
            list.tail = from;
            popped.reverse();
        }
    }
    list.settle(unit)?;
    Ok(Some(popped))
}

/// The element with this index. O(1).
pub async fn get(unit: &mut Unit<'_>, key: &Key, index: i64) -> Result<Option<Bytes>> {
    let Some(list) = List::find(unit, key).await? else { return Ok(None) };
    match list.position(index) {
        Some(position) => Ok(unit.read(&list.record(position)).await?),
        None => Ok(None),
    }
}

/// Replaces the element with this index. O(1).
///
/// # Errors
/// [`Error::NoSuchKey`], [`Error::IndexOutOfRange`].
pub async fn set(unit: &mut Unit<'_>, key: &Key, index: i64, element: &Bytes) -> Result<()> {
    let list = List::find(unit, key).await?.ok_or(Error::NoSuchKey)?;
    let position = list.position(index).ok_or(Error::IndexOutOfRange)?;
    unit.put_record(list.record(position), element.clone());
    unit.touch(key);
    Ok(())
}

/// The elements from one index to another, both included. O(n) in what it returns.
pub async fn range(unit: &mut Unit<'_>, key: &Key, start: i64, stop: i64) -> Result<Vec<Bytes>> {
    let Some(list) = List::find(unit, key).await? else { return Ok(Vec::new()) };
    let (from, to) = list.bounds(start, stop);
    list.read(unit, from, to).await
}

impl List<'_> {
    /// The positions from one index to another, both included, as a half-open range; empty if they are out of order.
    fn bounds(&self, start: i64, stop: i64) -> (u64, u64) {
        let len = i64::try_from(self.len()).unwrap_or(i64::MAX);
        let from_head = |index: i64| if index < 0 { index.saturating_add(len).max(-1) } else { index };
        let start = from_head(start).max(0);
        let stop = from_head(stop).min(len - 1);
        if start > stop {
            return (self.head, self.head);
        }
        (self.head + start.unsigned_abs(), self.head + stop.unsigned_abs() + 1)
    }
}

/// What LPOS looks for.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// The first match to return, counted from the tail if negative; never 0.
    pub rank: i64,
    /// How many matches to return; 0 for all.
    pub count: u64,
    /// How many elements to compare; 0 for all.
    pub compared_max: u64,
}

/// The indexes of elements that equal `wanted`, in the order in which they are met. O(N) in the elements compared.
pub async fn find(unit: &mut Unit<'_>, key: &Key, wanted: &[u8], search: Search) -> Result<Vec<u64>> {
    let Some(list) = List::find(unit, key).await? else { return Ok(Vec::new()) };
    let backward = search.rank < 0;
    let len = list.len();
    let compared = if search.compared_max == 0 { len } else { search.compared_max.min(len) };
    let mut skipped = search.rank.unsigned_abs() - 1;
    let mut found = Vec::new();
    let mut seen = 0;
    while seen < compared {
        let step = (compared - seen).min(PAGE as u64);
        let (from, to) = match backward {
            false => (list.head + seen, list.head + seen + step),
            true => (list.tail - seen - step, list.tail - seen),
        };
        let mut page: Vec<(u64, Bytes)> = (from - list.head..).zip(list.read(unit, from, to).await?).collect();
        if backward {
            page.reverse();
        }
        for (index, element) in page {
            if element != wanted {
                continue;
            }
            if skipped > 0 {
                skipped -= 1;
                continue;
            }
            found.push(index);
            if found.len() as u64 == search.count {
                return Ok(found);
            }
        }
        seen += step;
    }
    Ok(found)
}

/// Moves an element from an end of one list to an end of another, perhaps the same. `None` if there is none.
pub async fn move_element(
    unit: &mut Unit<'_>,
    (from, from_end): (&Key, End),
    (to, to_end): (&Key, End),
) -> Result<Option<Bytes>> {
    if List::find(unit, from).await?.is_none() {
        return Ok(None);
    }
    // Looked at before anything is taken: it may be of another type.
    List::find(unit, to).await?;
    if from == to && len(unit, from).await? == 1 {
        // Taking the only element would delete the key, and its expiry with it.
        let only = get(unit, from, 0).await?;
        unit.touch(from);
        return Ok(only);
    }
    let popped = pop(unit, from, from_end, 1).await?.unwrap_or_default();
    if !popped.is_empty() {
        push(unit, to, to_end, &popped).await?;
    }
    Ok(popped.into_iter().next())
}

/// Indexes, in ascending order.
type Indexes = BTreeSet<u64>;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::keyspace::{
        Encodings, Intent, Random,
        fixture::{key, keyspace},
    };

    /// An element, of which some are long.
    fn element(number: u64) -> Bytes {
        let digits = number.to_string();
        if number.is_multiple_of(10) { digits.repeat(5_000).into() } else { digits.into() }
    }

    /// What was read ahead is what is there, whatever the unit does to it.
    #[tokio::test]
    async fn many_pushes_and_pops_in_one_unit_do_what_they_do_alone() {
        let (keyspace, random) = (keyspace(Encodings::default()).await.0, Random::seeded(5));
        let (name, mut model, mut next) = (key("list"), VecDeque::new(), 0);
        for _ in 0..40 {
            let mut unit = keyspace.begin(Intent::Write).await.unwrap();
            for _ in 0..random.below(200) {
                unit.begin_command();
                let end = if random.below(4) == 0 { End::Tail } else { End::Head };
                match random.below(8) {
                    0 => {
                        let count = random.below(30);
                        let pushed: Vec<Bytes> = (next..next + count).map(element).collect();
                        next += count;
                        for element in &pushed {
                            match end {
                                End::Head => model.push_front(element.clone()),
                                End::Tail => model.push_back(element.clone()),
                            }
                        }
                        if count > 0 {
                            assert_eq!(push(&mut unit, &name, end, &pushed).await.unwrap(), model.len() as u64);
                        }
                    }
                    1 if !model.is_empty() => {
                        let index = random.below(model.len() as u64) as usize;
                        model[index] = element(next);
                        set(&mut unit, &name, index as i64, &element(next)).await.unwrap();
                        next += 1;
                    }
                    _ => {
                        let expected = match end {
                            End::Head => model.pop_front(),
                            End::Tail => model.pop_back(),
                        };
                        let popped = pop(&mut unit, &name, end, 1).await.unwrap().and_then(|mut popped| popped.pop());
                        assert_eq!(popped, expected);
                    }
                }
            }
            assert_eq!(range(&mut unit, &name, 0, -1).await.unwrap(), Vec::from(model.clone()));
            unit.commit().await.unwrap();
        }
        assert!(next > 500);
    }
}
