//! The order of members in the sidecar: encode-version 1.
//!
//! The sidecar tells the order as it was before the unit; what the unit itself has changed is merged into it here. It
//! orders members with equal scores by their indexes, which is the order of the members themselves only where all of them
//! are short enough to be their own index. So members are put in order once more here, and the sidecar gives whole groups
//! of equal scores where that matters.

use std::{
    collections::HashMap,
    ops::{Bound, RangeBounds},
};

use bytes::Bytes;
use respgate_backend_api::Direction;

use super::{Scored, order as compare};
use crate::{
    encoding::{decode_member, encode_member, index_of_member, member_of_index},
    keyspace::{self, Order, Unit},
    sidecar::{Entries, Window},
    types::{Error, Result, collection::Open},
};

/// Entries that are asked for at a time.
const PAGE: usize = 5_000;

/// Writes a member's record anew. The sidecar learns of it when the unit has committed.
///
/// # Errors
/// [`Error::DigestTaken`] if another member with the same digest was written before.
pub(super) fn write(
    unit: &mut Unit<'_>,
    zset: &Open<'_>,
    member: &Bytes,
    before: Option<f64>,
    now: Option<f64>,
) -> Result<()> {
    let record = zset.elements().element(&index_of_member(member));
    let Some(score) = now else {
        unit.delete_record(record);
        return Ok(());
    };
    if let (None, Some(value)) = (before, unit.written(&record))
        && decode_member(&value).map_err(keyspace::Error::from)?.0 != member
    {
        return Err(Error::DigestTaken);
    }
    unit.put_record(record, encode_member(score, member));
    Ok(())
}

/// Members with scores between two bounds, after the first `offset`. O(log N) and what is returned, and all of the members
/// that share the first or the last score if one of them is long.
pub(super) async fn read(
    unit: &mut Unit<'_>,
    order: &Order,
    (min, max): (Bound<f64>, Bound<f64>),
    direction: Direction,
    offset: usize,
    limit: usize,
) -> Result<Vec<Scored>> {
    let own = unit.own_changes(order);
    if own.is_empty() {
        return read_before(unit, order, Window { min, max, direction, offset, limit }).await;
    }
    // Own changes hide at most as many members as they are, so this many from the beginning are enough.
    let enough = offset.saturating_add(limit).saturating_add(own.len());
    let own: HashMap<Bytes, Option<Bytes>> = own.into_iter().collect();
    let mut members = read_before(unit, order, Window { min, max, direction, offset: 0, limit: enough }).await?;
    members.retain(|(member, _)| !own.contains_key(&index_of_member(member)));
    for value in own.values().flatten() {
        let (member, score) = decode_member(value).map_err(keyspace::Error::from)?;
        if is_between(score, min, max) {
            members.push((member, score));
        }
    }
    members.sort_unstable_by(|one, other| match direction {
        Direction::Forward => compare(one, other),
        Direction::Backward => compare(other, one),
    });
    Ok(members.into_iter().skip(offset).take(limit).collect())
}

/// A window as it was before the unit, in its direction. Page by page, so that nobody waits long for the sidecar.
async fn read_before(unit: &mut Unit<'_>, order: &Order, window: Window) -> Result<Vec<Scored>> {
    let mut members = Vec::new();
    loop {
        let (offset, left) = (window.offset.saturating_add(members.len()), window.limit - members.len());
        let page = Window { offset, limit: left.min(PAGE), ..window };
        let Entries { entries, before, wanted } = unit.read_order(order, &page).await?;
        let mut found = members_of(unit, order, entries).await?;
        found.sort_unstable_by(compare);
        // What follows the window here is the rest of a group, and comes next.
        let skipped = match window.direction {
            Direction::Forward => before,
            Direction::Backward => {
                found.reverse();
                found.len().saturating_sub(before.saturating_add(wanted))
            }
        };
        let known = members.len();
        members.extend(found.into_iter().skip(skipped).take(left));
        if wanted < page.limit || members.len() == window.limit || members.len() == known {
            return Ok(members);
        }
    }
}

/// How many members have scores between two bounds. O(log N).
pub(super) async fn count(unit: &mut Unit<'_>, order: &Order, (min, max): (Bound<f64>, Bound<f64>)) -> Result<u64> {
    let before = unit.count_order(order, min, max).await?;
    let own = unit.own_changes(order);
    if own.is_empty() {
        return Ok(before);
    }
    let indexes: Vec<Bytes> = own.iter().map(|(index, _)| index.clone()).collect();
    let replaced = unit.scores_before(order, &indexes).await?;
    let gone = replaced.into_iter().flatten().filter(|score| is_between(*score, min, max)).count();
    let mut came = 0;
    for (_, value) in own {
        let scored = value.map(|value| decode_member(&value)).transpose().map_err(keyspace::Error::from)?;
        came += u64::from(scored.is_some_and(|(_, score)| is_between(score, min, max)));
    }
    Ok((before + came).saturating_sub(gone as u64))
}

/// How many members stand before this one: those with lower scores, which the sidecar counts, and some of those with the
/// same score, which are read.
pub(super) async fn rank(unit: &mut Unit<'_>, order: &Order, (member, score): &Scored) -> Result<u64> {
    let lower = count(unit, order, (Bound::Unbounded, Bound::Excluded(*score))).await?;
    let equal = (Bound::Included(*score), Bound::Included(*score));
    let equals = read(unit, order, equal, Direction::Forward, 0, usize::MAX).await?;
    Ok(lower + equals.partition_point(|(other, _)| other < member) as u64)
}

/// The members that the sidecar's indexes stand for, with their scores.
async fn members_of(unit: &mut Unit<'_>, order: &Order, entries: Vec<(Bytes, f64)>) -> Result<Vec<Scored>> {
    let digests: Vec<Bytes> =
        entries.iter().map(|(index, _)| index).filter(|index| member_of_index(index).is_none()).cloned().collect();
    let behind = if digests.is_empty() { HashMap::new() } else { unit.members_behind(order, digests).await? };
    let member = |index: Bytes| member_of_index(&index).or_else(|| behind.get(&index).cloned()).unwrap_or(index);
    Ok(entries.into_iter().map(|(index, score)| (member(index), score)).collect())
}

fn is_between(score: f64, min: Bound<f64>, max: Bound<f64>) -> bool {
    (min, max).contains(&score)
}
