//! `respgate verify`: every record decodes, and all of them fit together.

mod checkup;
mod ledger;
mod lists;
mod zsets;

#[cfg(test)]
mod tests;

use super::{
    Error, Outcome, Position, Result,
    job::Job,
    words::{Named, Short},
};
use crate::{
    encoding::{Cursor, Garbage},
    keyspace::{Group, GroupPosition, Intent, Key, KeyWalk, Unit},
};

use checkup::Checkup;
use ledger::{Finding, Ledger};

/// Of more orphans of one key than so many, a finding only says that there are more.
const COUNTED_MAX: u64 = 10_000;

/// Checks the keys with all that belongs to them, then the notes on garbage, then what belongs to no key, then cursors.
pub(super) async fn run(job: &mut Job<'_>, from: Option<Position>, repairs: bool) -> Result<Outcome> {
    let mut ledger = Ledger::new(repairs);
    let mut position = from.unwrap_or(Position::Keys(KeyWalk::default()));
    loop {
        job.reach(position.clone());
        position = match position {
            Position::Keys(walk) => check_keys(job, &mut ledger, walk).await?,
            Position::Garbage(from) => check_garbage(job, &mut ledger, from).await?,
            Position::Orphans(from) => check_orphans(job, &mut ledger, from).await?,
            Position::Cursors => break check_cursors(job, &mut ledger).await?,
            other @ Position::Records(_) => return Err(Error::OtherPosition(other)),
        }
    }
    ledger.close(job)
}

async fn check_keys(job: &mut Job<'_>, ledger: &mut Ledger, mut walk: KeyWalk) -> Result<Position> {
    loop {
        let mut unit = job.keyspace.begin(Intent::Read).await?;
        let Some((page, next)) = walk.next(&mut unit).await? else {
            return Ok(Position::Garbage(GroupPosition::default()));
        };
        job.saw(page.keys.len());
        for (name, metadata) in page.keys {
            let key = Key { db: page.db, name };
            match metadata {
                Ok(metadata) => Checkup::new(job, ledger, &mut unit, &key, metadata)?.run().await?,
                Err(error) => ledger.note(Finding::left_alone(format_args!("{}: {error}", Named(&key)))),
            }
            ledger.settle(job).await?;
            ledger.keys += 1;
            job.reach(Position::Keys(walk.after(&key, job.keyspace)));
        }
        walk = next;
        job.reach(Position::Keys(walk.clone()));
        job.check_stop()?;
    }
}

async fn check_garbage(job: &mut Job<'_>, ledger: &mut Ledger, mut from: GroupPosition) -> Result<Position> {
    loop {
        let mut unit = job.keyspace.begin(Intent::Read).await?;
        let page = unit.garbage_groups(&from).await?;
        job.saw(page.groups.len());
        let records: Vec<_> = page.groups.iter().map(|group| group.records.start.clone()).collect();
        for (group, value) in page.groups.iter().zip(unit.read_many(&records).await?) {
            if let Some(Err(error)) = value.map(|value| Garbage::decode(&value)) {
                ledger.note(Finding::left_alone(format_args!("{}: {error}", job.name_owner(group))));
            }
        }
        ledger.note_strange(&page.strange);
        ledger.settle(job).await?;
        let Some(next) = page.next else { return Ok(Position::Orphans(GroupPosition::default())) };
        from = next;
        job.reach(Position::Garbage(from.clone()));
        job.check_stop()?;
    }
}

async fn check_orphans(job: &mut Job<'_>, ledger: &mut Ledger, mut from: GroupPosition) -> Result<Position> {
    loop {
        let mut unit = job.keyspace.begin(Intent::Read).await?;
        let page = unit.element_groups(&from).await?;
        job.saw(page.groups.len());
        for group in &page.groups {
            if unit.is_orphaned(group).await? {
                report_orphan(job, ledger, &mut unit, group).await?;
            }
        }
        ledger.note_strange(&page.strange);
        ledger.settle(job).await?;
        let Some(next) = page.next else { return Ok(Position::Cursors) };
        from = next;
        job.reach(Position::Orphans(from.clone()));
        job.check_stop()?;
    }
}

async fn report_orphan(job: &mut Job<'_>, ledger: &mut Ledger, unit: &mut Unit<'_>, group: &Group) -> Result<()> {
    let extent = job.measure(&mut unit.pages(group.records.clone()).await?, COUNTED_MAX).await?;
    if ledger.repairs {
        job.keyspace.delete_orphans(group).await?;
    }
    let (owner, version) = (job.name_owner(group), group.version);
    ledger.note(Finding::new(format_args!("{owner}: {extent} of version {version:016x}, which no key has")));
    Ok(())
}

async fn check_cursors(job: &mut Job<'_>, ledger: &mut Ledger) -> Result<()> {
    let mut unit = job.keyspace.begin(Intent::Read).await?;
    let mut pages = unit.pages(job.keyspace.codec().cursors()).await?;
    while let Some(page) = job.next_page(&mut pages).await? {
        for (record, value) in page {
            if let Err(error) = Cursor::decode(&value) {
                ledger.note(Finding::left_alone(format_args!("record {}: {error}", Short(&record))));
            }
        }
        ledger.settle(job).await?;
    }
    Ok(())
}
