//! Changes in the middle of a list.

use bytes::Bytes;

use super::{Indexes, List, Search, find};
use crate::{
    keyspace::{Key, Unit},
    types::Result,
};

/// On which side of another element an element is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Towards the head.
    Before,
    /// Towards the tail.
    After,
}

/// Inserts an element beside the first one that equals `pivot`. Returns how many elements there are then; `None` if
/// there is no such list, `Some(None)` if it has no such element. Moves the shorter side.
pub async fn insert(
    unit: &mut Unit<'_>,
    key: &Key,
    place: Place,
    pivot: &[u8],
    element: &Bytes,
) -> Result<Option<Option<u64>>> {
    let Some(mut list) = List::find(unit, key).await? else { return Ok(None) };
    let search = Search { rank: 1, count: 1, compared_max: 0 };
    let Some(&found) = find(unit, key, pivot, search).await?.first() else { return Ok(Some(None)) };
    // The new element's index, with that many elements before it.
    let index = if place == Place::Before { found } else { found + 1 };
    let at = list.head + index;
    if index <= list.len() - index {
        let before = list.read(unit, list.head, at).await?;
        list.head -= 1;
        write(unit, &list, list.head, before);
        unit.put_record(list.record(at - 1), element.clone());
    } else {
        let after = list.read(unit, at, list.tail).await?;
        list.tail += 1;
        write(unit, &list, at + 1, after);
        unit.put_record(list.record(at), element.clone());
    }
    let len = list.len();
    list.settle(unit)?;
    Ok(Some(Some(len)))
}

/// Removes elements that equal `element`: so many from the head on, or from the tail on if `count` is negative, or all
/// if it is 0. Returns how many were removed. Moves the shorter side.
pub async fn remove(unit: &mut Unit<'_>, key: &Key, count: i64, element: &[u8]) -> Result<u64> {
    let Some(mut list) = List::find(unit, key).await? else { return Ok(0) };
    let rank = if count < 0 { -1 } else { 1 };
    let search = Search { rank, count: count.unsigned_abs(), compared_max: 0 };
    let removed: Indexes = find(unit, key, element, search).await?.into_iter().collect();
    let (Some(&first), Some(&last)) = (removed.first(), removed.last()) else { return Ok(0) };
    let count = removed.len() as u64;
    if last < list.len() - first {
        // Everything up to the last removed element moves towards the tail.
        let kept = list.kept(unit, list.head, list.head + last + 1, &removed).await?;
        let freed = list.head..list.head + count;
        list.head += count;
        write(unit, &list, list.head, kept);
        freed.for_each(|position| unit.delete_record(list.record(position)));
    } else {
        let from = list.head + first;
        let kept = list.kept(unit, from, list.tail, &removed).await?;
        write(unit, &list, from, kept);
        let freed = list.tail - count..list.tail;
        list.tail -= count;
        freed.for_each(|position| unit.delete_record(list.record(position)));
    }
    list.settle(unit)?;
    Ok(count)
}

/// Keeps the elements from one index to another, both included. O(n) in what it removes.
pub async fn trim(unit: &mut Unit<'_>, key: &Key, start: i64, stop: i64) -> Result<()> {
    let Some(mut list) = List::find(unit, key).await? else { return Ok(()) };
    let (from, to) = list.bounds(start, stop);
    if from == to {
        // Nothing stays, so the key goes as a whole, in O(1).
        return Ok(unit.remove(key, &list.metadata)?);
    }
    for position in (list.head..from).chain(to..list.tail) {
        unit.delete_record(list.record(position));
    }
    (list.head, list.tail) = (from, to);
    list.settle(unit)
}

impl List<'_> {
    /// The elements at these positions whose indexes are not among `removed`.
    async fn kept(&self, unit: &mut Unit<'_>, from: u64, to: u64, removed: &Indexes) -> Result<Vec<Bytes>> {
        let elements = (from - self.head..).zip(self.read(unit, from, to).await?);
        Ok(elements.filter(|(index, _)| !removed.contains(index)).map(|(_, element)| element).collect())
    }
}

/// Writes elements side by side, the first one at `position`.
fn write(unit: &mut Unit<'_>, list: &List<'_>, position: u64, elements: Vec<Bytes>) {
    for (position, element) in (position..).zip(elements) {
        unit.put_record(list.record(position), element);
    }
}
