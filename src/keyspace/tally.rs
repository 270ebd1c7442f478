//! How many keys a database has, without counting them each time.
//!
//! A plain SET does not know whether it creates a key, so a commit cannot keep a counter. But the difference between two
//! moments is cheap to tell: it is in the keys that were written between them. So the last count is kept together with
//! the snapshot that it is true for, and from then on commits leave the names of the keys that they may have created,
//! deleted, or given another expiry. The next count looks each of them up in the old snapshot and in a new one.
//!
//! Only while somebody asks: after a minute without a question, or when more names come together than a count would save,
//! the tally falls asleep and commits leave nothing. The first question after that counts one by one.

mod expiries;

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use respgate_backend_api::{Direction, Snapshot, Write};

use super::{Intent, Keyspace, Result, Scope, Unit};
use crate::encoding::Metadata;
use expiries::Expiries;

/// The most names that are kept: about 32 MiB of them.
const NAMES_MAX: usize = 256 * 1024;

/// For how long commits leave names after the last question.
const AWAKE: Duration = Duration::from_secs(60);

/// Records that are read between two chances for other connections.
const PAGE: usize = 1_000;

/// What a database holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Keys that are alive.
    pub keys: u64,
    /// Those of them that will expire.
    pub expiring: u64,
}

/// What is known about the number of keys.
#[derive(Default)]
pub(super) struct Tally {
    /// True if commits are to leave names. Changed under all latches, so that no commit that has not seen it is on its way.
    is_awake: AtomicBool,
    names: Mutex<Names>,
    /// One question at a time: each waits for what the one before it finds out.
    counts: tokio::sync::Mutex<Counts>,
    /// The last counts, for those who do not need the latest.
    last: Mutex<HashMap<u8, Taken>>,
}

/// What commits have left.
#[derive(Default)]
struct Names {
    asked_at: Option<Instant>,
    /// The moment that the counts are true for. Here, so that nobody who is asleep keeps old records from going.
    base: Option<Arc<dyn Snapshot>>,
    next_commit: u64,
    /// Of commits that are on their way.
    announced: HashMap<u64, Vec<Bytes>>,
    /// Of commits that have ended.
    committed: Vec<Bytes>,
}

/// By physical database.
type Counts = HashMap<u8, Count>;

/// The keys of a database.
#[derive(Default)]
struct Count {
    keys: u64,
    expiries: Expiries,
}

#[derive(Clone, Copy)]
struct Taken {
    at: Instant,
    took: Duration,
    census: Census,
}

impl Taken {
    /// True while taking another census would spend more than a fiftieth of all time on it. What is counted fast is counted
    /// afresh each time.
    fn is_recent(&self) -> bool {
        const CHEAP: Duration = Duration::from_millis(20);
        const PART: u32 = 50;

        self.took > CHEAP && self.at.elapsed() < self.took.saturating_mul(PART)
    }
}

/// The names of a commit that is on its way.
pub(super) struct AnnouncedNames<'t> {
    tally: &'t Tally,
    commit: u64,
    is_over: bool,
}

impl Tally {
    /// Notes which keys a commit may create, delete, or give another expiry, before it is made. `None` if nobody asks.
    pub(super) fn announce(&self, names: impl Iterator<Item = Bytes>) -> Option<AnnouncedNames<'_>> {
        if !self.is_awake.load(Ordering::Acquire) {
            return None;
        }
        let left: Vec<Bytes> = names.collect();
        if left.is_empty() {
            return None;
        }
        let mut names = self.names.lock();
        if names.committed.len() >= NAMES_MAX {
            self.fall_asleep(&mut names);
            return None;
        }
        let commit = names.next_commit;
        names.next_commit += 1;
        names.announced.insert(commit, left);
        Some(AnnouncedNames { tally: self, commit, is_over: false })
    }

    /// Falls asleep if nobody has asked for long enough.
    fn rest(&self) {
        let mut names = self.names.lock();
        if names.asked_at.is_some_and(|asked| asked.elapsed() > AWAKE) {
            self.fall_asleep(&mut names);
        }
    }

    fn fall_asleep(&self, names: &mut Names) {
        self.is_awake.store(false, Ordering::Release);
        *names = Names { next_commit: names.next_commit, ..Names::default() };
    }

    /// Forgets a database whose records are deleted in another way than by units.
    pub(super) async fn forget(&self, physical: u8) {
        self.counts.lock().await.remove(&physical);
        self.last.lock().remove(&physical);
    }
}

