//! Sets: an empty element for each member.
//!
//! Encode-version 0 counts its members and so reads before it writes. Encode-version 1 does not: it writes without
//! reading, and its replies count arguments.

mod algebra;

use std::{iter, ops::ControlFlow};

use bytes::Bytes;
use respgate_backend_api::Direction;

use super::{
    Result,
    collection::{Elements, Open, Sample, walk},
};
use crate::{
    encoding::{Body, Type},
    keyspace::{Key, Unit},
};

pub use algebra::{difference, intersection, union};

/// True if there is such a set.
pub async fn exists(unit: &mut Unit<'_>, key: &Key) -> Result<bool> {
    Ok(find(unit, key).await?.is_some())
}

/// Adds members. Returns how many were new, or in encode-version 1 how many were given.
pub async fn add(unit: &mut Unit<'_>, key: &Key, members: &[Bytes]) -> Result<usize> {
    let mut set = find_or_create(unit, key).await?;
    let mut records = records(&set, members);
    let added = if set.counted().is_none() {
        records.len()
    } else {
        records.sort_unstable();
        records.dedup();
        if !set.is_new() {
            records = retain_existing(unit, records, false).await?;
        }
        records.len()
    };
    if added > 0 {
        let suffixes = records.iter().map(|record| set.elements().suffix(record.clone()));
        unit.keyspace().hands().added(set.version(), suffixes);
        records.into_iter().for_each(|record| unit.put_record(record, Bytes::new()));
        set.settle(unit, added, 0).await?;
    }
    Ok(added)
}

/// Removes members. Returns how many there were, or in encode-version 1 how many were given, if the key exists.
pub async fn remove(unit: &mut Unit<'_>, key: &Key, members: &[Bytes]) -> Result<usize> {
    let Some(mut set) = find(unit, key).await? else { return Ok(0) };
    let mut records = records(&set, members);
    if set.counted().is_some() {
        records.sort_unstable();
        records.dedup();
        records = retain_existing(unit, records, true).await?;
    }
    let removed = records.len();
    if removed > 0 {
        let suffixes = records.iter().map(|record| set.elements().suffix(record.clone()));
        unit.keyspace().hands().removed(set.version(), suffixes);
        records.into_iter().for_each(|record| unit.delete_record(record));
        set.settle(unit, 0, removed).await?;
    }
    Ok(removed)
}

/// Which of `members` are in the set, in their order, read in one call to the store.
pub async fn contains(unit: &mut Unit<'_>, key: &Key, members: &[Bytes]) -> Result<Vec<bool>> {
    let Some(set) = find(unit, key).await? else { return Ok(vec![false; members.len()]) };
    let values = unit.read_many(&records(&set, members)).await?;
    Ok(values.iter().map(Option::is_some).collect())
}

/// Moves a member from one set to another. True if it was there to be moved.
///
/// Both keys must be sets or not exist, whether or not there is anything to move.
pub async fn move_member(unit: &mut Unit<'_>, from: &Key, to: &Key, member: &Bytes) -> Result<bool> {
    let Some(mut source) = find(unit, from).await? else { return Ok(false) };
    find(unit, to).await?;
    let record = source.elements().element(member);
    if unit.read(&record).await?.is_none() {
        return Ok(false);
    }
    if from != to {
        unit.delete_record(record);
        unit.keyspace().hands().removed(source.version(), iter::once(member.clone()));
        source.settle(unit, 0, 1).await?;
        add(unit, to, std::slice::from_ref(member)).await?;
    }
    Ok(true)
}

/// How many members there are: O(1) in encode-version 0, O(n) in 1.
pub async fn len(unit: &mut Unit<'_>, key: &Key) -> Result<u64> {
    match find(unit, key).await? {
        Some(set) => set.count(unit).await,
        None => Ok(0),
    }
}

/// Every member, in the order of bytes; `None` if there is no such set.
pub async fn all(unit: &mut Unit<'_>, key: &Key) -> Result<Option<Vec<Bytes>>> {
    match find(unit, key).await? {
        Some(set) => read_all(unit, &set).await.map(Some),
        None => Ok(None),
    }
}

