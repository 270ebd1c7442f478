//! What hashes, sets and sorted sets have in common: metadata with a count or without one, and elements.

mod hand;
mod sample;
mod stream;

use std::ops::ControlFlow;

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange};

use super::Result;
use crate::{
    encoding::{Body, Metadata, Type},
    keyspace::{Collection, Key, Order, Unit},
};

pub use sample::Sample;
pub use stream::Elements;

/// Records that one scan takes at most: few enough to be held while they are decoded, enough to hide the round trip.
const PAGE_RECORDS: usize = 1_000;

/// A collection at hand.
pub(super) struct Open<'k> {
    key: Key,
    metadata: Metadata,
    elements: Collection<'k>,
    is_new: bool,
    /// True if the metadata must be saved even if the count stays the same.
    is_changed: bool,
}

impl<'k> Open<'k> {
    /// The collection at `key`, if there is one.
    pub(super) async fn find(unit: &mut Unit<'k>, key: &Key, kind: Type) -> Result<Option<Self>> {
        let Some(metadata) = unit.load_as(key, kind).await? else { return Ok(None) };
        let elements = unit.collection(key, &metadata)?;
        Ok(Some(Self { key: key.clone(), metadata, elements, is_new: false, is_changed: false }))
    }

    /// The collection at `key`, or an empty one with this body, which [`Open::settle`] will save.
    pub(super) async fn find_or_create(unit: &mut Unit<'k>, key: &Key, kind: Type, body: Body) -> Result<Self> {
        if let Some(found) = Self::find(unit, key, kind).await? {
            return Ok(found);
        }
        Self::create(unit, key, body)
    }

    /// An empty collection, which [`Open::settle`] will save in place of whatever is at `key`.
    pub(super) fn create(unit: &mut Unit<'k>, key: &Key, body: Body) -> Result<Self> {
        let metadata = Metadata { version: unit.new_version(), expires_at_ms: None, body, origin: None };
        let elements = unit.collection(key, &metadata)?;
        Ok(Self { key: key.clone(), metadata, elements, is_new: true, is_changed: false })
    }

    /// Where the elements are.
    pub(super) fn elements(&self) -> &Collection<'k> {
        &self.elements
    }

    /// Its order in the sidecar, if it is a sorted set that has one there.
    pub(super) fn order(&self, unit: &mut Unit<'_>) -> Result<Option<Order>> {
        Ok(unit.order(&self.key, &self.metadata)?)
    }

    /// The version of the key.
    pub(super) fn version(&self) -> u64 {
        self.metadata.version
    }

    /// What the type keeps in the metadata.
    pub(super) fn body(&self) -> &Body {
        &self.metadata.body
    }

    /// Changes what the type keeps in the metadata, which [`Open::settle`] will save.
    pub(super) fn body_mut(&mut self) -> &mut Body {
        self.is_changed = true;
        &mut self.metadata.body
    }

    /// Deletes the key with all its elements, in O(1).
    pub(super) fn remove(self, unit: &mut Unit<'_>) -> Result<()> {
        Ok(unit.remove(&self.key, &self.metadata)?)
    }

    /// True if this call created the collection, so that no element of it can be in the store.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// How many elements there are, if the encoding counts them.
    pub(super) fn counted(&self) -> Option<u32> {
        match self.metadata.body {
            Body::Hash { count } | Body::Set { count } => count,
            Body::Zset { count, .. } => Some(count),
            Body::String(_) | Body::Chunks { .. } | Body::List { .. } => None,
        }
    }

    /// How many elements there are: O(1) if the encoding counts them, otherwise by walking all of them.
    pub(super) async fn count(&self, unit: &mut Unit<'_>) -> Result<u64> {
        if let Some(count) = self.counted() {
            return Ok(u64::from(count));
        }
        let mut count = 0;
        walk(unit, self.elements.elements(), Direction::Forward, |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })
        .await?;
        Ok(count)
    }

    /// Ends a change: `added` elements came, `removed` went (encodings that do not count need only know whether any
    /// may have gone). Saves the metadata, or deletes the key if nothing is left of it.
    pub(super) async fn settle(&mut self, unit: &mut Unit<'_>, added: usize, removed: usize) -> Result<()> {
        let is_empty = match self.counted() {
            Some(count) => {
                let count = (count as usize + added).saturating_sub(removed);
                self.set_count(u32::try_from(count).unwrap_or(u32::MAX));
                count == 0
            }
            None if removed == 0 => false,
            None => unit.scan(&self.elements.elements(), Direction::Forward, 1).await?.is_empty(),
        };
        if is_empty && self.order(unit)?.is_some() {
            // The sidecar must forget it, too.
            unit.remove(&self.key, &self.metadata)?;
        } else if is_empty {
            unit.forget(&self.key, &self.metadata)?;
        } else if self.is_new || self.is_changed || (self.counted().is_some() && added != removed) {
            unit.save(&self.key, &self.metadata)?;
        } else {
            unit.touch(&self.key);
        }
        Ok(())
    }

    /// Elements after the one with suffix `position`, at most `limit`, as suffixes and values; and the suffix of the last
    /// of them unless there are no more.
    pub(super) async fn page(
        &self,
        unit: &mut Unit<'_>,
        position: Option<&Bytes>,
        limit: usize,
    ) -> Result<(Vec<(Bytes, Bytes)>, Option<Bytes>)> {
        let mut range = self.elements.elements();
        if let Some(position) = position {
            range = range.after(&self.elements.element(position));
        }
        let page = unit.scan(&range, Direction::Forward, limit).await?;
        let is_last = page.len() < limit;
        let page: Vec<_> = page.into_iter().map(|(record, value)| (self.elements.suffix(record), value)).collect();
        let next = page.last().filter(|_| !is_last).map(|(suffix, _)| suffix.clone());
        Ok((page, next))
    }

    fn set_count(&mut self, new: u32) {
        match &mut self.metadata.body {
            Body::Hash { count } | Body::Set { count } => *count = count.map(|_| new),
            Body::Zset { count, .. } => *count = new,
            Body::String(_) | Body::Chunks { .. } | Body::List { .. } => {}
        }
    }
}

/// The records of elements of the collection at `key` that will be looked at; none if it does not exist, or if they are looked
/// at only to count them (`to_count`) and the encoding does not count.
pub async fn element_records(
    unit: &mut Unit<'_>,
    key: &Key,
    kind: Type,
    to_count: bool,
    names: &[&Bytes],
) -> Result<Vec<Bytes>> {
    let Some(open) = Open::find(unit, key, kind).await? else { return Ok(Vec::new()) };
    if to_count && open.counted().is_none() {
        return Ok(Vec::new());
    }
    Ok(names.iter().map(|name| open.elements.element(&open.elements.suffix_of(name))).collect())
}

/// Calls `visit` with every record of `range`, page by page, until it breaks off.
pub(super) async fn walk(
    unit: &mut Unit<'_>,
    mut range: KeyRange,
    direction: Direction,
    mut visit: impl FnMut(Bytes, Bytes) -> ControlFlow<()>,
) -> Result<()> {
    loop {
        let page = unit.scan(&range, direction, PAGE_RECORDS).await?;
        let is_last = page.len() < PAGE_RECORDS;
        if let Some((last, _)) = page.last().filter(|_| !is_last) {
            match direction {
                Direction::Forward => range = range.after(last),
                Direction::Backward => range.end = last.clone(),
            }
        }
        for (record, value) in page {
            if visit(record, value).is_break() {
                return Ok(());
            }
        }
        if is_last {
            return Ok(());
        }
    }
}
