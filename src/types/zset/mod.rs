//! Sorted sets: an element for each member, whose value is the score, and an index of members in the order of scores.

mod algebra;
mod change;
mod range;

use std::{cmp::Ordering, ops::ControlFlow};

use bytes::Bytes;
use respgate_backend_api::Direction;

use super::{
    Error, Result,
    collection::{Open, Sample, walk},
    string::Condition,
};
use crate::{
    encoding::{Body, Type, ZsetBounds, decode_member_score},
    keyspace::{self, Key, Unit},
};

pub use algebra::{Aggregate, Input, difference, intersection, union};
pub use range::{Edge, Range, Span, count, pop, range, remove_range};

use change::Change;

/// A member and its score.
pub type Scored = (Bytes, f64);

/// When a score is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// What must be true of the member.
    pub condition: Option<Condition>,
    /// How the new score must compare with that of a member that is there.
    pub must_be: Option<Ordering>,
}

/// What adding members did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Members that were new.
    pub added: usize,
    /// Members whose score has changed.
    pub updated: usize,
}

impl AddOptions {
    fn allow(self, old: Option<f64>, new: f64) -> bool {
        match old {
            None => self.condition != Some(Condition::Present),
            Some(old) => {
                self.condition != Some(Condition::Absent)
                    && self.must_be.is_none_or(|must_be| new.partial_cmp(&old) == Some(must_be))
            }
        }
    }
}

/// True if there is such a sorted set.
pub async fn exists(unit: &mut Unit<'_>, key: &Key) -> Result<bool> {
    Ok(find(unit, key).await?.is_some())
}

/// Adds members, or changes the scores of those that are there, one after the other.
pub async fn add(unit: &mut Unit<'_>, key: &Key, members: &[Scored], options: AddOptions) -> Result<Added> {
    let mut done = Added::default();
    let Some(zset) = find_for(unit, key, options).await? else { return Ok(done) };
    let mut change = Change::begin(unit, zset, members.iter().map(|(member, _)| member)).await?;
    for (member, score) in members {
        let old = change.score(member);
        if !options.allow(old, *score) {
            continue;
        }
        match old {
            None => done.added += 1,
            Some(old) if old == *score => continue,
            Some(_) => done.updated += 1,
        }
        change.set(member, Some(*score));
    }
    change.finish(unit).await?;
    Ok(done)
}

/// Adds to a member's score, which is 0 if it is not there. Returns the new score, or `None` if the options forbid it.
///
/// # Errors
/// [`Error::NotANumber`] for the sum of opposite infinities.
pub async fn increment(
    unit: &mut Unit<'_>,
    key: &Key,
    member: &Bytes,
    by: f64,
    options: AddOptions,
) -> Result<Option<f64>> {
    let Some(zset) = find_for(unit, key, options).await? else { return Ok(None) };
    let mut change = Change::begin(unit, zset, [member]).await?;
    let old = change.score(member);
    if old.is_some() && options.condition == Some(Condition::Absent) {
        return Ok(None);
    }
    let new = old.map_or(by, |old| old + by);
    if new.is_nan() {
        return Err(Error::NotANumber);
    }
    if !options.allow(old, new) {
        return Ok(None);
    }
    if old != Some(new) {
        change.set(member, Some(new));
    }
    change.finish(unit).await?;
    Ok(Some(new))
}

/// Removes members. Returns how many there were.
pub async fn remove(unit: &mut Unit<'_>, key: &Key, members: &[Bytes]) -> Result<usize> {
    let Some(zset) = find(unit, key).await? else { return Ok(0) };
    let mut change = Change::begin(unit, zset, members).await?;
    for member in members {
        change.set(member, None);
    }
    change.finish(unit).await
}

/// How many members there are.
pub async fn len(unit: &mut Unit<'_>, key: &Key) -> Result<u64> {
    match find(unit, key).await? {
        Some(zset) => zset.count(unit).await,
        None => Ok(0),
    }
}

/// The scores of members, in their order, read in one call to the store.
pub async fn scores(unit: &mut Unit<'_>, key: &Key, members: &[Bytes]) -> Result<Vec<Option<f64>>> {
    match find(unit, key).await? {
        Some(zset) => read_scores(unit, &zset, members).await,
        None => Ok(vec![None; members.len()]),
    }
}

