//! What hashes, sets and sorted sets have in common: metadata with a count or without one, and elements.

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
};

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange};

use super::Result;
use crate::{
    encoding::{Body, Metadata, Type},
    keyspace::{Collection, Key, Random, Unit},
};

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
            Body::Hash { count } | Body::Set { count } | Body::Zset { count, .. } => count,
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
        if is_empty {
            unit.forget(&self.key)?;
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
        let page: Vec<_> = page.into_iter().map(|(record, value)| (self.elements.suffix(&record), value)).collect();
        let next = page.last().filter(|_| !is_last).map(|(suffix, _)| suffix.clone());
        Ok((page, next))
    }

    /// Elements chosen at random, each with the same chance, as suffixes and values.
    ///
    /// Exactly uniform. Ranks are drawn and the elements walked up to the highest of them, so this costs O(N) in the
    /// size of the collection: elements are in the order of bytes, and nothing tells which one has a given rank.
    pub(super) async fn sample(&self, unit: &mut Unit<'_>, sample: Sample) -> Result<Vec<(Bytes, Bytes)>> {
        let count = usize::try_from(self.count(unit).await?).unwrap_or(usize::MAX);
        let ranks = sample.ranks(count, unit.keyspace().random());
        let Some(highest) = ranks.iter().copied().max() else { return Ok(Vec::new()) };
        let mut wanted: HashMap<usize, Option<(Bytes, Bytes)>> = ranks.iter().map(|rank| (*rank, None)).collect();
        let mut rank = 0;
        walk(unit, self.elements.elements(), Direction::Forward, |record, value| {
            if let Some(found) = wanted.get_mut(&rank) {
                *found = Some((self.elements.suffix(&record), value));
            }
            rank += 1;
            if rank > highest { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .await?;
        Ok(ranks.iter().filter_map(|rank| wanted.get(rank)?.clone()).collect())
    }

    fn set_count(&mut self, new: u32) {
        if let Body::Hash { count } | Body::Set { count } | Body::Zset { count, .. } = &mut self.metadata.body {
            *count = count.map(|_| new);
        }
    }
}

/// How many elements to choose at random.
#[derive(Clone, Copy, Debug)]
pub enum Sample {
    /// So many different ones, or all if there are not as many.
    Distinct(usize),
    /// So many, the same ones perhaps several times.
    Repeating(usize),
}

impl Sample {
    /// The ranks of the chosen elements among `count`.
    fn ranks(self, count: usize, random: &Random) -> Vec<usize> {
        let below = |bound: usize| usize::try_from(random.below(bound as u64)).unwrap_or_default();
        match self {
            Self::Repeating(wanted) if count > 0 => (0..wanted).map(|_| below(count)).collect(),
            Self::Repeating(_) => Vec::new(),
            Self::Distinct(wanted) if wanted >= count => (0..count).collect(),
            // Floyd's algorithm: every subset has the same chance, in as many draws as ranks.
            Self::Distinct(wanted) => {
                let mut chosen = HashSet::with_capacity(wanted);
                let mut ranks = Vec::with_capacity(wanted);
                for top in count - wanted..count {
                    let drawn = below(top + 1);
                    let rank = if chosen.contains(&drawn) { top } else { drawn };
                    chosen.insert(rank);
                    ranks.push(rank);
                }
                ranks
            }
        }
    }
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
        if let Some((last, _)) = page.last() {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// With 9 degrees of freedom, chi-squared exceeds 27.9 once in a thousand runs; the seed is fixed, so it never does.
    #[test]
    fn every_element_has_the_same_chance() {
        let random = Random::seeded(7);
        for sample in [Sample::Distinct(3), Sample::Repeating(3)] {
            let mut seen = [0_u32; 10];
            for _ in 0..10_000 {
                sample.ranks(10, &random).into_iter().for_each(|rank| seen[rank] += 1);
            }
            let chi_squared: f64 = seen.iter().map(|count| (f64::from(*count) - 3_000.0).powi(2) / 3_000.0).sum();
            assert!(chi_squared < 27.9, "{sample:?}: {seen:?}");
        }
    }

    #[test]
    fn distinct_ranks_are_distinct() {
        let random = Random::seeded(7);
        for wanted in 0..12 {
            let ranks = Sample::Distinct(wanted).ranks(10, &random);
            assert_eq!(ranks.len(), wanted.min(10));
            assert_eq!(ranks.iter().collect::<HashSet<_>>().len(), ranks.len());
        }
        assert!(Sample::Repeating(5).ranks(0, &random).is_empty());
    }
}
