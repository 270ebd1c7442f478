//! What can be done to a key whatever its type: delete, rename, copy, expire, look at.

mod copy;
mod dump;
mod encoding;
mod expiry;
mod size;
mod sort;
#[cfg(test)]
mod tests;
mod upgrade;

pub use copy::{copy, move_to};
pub use dump::{restore, value};
pub use encoding::encoding;
pub use expiry::{Condition, expire, expires_at, persist};
pub use size::stored_bytes;
pub use sort::{By, Pattern, SortOptions, sort, store_list};
pub use upgrade::set_encode_version;

use super::{Error, Result};
use crate::{
    encoding::Type,
    keyspace::{Key, Unit},
};

/// What to do when a key is to be written where there is one already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// Leave both as they are.
    Keep,
    /// Delete it first.
    Replace,
}

/// Deletes `keys` and gives how many there were. O(1) for each, whatever it holds.
pub async fn delete(unit: &mut Unit<'_>, keys: &[Key]) -> Result<usize> {
    if keys.len() > 1 {
        unit.read_ahead(keys).await?;
    }
    let mut deleted = 0;
    for key in keys {
        if let Some(metadata) = unit.load(key).await? {
            unit.remove(key, &metadata)?;
            deleted += 1;
        }
    }
    Ok(deleted)
}

/// How many of `keys` exist; one that is named twice counts twice.
pub async fn count_existing(unit: &mut Unit<'_>, keys: &[Key]) -> Result<usize> {
    Ok(unit.load_many(keys).await?.iter().flatten().count())
}

/// The type of `key`.
pub async fn kind(unit: &mut Unit<'_>, key: &Key) -> Result<Option<Type>> {
    Ok(unit.load(key).await?.map(|metadata| metadata.kind()))
}

/// Gives the value and the expiry of `from` to `to`, in the same database and in O(1): elements stay where they are.
/// False if there is a key `to` that is to be kept.
///
/// # Errors
/// [`Error::NoSuchKey`] if there is no key `from`, even if both names are the same.
pub async fn rename(unit: &mut Unit<'_>, from: &Key, to: &Key, if_exists: IfExists) -> Result<bool> {
    let metadata = unit.load(from).await?.ok_or(Error::NoSuchKey)?;
    if from == to {
        return Ok(if_exists == IfExists::Replace);
    }
    if !make_room(unit, to, if_exists).await? {
        return Ok(false);
    }
    unit.rename(from, to, metadata)?;
    Ok(true)
}

/// Deletes `key` if it exists and may be replaced. False if it is in the way.
async fn make_room(unit: &mut Unit<'_>, key: &Key, if_exists: IfExists) -> Result<bool> {
    let Some(metadata) = unit.load(key).await? else { return Ok(true) };
    if if_exists == IfExists::Keep {
        return Ok(false);
    }
    unit.remove(key, &metadata)?;
    Ok(true)
}
