use std::{fmt::Display, io::Write};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::{
    Error, Outcome, Position, Result,
    progress::Progress,
    words::{Extent, Named, Quoted},
};
use crate::keyspace::{Group, Key, Keyspace, Pages};

/// A task at work: the store that it works on, where it is, and who listens.
pub(super) struct Job<'a> {
    pub(super) keyspace: &'a Keyspace,
    output: &'a mut dyn Write,
    stop: CancellationToken,
    progress: Progress,
    /// From where the task can go on.
    position: Option<Position>,
}

impl<'a> Job<'a> {
    pub(super) async fn begin(
        name: &'static str,
        keyspace: &'a Keyspace,
        output: &'a mut dyn Write,
        stop: CancellationToken,
    ) -> Result<Self> {
        let statistics = keyspace.backend().statistics().await?;
        let estimated = statistics.figures.iter().find(|(name, _)| *name == "keys_estimated");
        let progress = Progress::begin(name, estimated.map_or(0, |(_, records)| *records));
        Ok(Self { keyspace, output, stop, progress, position: None })
    }

    /// Ends the task: says from where it can go on if it was stopped.
    pub(super) fn end(mut self, outcome: Result<Outcome>) -> Result<Outcome> {
        self.progress.end();
        match (outcome, self.position.take()) {
            (Err(Error::Stopped), position) => {
                match position {
                    Some(position) => self.say(format_args!("stopped; go on with --resume {position}"))?,
                    None => self.say("stopped")?,
                }
                Ok(Outcome::Stopped)
            }
            (outcome, _) => outcome,
        }
    }

    /// Prints a line of what the task finds.
    pub(super) fn say(&mut self, line: impl Display) -> Result<()> {
        let Self { progress, output, .. } = self;
        progress.aside(|| writeln!(output, "{line}").and_then(|()| output.flush()))?;
        Ok(())
    }

    /// Notes how far the task is: from here it can go on.
    pub(super) fn reach(&mut self, position: Position) {
        self.position = Some(position);
    }

    /// Counts records that the task has seen.
    pub(super) fn saw(&mut self, records: usize) {
        self.progress.add(records, self.position.as_ref());
    }

    /// How many records the task has seen.
    pub(super) fn seen(&self) -> u64 {
        self.progress.seen()
    }

    /// To be called between two pages.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the task is to stop.
    pub(super) fn check_stop(&self) -> Result<()> {
        if self.stop.is_cancelled() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// The next of `pages`; `None` after the last one.
    pub(super) async fn next_page(&mut self, pages: &mut Pages) -> Result<Option<Vec<(Bytes, Bytes)>>> {
        // The first page is always looked at, so that even a task that is stopped at once comes forward.
        if pages.is_midway() {
            self.check_stop()?;
        }
        let page = pages.next().await?;
        self.saw(page.as_ref().map_or(0, Vec::len));
        Ok(page)
    }

    /// How much there is in `pages`, which are not read to the end once `records_max` are counted. Short enough not to be
    /// stopped.
    pub(super) async fn measure(&mut self, pages: &mut Pages, records_max: u64) -> Result<Extent> {
        let mut extent = Extent::default();
        while extent.records < records_max
            && let Some(page) = pages.next().await?
        {
            self.saw(page.len());
            extent.records += page.len() as u64;
            extent.bytes += page.iter().map(|(record, value)| record.len() + value.len()).sum::<usize>() as u64;
        }
        extent.is_least = pages.is_midway();
        Ok(extent)
    }

    /// The user key under which a group lies, with its database.
    pub(super) fn name_owner(&self, group: &Group) -> String {
        let databases = self.keyspace.databases().current();
        let db = databases.mapped().iter().position(|&mapped| mapped == group.db);
        match db.and_then(|db| u8::try_from(db).ok()) {
            Some(db) => Named(&Key { db, name: group.owner.clone() }).to_string(),
            None => Quoted(&group.owner).to_string(),
        }
    }
}
