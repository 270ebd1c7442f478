//! Intersection, union and difference of sets: of members in the order of bytes, in which they are read.

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
pub async fn intersection(unit: &mut Unit<'_>, keys: &[Key]) -> Result<Vec<Bytes>> {
    let mut sets = Vec::with_capacity(keys.len());
    for key in keys {
        // The rest is looked at even if one is missing: a key of another type is an error all the same.
        sets.extend(find(unit, key).await?);
    }
    if sets.len() < keys.len() {
        return Ok(Vec::new());
    }
    sets.sort_by_key(|set| set.counted().unwrap_or(u32::MAX));
    let mut sets = sets.into_iter();
    let Some(smallest) = sets.next() else { return Ok(Vec::new()) };
    let mut members = read_all(unit, &smallest).await?;
    for set in sets {
        members = retain(unit, &set, members, true).await?;
    }
    Ok(members)
}

/// The members that are in any of the sets, in the order of bytes.
pub async fn union(unit: &mut Unit<'_>, keys: &[Key]) -> Result<Vec<Bytes>> {
    let mut members = Vec::new();
    for key in keys {
        members.append(&mut all(unit, key).await?.unwrap_or_default());
    }
    // The stable sort merges what is in order already.
    members.sort();
    members.dedup();
    Ok(members)
}

/// The members of the first set that are in none of the others, in the order of bytes. Reads the first set whole, the
/// others only where members are looked for.
pub async fn difference(unit: &mut Unit<'_>, keys: &[Key]) -> Result<Vec<Bytes>> {
    let Some((first, others)) = keys.split_first() else { return Ok(Vec::new()) };
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
async fn retain(unit: &mut Unit<'_>, set: &Open<'_>, mut members: Vec<Bytes>, present: bool) -> Result<Vec<Bytes>> {
    /// How many elements can be read in order in the time that one takes by itself.
    const CHEAPER: usize = 8;

    if set.counted().is_some_and(|count| count as usize <= members.len().saturating_mul(CHEAPER)) {
        let mut others = read_all(unit, set).await?.into_iter().peekable();
        members.retain(|member| {
            while others.next_if(|other| other < member).is_some() {}
            others.next_if_eq(member).is_some() == present
        });
        return Ok(members);
    }
    let mut kept = Vec::new();
    for some in members.chunks(PROBES) {
        let found = unit.read_many(&records(set, some)).await?;
        kept.extend(
            some.iter().zip(found).filter(|(_, value)| value.is_some() == present).map(|(member, _)| member.clone()),
        );
    }
    Ok(kept)
}
