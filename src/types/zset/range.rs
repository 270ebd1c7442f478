//! Parts of a sorted set: by rank, by score, by member; read, counted, removed.

use std::ops::{Bound, ControlFlow};

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange};

use super::{Open, Scored, find};
use crate::{
    encoding::{Body, ZsetBounds, encode_score},
    keyspace::{Key, Unit},
    types::{Result, collection::walk},
};

/// Records that one scan takes at most.
const PAGE_RECORDS: usize = 1_000;

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
    let Some(zset) = find(unit, key).await? else { return Ok(Vec::new()) };
    read(unit, &zset, range).await
}

/// How many members are in a part of a sorted set. O(N) in their number, except for ranks.
pub async fn count(unit: &mut Unit<'_>, key: &Key, span: &Span) -> Result<u64> {
    let Some(zset) = find(unit, key).await? else { return Ok(0) };
    let Some(records) = records(unit, &zset, span).await? else {
        return Ok(unordered(unit, &zset, span, Direction::Forward).await?.len() as u64);
    };
    let mut count = 0;
    walk(unit, records, Direction::Forward, |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })
    .await?;
    Ok(count)
}

/// Removes a part of a sorted set. Returns how many members that were.
pub async fn remove_range(unit: &mut Unit<'_>, key: &Key, span: Span) -> Result<usize> {
    let Some(zset) = find(unit, key).await? else { return Ok(0) };
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
    let Some(zset) = find(unit, key).await? else { return Ok(None) };
    let members = read_records(unit, &zset, index(&zset), end, 0, count).await?;
    take(unit, zset, &members, Some(end)).await?;
    Ok(Some(members))
}

/// Removes `members`, which are the first ones as seen from `end`, if one is given.
async fn take(unit: &mut Unit<'_>, mut zset: Open<'_>, members: &[Scored], end: Option<Direction>) -> Result<()> {
    let Some((last, last_score)) = members.last() else { return Ok(()) };
    if zset.counted().is_some_and(|count| count as usize == members.len()) {
        return zset.remove(unit);
    }
    for (member, score) in members {
        unit.delete_record(zset.elements().element(member));
        unit.delete_record(zset.elements().score(*score, member));
    }
    let place = place(*last_score, last);
    if let (Some(end), Body::Zset { bounds, .. }) = (end, zset.body_mut()) {
        match end {
            // What is left lies behind the last one that was taken, so also behind the beginning of its name.
            Direction::Forward => bounds.low = place.slice(..place.len().min(ZsetBounds::BYTES_MAX)),
            Direction::Backward if place.len() <= ZsetBounds::BYTES_MAX => bounds.high = place,
            Direction::Backward => {}
        }
    }
    zset.settle(unit, 0, members.len()).await
}

/// The place of a member in the index, as [`ZsetBounds`] have it.
pub(super) fn place(score: f64, member: &[u8]) -> Bytes {
    [&encode_score(score)[..], member].concat().into()
}

/// The part of the index that holds all members.
pub(super) fn index(zset: &Open<'_>) -> KeyRange {
    within_bounds(zset, zset.elements().scores())
}

fn within_bounds(zset: &Open<'_>, mut range: KeyRange) -> KeyRange {
    if let Body::Zset { bounds, .. } = zset.body() {
        if !bounds.low.is_empty() {
            range.start = range.start.max(zset.elements().score_at(&bounds.low));
        }
        if !bounds.high.is_empty() {
            range.end = range.end.min(zset.elements().score_at(&bounds.high));
        }
    }
    range
}

async fn read(unit: &mut Unit<'_>, zset: &Open<'_>, range: &Range) -> Result<Vec<Scored>> {
    let Range { span, direction, offset, limit } = range;
    if let Span::Ranks(start, stop) = span {
        return read_ranks(unit, zset, *start, *stop, *direction).await;
    }
    match records(unit, zset, span).await? {
        Some(records) => read_records(unit, zset, records, *direction, *offset, *limit).await,
        None => {
            let members = unordered(unit, zset, span, *direction).await?;
            Ok(members.into_iter().skip(*offset).take(*limit).collect())
        }
    }
}

