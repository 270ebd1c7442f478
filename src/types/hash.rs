//! Hashes: an element for each field, whose value is the field's value.
//!
//! Encode-version 0 counts its fields and so reads before it writes. Encode-version 1 does not: it writes without
//! reading, and its replies count arguments.

use std::{collections::BTreeMap, ops::ControlFlow};

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

/// A field and its value.
pub type Pair = (Bytes, Bytes);

/// True if there is such a hash.
pub async fn exists(unit: &mut Unit<'_>, key: &Key) -> Result<bool> {
    Ok(find(unit, key).await?.is_some())
}

/// The value of one field.
pub async fn get(unit: &mut Unit<'_>, key: &Key, field: &[u8]) -> Result<Option<Bytes>> {
    match find(unit, key).await? {
        Some(hash) => Ok(unit.read(&hash.elements().element(field)).await?),
        None => Ok(None),
    }
}

/// The values of several fields, in their order, read in one call to the store.
pub async fn get_many(unit: &mut Unit<'_>, key: &Key, fields: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
    match find(unit, key).await? {
        Some(hash) => Ok(unit.read_many(&records(&hash, fields)).await?),
        None => Ok(vec![None; fields.len()]),
    }
}

/// How many fields there are: O(1) in encode-version 0, O(n) in 1.
pub async fn len(unit: &mut Unit<'_>, key: &Key) -> Result<u64> {
    match find(unit, key).await? {
        Some(hash) => hash.count(unit).await,
        None => Ok(0),
    }
}

/// Sets fields. Returns how many were new, or in encode-version 1 how many were given.
pub async fn set(unit: &mut Unit<'_>, key: &Key, pairs: &[Pair]) -> Result<usize> {
    let mut hash = find_or_create(unit, key).await?;
    // The last of several values for one field counts, and the field counts once.
    let fields: BTreeMap<&Bytes, &Bytes> = pairs.iter().map(|(field, value)| (field, value)).collect();
    let records: Vec<Bytes> = fields.keys().map(|field| hash.elements().element(field)).collect();
    let added = if hash.counted().is_none() {
        pairs.len()
    } else if hash.is_new() {
        records.len()
    } else {
        unit.read_many(&records).await?.iter().filter(|value| value.is_none()).count()
    };
    for (record, value) in records.into_iter().zip(fields.into_values()) {
        unit.put_record(record, value.clone());
    }
    hash.settle(unit, added, 0).await?;
    Ok(added)
}

/// Sets a field unless it exists. True if it was set.
pub async fn set_if_absent(unit: &mut Unit<'_>, key: &Key, field: &Bytes, value: &Bytes) -> Result<bool> {
    let mut hash = find_or_create(unit, key).await?;
    let record = hash.elements().element(field);
    if unit.read(&record).await?.is_some() {
        return Ok(false);
    }
    unit.put_record(record, value.clone());
    hash.settle(unit, 1, 0).await?;
    Ok(true)
}

/// Replaces the value of one field by what `change` makes of it. Returns what it made.
///
/// # Errors
/// Those of `change`; nothing is written then.
pub async fn update(
    unit: &mut Unit<'_>,
    key: &Key,
    field: &Bytes,
    change: impl FnOnce(Option<&Bytes>) -> Result<Bytes>,
) -> Result<Bytes> {
    let mut hash = find_or_create(unit, key).await?;
    let record = hash.elements().element(field);
    let before = unit.read(&record).await?;
    let after = change(before.as_ref())?;
    unit.put_record(record, after.clone());
    hash.settle(unit, usize::from(before.is_none()), 0).await?;
    Ok(after)
}

/// Deletes fields. Returns how many there were, or in encode-version 1 how many were given, if the key exists.
pub async fn delete(unit: &mut Unit<'_>, key: &Key, fields: &[Bytes]) -> Result<usize> {
    let Some(mut hash) = find(unit, key).await? else { return Ok(0) };
    let mut records = records(&hash, fields);
    let mut removed = records.len();
    if hash.counted().is_some() {
        records.sort_unstable();
        records.dedup();
        let values = unit.read_many(&records).await?;
        records =
            records.into_iter().zip(values).filter(|(_, value)| value.is_some()).map(|(record, _)| record).collect();
        removed = records.len();
    }
    if removed > 0 {
        records.into_iter().for_each(|record| unit.delete_record(record));
        hash.settle(unit, 0, removed).await?;
    }
    Ok(removed)
}

/// Every field with its value, in the order of fields.
pub async fn all(unit: &mut Unit<'_>, key: &Key) -> Result<Vec<Pair>> {
    let Some(hash) = find(unit, key).await? else { return Ok(Vec::new()) };
    let mut pairs = Vec::new();
    walk(unit, hash.elements().elements(), Direction::Forward, |record, value| {
        pairs.push((hash.elements().suffix(record), value));
        ControlFlow::Continue(())
    })
    .await?;
    Ok(pairs)
}

/// Every field with its value, to be read page by page, if the hash is large.
pub async fn stream(unit: &mut Unit<'_>, key: &Key) -> Result<Option<Elements>> {
    match find(unit, key).await? {
        Some(hash) => hash.stream(unit).await,
        None => Ok(None),
    }
}

/// Fields after `position` in the order of fields, at most `limit`, with their values; and the last of them unless there
/// are no more.
pub async fn page(
    unit: &mut Unit<'_>,
    key: &Key,
    position: Option<&Bytes>,
    limit: usize,
) -> Result<(Vec<Pair>, Option<Bytes>)> {
    match find(unit, key).await? {
        Some(hash) => hash.page(unit, position, limit).await,
        None => Ok((Vec::new(), None)),
    }
}

/// Fields chosen at random, all with the same chance, with their values; `None` if there is no such hash.
pub async fn sample(unit: &mut Unit<'_>, key: &Key, sample: Sample) -> Result<Option<Vec<Pair>>> {
    match find(unit, key).await? {
        Some(hash) => Ok(Some(hash.sample(unit, sample).await?)),
        None => Ok(None),
    }
}

async fn find<'k>(unit: &mut Unit<'k>, key: &Key) -> Result<Option<Open<'k>>> {
    Open::find(unit, key, Type::Hash).await
}

async fn find_or_create<'k>(unit: &mut Unit<'k>, key: &Key) -> Result<Open<'k>> {
    let count = unit.keyspace().encodings().counted_hashes.then_some(0);
    Open::find_or_create(unit, key, Type::Hash, Body::Hash { count }).await
}

fn records(hash: &Open<'_>, fields: &[Bytes]) -> Vec<Bytes> {
    fields.iter().map(|field| hash.elements().element(field)).collect()
}
