use bytes::Bytes;

use super::{length, replace, value};
use crate::{
    encoding::{Metadata, Type},
    keyspace::{Key, Unit},
    resp::integer::parse_integer,
    types::{Error, LongDouble, Result},
};

/// No number is spelt with more bytes.
const NUMBER_BYTES_MAX: u64 = LongDouble::TEXT_BYTES_MAX as u64;

/// Adds `by` to the integer in `key` and gives the sum. A key that does not exist is 0.
///
/// # Errors
/// [`Error::NotInteger`] if the value is none, [`Error::Overflow`] if the sum leaves the range of 64 bits.
pub async fn increment(unit: &mut Unit<'_>, key: &Key, by: i64) -> Result<i64> {
    let metadata = unit.load_as(key, Type::String).await?;
    let number = match &metadata {
        Some(metadata) => {
            let text = text(unit, key, metadata).await?.ok_or(Error::NotInteger)?;
            parse_integer(&text).ok_or(Error::NotInteger)?
        }
        None => 0,
    };
    let sum = number.checked_add(by).ok_or(Error::Overflow)?;
    write(unit, key, metadata, Bytes::copy_from_slice(itoa::Buffer::new().format(sum).as_bytes()))?;
    Ok(sum)
}

/// Adds the number that `by` spells to that in `key` and gives the sum as text. A key that does not exist is 0.
///
/// # Errors
/// [`Error::NotFloat`] if the value or `by` is no number, [`Error::NotFinite`] if the sum is infinite.
pub async fn increment_float(unit: &mut Unit<'_>, key: &Key, by: &[u8]) -> Result<Bytes> {
    let metadata = unit.load_as(key, Type::String).await?;
    let number = match &metadata {
        Some(metadata) => {
            let text = text(unit, key, metadata).await?.ok_or(Error::NotFloat)?;
            LongDouble::parse(&text).ok_or(Error::NotFloat)?
        }
        None => LongDouble::ZERO,
    };
    let by = LongDouble::parse(by).ok_or(Error::NotFloat)?;
    let sum = Bytes::from(number.checked_add(by).ok_or(Error::NotFinite)?.to_string());
    write(unit, key, metadata, sum.clone())?;
    Ok(sum)
}

/// The value, unless it is too long for a number.
async fn text(unit: &mut Unit<'_>, key: &Key, metadata: &Metadata) -> Result<Option<Bytes>> {
    if length(metadata)? > NUMBER_BYTES_MAX {
        return Ok(None);
    }
    value(unit, key, metadata).await.map(Some)
}

/// Gives `key` a new value, and leaves it its expiry.
fn write(unit: &mut Unit<'_>, key: &Key, old: Option<Metadata>, value: Bytes) -> Result<()> {
    let expires_at_ms = old.as_ref().and_then(|metadata| metadata.expires_at_ms);
    replace(unit, key, old.as_ref(), value, expires_at_ms)
}
