//! Settings: defaults, then a file, then the environment, then flags; the only reader of the environment.
//!
//! A key that does not exist and a value that cannot be are errors which name the key and where it was written.
//! `config/respgate.toml` lists every key with its default and its unit.

mod source;
mod tikv;
mod units;
mod work;

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

pub use source::{ConfigError, Flag, load};
pub use tikv::TikvSettings;
pub use units::{Secret, Size, Span};
pub use work::{PipelineOrder, UnitSettings};

/// Everything that can be configured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Listeners, clients and limits.
    pub server: ServerSettings,
    /// Monitoring.
    pub admin: AdminSettings,
    /// Units of work.
    pub unit: UnitSettings,
    /// The store.
    pub store: StoreSettings,
    /// The embedded store.
    pub rocksdb: RocksdbSettings,
    /// The store in a cluster.
    pub tikv: TikvSettings,
    /// How new keys are stored.
    pub encoding: EncodingSettings,
    /// The Redis that keeps the order of sorted sets of encode-version 1.
    pub sidecar: SidecarSettings,
    /// What is done without being asked.
    pub background: BackgroundSettings,
    /// Logging.
    pub log: LogSettings,
}

/// Listeners, clients and limits.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSettings {
    /// Hosts or addresses to listen on.
    pub bind: Vec<String>,
    /// The port to listen on; 0 lets the system choose one.
    pub port: u16,
    /// The path of a Unix socket to listen on too; empty for none.
    pub unix_socket: PathBuf,
    /// The permissions of the Unix socket, in octal digits; empty for what the umask leaves.
    pub unix_socket_perm: String,
    /// How many connections may wait to be accepted.
    pub backlog: u32,
    /// How long a silent connection is left alone before it is probed; 0 probes none.
    pub tcp_keepalive: Span,
    /// How many clients may be connected.
    pub maxclients: usize,
    /// How long a client may be silent before it is disconnected; 0 is for ever.
    pub idle_timeout: Span,
    /// The password that clients must give; empty for none.
    pub requirepass: Secret,
    /// How many databases SELECT may choose from, 1 to 128.
    pub databases: u8,
    /// Threads that serve connections; 0 for one less than there are cores, so that an embedded store has one to itself, or
    /// for as many where there is none.
    pub worker_threads: usize,
    /// How long connections may take to finish when the gateway stops.
    pub shutdown_timeout: Span,
    /// How many bytes of requests a client may send ahead.
    pub input_buffer_max: Size,
    /// How long one argument, and so a string, may be.
    pub bulk_bytes_max: Size,
}

/// Monitoring over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdminSettings {
    /// Host and port to listen on; empty for not at all.
    pub bind: String,
}

/// The store.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// Which store keeps the data.
    pub backend: Backend,
    /// The namespace that prefixes every record, at most 255 bytes.
    pub namespace: String,
    /// Memory for records as last committed: short strings, metadata, fields, members, and short runs of elements; 0 for
    /// none.
    pub record_cache: Size,
}

/// A store that this program can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// RocksDB, embedded: the default.
    #[cfg(feature = "rocksdb")]
    Rocksdb,
    /// A TiKV cluster, which any number of gateways may share.
    #[cfg(feature = "tikv")]
    Tikv,
    /// Memory of this process: for tests. Nothing survives it.
    Memory,
}

impl Backend {
    /// True if the store works in this process.
    fn is_embedded(self) -> bool {
        match self {
            #[cfg(feature = "tikv")]
            Self::Tikv => false,
            _ => true,
        }
    }

    /// Its name, as it is configured.
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "rocksdb")]
            Self::Rocksdb => "rocksdb",
            #[cfg(feature = "tikv")]
            Self::Tikv => "tikv",
            Self::Memory => "memory",
        }
    }
}

