use bytes::Bytes;
use respgate_backend_api::Direction;

use crate::{
    encoding::{Body, LIST_START, Metadata, Type, rdb::Value},
    keyspace::{Key, Unit},
    types::{Result, hash, set, string, zset},
};

/// How many records are read at a time.
const PAGE: usize = 256;

/// The whole value of `key`. Time and memory in proportion to it.
pub async fn value(unit: &mut Unit<'_>, key: &Key) -> Result<Option<Value>> {
    let Some(metadata) = unit.load(key).await? else { return Ok(None) };
    if metadata.kind() == Type::String {
        return Ok(Some(Value::String(string::value(unit, key, &metadata).await?)));
    }
    if metadata.kind() == Type::Zset {
        return Ok(Some(Value::Zset(zset::all(unit, key).await?)));
    }
    let elements = elements(unit, key, &metadata).await?;
    Ok(Some(match metadata.kind() {
        Type::Hash => Value::Hash(elements),
        Type::Set => Value::Set(elements.into_iter().map(|(member, _)| member).collect()),
        _ => Value::List(elements.into_iter().map(|(_, element)| element).collect()),
    }))
}

/// Every element of a collection: the suffix of its record, and its value.
async fn elements(unit: &mut Unit<'_>, key: &Key, metadata: &Metadata) -> Result<Vec<(Bytes, Bytes)>> {
    let mut range = unit.collection(key, metadata)?.elements();
    let head_bytes = range.start.len();
    let mut elements = Vec::new();
    loop {
        let page = unit.scan(&range, Direction::Forward, PAGE).await?;
        let is_last = page.len() < PAGE;
        if let Some((last, _)) = page.last() {
            range = range.after(last);
        }
        elements.extend(page.into_iter().map(|(record, value)| (record.slice(head_bytes.min(record.len())..), value)));
        if is_last {
            return Ok(elements);
        }
    }
}

/// Creates `key`, which must not exist, with this value.
pub async fn restore(unit: &mut Unit<'_>, key: &Key, value: Value, expires_at_ms: Option<i64>) -> Result<()> {
    match value {
        Value::String(value) => return string::set(unit, key, value, expires_at_ms),
        Value::Hash(pairs) => {
            hash::set(unit, key, &pairs).await?;
        }
        Value::Set(members) => {
            set::add(unit, key, &members).await?;
        }
        Value::List(elements) => restore_list(unit, key, elements)?,
        Value::Zset(members) => {
            zset::replace(unit, key, members).await?;
        }
    }
    if let (Some(at_ms), Some(metadata)) = (expires_at_ms, unit.load(key).await?) {
        unit.save(key, &Metadata { expires_at_ms: Some(at_ms), ..metadata })?;
    }
    Ok(())
}

fn restore_list(unit: &mut Unit<'_>, key: &Key, elements: Vec<Bytes>) -> Result<()> {
    let tail = LIST_START + elements.len() as u64;
    let body = Body::List { count: count(elements.len()), head: LIST_START, tail };
    let metadata = Metadata { version: unit.new_version(), expires_at_ms: None, body, origin: None };
    let list = unit.collection(key, &metadata)?;
    for (position, element) in (LIST_START..).zip(elements) {
        unit.put_record(list.element(&position.to_be_bytes()), element);
    }
    Ok(unit.save(key, &metadata)?)
}

/// A payload is far smaller than 2^32 elements would be.
fn count(elements: usize) -> u32 {
    u32::try_from(elements).unwrap_or(u32::MAX)
}
