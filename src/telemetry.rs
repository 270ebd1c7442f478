//! What is told to those who watch a gateway: the log, and the names of all figures that `/metrics` shows.
//!
//! What clients send and what they store is never logged: lines speak of connections, limits and the store.

use tracing_subscriber::{EnvFilter, filter::ParseError, fmt};

use crate::config::{LogFormat, LogSettings};

/// Sends the log to standard error, as `settings` say.
///
/// # Errors
/// The filter cannot be understood.
pub fn start(settings: &LogSettings) -> Result<(), ParseError> {
    let filter = EnvFilter::builder().parse(&settings.filter)?;
    let log = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match settings.format {
        LogFormat::Human => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}

/// A figure for monitoring.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, before what its unit and its kind append: `_seconds`, `_bytes`, `_total`.
    pub name: &'static str,
    /// What it tells.
    pub help: &'static str,
    /// In what it is measured.
    pub unit: Unit,
    /// Whether it only grows.
    pub kind: Kind,
}

/// In what a figure is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
}

/// What a figure may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows, until the process ends or CONFIG RESETSTAT.
    Counter,
    /// It goes up and down.
    Gauge,
}

const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, help, unit: Unit::Count, kind: Kind::Counter }
}

const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, help, unit: Unit::Count, kind: Kind::Gauge }
}

impl Metric {
    const fn bytes(self) -> Self {
        Self { unit: Unit::Bytes, ..self }
    }

    const fn seconds(self) -> Self {
        Self { unit: Unit::Seconds, ..self }
    }
}

/// Always 1; the labels `version` and `backend` tell which program this is.
pub const BUILD_INFO: Metric = gauge("respgate_build_info", "The version and the kind of store");
/// When the process started.
pub const START_TIME: Metric = gauge("process_start_time", "When the process started, since the Unix epoch").seconds();
/// Processor time.
pub const CPU: Metric = counter("process_cpu", "Processor time spent by the process").seconds();
/// Memory.
pub const RESIDENT: Metric = gauge("process_resident_memory", "Memory that the process holds").bytes();

/// Clients that are connected.
pub const CLIENTS: Metric = gauge("respgate_clients", "Clients that are connected");
/// Clients that may be connected.
pub const CLIENTS_MAX: Metric = gauge("respgate_clients_max", "Clients that may be connected at the same time");
/// Connections accepted.
pub const CONNECTIONS: Metric = counter("respgate_connections", "Connections accepted, refused ones included");
/// Connections refused.
pub const CONNECTIONS_REJECTED: Metric =
    counter("respgate_connections_rejected", "Connections refused because there were too many");
/// Bytes of requests.
pub const INPUT: Metric = counter("respgate_input", "What clients sent").bytes();
/// Bytes of replies.
pub const OUTPUT: Metric = counter("respgate_output", "What clients were sent").bytes();

/// Commands that ran, by `command`.
pub const COMMANDS: Metric = counter("respgate_commands", "Commands that ran");
/// Time that they took, by `command`.
pub const COMMAND_TIME: Metric = counter("respgate_command_duration", "Time that commands took to run").seconds();
/// Commands that gave an error, by `command`.
pub const COMMANDS_FAILED: Metric = counter("respgate_commands_failed", "Commands that ran and gave an error");
/// Commands that were refused before they ran, by `command`.
pub const COMMANDS_REJECTED: Metric = counter("respgate_commands_rejected", "Commands refused before they ran");
/// Replies that were errors, by `code`.
pub const ERRORS: Metric = counter("respgate_error_replies", "Replies that were errors, by their first word");

/// Units of work.
pub const UNITS: Metric = counter("respgate_units_committed", "Units of work committed");
/// Units run again.
pub const UNIT_CONFLICTS: Metric = counter("respgate_unit_conflicts", "Units run again because another was quicker");
/// Units that locked beforehand.
pub const UNIT_LOCKINGS: Metric =
    counter("respgate_unit_lockings", "Units that locked what they rely on, because they had met many conflicts");
/// Units given up.
pub const UNITS_GIVEN_UP: Metric = counter("respgate_units_given_up", "Units given up because conflicts did not end");

/// Garbage to collect.
pub const GARBAGE_PENDING: Metric = gauge("respgate_garbage_pending", "Elements of dead keys yet to be deleted");
/// Garbage collected.
pub const GARBAGE_COLLECTED: Metric =
    counter("respgate_garbage_collected", "Dead keys whose elements were deleted in the background");
/// Expired keys deleted.
pub const EXPIRED_SWEPT: Metric = counter("respgate_expired_swept", "Expired keys deleted in the background");
/// Orphans found.
pub const ORPHANS_FOUND: Metric =
    counter("respgate_orphans_found", "Collections whose elements were found to belong to no key");
/// Orders mended.
pub const ORDERS_MENDED: Metric =
    counter("respgate_orders_mended", "Orders in the sidecar that were found to differ from the store");
/// How long ago all of the store was last swept, by `duty`. Not shown before that.
pub const SWEEP_AGE: Metric =
    gauge("respgate_sweep_age", "Time since background work last came to the end of the whole store").seconds();

/// Bytes on disk.
pub const STORE_DISK: Metric = gauge("respgate_store_disk", "What the store holds on disk, as far as it tells").bytes();
/// Memory of the store.
pub const STORE_MEMORY: Metric = gauge("respgate_store_memory", "Memory that the store holds in this process").bytes();
/// The store's own figures, by `figure`, which names its unit.
pub const STORE_FIGURE: Metric = gauge("respgate_store_figure", "A figure of the store, named as in INFO");
