use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

use super::Position;

/// How often a line tells of the progress where there is no terminal.
const LINES_EVERY: Duration = Duration::from_secs(10);

const BAR: &str = "{prefix} [{wide_bar}] {human_pos} of about {human_len} records, {eta} left";

/// How far a task is, on standard error: a bar on a terminal, a line now and then elsewhere.
pub(super) struct Progress {
    name: &'static str,
    /// `None` without a terminal.
    bar: Option<ProgressBar>,
    seen: u64,
    told_at: Instant,
}

impl Progress {
    /// A task that will see about `records` records.
    pub(super) fn begin(name: &'static str, records: u64) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            // A template that cannot be understood would be a mistake of ours; the default bar will do.
            let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(records).with_style(style).with_prefix(name)
        });
        Self { name, bar, seen: 0, told_at: Instant::now() }
    }

    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    pub(super) fn add(&mut self, records: usize, position: Option<&Position>) {
        self.seen += records as u64;
        if let Some(bar) = &self.bar {
            // The number of records was a guess.
            if bar.length().is_some_and(|length| length < self.seen) {
                bar.set_length(self.seen);
            }
            bar.set_position(self.seen);
        } else if self.told_at.elapsed() >= LINES_EVERY {
            self.told_at = Instant::now();
            self.tell(position);
        }
    }

    /// Writes something else where the bar may be.
    pub(super) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Whoever has the last of these lines can go on after a crash, too.
    fn tell(&self, position: Option<&Position>) {
        let Self { name, seen, .. } = self;
        let place = position.map(|position| format!(", at {position}")).unwrap_or_default();
        // Nobody need listen.
        let _ = writeln!(io::stderr(), "{name}: {seen} records seen{place}");
    }
}