/// Every member, to be read page by page, if the set is large.
pub async fn stream(unit: &mut Unit<'_>, key: &Key) -> Result<Option<Elements>> {
    match find(unit, key).await? {
        Some(set) => set.stream(unit).await,
        None => Ok(None),
    }
}

/// All members, in the order of bytes.
async fn read_all(unit: &mut Unit<'_>, set: &Open<'_>) -> Result<Vec<Bytes>> {
    /// For so many there is room at once, whatever the metadata say.
    const FIRST_MAX: usize = 4_096;

    let mut members = Vec::with_capacity(set.counted().map_or(0, |count| (count as usize).min(FIRST_MAX)));
    walk(unit, set.elements().elements(), Direction::Forward, |record, _| {
        members.push(set.elements().suffix(record));
        ControlFlow::Continue(())
    })
    .await?;
    Ok(members)
}

/// Puts a set of these members in place of whatever is at `key`; without members, nothing is left there.
pub async fn replace(unit: &mut Unit<'_>, key: &Key, members: impl IntoIterator<Item = Bytes>) -> Result<usize> {
    if let Some(metadata) = unit.load(key).await? {
        unit.remove(key, &metadata)?;
    }
    let mut members = members.into_iter().peekable();
    if members.peek().is_none() {
        return Ok(0);
    }
    let mut set = Open::create(unit, key, body(unit))?;
    let mut added = 0;
    for member in members {
        unit.put_record(set.elements().element(&member), Bytes::new());
        added += 1;
    }
    set.settle(unit, added, 0).await?;
    Ok(added)
}

/// Members after `position` in the order of bytes, at most `limit`; and the last of them unless there are no more.
pub async fn page(
    unit: &mut Unit<'_>,
    key: &Key,
    position: Option<&Bytes>,
    limit: usize,
) -> Result<(Vec<Bytes>, Option<Bytes>)> {
    let Some(set) = find(unit, key).await? else { return Ok((Vec::new(), None)) };
    let (members, next) = set.page(unit, position, limit).await?;
    Ok((members.into_iter().map(|(member, _)| member).collect(), next))
}

/// Members chosen at random, all with the same chance; `None` if there is no such set.
pub async fn sample(unit: &mut Unit<'_>, key: &Key, sample: Sample) -> Result<Option<Vec<Bytes>>> {
    let Some(set) = find(unit, key).await? else { return Ok(None) };
    let members = set.sample(unit, sample).await?;
    Ok(Some(members.into_iter().map(|(member, _)| member).collect()))
}

/// Removes members chosen at random, all with the same chance; `None` if there is no such set.
pub async fn pop(unit: &mut Unit<'_>, key: &Key, count: usize) -> Result<Option<Vec<Bytes>>> {
    let Some(set) = find(unit, key).await? else { return Ok(None) };
    let members = match set.deal(unit, count).await? {
        Some(members) => members,
        None => set.sample(unit, Sample::Distinct(count)).await?.into_iter().map(|(member, _)| member).collect(),
    };
    remove(unit, key, &members).await?;
    Ok(Some(members))
}

async fn find<'k>(unit: &mut Unit<'k>, key: &Key) -> Result<Option<Open<'k>>> {
    Open::find(unit, key, Type::Set).await
}

async fn find_or_create<'k>(unit: &mut Unit<'k>, key: &Key) -> Result<Open<'k>> {
    let body = body(unit);
    Open::find_or_create(unit, key, Type::Set, body).await
}

fn body(unit: &Unit<'_>) -> Body {
    Body::Set { count: unit.keyspace().encodings().counted_sets.then_some(0) }
}

fn records(set: &Open<'_>, members: &[Bytes]) -> Vec<Bytes> {
    members.iter().map(|member| set.elements().element(member)).collect()
}

/// Those of `records` that exist, or those that do not.
async fn retain_existing(unit: &mut Unit<'_>, records: Vec<Bytes>, exist: bool) -> Result<Vec<Bytes>> {
    let values = unit.read_many(&records).await?;
    let kept = records.into_iter().zip(values).filter(|(_, value)| value.is_some() == exist);
    Ok(kept.map(|(record, _)| record).collect())
}
