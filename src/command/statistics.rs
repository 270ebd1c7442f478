use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

use super::{Entry, Table};

/// What the gateway has counted since it started or since CONFIG RESETSTAT.
pub struct Statistics {
    /// Connections accepted.
    pub connections_received: Counter,
    /// Connections refused because of `maxclients`.
    pub connections_rejected: Counter,
    /// Bytes read from clients.
    pub bytes_in: Counter,
    /// Bytes written to clients.
    pub bytes_out: Counter,
    /// Replies that were errors.
    pub error_replies: Counter,
    /// Commands that found the key they looked for.
    pub keyspace_hits: Counter,
    /// Commands that did not.
    pub keyspace_misses: Counter,
    /// Commands that ran, refused ones not counted.
    pub commands_processed: Counter,
    /// Units committed.
    pub units_committed: Counter,
    /// How often a unit was run again after a conflict.
    pub unit_conflicts: Counter,
    /// How often a unit locked what it relies on beforehand, because it had met many conflicts.
    pub unit_lockings: Counter,
    /// Units that were given up because conflicts did not end: their client was told, or they were split.
    pub units_given_up: Counter,
    /// Dead keys whose elements were deleted in the background.
    pub garbage_collected: Counter,
    /// Expired keys that were deleted in the background.
    pub expired_swept: Counter,
    /// Collections whose elements were found to belong to no key.
    pub orphans_found: Counter,
    /// Orders in the sidecar that differed from the store, or belonged to nothing there.
    pub orders_mended: Counter,
    commands: Vec<CommandStatistics>,
    /// The most memory that the process was seen to hold.
    memory_peak: AtomicU64,
    /// Errors by their code.
    errors: Mutex<BTreeMap<String, u64>>,
}

/// What was counted for one command.
#[derive(Default)]
pub struct CommandStatistics {
    /// Times it ran.
    pub calls: Counter,
    /// Microseconds it ran for, all calls together.
    pub microseconds: Counter,
    /// Times it was refused before it ran.
    pub rejected: Counter,
    /// Times it ran and gave an error.
    pub failed: Counter,
}

/// A number that only grows, until it is reset.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Counts `count` more.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// What has been counted.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Starts again at zero.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Statistics {
    /// Everything at zero.
    pub fn new() -> Self {
        Self {
            connections_received: Counter::default(),
            connections_rejected: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            error_replies: Counter::default(),
            keyspace_hits: Counter::default(),
            keyspace_misses: Counter::default(),
            commands_processed: Counter::default(),
            units_committed: Counter::default(),
            unit_conflicts: Counter::default(),
            unit_lockings: Counter::default(),
            units_given_up: Counter::default(),
            garbage_collected: Counter::default(),
            expired_swept: Counter::default(),
            orphans_found: Counter::default(),
            orders_mended: Counter::default(),
            memory_peak: AtomicU64::default(),
            errors: Mutex::default(),
            commands: Table::get().entries().iter().map(|_| CommandStatistics::default()).collect(),
        }
    }

    /// What was counted for a command.
    pub fn command(&self, entry: &Entry) -> Option<&CommandStatistics> {
        self.commands.get(entry.id)
    }

    /// Counts a command that ran.
    pub fn ran(&self, entry: &Entry, took: Duration, failed: bool) {
        self.commands_processed.add(1);
        let Some(command) = self.command(entry) else { return };
        command.calls.add(1);
        command.microseconds.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
        command.failed.add(u64::from(failed));
    }

    /// Counts a command that was refused before it ran.
    pub fn refused(&self, entry: &Entry) {
        if let Some(command) = self.command(entry) {
            command.rejected.add(1);
        }
    }

    /// Counts an error that a client was told; `text` begins with its code.
    pub fn told_error(&self, text: &str) {
        /// Codes that are told apart. There are about twenty; more can only come from a mistake of ours.
        const CODES_MAX: usize = 128;

        self.error_replies.add(1);
        let code = text.split(' ').next().unwrap_or_default();
        let mut errors = self.errors.lock();
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < CODES_MAX {
            errors.insert(code.to_owned(), 1);
        }
    }

    /// Notes how much memory the process holds. Returns the most that was noted.
    pub fn note_memory(&self, bytes: u64) -> u64 {
        self.memory_peak.fetch_max(bytes, Ordering::Relaxed).max(bytes)
    }

    /// How often each error was told, by code.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        self.errors.lock().clone()
    }

    /// Forgets everything: CONFIG RESETSTAT.
    pub fn reset(&self) {
        let counters = [
            &self.connections_received,
            &self.connections_rejected,
            &self.bytes_in,
            &self.bytes_out,
            &self.error_replies,
            &self.keyspace_hits,
            &self.keyspace_misses,
            &self.commands_processed,
            &self.units_committed,
            &self.unit_conflicts,
            &self.unit_lockings,
            &self.units_given_up,
            &self.garbage_collected,
            &self.expired_swept,
        ];
        let of_commands = self
            .commands
            .iter()
            .flat_map(|command| [&command.calls, &command.microseconds, &command.rejected, &command.failed]);
        counters.into_iter().chain(of_commands).for_each(Counter::reset);
        self.errors.lock().clear();
    }
}

impl Default for Statistics {
    fn default() -> Self {
        Self::new()
    }
}