/// Reads from one rank to another, beginning at that end of the index which is nearer.
async fn read_ranks(
    unit: &mut Unit<'_>,
    zset: &Open<'_>,
    start: i64,
    stop: i64,
    direction: Direction,
) -> Result<Vec<Scored>> {
    let count = i64::try_from(zset.count(unit).await?).unwrap_or(i64::MAX);
    let from_start = |rank: i64| if rank < 0 { rank.saturating_add(count) } else { rank };
    let (start, stop) = (from_start(start).max(0), from_start(stop).min(count - 1));
    if start > stop {
        return Ok(Vec::new());
    }
    let size = |ranks: i64| usize::try_from(ranks).unwrap_or_default();
    let (before, after, wanted) = (size(start), size(count - 1 - stop), size(stop - start + 1));
    if before <= after {
        return read_records(unit, zset, index(zset), direction, before, wanted).await;
    }
    let opposite = match direction {
        Direction::Forward => Direction::Backward,
        Direction::Backward => Direction::Forward,
    };
    let mut members = read_records(unit, zset, index(zset), opposite, after, wanted).await?;
    members.reverse();
    Ok(members)
}

/// Reads records of the index: `wanted` of them after the first `skipped`.
async fn read_records(
    unit: &mut Unit<'_>,
    zset: &Open<'_>,
    mut range: KeyRange,
    direction: Direction,
    mut skipped: usize,
    wanted: usize,
) -> Result<Vec<Scored>> {
    let mut members = Vec::new();
    while members.len() < wanted {
        let limit = skipped.saturating_add(wanted - members.len()).min(PAGE_RECORDS);
        let page = unit.scan(&range, direction, limit).await?;
        let is_last = page.len() < limit;
        if let Some((last, _)) = page.last() {
            match direction {
                Direction::Forward => range = range.after(last),
                Direction::Backward => range.end = last.clone(),
            }
        }
        let passed = skipped.min(page.len());
        skipped -= passed;
        members.extend(page.iter().skip(passed).map(|(record, _)| zset.elements().scored(record)));
        if is_last {
            break;
        }
    }
    Ok(members)
}

/// The records of the index that a span of scores or members covers. `None` for a span of members if the scores are not
/// all equal: its members are not side by side then.
async fn records(unit: &mut Unit<'_>, zset: &Open<'_>, span: &Span) -> Result<Option<KeyRange>> {
    let elements = zset.elements();
    let range = match span {
        Span::Ranks(..) => elements.scores(),
        Span::Scores(min, max) => elements.scores_between(*min, *max),
        Span::Members(min, max) => {
            let first = unit.scan(&index(zset), Direction::Forward, 1).await?;
            let last = unit.scan(&index(zset), Direction::Backward, 1).await?;
            let score = |page: &[(Bytes, Bytes)]| page.first().map(|(record, _)| elements.scored(record).1);
            let (Some(first), Some(last)) = (score(&first), score(&last)) else { return Ok(None) };
            if first != last {
                return Ok(None);
            }
            let all = elements.scores_between(Bound::Included(first), Bound::Included(first));
            let at = |edge: &Edge, includes: &[u8], excludes: &[u8]| match edge {
                Edge::Lowest => all.start.clone(),
                Edge::Highest => all.end.clone(),
                Edge::Including(member) => elements.score(first, &[member, includes].concat()),
                Edge::Excluding(member) => elements.score(first, &[member, excludes].concat()),
            };
            // The least name above another is that name with a zero byte behind it.
            KeyRange { start: at(min, b"", b"\0"), end: at(max, b"\0", b"") }
        }
    };
    Ok(Some(within_bounds(zset, range)))
}

/// A span of members where scores differ, which means little: as in Redis, whose small sorted sets are searched from
/// the first member that the one edge admits to the first that the other does not.
async fn unordered(unit: &mut Unit<'_>, zset: &Open<'_>, span: &Span, direction: Direction) -> Result<Vec<Scored>> {
    let Span::Members(min, max) = span else { return Ok(Vec::new()) };
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
    let members = read_records(unit, zset, index(zset), Direction::Forward, 0, usize::MAX).await?;
    let (Some((first, _)), Some((last, _))) = (members.first(), members.last()) else { return Ok(Vec::new()) };
    if !above(last) || !below(first) {
        return Ok(Vec::new());
    }
    Ok(match direction {
        Direction::Forward => {
            let found = members.into_iter().skip_while(|(member, _)| !above(member));
            found.take_while(|(member, _)| below(member)).collect()
        }
        Direction::Backward => {
            let found = members.into_iter().rev().skip_while(|(member, _)| !below(member));
            found.take_while(|(member, _)| above(member)).collect()
        }
    })
}
