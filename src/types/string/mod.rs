//! Strings: the value is in the metadata record itself or, if it is long, in chunks.

mod chunks;
mod counters;
mod lcs;
mod ranges;

use bytes::Bytes;

use super::Result;
use crate::{
    encoding::{Body, Metadata, Type},
    keyspace::{Error, Key, Unit},
};

use chunks::{Chunks, patched};
pub use counters::{increment, increment_float};
pub use lcs::{CommonRun, Lcs};
pub use ranges::{append, overwrite, range};

/// When the key must exist, or must not, for a value to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Set only a key that does not exist.
    Absent,
    /// Set only a key that exists.
    Present,
}

/// When a key is to expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Never.
    #[default]
    Never,
    /// When it would have expired anyway.
    Unchanged,
    /// At this time, in milliseconds since the Unix epoch.
    At(i64),
}

/// How a value is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetOptions {
    /// What must be true of the key.
    pub condition: Option<Condition>,
    /// When the key expires from now on.
    pub expiry: Expiry,
    /// True if the value that was there is asked for, so that the key must be a string.
    pub returns_old: bool,
}

/// What setting a value did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOutcome {
    /// False if the condition did not hold.
    pub was_set: bool,
    /// The value before, if it was asked for and there was one.
    pub old: Option<Bytes>,
}

/// The value of `key`.
pub async fn get(unit: &mut Unit<'_>, key: &Key) -> Result<Option<Bytes>> {
    let Some(metadata) = unit.load_as(key, Type::String).await? else { return Ok(None) };
    value(unit, key, &metadata).await.map(Some)
}

/// The values of several keys, whose metadata is read in one call. A key that is no string has none.
pub async fn get_many(unit: &mut Unit<'_>, keys: &[Key]) -> Result<Vec<Option<Bytes>>> {
    let loaded = unit.load_many(keys).await?;
    let mut values = Vec::with_capacity(keys.len());
    for (key, metadata) in keys.iter().zip(loaded) {
        values.push(match metadata {
            Some(metadata) if metadata.kind() == Type::String => Some(value(unit, key, &metadata).await?),
            _ => None,
        });
    }
    Ok(values)
}

/// The value of the string `key`, whose metadata is `metadata`.
pub async fn value(unit: &mut Unit<'_>, key: &Key, metadata: &Metadata) -> Result<Bytes> {
    match &metadata.body {
        Body::String(value) => Ok(value.clone()),
        _ => Chunks::open(unit, key, metadata)?.read_all(unit).await,
    }
}

/// The length in bytes of the string whose metadata is `metadata`.
pub fn length(metadata: &Metadata) -> Result<u64> {
    match &metadata.body {
        Body::String(value) => Ok(value.len() as u64),
        Body::Chunks { bytes, .. } => Ok(*bytes),
        _ => Err(Error::WrongType.into()),
    }
}

/// Sets `key`, whatever it was, without reading it: elements that it may have had are found by the sweep.
pub fn set(unit: &mut Unit<'_>, key: &Key, value: Bytes, expires_at_ms: Option<i64>) -> Result<()> {
    let version = unit.new_version();
    let mut metadata = Metadata { version, expires_at_ms, body: Body::String(Bytes::new()), origin: None };
    metadata.body = if value.len() <= unit.keyspace().encodings().string_chunk_threshold {
        Body::String(value)
    } else {
        Chunks::create(unit, key, &metadata)?.fill(unit, &value)?
    };
    Ok(unit.save(key, &metadata)?)
}

/// Sets `key`, whose metadata was `old`, and lets go of what `old` leaves behind.
pub fn replace(
    unit: &mut Unit<'_>,
    key: &Key,
    old: Option<&Metadata>,
    value: Bytes,
    expires_at_ms: Option<i64>,
) -> Result<()> {
    if let Some(old) = old {
        unit.bury(key, old)?;
    }
    set(unit, key, value, expires_at_ms)
}

/// Sets `key` if the condition among `options` holds. Reads the key only if the options depend on what it was.
pub async fn set_with(unit: &mut Unit<'_>, key: &Key, value: Bytes, options: SetOptions) -> Result<SetOutcome> {
    let SetOptions { condition, expiry, returns_old } = options;
    let old =
        if condition.is_some() || expiry == Expiry::Unchanged || returns_old { unit.load(key).await? } else { None };
    let old_value = match &old {
        Some(metadata) if metadata.kind() != Type::String && returns_old => return Err(Error::WrongType.into()),
        Some(metadata) if returns_old => Some(self::value(unit, key, metadata).await?),
        _ => None,
    };
    let was_set = match condition {
        Some(Condition::Absent) => old.is_none(),
        Some(Condition::Present) => old.is_some(),
        None => true,
    };
    if was_set {
        let expires_at_ms = match expiry {
            Expiry::Never => None,
            Expiry::Unchanged => old.as_ref().and_then(|metadata| metadata.expires_at_ms),
            Expiry::At(at_ms) => Some(at_ms),
        };
        replace(unit, key, old.as_ref(), value, expires_at_ms)?;
    }
    Ok(SetOutcome { was_set, old: old_value })
}

/// Sets several keys, unless one of them exists. True if they were set.
pub async fn set_all_if_absent(unit: &mut Unit<'_>, keys: &[Key], values: Vec<Bytes>) -> Result<bool> {
    if unit.load_many(keys).await?.iter().any(Option::is_some) {
        return Ok(false);
    }
    for (key, value) in keys.iter().zip(values) {
        set(unit, key, value, None)?;
    }
    Ok(true)
}

/// Deletes `key` and gives the value that it had.
pub async fn take(unit: &mut Unit<'_>, key: &Key) -> Result<Option<Bytes>> {
    let Some(metadata) = unit.load_as(key, Type::String).await? else { return Ok(None) };
    let value = value(unit, key, &metadata).await?;
    unit.remove(key, &metadata)?;
    Ok(Some(value))
}

/// Changes when `key`, whose metadata is `metadata`, expires. A time that has come deletes it.
pub fn set_expiry(unit: &mut Unit<'_>, key: &Key, mut metadata: Metadata, expiry: Expiry) -> Result<()> {
    let expires_at_ms = match expiry {
        Expiry::Unchanged => return Ok(()),
        Expiry::Never => None,
        Expiry::At(at_ms) if at_ms <= unit.now_ms() => return Ok(unit.remove(key, &metadata)?),
        Expiry::At(at_ms) => Some(at_ms),
    };
    if metadata.expires_at_ms != expires_at_ms {
        metadata.expires_at_ms = expires_at_ms;
        unit.save(key, &metadata)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