/// The embedded store.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RocksdbSettings {
    /// The directory of the data.
    pub dir: PathBuf,
    /// When a write is on the disk.
    pub sync: Sync,
    /// How often writes are put on the disk with `sync = "interval"`.
    pub sync_interval: Span,
    /// Memory for blocks read from disk.
    pub block_cache: Size,
    /// Memory for writes that are not in a sorted file yet.
    pub write_buffers: Size,
    /// Flushes and compactions at the same time; 0 for the number of cores.
    pub background_jobs: usize,
    /// Files kept open.
    pub open_files_max: usize,
}

/// When a write is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// Before it is acknowledged: survives a power cut.
    Always,
    /// Within an interval: survives a crash of the process.
    Interval,
    /// When the operating system likes: survives a crash of the process.
    Never,
}

/// How new keys are stored. Keys that exist keep the encoding they have.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct EncodingSettings {
    /// Strings longer than this are stored in chunks.
    pub string_chunk_threshold: Size,
    /// The encode-version of hashes: 0 counts exactly, 1 writes without reading.
    pub hash: u8,
    /// The encode-version of sets: 0 counts exactly, 1 writes without reading.
    pub set: u8,
    /// The encode-version of sorted sets: 0 keeps their order in the store, 1 in the sidecar.
    pub zset: u8,
}

/// The Redis that keeps the order of sorted sets of encode-version 1.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SidecarSettings {
    /// Where it is: `redis://[user:password@]host:port/database` or `unix:///path`; empty for none.
    pub url: Secret,
    /// How long connecting may take.
    pub connect_timeout: Span,
    /// How long an answer may take.
    pub timeout: Span,
    /// How long the sidecar caches members that an index does not hold; 0 for not at all.
    pub cache_ttl: Span,
    /// Memory of this process for such members.
    pub member_cache: Size,
}

/// What is done without being asked.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackgroundSettings {
    /// The time between two rounds of the search for expired keys.
    pub sweep_interval: Span,
    /// How many keys a round looks at, unless many of them have expired.
    pub sweep_keys: usize,
    /// How many collections a round looks at in search of elements that belong to no key.
    pub sweep_collections: usize,
    /// For how long elements that belong to no key are left alone after they were created, and by compactions strings
    /// after they expired.
    pub grace: Span,
}

/// Logging. Keys and values of clients are never logged.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// How a line looks.
    pub format: LogFormat,
    /// What is logged: a level, or directives as in `info,respgate::server=debug`.
    pub filter: String,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            bind: vec!["127.0.0.1".to_owned()],
            port: 6379,
            unix_socket: PathBuf::new(),
            unix_socket_perm: String::new(),
            backlog: 511,
            tcp_keepalive: Span(Duration::from_secs(300)),
            maxclients: 10_000,
            idle_timeout: Span(Duration::ZERO),
            requirepass: Secret::default(),
            databases: 16,
            worker_threads: 0,
            shutdown_timeout: Span(Duration::from_secs(10)),
            input_buffer_max: Size(1 << 30),
            bulk_bytes_max: Size(512 << 20),
        }
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        #[cfg(feature = "rocksdb")]
        let backend = Backend::Rocksdb;
        #[cfg(not(feature = "rocksdb"))]
        let backend = Backend::Memory;
        Self { backend, namespace: "default".to_owned(), record_cache: Size(256 << 20) }
    }
}

impl Default for RocksdbSettings {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("./data"),
            sync: Sync::Interval,
            sync_interval: Span(Duration::from_secs(1)),
            block_cache: Size(256 << 20),
            write_buffers: Size(128 << 20),
            background_jobs: 0,
            open_files_max: 512,
        }
    }
}

impl Default for EncodingSettings {
    fn default() -> Self {
        Self { string_chunk_threshold: Size(64 << 10), hash: 0, set: 0, zset: 0 }
    }
}

impl Default for SidecarSettings {
    fn default() -> Self {
        Self {
            url: Secret::default(),
            connect_timeout: Span(Duration::from_secs(1)),
            timeout: Span(Duration::from_secs(2)),
            cache_ttl: Span(Duration::from_secs(60 * 60)),
            member_cache: Size(32 << 20),
        }
    }
}

