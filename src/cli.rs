//! The command line.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

use bytes::Bytes;
use clap::{
    Args, Parser, Subcommand,
    builder::{OsStringValueParser, TypedValueParser},
};
use figment::value::Value;

use crate::{
    config::{Backend, Flag, LogFormat, Sync},
    operator::{Position, Task},
    resp,
};

/// A stateless gateway: Redis clients in front, RocksDB or TiKV behind.
///
/// Without a command it serves. Every setting can also be given in a file and in the environment; see
/// config/respgate.toml.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    options: Options,
}

#[derive(Subcommand)]
enum Command {
    /// Read the settings, say what is wrong with them, and end.
    CheckConfig(Options),
    /// Delete what nobody can reach any more: expired keys, and what dead keys have left.
    Gc {
        /// Only say what would be deleted; this works beside a running gateway.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        walk: WalkOptions,
    },
    /// Check that all that is stored fits together; ends with 1 if something does not.
    Verify {
        /// Mend what can be mended. No gateway may be running.
        #[arg(long)]
        repair: bool,
        #[command(flatten)]
        walk: WalkOptions,
    },
    /// Find the largest keys of each type, by elements and by bytes.
    Bigkeys {
        /// How many keys of each type are named.
        #[arg(long, value_name = "N", default_value_t = 5)]
        top: usize,
        /// Look into this database only.
        #[arg(long, value_name = "N")]
        db: Option<u8>,
        #[command(flatten)]
        walk: WalkOptions,
    },
    /// Show the records of a key, in hex and in words.
    Inspect {
        /// The name of the key; in double quotes of its own it may hold escapes, as in '"a\x00b"'.
        #[arg(value_parser = OsStringValueParser::new().try_map(parse_key))]
        key: Bytes,
        /// The database.
        #[arg(long, value_name = "N", default_value_t = 0)]
        db: u8,
        /// How many elements are shown.
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        #[command(flatten)]
        walk: WalkOptions,
    },
}

/// What to do.
pub enum Action {
    /// Serve.
    Serve,
    /// Only check the settings.
    CheckConfig,
    /// Work on the store, from a position on if there is one.
    Operate(Task, Option<Position>),
}

/// How a walk over the store is made.
#[derive(Args)]
struct WalkOptions {
    /// Go on where an earlier run said that it had stopped.
    #[arg(long, value_name = "POSITION")]
    resume: Option<Position>,
    #[command(flatten)]
    store: StoreOptions,
}

/// Settings of the gateway that can be given as flags.
#[derive(Args)]
struct Options {
    #[command(flatten)]
    store: StoreOptions,
    /// Hosts or addresses to listen on, with commas between them.
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    bind: Option<Vec<String>>,
    /// The TCP port; 0 lets the system choose one.
    #[arg(long)]
    port: Option<u16>,
    /// The path of a Unix socket to listen on too.
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<String>,
    /// Host and port to answer monitoring on: /live, /ready and /metrics over HTTP.
    #[arg(long, value_name = "HOST:PORT")]
    admin: Option<String>,
}

/// Settings of the store and of the log that can be given as flags.
#[derive(Args)]
struct StoreOptions {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The store.
    #[arg(long)]
    backend: Option<Backend>,
    /// The directory of the embedded store's data.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// Where the placement driver of the TiKV cluster listens: hosts and ports, with commas between them.
    #[arg(long, value_name = "ADDRESSES", value_delimiter = ',')]
    pd: Option<Vec<String>>,
    /// The namespace that prefixes every record.
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// When the embedded store puts a write on the disk.
    #[arg(long)]
    sync: Option<Sync>,
    /// How a line of the log looks.
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<LogFormat>,
    /// What is logged: a level or directives.
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

impl Cli {
    /// What to do, with which file and which flags.
    pub fn into_parts(self) -> (Action, Option<PathBuf>, Vec<Flag>) {
        let operate = |task, walk: WalkOptions| (Action::Operate(task, walk.resume), walk.store, Vec::new());
        let (action, store, mut flags) = match self.command {
            None => {
                let flags = self.options.flags();
                (Action::Serve, self.options.store, flags)
            }
            Some(Command::CheckConfig(options)) => {
                let flags = options.flags();
                (Action::CheckConfig, options.store, flags)
            }
            Some(Command::Gc { dry_run, walk }) => operate(Task::Gc { is_dry: dry_run }, walk),
            Some(Command::Verify { repair, walk }) => operate(Task::Verify { repairs: repair }, walk),
            Some(Command::Bigkeys { top, db, walk }) => operate(Task::Bigkeys { db, top }, walk),
            Some(Command::Inspect { key, db, limit, walk }) => operate(Task::Inspect { db, key, limit }, walk),
        };
        flags.extend(store.flags());
        (action, store.config, flags)
    }
}

impl Options {
    fn flags(&self) -> Vec<Flag> {
        given([
            ("--bind", "server.bind", self.bind.clone().map(Value::from)),
            ("--port", "server.port", self.port.map(Value::from)),
            ("--unix-socket", "server.unix_socket", self.unix_socket.clone().map(Value::from)),
            ("--admin", "admin.bind", self.admin.clone().map(Value::from)),
        ])
    }
}

impl StoreOptions {
    fn flags(&self) -> Vec<Flag> {
        given([
            ("--backend", "store.backend", self.backend.and_then(|backend| name(&backend))),
            ("--data-dir", "rocksdb.dir", self.data_dir.clone().map(Value::from)),
            ("--pd", "tikv.pd", self.pd.clone().map(Value::from)),
            ("--namespace", "store.namespace", self.namespace.clone().map(Value::from)),
            ("--sync", "rocksdb.sync", self.sync.and_then(|sync| name(&sync))),
            ("--log-format", "log.format", self.log_format.and_then(|format| name(&format))),
            ("--log", "log.filter", self.log.clone().map(Value::from)),
        ])
    }
}

fn given<const N: usize>(flags: [(&'static str, &'static str, Option<Value>); N]) -> Vec<Flag> {
    flags.into_iter().filter_map(|(name, key, value)| Some(Flag { name, key, value: value? })).collect()
}

fn name(value: &impl clap::ValueEnum) -> Option<Value> {
    Some(Value::from(value.to_possible_value()?.get_name()))
}

/// The key's name as it is, or what is in its quotes.
fn parse_key(text: OsString) -> Result<Bytes, &'static str> {
    let text = text.into_vec();
    if !text.starts_with(b"\"") {
        return Ok(text.into());
    }
    resp::unquote(&text).ok_or("the quotes do not match")
}
