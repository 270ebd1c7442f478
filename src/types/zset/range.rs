//! Parts of a sorted set: by rank, by score, by member; read, counted, removed.

use std::ops::Bound;

use bytes::Bytes;
use respgate_backend_api::Direction;

use super::{
    Scored,
    index::{EVERYTHING, Zset},
};
use crate::{
    keyspace::{Key, Unit},
    types::Result,
};

/// One end of a range of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Below every member.
    Lowest,
    /// Above every member.
    Highest,
    /// At this member, which is part of the range.
    Including(Bytes),
    /// At this member, which is not part of the range.
    Excluding(Bytes),
}

/// A part of a sorted set.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// From one rank up to and including another; negative ones count from the end.
    Ranks(i64, i64),
    /// Between two scores.
    Scores(Bound<f64>, Bound<f64>),
    /// Between two members; only where all scores are equal do these mean something.
    Members(Edge, Edge),
}

/// What to read of a sorted set.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The part; ranks are seen from the end that `direction` begins with.
    pub span: Span,
    /// The order of the members.
    pub direction: Direction,
    /// How many members of the part are left out first.
    pub offset: usize,
    /// How many members are read at most.
    pub limit: usize,
}

/// The members in a range, with their scores.
pub async fn range(unit: &mut Unit<'_>, key: &Key, range: &Range) -> Result<Vec<Scored>> {
    let Some(zset) = Zset::find(unit, key).await? else { return Ok(Vec::new()) };
    read(unit, &zset, range).await
}

/// How many members are in a part of a sorted set that is given by scores or by members.
pub async fn count(unit: &mut Unit<'_>, key: &Key, span: &Span) -> Result<u64> {
    match Zset::find(unit, key).await? {
        Some(zset) => zset.count_in(unit, span).await,
        None => Ok(0),
    }
}

/// Removes a part of a sorted set. Returns how many members that were.
pub async fn remove_range(unit: &mut Unit<'_>, key: &Key, span: Span) -> Result<usize> {
    let Some(zset) = Zset::find(unit, key).await? else { return Ok(0) };
    let range = Range { span, direction: Direction::Forward, offset: 0, limit: usize::MAX };
    let members = read(unit, &zset, &range).await?;
    let from_start = match range.span {
        Span::Ranks(start, _) => start == 0,
        Span::Scores(min, _) => matches!(min, Bound::Unbounded | Bound::Included(f64::NEG_INFINITY)),
        Span::Members(..) => false,
    };
    take(unit, zset, &members, from_start.then_some(Direction::Forward)).await?;
    Ok(members.len())
}

/// Removes members from one end. `None` if there is no such sorted set.
pub async fn pop(unit: &mut Unit<'_>, key: &Key, end: Direction, count: usize) -> Result<Option<Vec<Scored>>> {
    let Some(zset) = Zset::find(unit, key).await? else { return Ok(None) };
    let members = zset.read(unit, &EVERYTHING, end, 0, count).await?;
    take(unit, zset, &members, Some(end)).await?;
    Ok(Some(members))
}

/// Removes `members`, which are the first ones as seen from `end`, if one is given.
async fn take(unit: &mut Unit<'_>, mut zset: Zset<'_>, members: &[Scored], end: Option<Direction>) -> Result<()> {
    let Some(last) = members.last() else { return Ok(()) };
    if zset.count() == members.len() as u64 {
        return zset.open.remove(unit);
    }
    for (member, score) in members {
        zset.write(unit, member, Some(*score), None)?;
    }
    if let Some(end) = end {
        zset.narrow(end, last);
    }
    zset.settle(unit, 0, members.len()).await
}

async fn read(unit: &mut Unit<'_>, zset: &Zset<'_>, range: &Range) -> Result<Vec<Scored>> {
    let Range { span, direction, offset, limit } = range;
    match span {
        Span::Ranks(start, stop) => read_ranks(unit, zset, *start, *stop, *direction).await,
        part => zset.read(unit, part, *direction, *offset, *limit).await,
    }
}

/// Reads from one rank to another, beginning at that end of the order which is nearer.
async fn read_ranks(
    unit: &mut Unit<'_>,
    zset: &Zset<'_>,
    start: i64,
    stop: i64,
    direction: Direction,
) -> Result<Vec<Scored>> {
    let count = i64::try_from(zset.count()).unwrap_or(i64::MAX);
    let from_start = |rank: i64| if rank < 0 { rank.saturating_add(count) } else { rank };
    let (start, stop) = (from_start(start).max(0), from_start(stop).min(count - 1));
    if start > stop {
        return Ok(Vec::new());
    }
    let size = |ranks: i64| usize::try_from(ranks).unwrap_or_default();
    let (before, after, wanted) = (size(start), size(count - 1 - stop), size(stop - start + 1));
    if before <= after {
        return zset.read(unit, &EVERYTHING, direction, before, wanted).await;
    }
    let opposite = match direction {
        Direction::Forward => Direction::Backward,
        Direction::Backward => Direction::Forward,
    };
    let mut members = zset.read(unit, &EVERYTHING, opposite, after, wanted).await?;
    members.reverse();
    Ok(members)
}

/// The members of a part between two members, out of `all` in their order. Where scores differ such a part means little:
/// as in Redis, whose small sorted sets are searched from the first member that the one edge admits to the first that the
/// other does not.
pub(super) fn between_members(all: Vec<Scored>, part: &Span, direction: Direction) -> Vec<Scored> {
    let Span::Members(min, max) = part else { return Vec::new() };
    let above = |member: &Bytes| match min {
        Edge::Lowest => true,
        Edge::Highest => false,
        Edge::Including(edge) => member >= edge,
        Edge::Excluding(edge) => member > edge,
    };
    let below = |member: &Bytes| match max {
        Edge::Lowest => false,
        Edge::Highest => true,
        Edge::Including(edge) => member <= edge,
        Edge::Excluding(edge) => member < edge,
    };
    let (Some((first, _)), Some((last, _))) = (all.first(), all.last()) else { return Vec::new() };
    if !above(last) || !below(first) {
        return Vec::new();
    }
    match direction {
        Direction::Forward => {
            let found = all.into_iter().skip_while(|(member, _)| !above(member));
            found.take_while(|(member, _)| below(member)).collect()
        }
        Direction::Backward => {
            let found = all.into_iter().rev().skip_while(|(member, _)| !below(member));
            found.take_while(|(member, _)| above(member)).collect()
        }
    }
}
