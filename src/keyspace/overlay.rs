use std::{
    collections::{BTreeMap, HashMap, btree_map::Entry},
    ops::Bound,
};

use bytes::Bytes;
use foldhash::fast::RandomState;
use respgate_backend_api::{Direction, KeyRange, Result, Snapshot, Write};

use super::{Intent, consecutive::Consecutive};

/// A record's value, or `None` if it does not exist.
type Value = Option<Bytes>;

/// A unit's own writes over its snapshot, and what it has read ahead.
///
/// The writes of the command that runs now can be taken back, so that a command that fails contributes none.
#[derive(Default)]
pub(super) struct Overlay {
    writes: BTreeMap<Bytes, Value>,
    /// Records read from the snapshot before a command asked for them.
    read_ahead: HashMap<Bytes, Value, RandomState>,
    scanned: Consecutive,
    /// What each write of the running command replaced in `writes`: `None` if the record was not written before.
    undo: Vec<(Bytes, Option<Value>)>,
    bytes: usize,
}

impl Overlay {
    /// What the unit knows of `record` without asking the snapshot.
    pub(super) fn get(&self, record: &[u8]) -> Option<&Value> {
        self.writes.get(record).or_else(|| self.read_ahead.get(record))
    }

    /// The value of `record` if it is among the writes.
    pub(super) fn written(&self, record: &[u8]) -> Option<Bytes> {
        self.writes.get(record).cloned().flatten()
    }

    /// True if `record` is among the writes.
    pub(super) fn has_written(&self, record: &[u8]) -> bool {
        self.writes.contains_key(record)
    }

    /// True if `record` is among the writes, as deleted.
    pub(super) fn has_deleted(&self, record: &[u8]) -> bool {
        self.writes.get(record).is_some_and(Option::is_none)
    }

    /// Keeps what the snapshot says about `record`.
    pub(super) fn remember(&mut self, record: Bytes, value: Value) {
        self.read_ahead.insert(record, value);
    }

    pub(super) fn write(&mut self, record: Bytes, value: Value) {
        self.bytes += record.len() + value.as_ref().map_or(0, Bytes::len);
        let replaced = match self.writes.entry(record.clone()) {
            Entry::Occupied(mut entry) => Some(entry.insert(value)),
            Entry::Vacant(entry) => {
                entry.insert(value);
                None
            }
        };
        self.undo.push((record, replaced));
    }

    /// Begins a command: what was written so far stays.
    pub(super) fn begin_command(&mut self) {
        self.undo.clear();
    }

    /// Takes back what the running command has written.
    pub(super) fn undo_command(&mut self) {
        while let Some((record, replaced)) = self.undo.pop() {
            match replaced {
                Some(value) => self.writes.insert(record, value),
                None => self.writes.remove(&record),
            };
        }
    }

    /// The own writes within `range`.
    pub(super) fn own(&self, range: &KeyRange) -> impl Iterator<Item = (&Bytes, &Value)> {
        // A range of a map must not end before it begins.
        let end = range.end.clone().max(range.start.clone());
        self.writes.range::<Bytes, _>((Bound::Included(range.start.clone()), Bound::Excluded(end)))
    }

    /// Takes the writes within `range` out, as if they had never been among these.
    pub(super) fn take(&mut self, range: &KeyRange) -> Vec<Write> {
        let records: Vec<Bytes> = self.own(range).map(|(record, _)| record.clone()).collect();
        self.undo.retain(|(record, _)| !range.contains(record));
        records.into_iter().filter_map(|record| self.writes.remove_entry(&record)).collect()
    }

    /// At least the bytes that a commit would carry.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// The writes, and what was read ahead of them.
    pub(super) fn into_writes(self) -> (Vec<Write>, HashMap<Bytes, Value, RandomState>) {
        (self.writes.into_iter().collect(), self.read_ahead)
    }

    /// At most `limit` pairs of `range`, as if the writes were already in the snapshot. `intent` is that of the unit.
    pub(super) async fn scan(
        &mut self,
        snapshot: &dyn Snapshot,
        intent: Intent,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        if range.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        let bounds = (Bound::Included(&range.start), Bound::Excluded(&range.end));
        let own = self.writes.range::<Bytes, _>(bounds);
        let deleted = own.clone().filter(|(_, value)| value.is_none()).count();
        // Own deletions hide at most `deleted` pairs, so this many are enough.
        let enough = limit.saturating_add(deleted);
        let stored = match intent {
            // Who only reads seldom takes one record after the other from one end.
            Intent::Read => snapshot.scan(range, direction, enough).await?,
            Intent::Write => self.scanned.scan(snapshot, range, direction, enough).await?,
        };
        Ok(match direction {
            Direction::Forward => merge(own, stored, limit, |own, stored| own <= stored),
            Direction::Backward => merge(own.rev(), stored, limit, |own, stored| own >= stored),
        })
    }
}

/// Merges own writes with stored pairs, both in scan order; `comes_first` says whether an own record is due before,
/// or instead of, a stored one.
fn merge<'a>(
    own: impl Iterator<Item = (&'a Bytes, &'a Value)>,
    stored: Vec<(Bytes, Bytes)>,
    limit: usize,
    comes_first: impl Fn(&Bytes, &Bytes) -> bool,
) -> Vec<(Bytes, Bytes)> {
    let mut own = own.peekable();
    let mut stored = stored.into_iter().peekable();
    let mut merged = Vec::new();
    while merged.len() < limit {
        let own_is_next = match (own.peek(), stored.peek()) {
            (None, None) => break,
            (Some((record, _)), Some((other, _))) => comes_first(record, other),
            (own, _) => own.is_some(),
        };
        if !own_is_next {
            merged.extend(stored.next());
        } else if let Some((record, value)) = own.next() {
            stored.next_if(|(other, _)| other == record);
            merged.extend(value.clone().map(|value| (record.clone(), value)));
        }
    }
    merged
}
