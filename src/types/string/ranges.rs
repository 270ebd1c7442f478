use bytes::Bytes;

use super::{Chunks, length, patched, set};
use crate::{
    encoding::{Body, Metadata, Type},
    keyspace::{Key, Unit},
    types::{Error, Result},
};

/// Adds `tail` to the end of `key` and gives the new length. A key that does not exist is an empty string.
///
/// # Errors
/// [`Error::StringTooLong`] if the string would be longer than `bytes_max`.
pub async fn append(unit: &mut Unit<'_>, key: &Key, tail: &Bytes, bytes_max: u64) -> Result<u64> {
    let Some(metadata) = unit.load_as(key, Type::String).await? else {
        check_length(0, tail, bytes_max)?;
        set(unit, key, tail.clone(), None)?;
        return Ok(tail.len() as u64);
    };
    let offset = length(&metadata)?;
    check_length(offset, tail, bytes_max)?;
    patch(unit, key, metadata, offset, tail).await
}

/// Writes `patch` over the bytes of `key` from `offset` on, with zeros in between if the string ends before, and gives
/// the new length. An empty patch changes nothing.
///
/// # Errors
/// [`Error::StringTooLong`] if the string would be longer than `bytes_max`.
pub async fn overwrite(unit: &mut Unit<'_>, key: &Key, offset: u64, patch: &Bytes, bytes_max: u64) -> Result<u64> {
    let metadata = unit.load_as(key, Type::String).await?;
    if patch.is_empty() {
        return metadata.map_or(Ok(0), |metadata| length(&metadata));
    }
    check_length(offset, patch, bytes_max)?;
    let metadata = metadata.unwrap_or_else(|| Metadata {
        version: unit.new_version(),
        expires_at_ms: None,
        body: Body::String(Bytes::new()),
        origin: None,
    });
    self::patch(unit, key, metadata, offset, patch).await
}

/// The bytes of `key` from `start` to `end`, both included; negative positions count from the end, -1 being the last.
/// Positions outside of the string are moved to its ends.
pub async fn range(unit: &mut Unit<'_>, key: &Key, start: i64, end: i64) -> Result<Bytes> {
    let Some(metadata) = unit.load_as(key, Type::String).await? else { return Ok(Bytes::new()) };
    let length = length(&metadata)?;
    // Two negative positions in the wrong order show nothing, even where both would be moved to the first byte.
    if start < 0 && end < 0 && start > end {
        return Ok(Bytes::new());
    }
    let start = position(start, length);
    let end = position(end, length).saturating_add(1).min(length);
    if start >= end {
        return Ok(Bytes::new());
    }
    match &metadata.body {
        Body::String(value) => Ok(value.slice(start as usize..end as usize)),
        _ => Chunks::open(unit, key, &metadata)?.read(unit, start..end).await,
    }
}

/// Where position `index` is in a string of this length: not before its first byte, perhaps after its last.
fn position(index: i64, length: u64) -> u64 {
    u64::try_from(index).unwrap_or_else(|_| length.saturating_sub(index.unsigned_abs()))
}

fn check_length(offset: u64, patch: &Bytes, bytes_max: u64) -> Result<()> {
    match offset.checked_add(patch.len() as u64) {
        Some(end) if end <= bytes_max => Ok(()),
        _ => Err(Error::StringTooLong),
    }
}

/// Writes `patch` at `offset` of the string whose metadata is `metadata`, and gives its new length.
async fn patch(unit: &mut Unit<'_>, key: &Key, mut metadata: Metadata, offset: u64, patch: &Bytes) -> Result<u64> {
    let length = length(&metadata)?.max(offset + patch.len() as u64);
    let is_short = length <= unit.keyspace().encodings().string_chunk_threshold as u64;
    metadata.body = match &metadata.body {
        Body::String(value) if is_short => {
            metadata.version = unit.new_version();
            Body::String(patched(value, offset as usize, patch))
        }
        Body::String(value) => {
            let mut chunks = Chunks::create(unit, key, &metadata)?;
            chunks.write(unit, 0, value).await?;
            chunks.write(unit, offset, patch).await?;
            chunks.body()
        }
        _ => {
            let mut chunks = Chunks::open(unit, key, &metadata)?;
            chunks.write(unit, offset, patch).await?;
            chunks.body()
        }
    };
    // Written even where it stays the same: whoever reads the string in another gateway must meet a conflict.
    unit.save(key, &metadata)?;
    Ok(length)
}
