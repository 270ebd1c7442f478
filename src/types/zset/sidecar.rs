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

use super::{Scored, Span, index::EVERYTHING, order as compare, range::between_members};
use crate::{
    encoding::{decode_member, encode_member, index_of_member, member_of_index},
    keyspace::{self, Order, Unit},
    sidecar::{Entries, Window},
    types::{Error, Result, collection::Open},
};

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

/// Members of a part, after the first `offset`. O(log N) and what is returned, and all of the members that share the
/// first or the last score if one of them is long; O(N) for a part between members.
pub(super) async fn read(
    unit: &mut Unit<'_>,
    order: &Order,
    part: &Span,
    direction: Direction,
    offset: usize,
    limit: usize,
) -> Result<Vec<Scored>> {
    let (min, max) = match part {
        Span::Scores(min, max) => (*min, *max),
        Span::Ranks(..) => (Bound::Unbounded, Bound::Unbounded),
        Span::Members(..) => {
            let all = Box::pin(read(unit, order, &EVERYTHING, Direction::Forward, 0, usize::MAX)).await?;
            return Ok(between_members(all, part, direction).into_iter().skip(offset).take(limit).collect());
        }
    };
    let own = unit.own_changes(order);
    if own.is_empty() {
        let window = Window { min, max, direction, offset, limit };
        let Entries { entries, before, wanted } = unit.read_order(order, &window).await?;
        let members = sorted(members_of(unit, order, entries).await?, Direction::Forward);
        let mut members: Vec<Scored> = members.into_iter().skip(before).take(wanted).collect();
        if direction == Direction::Backward {
            members.reverse();
        }
        return Ok(members);
    }
    // Own changes hide at most as many entries as they are, so this many from the beginning are enough.
    let enough = offset.saturating_add(limit).saturating_add(own.len());
    let window = Window { min, max, direction, offset: 0, limit: enough };
    let own: HashMap<Bytes, Option<Bytes>> = own.into_iter().collect();
    let mut entries = unit.read_order(order, &window).await?.entries;
    entries.retain(|(index, _)| !own.contains_key(index));
    let mut members = members_of(unit, order, entries).await?;
    for value in own.values().flatten() {
        let (member, score) = decode_member(value).map_err(keyspace::Error::from)?;
        if is_between(score, min, max) {
            members.push((member, score));
        }
    }
    Ok(sorted(members, direction).into_iter().skip(offset).take(limit).collect())
}

/// How many members are in a part. O(log N) for scores, O(N) between members.
pub(super) async fn count(unit: &mut Unit<'_>, order: &Order, part: &Span) -> Result<u64> {
    let Span::Scores(min, max) = *part else {
        return Ok(read(unit, order, part, Direction::Forward, 0, usize::MAX).await?.len() as u64);
    };
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
    Ok(before + came - gone as u64)
}

/// How many members stand before this one: those with lower scores, which the sidecar counts, and some of those with the
/// same score, which are read.
pub(super) async fn rank(unit: &mut Unit<'_>, order: &Order, (member, score): &Scored) -> Result<u64> {
    let lower = count(unit, order, &Span::Scores(Bound::Unbounded, Bound::Excluded(*score))).await?;
    let equal = Span::Scores(Bound::Included(*score), Bound::Included(*score));
    let equals = read(unit, order, &equal, Direction::Forward, 0, usize::MAX).await?;
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

fn sorted(mut members: Vec<Scored>, direction: Direction) -> Vec<Scored> {
    members.sort_unstable_by(|one, other| match direction {
        Direction::Forward => compare(one, other),
        Direction::Backward => compare(other, one),
    });
    members
}

fn is_between(score: f64, min: Bound<f64>, max: Bound<f64>) -> bool {
    (min, max).contains(&score)
}
