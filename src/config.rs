//! Settings: what can be configured, and the defaults.

use std::{path::PathBuf, time::Duration};

/// Everything that can be configured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Listeners, clients and limits.
    pub server: ServerSettings,
    /// Units of work.
    pub unit: UnitSettings,
    /// The store.
    pub store: StoreSettings,
    /// How new keys are stored.
    pub encoding: EncodingSettings,
}

/// Listeners, clients and limits.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Hosts or addresses to listen on.
    pub bind: Vec<String>,
    /// The port to listen on; 0 lets the system choose one.
    pub port: u16,
    /// The path of a Unix socket to listen on.
    pub unix_socket: Option<PathBuf>,
    /// The permissions of the Unix socket.
    pub unix_socket_perm: Option<u32>,
    /// How many connections may wait to be accepted.
    pub backlog: u32,
    /// How long a silent connection is left alone before it is probed; 0 probes none.
    pub tcp_keepalive: Span,
    /// How many clients may be connected.
    pub maxclients: usize,
    /// How long a client may be silent before it is disconnected; 0 is for ever.
    pub idle_timeout: Span,
    /// The password that clients must give; empty for none.
    pub requirepass: String,
    /// How many databases SELECT may choose from.
    pub databases: u8,
    /// How long connections may take to finish when the gateway stops.
    pub shutdown_timeout: Span,
    /// How many bytes of requests a client may send ahead.
    pub input_buffer_max: Size,
    /// How long one argument may be.
    pub bulk_bytes_max: Size,
}

/// Units of work.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitSettings {
    /// How many commands of a pipeline make one unit at most.
    pub pipeline_commands_max: usize,
    /// How many bytes of requests make one unit at most.
    pub pipeline_bytes_max: Size,
    /// A unit ends early when its replies exceed this.
    pub reply_bytes_max: Size,
    /// How often a unit is run again after a conflict.
    pub conflict_retries_max: u32,
}

/// The store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreSettings {
    /// The namespace that prefixes every record.
    pub namespace: String,
}

/// How new keys are stored. Keys that exist keep the encoding they have.
#[derive(Clone, Debug, PartialEq)]
pub struct EncodingSettings {
    /// Strings longer than this are stored in chunks.
    pub string_chunk_threshold: Size,
    /// The encode-version of hashes: 0 counts exactly, 1 writes without reading.
    pub hash: u8,
    /// The encode-version of sets: 0 counts exactly, 1 writes without reading.
    pub set: u8,
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl Size {
    /// The number of bytes, as far as this machine can count.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// A span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Span {
    /// The span as a duration.
    pub fn as_duration(self) -> Duration {
        self.0
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            bind: vec!["127.0.0.1".to_owned()],
            port: 6379,
            unix_socket: None,
            unix_socket_perm: None,
            backlog: 511,
            tcp_keepalive: Span(Duration::from_secs(300)),
            maxclients: 10_000,
            idle_timeout: Span(Duration::ZERO),
            requirepass: String::new(),
            databases: 16,
            shutdown_timeout: Span(Duration::from_secs(10)),
            input_buffer_max: Size(1 << 30),
            bulk_bytes_max: Size(512 << 20),
        }
    }
}

impl Default for UnitSettings {
    fn default() -> Self {
        Self {
            pipeline_commands_max: 128,
            pipeline_bytes_max: Size(1 << 20),
            reply_bytes_max: Size(1 << 20),
            conflict_retries_max: 16,
        }
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self { namespace: "default".to_owned() }
    }
}

impl Default for EncodingSettings {
    fn default() -> Self {
        Self { string_chunk_threshold: Size(64 << 10), hash: 0, set: 0 }
    }
}
