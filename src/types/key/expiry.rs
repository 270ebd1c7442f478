use crate::{
    encoding::Metadata,
    keyspace::{Key, Unit},
    types::Result,
};

/// When an expiry may be changed, by what it is now. All conditions given must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// Only if the key has none.
    pub if_none: bool,
    /// Only if the key has one.
    pub if_some: bool,
    /// Only if the new one is later; a key without expiry lives for ever, and nothing is later than that.
    pub if_later: bool,
    /// Only if the new one is earlier; anything is earlier than for ever.
    pub if_earlier: bool,
}

impl Condition {
    fn allows(self, current: Option<i64>, new: i64) -> bool {
        !(self.if_none && current.is_some()
            || self.if_some && current.is_none()
            || self.if_later && current.is_none_or(|current| new <= current)
            || self.if_earlier && current.is_some_and(|current| new >= current))
    }
}

/// Makes `key` expire at `at_ms`, in milliseconds since the Unix epoch. A time that is not in the future deletes it.
/// False if there is no such key or `condition` does not hold.
pub async fn expire(unit: &mut Unit<'_>, key: &Key, at_ms: i64, condition: Condition) -> Result<bool> {
    let Some(metadata) = unit.load(key).await? else { return Ok(false) };
    if !condition.allows(metadata.expires_at_ms, at_ms) {
        return Ok(false);
    }
    if at_ms <= unit.now_ms() {
        unit.remove(key, &metadata)?;
    } else {
        unit.save(key, &Metadata { expires_at_ms: Some(at_ms), ..metadata })?;
    }
    Ok(true)
}

/// Makes `key` live for ever. False if there is no such key or it did so already.
pub async fn persist(unit: &mut Unit<'_>, key: &Key) -> Result<bool> {
    let Some(metadata) = unit.load(key).await? else { return Ok(false) };
    if metadata.expires_at_ms.is_none() {
        return Ok(false);
    }
    unit.save(key, &Metadata { expires_at_ms: None, ..metadata })?;
    Ok(true)
}

/// When `key` expires, in milliseconds since the Unix epoch: `None` if there is no such key, `Some(None)` if it lives
/// for ever.
pub async fn expires_at(unit: &mut Unit<'_>, key: &Key) -> Result<Option<Option<i64>>> {
    Ok(unit.load(key).await?.map(|metadata| metadata.expires_at_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_compare_the_old_expiry_with_the_new_one() {
        let none = Condition { if_none: true, ..Condition::default() };
        assert!(none.allows(None, 5) && !none.allows(Some(9), 5));
        let some = Condition { if_some: true, ..Condition::default() };
        assert!(!some.allows(None, 5) && some.allows(Some(9), 5));
        let later = Condition { if_later: true, ..Condition::default() };
        assert!(!later.allows(None, 5) && !later.allows(Some(5), 5) && later.allows(Some(4), 5));
        let earlier = Condition { if_earlier: true, ..Condition::default() };
        assert!(earlier.allows(None, 5) && !earlier.allows(Some(5), 5) && earlier.allows(Some(6), 5));
        let both = Condition { if_some: true, if_earlier: true, ..Condition::default() };
        assert!(!both.allows(None, 5) && both.allows(Some(6), 5));
    }
}
