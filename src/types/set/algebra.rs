//! Intersection, union and difference of sets.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::{all, find, read_all, records};
use crate::{
    keyspace::{Key, Unit},
    types::{Result, collection::Open},
};

/// Members whose presence in another set is asked for in one call to the store.
const PROBES: usize = 1_000;

/// The members that are in every set, in the order of bytes. Reads the smallest set whole, the others only where
/// members are looked for.
pub async fn intersection(unit: &mut Unit<'_>, keys: &[Key]) -> Result<BTreeSet<Bytes>> {
    let mut sets = Vec::with_capacity(keys.len());
    let mut one_is_missing = false;
    for key in keys {
        // The rest is looked at even if one is missing: a key of another type is an error all the same.
        match find(unit, key).await? {
            Some(set) => sets.push((key, set)),
            None => one_is_missing = true,
        }
    }
    if one_is_missing {
        return Ok(BTreeSet::new());
    }
    sets.sort_by_key(|(_, set)| set.counted().unwrap_or(u32::MAX));
    let mut sets = sets.into_iter();
    let Some((smallest, _)) = sets.next() else { return Ok(BTreeSet::new()) };
    let mut members = all(unit, smallest).await?.unwrap_or_default();
    for (_, set) in sets {
        members = retain(unit, &set, members, true).await?;
    }
    Ok(members)
}

/// The members that are in any of the sets, in the order of bytes.
pub async fn union(unit: &mut Unit<'_>, keys: &[Key]) -> Result<BTreeSet<Bytes>> {
    let mut members = BTreeSet::new();
    for key in keys {
        members.append(&mut all(unit, key).await?.unwrap_or_default());
    }
    Ok(members)
}

/// The members of the first set that are in none of the others, in the order of bytes. Reads the first set whole, the
/// others only where members are looked for.
pub async fn difference(unit: &mut Unit<'_>, keys: &[Key]) -> Result<BTreeSet<Bytes>> {
    let Some((first, others)) = keys.split_first() else { return Ok(BTreeSet::new()) };
    let mut sets = Vec::with_capacity(others.len());
    for key in others {
        sets.extend(find(unit, key).await?);
    }
    let mut members = all(unit, first).await?.unwrap_or_default();
    for set in sets {
        members = retain(unit, &set, members, false).await?;
    }
    Ok(members)
}

/// Those of `members` that are in `set`, or those that are not. A set that is not much larger is read whole: that is
/// cheaper than looking for each member.
async fn retain(
    unit: &mut Unit<'_>,
    set: &Open<'_>,
    mut members: BTreeSet<Bytes>,
    present: bool,
) -> Result<BTreeSet<Bytes>> {
    /// How many elements can be read in order in the time that one takes by itself.
    const CHEAPER: usize = 8;

    if set.counted().is_some_and(|count| count as usize <= members.len().saturating_mul(CHEAPER)) {
        let others = read_all(unit, set).await?;
        members.retain(|member| others.contains(member) == present);
        return Ok(members);
    }
    let members: Vec<Bytes> = members.into_iter().collect();
    let mut kept = BTreeSet::new();
    for some in members.chunks(PROBES) {
        let found = unit.read_many(records(set, some)).await?;
        kept.extend(
            some.iter().zip(found).filter(|(_, value)| value.is_some() == present).map(|(member, _)| member.clone()),
        );
    }
    Ok(kept)
}
