use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Open, range, read_scores};
use crate::{
    encoding::{Body, ZsetBounds, encode_member_score},
    keyspace::Unit,
    types::Result,
};

/// A change of some members of a sorted set, whose scores are known from its beginning.
pub(super) struct Change<'k> {
    zset: Open<'k>,
    members: BTreeMap<Bytes, Member>,
}

#[derive(Clone, Copy, Default)]
struct Member {
    before: Option<f64>,
    now: Option<f64>,
}

impl<'k> Change<'k> {
    /// Begins a change, reading the scores of `members` in one call to the store.
    pub(super) async fn begin(
        unit: &mut Unit<'k>,
        zset: Open<'k>,
        members: impl IntoIterator<Item = &Bytes>,
    ) -> Result<Self> {
        let mut members: Vec<Bytes> = members.into_iter().cloned().collect();
        members.sort_unstable();
        members.dedup();
        let scores = if zset.is_new() { vec![None; members.len()] } else { read_scores(unit, &zset, &members).await? };
        let members =
            members.into_iter().zip(scores).map(|(member, score)| (member, Member { before: score, now: score }));
        Ok(Self { zset, members: members.collect() })
    }

    /// The score that a member has now.
    pub(super) fn score(&self, member: &Bytes) -> Option<f64> {
        self.members.get(member)?.now
    }

    /// Gives a member another score, or none.
    pub(super) fn set(&mut self, member: &Bytes, score: Option<f64>) {
        self.members.entry(member.clone()).or_default().now = score;
    }

    /// Writes what has changed. Returns how many members came or went.
    pub(super) async fn finish(mut self, unit: &mut Unit<'_>) -> Result<usize> {
        let (mut added, mut removed, mut moved) = (0, 0, 0);
        for (member, Member { before, now }) in &self.members {
            if before == now {
                continue;
            }
            let elements = self.zset.elements();
            if let Some(score) = before {
                unit.delete_record(elements.score(*score, member));
            }
            let element = elements.element(member);
            match now {
                Some(score) => {
                    unit.put_record(element, Bytes::copy_from_slice(&encode_member_score(*score)));
                    unit.put_record(elements.score(*score, member), Bytes::new());
                }
                None => unit.delete_record(element),
            }
            match (before, now) {
                (None, _) => added += 1,
                (_, None) => removed += 1,
                _ => moved += 1,
            }
        }
        if added + removed + moved > 0 {
            self.widen();
            self.zset.settle(unit, added, removed).await?;
        }
        Ok(added + removed)
    }

    /// Moves the bounds of the index so far that all members lie between them.
    fn widen(&mut self) {
        let Body::Zset { bounds, .. } = self.zset.body() else { return };
        let places = self.members.iter().filter_map(|(member, Member { now, .. })| Some(range::place((*now)?, member)));
        let mut wider = bounds.clone();
        for place in places {
            if place < wider.low {
                wider.low = place.slice(..place.len().min(ZsetBounds::BYTES_MAX));
            }
            if !wider.high.is_empty() && place >= wider.high {
                wider.high = Bytes::new();
            }
        }
        if wider != *bounds
            && let Body::Zset { bounds, .. } = self.zset.body_mut()
        {
            *bounds = wider;
        }
    }
}
