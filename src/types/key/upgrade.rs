use crate::{
    encoding::{Body, Metadata, ZsetOrder},
    keyspace::{Key, Unit},
    types::{Error, Result, hash, set, zset},
};

/// Gives `key` another encode-version.
///
/// Hashes and sets lay out their elements alike in both, so only the metadata is written, in O(1), after the elements
/// have been counted if the new version counts them, page by page. All records of a sorted set are written anew, a large
/// one's in commits of their own, before the unit puts them in place of the old ones.
///
/// # Errors
/// [`Error::NoSuchKey`]; [`Error::NoSuchEncodeVersion`] if the type has no such version, or no choice.
pub async fn set_encode_version(unit: &mut Unit<'_>, key: &Key, version: u8) -> Result<()> {
    let Some(metadata) = unit.load(key).await? else { return Err(Error::NoSuchKey) };
    let counted = match version {
        0 => true,
        1 => false,
        _ => return Err(Error::NoSuchEncodeVersion),
    };
    let count = |elements: u64| counted.then(|| u32::try_from(elements).unwrap_or(u32::MAX));
    let body = match metadata.body {
        Body::Hash { count: known } if known.is_some() == counted => return Ok(()),
        Body::Set { count: known } if known.is_some() == counted => return Ok(()),
        Body::Zset { order: ZsetOrder::Index(_), .. } if counted => return Ok(()),
        Body::Zset { order: ZsetOrder::Sidecar(_), .. } if !counted => return Ok(()),
        Body::Zset { .. } => return zset::rewrite(unit, key, &metadata, !counted).await,
        Body::Hash { .. } => Body::Hash { count: count(hash::len(unit, key).await?) },
        Body::Set { .. } => Body::Set { count: count(set::len(unit, key).await?) },
        _ => return Err(Error::NoSuchEncodeVersion),
    };
    Ok(unit.save(key, &Metadata { body, ..metadata })?)
}
