//! `respgate gc`: what nobody can reach any more goes now, and not by and by in the background.

use std::collections::BTreeMap;

use respgate_backend_api::KeyRange;

use super::{Error, Outcome, Position, Result, job::Job, words::Extent};
use crate::{
    encoding::Garbage,
    keyspace::{GroupPosition, Intent, Key, KeyWalk, Unit},
};

/// Of one dead key no more records are counted than about so many.
const COUNTED_MAX: u64 = 10_000;

/// What is collected: why, and of which type.
type Kind = (&'static str, &'static str);

/// A collection, and what it has come to so far.
struct Collection {
    is_dry: bool,
    /// Of each kind the number of keys, and what belongs to them as far as that was counted.
    tallies: BTreeMap<Kind, (u64, Extent)>,
}

/// Goes through expired keys, then the garbage of dead ones, then elements that no garbage record names. What a dry run
/// counts, another one collects.
pub(super) async fn run(job: &mut Job<'_>, from: Option<Position>, is_dry: bool) -> Result<Outcome> {
    let mut collection = Collection { is_dry, tallies: BTreeMap::new() };
    let ended = collection.run(job, from).await;
    // What has been collected is told even if it was not all.
    collection.report(job)?;
    ended.map(|()| Outcome::Done)
}

impl Collection {
    async fn run(&mut self, job: &mut Job<'_>, from: Option<Position>) -> Result<()> {
        let retired = job.keyspace.databases().current().retired().count();
        if !self.is_dry {
            job.keyspace.reclaim().await?;
        }
        self.add(("flushed databases", ""), retired as u64, Extent::default());
        let mut position = from.unwrap_or(Position::Keys(KeyWalk::default()));
        loop {
            job.reach(position.clone());
            position = match position {
                Position::Keys(walk) => self.expired(job, walk).await?,
                Position::Garbage(from) => self.garbage(job, from).await?,
                Position::Orphans(from) => return self.orphans(job, from).await,
                other => return Err(Error::OtherPosition(other)),
            };
        }
    }

    async fn expired(&mut self, job: &mut Job<'_>, mut walk: KeyWalk) -> Result<Position> {
        loop {
            let mut unit = job.keyspace.begin(Intent::Read).await?;
            let Some((page, next)) = walk.next(&mut unit).await? else {
                return Ok(Position::Garbage(GroupPosition::default()));
            };
            job.saw(page.keys.len());
            let mut expired = Vec::new();
            for (name, metadata) in page.keys {
                // Of a record that cannot be read, `verify` tells.
                let Some(metadata) = metadata.ok().filter(|metadata| metadata.is_expired(unit.now_ms())) else {
                    continue;
                };
                let key = Key { db: page.db, name };
                let kind = metadata.garbage();
                let elements = unit.collection(&key, &metadata)?;
                let ranges = kind.map(|kind| elements.ranges(kind)).unwrap_or_default();
                let extent = self.measure(job, &mut unit, ranges).await?;
                self.add(("expired", metadata.kind().name()), 1, extent);
                expired.push(key);
            }
            if !self.is_dry {
                job.keyspace.bury_expired(&expired).await?;
            }
            walk = next;
            job.reach(Position::Keys(walk.clone()));
            job.check_stop()?;
        }
    }

    async fn garbage(&mut self, job: &mut Job<'_>, mut from: GroupPosition) -> Result<Position> {
        loop {
            let mut unit = job.keyspace.begin(Intent::Read).await?;
            let page = unit.garbage_groups(&from).await?;
            job.saw(page.groups.len());
            let records: Vec<_> = page.groups.iter().map(|group| group.records.start.clone()).collect();
            let kinds = unit.read_many(&records).await?.into_iter().map(|value| Garbage::decode(&value?).ok());
            // Of a record that cannot be read, `verify` tells.
            let dead: Vec<_> =
                page.groups.into_iter().zip(kinds).filter_map(|(group, kind)| Some((group, kind?))).collect();
            for (group, kind) in &dead {
                let ranges = job.keyspace.codec().garbage_ranges(group.db, &group.owner, group.version, *kind);
                let extent = self.measure(job, &mut unit, ranges).await?;
                self.add(("garbage", kind.kind.name()), 1, extent);
            }
            if !self.is_dry {
                job.keyspace.collect(&dead).await?;
            }
            let Some(next) = page.next else { return Ok(Position::Orphans(GroupPosition::default())) };
            from = next;
            job.reach(Position::Garbage(from.clone()));
            job.check_stop()?;
        }
    }

    async fn orphans(&mut self, job: &mut Job<'_>, mut from: GroupPosition) -> Result<()> {
        loop {
            let mut unit = job.keyspace.begin(Intent::Read).await?;
            let page = unit.element_groups(&from).await?;
            job.saw(page.groups.len());
            for group in &page.groups {
                if !unit.is_orphaned(group).await? {
                    continue;
                }
                let extent = self.measure(job, &mut unit, vec![group.records.clone()]).await?;
                self.add(("orphaned", ""), 1, extent);
                if !self.is_dry {
                    job.keyspace.delete_orphans(group).await?;
                }
            }
            let Some(next) = page.next else { return Ok(()) };
            from = next;
            job.reach(Position::Orphans(from.clone()));
            job.check_stop()?;
        }
    }

    /// How much is in these ranges, if that is all that is wanted. The time that it takes is bounded.
    async fn measure(&self, job: &mut Job<'_>, unit: &mut Unit<'_>, ranges: Vec<KeyRange>) -> Result<Extent> {
        let mut extent = Extent::default();
        for range in ranges.into_iter().filter(|_| self.is_dry) {
            extent += job.measure(&mut unit.pages(range).await?, COUNTED_MAX).await?;
        }
        Ok(extent)
    }

    fn add(&mut self, kind: Kind, keys: u64, extent: Extent) {
        if keys > 0 {
            let (of_kind, sum) = self.tallies.entry(kind).or_default();
            *of_kind += keys;
            *sum += extent;
        }
    }

    fn report(&self, job: &mut Job<'_>) -> Result<()> {
        for ((why, kind), (number, extent)) in &self.tallies {
            let gap = if kind.is_empty() { "" } else { " " };
            let extent = if extent.records > 0 { format!(", {extent}") } else { String::new() };
            job.say(format_args!("{why}{gap}{kind}: {number}{extent}"))?;
        }
        if self.tallies.is_empty() {
            job.say("nothing to collect")?;
        }
        Ok(())
    }
}
