//! Strings: the value is in the metadata record itself.

use bytes::Bytes;

use super::Result;
use crate::{
    encoding::{Body, Metadata, Type},
    keyspace::{Key, Unit},
};

/// The value of `key`.
pub async fn get(unit: &mut Unit<'_>, key: &Key) -> Result<Option<Bytes>> {
    let metadata = unit.load_as(key, Type::String).await?;
    Ok(metadata.and_then(|metadata| match metadata.body {
        Body::String(value) => Some(value),
        _ => None,
    }))
}

/// Sets `key`, whatever it was, without reading it: elements that it may have had are found by the sweep.
pub fn set(unit: &mut Unit<'_>, key: &Key, value: Bytes, expires_at_ms: Option<i64>) -> Result<()> {
    let metadata = Metadata { version: unit.new_version(), expires_at_ms, body: Body::String(value), origin: None };
    Ok(unit.save(key, &metadata)?)
}
