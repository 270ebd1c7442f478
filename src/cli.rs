//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use figment::value::Value;

use crate::config::{Backend, Flag, LogFormat, Sync};

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
}

/// What to do.
pub enum Action {
    /// Serve.
    Serve,
    /// Only check the settings.
    CheckConfig,
}

/// Settings that can be given as flags.
#[derive(Args)]
pub struct Options {
    /// The configuration file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Hosts or addresses to listen on, with commas between them.
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    bind: Option<Vec<String>>,
    /// The TCP port; 0 lets the system choose one.
    #[arg(long)]
    port: Option<u16>,
    /// The path of a Unix socket to listen on too.
    #[arg(long, value_name = "PATH")]
    unix_socket: Option<String>,
    /// The store.
    #[arg(long)]
    backend: Option<Backend>,
    /// The directory of the embedded store's data.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
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
        let (action, options) = match self.command {
            None => (Action::Serve, self.options),
            Some(Command::CheckConfig(options)) => (Action::CheckConfig, options),
        };
        let flags = options.flags();
        (action, options.config, flags)
    }
}

impl Options {
    fn flags(&self) -> Vec<Flag> {
        let flags = [
            ("--bind", "server.bind", self.bind.clone().map(Value::from)),
            ("--port", "server.port", self.port.map(Value::from)),
            ("--unix-socket", "server.unix_socket", self.unix_socket.clone().map(Value::from)),
            ("--backend", "store.backend", self.backend.and_then(|backend| name(&backend))),
            ("--data-dir", "rocksdb.dir", self.data_dir.clone().map(Value::from)),
            ("--sync", "rocksdb.sync", self.sync.and_then(|sync| name(&sync))),
            ("--log-format", "log.format", self.log_format.and_then(|format| name(&format))),
            ("--log", "log.filter", self.log.clone().map(Value::from)),
        ];
        flags.into_iter().filter_map(|(name, key, value)| Some(Flag { name, key, value: value? })).collect()
    }
}

fn name(value: &impl clap::ValueEnum) -> Option<Value> {
    Some(Value::from(value.to_possible_value()?.get_name()))
}
