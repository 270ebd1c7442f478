//! A sorted set at hand, in whichever of two ways it is stored.
//!
//! Everything else about sorted sets is written in terms of what is here: the scores of members, who stands where, and
//! the change of one member's score. [`stored`] and [`sidecar`] do each of it their way.

use std::{cmp::Ordering, ops::Bound};

use bytes::Bytes;
use respgate_backend_api::Direction;

use super::{Scored, Span, range::between_members, sidecar, stored};
use crate::{
    encoding::{Body, Type, ZsetBounds, ZsetOrder, decode_member, decode_member_score},
    keyspace::{self, Key, Order, Unit},
    types::{
        Error, Result,
        collection::{Open, Sample},
    },
};

/// A sorted set at hand.
pub(super) struct Zset<'k> {
    pub(super) open: Open<'k>,
    index: Index,
}

/// Where the order of the members is.
enum Index {
    /// In the score index, beside the members.
    Stored,
    /// In the sidecar.
    Sidecar(Order),
}

impl<'k> Zset<'k> {
    /// The sorted set at `key`, if there is one.
    pub(super) async fn find(unit: &mut Unit<'k>, key: &Key) -> Result<Option<Self>> {
        match Open::find(unit, key, Type::Zset).await? {
            Some(open) => Self::of(unit, open).map(Some),
            None => Ok(None),
        }
    }

    /// The sorted set at `key`, or a new one.
    pub(super) async fn find_or_create(unit: &mut Unit<'k>, key: &Key) -> Result<Self> {
        let body = empty(unit.keyspace().encodings().zsets_in_sidecar);
        let open = Open::find_or_create(unit, key, Type::Zset, body).await?;
        Self::of(unit, open)
    }

    /// A new sorted set in place of whatever is at `key`.
    pub(super) fn create(unit: &mut Unit<'k>, key: &Key, in_sidecar: bool) -> Result<Self> {
        let open = Open::create(unit, key, empty(in_sidecar))?;
        Self::of(unit, open)
    }

    fn of(unit: &mut Unit<'k>, open: Open<'k>) -> Result<Self> {
        let index = open.order(unit)?.map_or(Index::Stored, Index::Sidecar);
        Ok(Self { open, index })
    }

    /// How many members there are.
    pub(super) fn count(&self) -> u64 {
        u64::from(self.open.counted().unwrap_or_default())
    }

    /// What follows the key-version in the key of a member's record.
    pub(super) fn suffix(&self, member: &Bytes) -> Bytes {
        self.open.elements().suffix_of(member)
    }

    /// The member and the score that a record's suffix and value tell.
    pub(super) fn decode(&self, suffix: Bytes, value: &Bytes) -> Result<Scored> {
        let scored = match self.index {
            Index::Stored => decode_member_score(value).map(|score| (suffix, score)),
            Index::Sidecar(_) => decode_member(value),
        };
        Ok(scored.map_err(keyspace::Error::from)?)
    }

    /// The scores of members, in their order, read in one call to the store.
    ///
    /// # Errors
    /// [`Error::DigestTaken`] if another member with the same digest is there.
    pub(super) async fn scores(&self, unit: &mut Unit<'_>, members: &[Bytes]) -> Result<Vec<Option<f64>>> {
        let records: Vec<_> = members.iter().map(|member| self.open.elements().element(&self.suffix(member))).collect();
        let values = unit.read_many(&records).await?;
        let mut scores = Vec::with_capacity(members.len());
        for (member, value) in members.iter().zip(values) {
            let scored = value.map(|value| self.decode(member.clone(), &value)).transpose()?;
            if scored.as_ref().is_some_and(|(found, _)| found != member) {
                return Err(Error::DigestTaken);
            }
            scores.push(scored.map(|(_, score)| score));
        }
        Ok(scores)
    }

    /// Makes sure that members can be changed.
    pub(super) async fn ready_to_change(&self, unit: &mut Unit<'_>) -> Result<()> {
        match &self.index {
            Index::Stored => Ok(()),
            Index::Sidecar(order) => Ok(unit.ready_to_change(order).await?),
        }
    }

    /// Writes that a member has another score, or none. [`Self::settle`] ends what several of these begin.
    pub(super) fn write(
        &mut self,
        unit: &mut Unit<'_>,
        member: &Bytes,
        before: Option<f64>,
        now: Option<f64>,
    ) -> Result<()> {
        match &self.index {
            Index::Stored => {
                stored::write(unit, &mut self.open, member, before, now);
                Ok(())
            }
            Index::Sidecar(_) => sidecar::write(unit, &self.open, member, before, now),
        }
    }

