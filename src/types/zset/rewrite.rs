use super::{find, index::Zset};
use crate::{
    encoding::Metadata,
    keyspace::{Key, Unit},
    types::{Error, Result},
};

/// Members that are written in one commit.
const COMMIT_MEMBERS_MAX: usize = 1_000;

/// Stores the sorted set at `key`, whose metadata is `metadata`, in the other encode-version: as another sorted set with the
/// same members, whose metadata takes the place of the first one's when all of them are written. O(N).
///
/// The members of a large one are staged a thousand at a time, in commits of their own. Whatever fails on the way, the
/// sorted set is still what it was. The unit must do nothing else with it.
///
/// # Errors
/// [`Error::DigestTaken`] if two members have the same digest, for the sidecar would take them for one.
pub async fn rewrite(unit: &mut Unit<'_>, key: &Key, metadata: &Metadata, in_sidecar: bool) -> Result<()> {
    let Some(from) = find(unit, key).await? else { return Ok(()) };
    unit.remove(key, metadata)?;
    let mut to = Zset::create(unit, key, in_sidecar)?;
    to.ready_to_change(unit).await?;
    let (mut count, mut position) = (0, None);
    loop {
        let (members, last) = from.page(unit, position.as_ref(), COMMIT_MEMBERS_MAX).await?;
        for (member, score) in &members {
            to.write(unit, member, None, Some(*score))?;
        }
        count += members.len();
        let is_small = position.is_none() && last.is_none();
        if !is_small {
            unit.stage(to.open.elements()).await?;
        }
        position = last;
        if position.is_none() {
            if !is_small && unit.count_staged(to.open.elements()).await? != count {
                return Err(Error::DigestTaken);
            }
            break;
        }
    }
    to.settle(unit, count, 0).await?;
    if let (Some(_), Some(created)) = (metadata.expires_at_ms, unit.load(key).await?) {
        unit.save(key, &Metadata { expires_at_ms: metadata.expires_at_ms, ..created })?;
    }
    Ok(())
}
