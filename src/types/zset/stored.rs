//! The order of members in the score index: encode-version 0.

use std::ops::{Bound, ControlFlow};

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange};

use super::{Edge, Scored, Span, range::between_members};
use crate::{
    encoding::{Body, ZsetBounds, ZsetOrder, encode_member_score, encode_score},
    keyspace::Unit,
    types::{
        Result,
        collection::{Open, walk},
    },
};

/// Records that one scan takes at most.
const PAGE_RECORDS: usize = 1_000;

/// Writes a member's records anew, and moves the bounds of the index so far that it lies between them.
pub(super) fn write(unit: &mut Unit<'_>, zset: &mut Open<'_>, member: &Bytes, before: Option<f64>, now: Option<f64>) {
    let elements = zset.elements();
    if let Some(score) = before {
        unit.delete_record(elements.score(score, member));
    }
    let Some(score) = now else { return unit.delete_record(elements.element(member)) };
    unit.put_record(elements.element(member), Bytes::copy_from_slice(&encode_member_score(score)));
    unit.put_record(elements.score(score, member), Bytes::new());
    widen(zset, place(score, member));
}

fn widen(zset: &mut Open<'_>, place: Bytes) {
    let Some(bounds) = bounds(zset) else { return };
    let is_below = place < bounds.low;
    let is_above = !bounds.high.is_empty() && place >= bounds.high;
    if (is_below || is_above)
        && let Body::Zset { order: ZsetOrder::Index(bounds), .. } = zset.body_mut()
    {
        if is_below {
            bounds.low = place.slice(..place.len().min(ZsetBounds::BYTES_MAX));
        }
        if is_above {
            bounds.high = Bytes::new();
        }
    }
}

/// Moves a bound of the index to the last member that was taken from that end.
pub(super) fn narrow(zset: &mut Open<'_>, end: Direction, (member, score): &Scored) {
    let place = place(*score, member);
    let Body::Zset { order: ZsetOrder::Index(bounds), .. } = zset.body_mut() else { return };
    match end {
        // What is left lies behind the last one that was taken, so also behind the beginning of its name.
        Direction::Forward => bounds.low = place.slice(..place.len().min(ZsetBounds::BYTES_MAX)),
        Direction::Backward if place.len() <= ZsetBounds::BYTES_MAX => bounds.high = place,
        Direction::Backward => {}
    }
}

/// Members of a part, after the first `offset`.
pub(super) async fn read(
    unit: &mut Unit<'_>,
    zset: &Open<'_>,
    part: &Span,
    direction: Direction,
    offset: usize,
    limit: usize,
) -> Result<Vec<Scored>> {
    if let Some(records) = records(unit, zset, part).await? {
        return read_records(unit, zset, records, direction, offset, limit).await;
    }
    let all = read_records(unit, zset, index(zset), Direction::Forward, 0, usize::MAX).await?;
    Ok(between_members(all, part, direction).into_iter().skip(offset).take(limit).collect())
}

/// How many members are in a part. O(N) in their number.
pub(super) async fn count(unit: &mut Unit<'_>, zset: &Open<'_>, part: &Span) -> Result<u64> {
    match records(unit, zset, part).await? {
        Some(records) => count_records(unit, records, Direction::Forward).await,
        None => Ok(read(unit, zset, part, Direction::Forward, 0, usize::MAX).await?.len() as u64),
    }
}

/// How many members stand before this one. O(N) in that number: nothing counts the members of a part of the index.
pub(super) async fn rank(
    unit: &mut Unit<'_>,
    zset: &Open<'_>,
    (member, score): &Scored,
    from: Direction,
) -> Result<u64> {
    let own = zset.elements().score(*score, member);
    let mut before = index(zset);
    match from {
        Direction::Forward => before.end = own,
        Direction::Backward => before = before.after(&own),
    }
    count_records(unit, before, from).await
}

/// The part of the index that holds all members.
pub(super) fn index(zset: &Open<'_>) -> KeyRange {
    within_bounds(zset, zset.elements().scores())
}

/// The place of a member in the index, as [`ZsetBounds`] have it.
fn place(score: f64, member: &[u8]) -> Bytes {
    [&encode_score(score)[..], member].concat().into()
}

fn bounds<'z>(zset: &'z Open<'_>) -> Option<&'z ZsetBounds> {
    match zset.body() {
        Body::Zset { order: ZsetOrder::Index(bounds), .. } => Some(bounds),
        _ => None,
    }
}

fn within_bounds(zset: &Open<'_>, mut range: KeyRange) -> KeyRange {
    if let Some(bounds) = bounds(zset) {
        if !bounds.low.is_empty() {
            range.start = range.start.max(zset.elements().score_at(&bounds.low));
        }
        if !bounds.high.is_empty() {
            range.end = range.end.min(zset.elements().score_at(&bounds.high));
        }
    }
    range
}

async fn count_records(unit: &mut Unit<'_>, records: KeyRange, direction: Direction) -> Result<u64> {
    let mut count = 0;
    walk(unit, records, direction, |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })
    .await?;
    Ok(count)
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
        let passed = skipped.min(page.len());
        skipped -= passed;
        let last = page.last().filter(|_| page.len() == limit).map(|(record, _)| record.clone());
        members.extend(page.into_iter().skip(passed).map(|(record, _)| zset.elements().scored(record)));
        match (last, direction) {
            (None, _) => break,
            (Some(last), Direction::Forward) => range = range.after(&last),
            (Some(last), Direction::Backward) => range.end = last,
        }
    }
    Ok(members)
}

/// The records of the index that a part covers. `None` for a part between members if the scores are not all equal: its
/// members are not side by side then.
async fn records(unit: &mut Unit<'_>, zset: &Open<'_>, part: &Span) -> Result<Option<KeyRange>> {
    let elements = zset.elements();
    let range = match part {
        Span::Ranks(..) => elements.scores(),
        Span::Scores(min, max) => elements.scores_between(*min, *max),
        Span::Members(min, max) => {
            let first = unit.scan(&index(zset), Direction::Forward, 1).await?;
            let last = unit.scan(&index(zset), Direction::Backward, 1).await?;
            let score = |page: &[(Bytes, Bytes)]| page.first().map(|(record, _)| elements.scored(record.clone()).1);
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
