//! Sorted sets: a record for each member, which tells the score, and an order of members by scores, either in the store or
//! in the sidecar.

mod algebra;
mod change;
mod index;
mod range;
mod rewrite;
mod sidecar;
mod stored;

use std::cmp::Ordering;

use bytes::Bytes;
use respgate_backend_api::Direction;

use super::{Error, Result, collection::Sample, string::Condition};
use crate::keyspace::{Key, Unit};

pub use algebra::{Aggregate, Input, difference, intersection, union};
pub use index::order;
pub use range::{Edge, Range, Span, count, pop, range, remove_range};
pub use rewrite::rewrite;

use change::Change;
use index::Zset;

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
    Ok(find(unit, key).await?.map_or(0, |zset| zset.count()))
}

/// The scores of members, in their order, read in one call to the store.
pub async fn scores(unit: &mut Unit<'_>, key: &Key, members: &[Bytes]) -> Result<Vec<Option<f64>>> {
    match find(unit, key).await? {
        Some(zset) => zset.scores(unit, members).await,
        None => Ok(vec![None; members.len()]),
    }
}

/// How many members stand before `member`, seen from one end, and its score. O(N) in that number in encode-version 0,
/// O(log N) and the members with the same score in 1.
pub async fn rank(unit: &mut Unit<'_>, key: &Key, member: &Bytes, from: Direction) -> Result<Option<(u64, f64)>> {
    let Some(zset) = find(unit, key).await? else { return Ok(None) };
    let scores = zset.scores(unit, std::slice::from_ref(member)).await?;
    let Some(score) = scores.into_iter().flatten().next() else { return Ok(None) };
    let rank = zset.rank(unit, &(member.clone(), score), from).await?;
    Ok(Some((rank, score)))
}

/// Members after `position`, at most `limit`, with their scores; and the last of them unless there are no more. The order
/// is that of the store, and has nothing to do with scores.
pub async fn page(
    unit: &mut Unit<'_>,
    key: &Key,
    position: Option<&Bytes>,
    limit: usize,
) -> Result<(Vec<Scored>, Option<Bytes>)> {
    match find(unit, key).await? {
        Some(zset) => zset.page(unit, position, limit).await,
        None => Ok((Vec::new(), None)),
    }
}

/// All members with their scores, in the order of bytes.
pub async fn all(unit: &mut Unit<'_>, key: &Key) -> Result<Vec<Scored>> {
    match find(unit, key).await? {
        Some(zset) => zset.all(unit).await,
        None => Ok(Vec::new()),
    }
}

/// Members chosen at random, all with the same chance, with their scores; `None` if there is no such sorted set.
pub async fn sample(unit: &mut Unit<'_>, key: &Key, sample: Sample) -> Result<Option<Vec<Scored>>> {
    match find(unit, key).await? {
        Some(zset) => zset.sample(unit, sample).await.map(Some),
        None => Ok(None),
    }
}

/// Puts a sorted set of these members in place of whatever is at `key`; without members, nothing is left there. Of
/// several scores for one member the last one counts. Returns how many members there are.
pub async fn replace(unit: &mut Unit<'_>, key: &Key, members: Vec<Scored>) -> Result<usize> {
    if let Some(metadata) = unit.load(key).await? {
        unit.remove(key, &metadata)?;
    }
    let in_sidecar = unit.keyspace().encodings().zsets_in_sidecar;
    create(unit, key, members, in_sidecar).await
}

async fn create(unit: &mut Unit<'_>, key: &Key, members: Vec<Scored>, in_sidecar: bool) -> Result<usize> {
    if members.is_empty() {
        return Ok(0);
    }
    let zset = Zset::create(unit, key, in_sidecar)?;
    let mut change = Change::begin(unit, zset, []).await?;
    for (member, score) in &members {
        change.set(member, Some(*score));
    }
    change.finish(unit).await
}

async fn find<'k>(unit: &mut Unit<'k>, key: &Key) -> Result<Option<Zset<'k>>> {
    Zset::find(unit, key).await
}

/// The sorted set at `key`; a new one, if the options allow that members are added.
async fn find_for<'k>(unit: &mut Unit<'k>, key: &Key, options: AddOptions) -> Result<Option<Zset<'k>>> {
    if options.condition == Some(Condition::Present) {
        return find(unit, key).await;
    }
    Zset::find_or_create(unit, key).await.map(Some)
}

#[cfg(test)]
mod tests;
