use std::collections::HashSet;

use bytes::{Buf, Bytes};

use super::{
    CHECKSUM_BYTES, CRC64, RestoreError, VERSION_MAX, Value, encoding,
    packed::{intset, listpack, ziplist, zipmap},
    reader::{Reader, parse_double},
};

/// How a node of a quicklist is laid out.
const NODE_PLAIN: usize = 1;
const NODE_PACKED: usize = 2;

/// The value of a payload that DUMP has replied with, on this server or on any Redis up to 7.2.
///
/// Refuses lengths beyond the payload, empty collections, members that occur twice, fields without values, scores that
/// are no numbers. What only serves Redis in memory is not checked: lengths for walking backwards, the order of an
/// intset. As in Redis, bytes after the value do not matter. Takes time and memory in proportion to the payload;
/// compressed strings in it may come to 512 MiB.
pub fn restore(payload: &[u8]) -> Result<Value, RestoreError> {
    let mut reader = Reader::new(Bytes::copy_from_slice(verify(payload)?));
    let value = match reader.byte()? {
        encoding::STRING => return reader.string().map(Value::String),
        encoding::LIST => Value::List(strings(&mut reader)?),
        encoding::LIST_ZIPLIST => Value::List(ziplist(reader.string()?)?),
        encoding::LIST_QUICKLIST => Value::List(quicklist(&mut reader)?),
        encoding::LIST_QUICKLIST_2 => Value::List(quicklist_2(&mut reader)?),
        encoding::SET => Value::Set(strings(&mut reader)?),
        encoding::SET_INTSET => Value::Set(intset(reader.string()?)?),
        encoding::SET_LISTPACK => Value::Set(listpack(reader.string()?)?),
        encoding::HASH => Value::Hash(hash(&mut reader)?),
        encoding::HASH_ZIPMAP => Value::Hash(pairs(zipmap(reader.string()?)?)?),
        encoding::HASH_ZIPLIST => Value::Hash(pairs(ziplist(reader.string()?)?)?),
        encoding::HASH_LISTPACK => Value::Hash(pairs(listpack(reader.string()?)?)?),
        encoding::ZSET => Value::Zset(zset(&mut reader, Reader::text_double)?),
        encoding::ZSET_2 => Value::Zset(zset(&mut reader, Reader::double)?),
        encoding::ZSET_ZIPLIST => Value::Zset(scored(ziplist(reader.string()?)?)?),
        encoding::ZSET_LISTPACK => Value::Zset(scored(listpack(reader.string()?)?)?),
        _ => return Err(RestoreError::BadFormat),
    };
    if is_sound(&value) { Ok(value) } else { Err(RestoreError::BadFormat) }
}

/// What stands before the version and the checksum, if both are right.
fn verify(payload: &[u8]) -> Result<&[u8], RestoreError> {
    let split = |bytes: &'_ [u8], last| bytes.len().checked_sub(last).ok_or(RestoreError::VersionOrChecksum);
    let (checked, mut checksum) = payload.split_at(split(payload, CHECKSUM_BYTES)?);
    let (body, mut version) = checked.split_at(split(checked, size_of_val(&VERSION_MAX))?);
    let known = version.try_get_u16_le()? <= VERSION_MAX;
    let intact = checksum.try_get_u64_le()? == CRC64.checksum(checked);
    if known && intact { Ok(body) } else { Err(RestoreError::VersionOrChecksum) }
}

fn strings(reader: &mut Reader) -> Result<Vec<Bytes>, RestoreError> {
    (0..reader.count()?).map(|_| reader.string()).collect()
}

fn hash(reader: &mut Reader) -> Result<Vec<(Bytes, Bytes)>, RestoreError> {
    (0..reader.count()?).map(|_| Ok((reader.string()?, reader.string()?))).collect()
}

fn zset(
    reader: &mut Reader,
    score: fn(&mut Reader) -> Result<f64, RestoreError>,
) -> Result<Vec<(Bytes, f64)>, RestoreError> {
    (0..reader.count()?).map(|_| Ok((reader.string()?, score(reader)?))).collect()
}

/// A list in nodes, each a ziplist.
fn quicklist(reader: &mut Reader) -> Result<Vec<Bytes>, RestoreError> {
    let mut elements = Vec::new();
    for _ in 0..reader.count()? {
        elements.extend(ziplist(reader.string()?)?);
    }
    Ok(elements)
}

/// A list in nodes, each a listpack or one element that is too large for one.
fn quicklist_2(reader: &mut Reader) -> Result<Vec<Bytes>, RestoreError> {
    let mut elements = Vec::new();
    for _ in 0..reader.count()? {
        match reader.count()? {
            NODE_PLAIN => elements.push(reader.string()?),
            NODE_PACKED => elements.extend(listpack(reader.string()?)?),
            _ => return Err(RestoreError::BadFormat),
        }
    }
    Ok(elements)
}

/// Fields and values, which follow each other in turn.
fn pairs(elements: Vec<Bytes>) -> Result<Vec<(Bytes, Bytes)>, RestoreError> {
    if !elements.len().is_multiple_of(2) {
        return Err(RestoreError::BadFormat);
    }
    let mut elements = elements.into_iter();
    Ok(std::iter::from_fn(|| elements.next().zip(elements.next())).collect())
}

/// Members and scores, which follow each other in turn; the scores as text.
fn scored(elements: Vec<Bytes>) -> Result<Vec<(Bytes, f64)>, RestoreError> {
    pairs(elements)?.into_iter().map(|(member, score)| Ok((member, parse_double(&score)?))).collect()
}

/// True if the value is one that a key can have: not empty, nothing twice, no score that has no place in the order.
fn is_sound(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::List(elements) => !elements.is_empty(),
        Value::Set(members) => !members.is_empty() && are_distinct(members.iter()),
        Value::Hash(fields) => !fields.is_empty() && are_distinct(fields.iter().map(|(field, _)| field)),
        Value::Zset(members) => {
            !members.is_empty()
                && !members.iter().any(|(_, score)| score.is_nan())
                && are_distinct(members.iter().map(|(member, _)| member))
        }
    }
}

fn are_distinct<'a>(mut names: impl ExactSizeIterator<Item = &'a Bytes>) -> bool {
    let mut seen = HashSet::with_capacity(names.len());
    names.all(|name| seen.insert(name))
}