    /// Notes that all members up to `last`, as seen from `end`, are gone.
    pub(super) fn narrow(&mut self, end: Direction, last: &Scored) {
        if let Index::Stored = self.index {
            stored::narrow(&mut self.open, end, last);
        }
    }

    /// Ends a change by which `added` members came and `removed` went.
    pub(super) async fn settle(&mut self, unit: &mut Unit<'_>, added: usize, removed: usize) -> Result<()> {
        if let (Index::Sidecar(order), Body::Zset { order: ZsetOrder::Sidecar(revision), .. }) =
            (&self.index, self.open.body_mut())
        {
            *revision = order.next_revision();
        }
        self.open.settle(unit, added, removed).await
    }

    /// `limit` members of a part, which is given by scores or by members, after the first `offset`.
    pub(super) async fn read(
        &self,
        unit: &mut Unit<'_>,
        part: &Span,
        direction: Direction,
        offset: usize,
        limit: usize,
    ) -> Result<Vec<Scored>> {
        match (&self.index, part) {
            (Index::Stored, part) => stored::read(unit, &self.open, part, direction, offset, limit).await,
            (Index::Sidecar(order), Span::Scores(min, max)) => {
                sidecar::read(unit, order, (*min, *max), direction, offset, limit).await
            }
            // The order does not help: digests stand anywhere in it.
            (Index::Sidecar(_), part) => {
                let mut all = self.all(unit).await?;
                all.sort_unstable_by(order);
                Ok(between_members(all, part, direction).into_iter().skip(offset).take(limit).collect())
            }
        }
    }

    /// How many members are in a part, which is given by scores or by members.
    pub(super) async fn count_in(&self, unit: &mut Unit<'_>, part: &Span) -> Result<u64> {
        match (&self.index, part) {
            (Index::Stored, part) => stored::count(unit, &self.open, part).await,
            (Index::Sidecar(order), Span::Scores(min, max)) => sidecar::count(unit, order, (*min, *max)).await,
            (Index::Sidecar(_), part) => {
                Ok(self.read(unit, part, Direction::Forward, 0, usize::MAX).await?.len() as u64)
            }
        }
    }

    /// How many members stand before this one, seen from one end.
    pub(super) async fn rank(&self, unit: &mut Unit<'_>, scored: &Scored, from: Direction) -> Result<u64> {
        match &self.index {
            Index::Stored => stored::rank(unit, &self.open, scored, from).await,
            Index::Sidecar(order) => {
                let rank = sidecar::rank(unit, order, scored).await?;
                Ok(match from {
                    Direction::Forward => rank,
                    Direction::Backward => self.count().saturating_sub(rank + 1),
                })
            }
        }
    }

    /// Members after `position`, at most `limit`, with their scores; and the last of them unless there are no more. The
    /// order has nothing to do with scores.
    pub(super) async fn page(
        &self,
        unit: &mut Unit<'_>,
        position: Option<&Bytes>,
        limit: usize,
    ) -> Result<(Vec<Scored>, Option<Bytes>)> {
        let position = position.map(|member| self.suffix(member));
        let (elements, next) = self.open.page(unit, position.as_ref(), limit).await?;
        let members = self.decode_all(elements)?;
        let last = members.last().filter(|_| next.is_some()).map(|(member, _)| member.clone());
        Ok((members, last))
    }

    /// All members with their scores, in the order of bytes.
    pub(super) async fn all(&self, unit: &mut Unit<'_>) -> Result<Vec<Scored>> {
        let (mut members, _) = self.page(unit, None, usize::MAX).await?;
        if let Index::Sidecar(_) = self.index {
            members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        }
        Ok(members)
    }

    /// Members chosen at random, with their scores.
    pub(super) async fn sample(&self, unit: &mut Unit<'_>, sample: Sample) -> Result<Vec<Scored>> {
        self.decode_all(self.open.sample(unit, sample).await?)
    }

    fn decode_all(&self, elements: Vec<(Bytes, Bytes)>) -> Result<Vec<Scored>> {
        elements.into_iter().map(|(suffix, value)| self.decode(suffix, &value)).collect()
    }
}

/// The part with all members.
pub(super) const EVERYTHING: Span = Span::Scores(Bound::Unbounded, Bound::Unbounded);

fn empty(in_sidecar: bool) -> Body {
    let order = if in_sidecar { ZsetOrder::Sidecar(0) } else { ZsetOrder::Index(ZsetBounds::default()) };
    Body::Zset { count: 0, order }
}

/// The order of a sorted set: by scores, and by bytes among equal scores.
pub fn order((one, one_score): &Scored, (other, other_score): &Scored) -> Ordering {
    one_score.partial_cmp(other_score).unwrap_or(Ordering::Equal).then_with(|| one.cmp(other))
}
