use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange, Result, Snapshot};

/// How many records are read by a scan that goes on where the one before it began or ended.
const SECOND: usize = 16;

/// How many are read by those after it.
const RECORDS: usize = 64;

type Records = Vec<(Bytes, Bytes)>;

/// What a unit has last read of its snapshot by a scan.
///
/// A pipeline that takes the first elements of a sorted set, one by one, makes a scan for each, and each goes on about where
/// the last one began. So the second of such scans reads more than it is asked for, and those after it need not ask.
#[derive(Default)]
pub(super) struct Consecutive {
    last: Option<Stretch>,
}

/// A part of the store that is known whole.
struct Stretch {
    /// What was to be scanned.
    range: KeyRange,
    direction: Direction,
    /// The first records of that in the order of the scan.
    records: Records,
    /// True if there are no more.
    is_whole: bool,
}

impl Stretch {
    /// True if `range` is what is left of this one, as seen from where the scan began.
    fn ends_like(&self, range: &KeyRange, direction: Direction) -> bool {
        self.direction == direction
            && match direction {
                Direction::Forward => self.range.end == range.end && self.range.start <= range.start,
                Direction::Backward => self.range.start == range.start && self.range.end >= range.end,
            }
    }

    /// The first `limit` records of `range`, which is what is left of this one; `None` if not all of them are known.
    fn first(&self, range: &KeyRange, limit: usize) -> Option<Records> {
        let is_before = |(record, _): &&(Bytes, Bytes)| match self.direction {
            Direction::Forward => *record < range.start,
            Direction::Backward => *record >= range.end,
        };
        let known = self.records.iter().skip_while(is_before);
        let first: Records = known.take(limit).cloned().collect();
        (self.is_whole || first.len() == limit).then_some(first)
    }
}

impl Consecutive {
    /// Scans `snapshot`, which must be the same every time.
    pub(super) async fn scan(
        &mut self,
        snapshot: &dyn Snapshot,
        range: &KeyRange,
        direction: Direction,
        limit: usize,
    ) -> Result<Records> {
        let last = self.last.as_ref().filter(|last| last.ends_like(range, direction));
        if let Some(known) = last.and_then(|last| last.first(range, limit)) {
            return Ok(known);
        }
        let wanted = match last {
            None => limit,
            Some(last) if last.records.len() < SECOND => limit.max(SECOND),
            Some(_) => limit.max(RECORDS),
        };
        let mut records = snapshot.scan(range, direction, wanted).await?;
        // Of more than that the next scan is seldom a part, and they would be held for as long as the unit runs.
        self.last = (wanted <= RECORDS).then(|| Stretch {
            range: range.clone(),
            direction,
            records: records.clone(),
            is_whole: records.len() < wanted,
        });
        records.truncate(limit);
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use respgate_backend_api::{KvBackend, WriteSet};
    use respgate_backend_memory::MemoryBackend;

    use super::*;
    use crate::keyspace::Random;

    fn record(number: u64) -> Bytes {
        format!("s#{number:04}").into()
    }

    #[tokio::test]
    async fn whatever_was_scanned_before_a_scan_finds_what_there_is() {
        let (store, random) = (MemoryBackend::new(), Random::seeded(3));
        let writes = (0..1_000).filter(|_| random.below(2) == 0).map(|number| (record(number), Some(Bytes::new())));
        let writes = WriteSet { writes: writes.collect(), guards: Vec::new() };
        store.snapshot().await.unwrap().commit(writes).await.unwrap();
        let snapshot = store.snapshot().await.unwrap();
        for _ in 0..200 {
            let mut scanned = Consecutive::default();
            let (mut low, mut high) = (0, 1_000);
            while low < high {
                let range = KeyRange::new(record(low), record(high));
                let direction = if random.below(8) < 7 { Direction::Forward } else { Direction::Backward };
                let limit = usize::try_from([1, 1, 2, 70, 300][random.below(5) as usize]).unwrap();
                let found = scanned.scan(&*snapshot, &range, direction, limit).await.unwrap();
                assert_eq!(found, snapshot.scan(&range, direction, limit).await.unwrap());
                match random.below(4) {
                    0 => high -= random.below(high - low + 1),
                    1 => (low, high) = (low.saturating_sub(20), (high + 20).min(1_000)),
                    _ => low += random.below(30),
                }
            }
        }
    }

    #[tokio::test]
    async fn few_of_consecutive_scans_ask_the_store() {
        let store = MemoryBackend::new();
        let writes = (0..100).map(|number| (record(number), Some(Bytes::new()))).collect();
        store.snapshot().await.unwrap().commit(WriteSet { writes, guards: Vec::new() }).await.unwrap();
        let (full, empty) = (store.snapshot().await.unwrap(), MemoryBackend::new().snapshot().await.unwrap());
        for (direction, end) in [(Direction::Forward, 0), (Direction::Backward, 99)] {
            let mut scanned = Consecutive::default();
            for taken in 0..60 {
                let (range, first) = match direction {
                    Direction::Forward => (KeyRange::new(record(taken), record(100)), taken),
                    Direction::Backward => (KeyRange::new(record(0), record(100 - taken)), end - taken),
                };
                // Whoever asks the empty store finds nothing.
                let snapshot = if [0, 1, 1 + SECOND as u64].contains(&taken) { &full } else { &empty };
                let found = scanned.scan(&**snapshot, &range, direction, 1).await.unwrap();
                assert_eq!(found, [(record(first), Bytes::new())]);
            }
        }
    }
}
