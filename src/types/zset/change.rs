use std::collections::BTreeMap;

use bytes::Bytes;

use super::index::Zset;
use crate::{keyspace::Unit, types::Result};

/// A change of some members of a sorted set, whose scores are known from its beginning.
pub(super) struct Change<'k> {
    zset: Zset<'k>,
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
        zset: Zset<'k>,
        members: impl IntoIterator<Item = &Bytes>,
    ) -> Result<Self> {
        let mut members: Vec<Bytes> = members.into_iter().cloned().collect();
        members.sort_unstable();
        members.dedup();
        let scores = if zset.open.is_new() { vec![None; members.len()] } else { zset.scores(unit, &members).await? };
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
        let (mut added, mut removed) = (0, 0);
        let changed: Vec<_> = self.members.into_iter().filter(|(_, Member { before, now })| before != now).collect();
        if changed.is_empty() {
            return Ok(0);
        }
        self.zset.ready_to_change(unit).await?;
        for (member, Member { before, now }) in changed {
            self.zset.write(unit, &member, before, now)?;
            match (before, now) {
                (None, _) => added += 1,
                (_, None) => removed += 1,
                _ => {}
            }
        }
        self.zset.settle(unit, added, removed).await?;
        Ok(added + removed)
    }
}