impl AnnouncedNames<'_> {
    /// The commit has ended, well or not.
    pub(super) fn over(mut self) {
        self.is_over = true;
        let mut names = self.tally.names.lock();
        if let Some(left) = names.announced.remove(&self.commit) {
            names.committed.extend(left);
        }
    }
}

impl Drop for AnnouncedNames<'_> {
    fn drop(&mut self) {
        // Given up while the store was at it: nobody can tell when it will be there.
        if !self.is_over {
            self.tally.fall_asleep(&mut self.tally.names.lock());
        }
    }
}

impl Count {
    /// Takes account of a key that was `old` and is `new`.
    fn change(&mut self, old: Option<&Bytes>, new: Option<&Bytes>) -> Result<()> {
        if let Some(old) = old {
            self.keys = self.keys.saturating_sub(1);
            self.expiries.remove(Metadata::decode(old)?.expires_at_ms);
        }
        if let Some(new) = new {
            self.keys += 1;
            self.expiries.add(Metadata::decode(new)?.expires_at_ms);
        }
        Ok(())
    }

    fn census(&mut self, now_ms: i64) -> Census {
        let expired = self.expiries.passed(now_ms);
        Census { keys: self.keys.saturating_sub(expired), expiring: self.expiries.to_come() }
    }
}

impl Unit<'_> {
    /// Counts the keys of `db` that are alive: exactly, as of now or as of the unit's snapshot if it has one.
    ///
    /// Costs what has been written since somebody last asked; O(n) the first time, after some minutes, within a unit that
    /// has read or may write, and on a store that others write to as well.
    pub async fn census(&mut self, db: u8) -> Result<Census> {
        let keyspace = self.keyspace();
        if keyspace.capabilities.shared || self.intent == Intent::Write || self.snapshot.is_some() || self.trusts_cache
        {
            return self.count(db).await;
        }
        let began = Instant::now();
        let physical = self.physical(db)?;
        let census = keyspace.tally(physical, self.now_ms()).await?;
        keyspace.tally.last.lock().insert(physical, Taken { at: Instant::now(), took: began.elapsed(), census });
        Ok(census)
    }

    /// As [`Unit::census`], but where that takes long perhaps as it was some time ago.
    pub async fn recent_census(&mut self, db: u8) -> Result<Census> {
        let physical = self.physical(db)?;
        let last = self.keyspace().tally.last.lock().get(&physical).copied();
        match last.filter(Taken::is_recent) {
            Some(last) => Ok(last.census),
            None => self.census(db).await,
        }
    }

    /// Counts one by one.
    async fn count(&mut self, db: u8) -> Result<Census> {
        let (mut census, mut position) = (Census::default(), None);
        loop {
            let (records, next) = self.metadata_page(db, position.as_deref(), PAGE).await?;
            for (_, value) in records {
                let metadata = Metadata::decode(&value)?;
                if !metadata.is_expired(self.now_ms()) {
                    census.keys += 1;
                    census.expiring += u64::from(metadata.expires_at_ms.is_some());
                }
            }
            if next.is_none() {
                return Ok(census);
            }
            position = next;
            tokio::task::yield_now().await;
        }
    }
}

impl Keyspace {
    /// Lets go of what helps to count, if nobody has asked for a minute. To be called now and then.
    pub fn rest_tally(&self) {
        self.tally.rest();
    }