impl Default for BackgroundSettings {
    fn default() -> Self {
        Self {
            sweep_interval: Span(Duration::from_secs(60)),
            sweep_keys: 1_000,
            sweep_collections: 10_000,
            grace: Span(Duration::from_secs(600)),
        }
    }
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { format: LogFormat::Human, filter: "info".to_owned() }
    }
}

impl Settings {
    /// Checks what types cannot express. The error names the key.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let within = |key, value: u64, least: u64, most: u64| {
            let ok = (least..=most).contains(&value);
            if ok { Ok(()) } else { Err((key, format!("{value} is not between {least} and {most}"))) }
        };
        within("server.databases", u64::from(self.server.databases), 1, 128)?;
        within("server.maxclients", self.server.maxclients as u64, 1, 1_000_000)?;
        within("server.worker_threads", self.server.worker_threads as u64, 0, 1_024)?;
        within("server.bulk_bytes_max", self.server.bulk_bytes_max.0, 1 << 20, 4 << 30)?;
        within("server.input_buffer_max", self.server.input_buffer_max.0, 1 << 20, 1 << 40)?;
        within("unit.pipeline_commands_max", self.unit.pipeline_commands_max as u64, 1, 100_000)?;
        within("unit.pipeline_bytes_max", self.unit.pipeline_bytes_max.0, 1, 1 << 30)?;
        within("store.namespace", self.store.namespace.len() as u64, 0, 255)
            .map_err(|(key, _)| (key, "a name may have at most 255 bytes".to_owned()))?;
        within("background.sweep_keys", self.background.sweep_keys as u64, 1, 1 << 32)?;
        within("background.sweep_collections", self.background.sweep_collections as u64, 1, 1 << 32)?;
        let sweep_ms = u64::try_from(self.background.sweep_interval.as_duration().as_millis()).unwrap_or(u64::MAX);
        within("background.sweep_interval", sweep_ms, 1, 1 << 40)
            .map_err(|(key, _)| (key, "it must be at least 1ms".to_owned()))?;
        within("encoding.hash", u64::from(self.encoding.hash), 0, 1)?;
        within("encoding.set", u64::from(self.encoding.set), 0, 1)?;
        within("encoding.zset", u64::from(self.encoding.zset), 0, 1)?;
        if self.encoding.zset == 1 && self.sidecar.url.is_empty() {
            return Err(("encoding.zset", "1 needs a sidecar.url".to_owned()));
        }
        self.sidecar.check_url().map_err(|cause| ("sidecar.url", cause.to_owned()))?;
        within("rocksdb.block_cache", self.rocksdb.block_cache.0, 1 << 20, 1 << 44)?;
        within("rocksdb.write_buffers", self.rocksdb.write_buffers.0, 1 << 20, 1 << 44)?;
        self.tikv.check()?;
        self.server.unix_socket_mode().map(drop).map_err(|cause| ("server.unix_socket_perm", cause))
    }

    /// Threads that serve connections.
    pub fn worker_threads(&self) -> usize {
        match self.server.worker_threads {
            0 => {
                let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
                let of_store = usize::from(self.store.backend.is_embedded());
                cores.saturating_sub(of_store).max(1)
            }
            threads => threads,
        }
    }
}

impl SidecarSettings {
    /// Checks the URL, which the error does not show: it may hold a password.
    fn check_url(&self) -> Result<(), &'static str> {
        if self.url.is_empty() || redis::parse_redis_url(self.url.reveal()).is_some() {
            return Ok(());
        }
        Err("it is not a URL such as \"redis://127.0.0.1:6380/0\" or \"unix:///path\"")
    }
}

impl ServerSettings {
    /// The permissions of the Unix socket, if any are configured.
    pub fn unix_socket_mode(&self) -> Result<Option<u32>, String> {
        let digits = self.unix_socket_perm.as_str();
        if digits.is_empty() {
            return Ok(None);
        }
        let mode = u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o777);
        mode.map(Some).ok_or_else(|| format!("{digits:?} is not a mode such as \"700\""))
    }
}