/// How many members stand before `member`, seen from one end, and its score. O(N) in that number: nothing counts the
/// members of a part of the index.
pub async fn rank(unit: &mut Unit<'_>, key: &Key, member: &Bytes, from: Direction) -> Result<Option<(u64, f64)>> {
    let Some(zset) = find(unit, key).await? else { return Ok(None) };
    let scores = read_scores(unit, &zset, std::slice::from_ref(member)).await?;
    let Some(score) = scores.into_iter().flatten().next() else { return Ok(None) };
    let own = zset.elements().score(score, member);
    let mut before = range::index(&zset);
    match from {
        Direction::Forward => before.end = own,
        Direction::Backward => before = before.after(&own),
    }
    let mut rank = 0;
    walk(unit, before, from, |_, _| {
        rank += 1;
        ControlFlow::Continue(())
    })
    .await?;
    Ok(Some((rank, score)))
}

/// Members after `position` in the order of bytes, at most `limit`, with their scores; and the last of them unless there
/// are no more.
pub async fn page(
    unit: &mut Unit<'_>,
    key: &Key,
    position: Option<&Bytes>,
    limit: usize,
) -> Result<(Vec<Scored>, Option<Bytes>)> {
    let Some(zset) = find(unit, key).await? else { return Ok((Vec::new(), None)) };
    let (members, next) = zset.page(unit, position, limit).await?;
    Ok((scored(members)?, next))
}

/// Members chosen at random, all with the same chance, with their scores; `None` if there is no such sorted set.
pub async fn sample(unit: &mut Unit<'_>, key: &Key, sample: Sample) -> Result<Option<Vec<Scored>>> {
    let Some(zset) = find(unit, key).await? else { return Ok(None) };
    scored(zset.sample(unit, sample).await?).map(Some)
}

/// Puts a sorted set of these members in place of whatever is at `key`; without members, nothing is left there. Of
/// several scores for one member the last one counts. Returns how many members there are.
pub async fn replace(unit: &mut Unit<'_>, key: &Key, members: Vec<Scored>) -> Result<usize> {
    if let Some(metadata) = unit.load(key).await? {
        unit.remove(key, &metadata)?;
    }
    if members.is_empty() {
        return Ok(0);
    }
    let zset = Open::create(unit, key, empty())?;
    let mut change = Change::begin(unit, zset, []).await?;
    for (member, score) in &members {
        change.set(member, Some(*score));
    }
    change.finish(unit).await
}

/// The order of a sorted set: by scores, and by bytes among equal scores.
pub fn order((one, one_score): &Scored, (other, other_score): &Scored) -> Ordering {
    one_score.partial_cmp(other_score).unwrap_or(Ordering::Equal).then_with(|| one.cmp(other))
}

async fn find<'k>(unit: &mut Unit<'k>, key: &Key) -> Result<Option<Open<'k>>> {
    Open::find(unit, key, Type::Zset).await
}

/// The sorted set at `key`; a new one, if the options allow that members are added.
async fn find_for<'k>(unit: &mut Unit<'k>, key: &Key, options: AddOptions) -> Result<Option<Open<'k>>> {
    if options.condition == Some(Condition::Present) {
        return find(unit, key).await;
    }
    Open::find_or_create(unit, key, Type::Zset, empty()).await.map(Some)
}

fn empty() -> Body {
    Body::Zset { count: Some(0), bounds: ZsetBounds::default() }
}

async fn read_scores(unit: &mut Unit<'_>, zset: &Open<'_>, members: &[Bytes]) -> Result<Vec<Option<f64>>> {
    let records = members.iter().map(|member| zset.elements().element(member)).collect();
    let values = unit.read_many(records).await?;
    values.into_iter().map(|value| value.map(|value| decode(&value)).transpose()).collect()
}

fn scored(elements: Vec<(Bytes, Bytes)>) -> Result<Vec<Scored>> {
    elements.into_iter().map(|(member, value)| Ok((member, decode(&value)?))).collect()
}

fn decode(value: &[u8]) -> Result<f64> {
    Ok(decode_member_score(value).map_err(keyspace::Error::from)?)
}

#[cfg(test)]
mod tests;