    /// The names that a commit of `writes` leaves for the tally. `before` gives the value that a record had, if that is known
    /// and it had one.
    pub(super) fn announce_names<'w>(
        &self,
        writes: &'w [Write],
        before: impl Fn(&Bytes) -> Option<&'w Bytes>,
    ) -> Option<AnnouncedNames<'_>> {
        let expiry = |value: Option<&Bytes>| Some(Metadata::decode(value?).ok()?.expires_at_ms);
        let names = writes.iter().filter(|(record, value)| {
            // A key that is there before and after, with the same expiry, counts as it did.
            let is_as_before =
                value.is_some() && before(record).is_some_and(|old| expiry(Some(old)) == expiry(value.as_ref()));
            self.codec.is_metadata(record) && !is_as_before
        });
        self.tally.announce(names.map(|(record, _)| record.clone()))
    }

    async fn tally(&self, physical: u8, now_ms: i64) -> Result<Census> {
        let mut counts = self.tally.counts.lock().await;
        loop {
            if !self.tally.is_awake.load(Ordering::Acquire) {
                *counts = Counts::default();
                let _latches = self.latches.acquire(Scope::Everything).await;
                self.tally.names.lock().asked_at = Some(Instant::now());
                self.tally.is_awake.store(true, Ordering::Release);
            }
            let is_from_scratch = counts.is_empty();
            if let Err(error) = self.bring_up_to_date(&mut counts, physical).await {
                // What was taken account of in part is of no use.
                *counts = Counts::default();
                self.tally.fall_asleep(&mut self.tally.names.lock());
                return Err(error);
            }
            // Otherwise some names have been thrown away that this count would have needed.
            if is_from_scratch || self.tally.is_awake.load(Ordering::Acquire) {
                return Ok(counts.entry(physical).or_default().census(now_ms));
            }
        }
    }

    /// Makes `counts` true for a new snapshot, and counts the database if that has not been done.
    async fn bring_up_to_date(&self, counts: &mut Counts, physical: u8) -> Result<()> {
        // Commits that have ended by now are in the snapshot, and need not be looked at again after it.
        let (base, mut changed) = {
            let mut names = self.tally.names.lock();
            names.asked_at = Some(Instant::now());
            (names.base.take(), std::mem::take(&mut names.committed))
        };
        let snapshot = self.backend.snapshot().await?;
        // Those that ended since, and those on their way, may or may not be in it: their names stay for the next time.
        {
            let mut names = self.tally.names.lock();
            changed.extend(names.committed.iter().chain(names.announced.values().flatten()).cloned());
            if self.tally.is_awake.load(Ordering::Acquire) {
                names.base = Some(Arc::clone(&snapshot));
            }
        }
        if let Some(base) = base {
            changed.sort_unstable();
            changed.dedup();
            for page in changed.chunks(PAGE) {
                let (old, new) = (base.multi_get(page).await?, snapshot.multi_get(page).await?);
                for ((record, old), new) in page.iter().zip(old).zip(new) {
                    let db = self.codec.decode_metadata_key(record).map(|(db, _)| db);
                    if let Some(count) = db.and_then(|db| counts.get_mut(&db)) {
                        count.change(old.as_ref(), new.as_ref())?;
                    }
                }
                tokio::task::yield_now().await;
            }
        }
        if let Entry::Vacant(unknown) = counts.entry(physical) {
            unknown.insert(self.count_in(&*snapshot, physical).await?);
        }
        Ok(())
    }

    async fn count_in(&self, snapshot: &dyn Snapshot, physical: u8) -> Result<Count> {
        let mut count = Count::default();
        for place in self.places_of_database(physical) {
            let mut range = place.metadata(&self.codec);
            loop {
                let page = snapshot.scan(&range, Direction::Forward, PAGE).await?;
                for (_, value) in &page {
                    count.change(None, Some(value))?;
                }
                match page.last() {
                    Some((last, _)) if page.len() == PAGE => range = range.after(last),
                    _ => break,
                }
                tokio::task::yield_now().await;
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
