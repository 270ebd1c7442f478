//! The `respgate` program: settings, logging, store, server, signals.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "before there is a log, this is where a program speaks")]

use std::{error::Error, io, process::ExitCode, sync::Arc};

use clap::Parser;
use respgate::{
    cli::{Action, Cli},
    config::{self, Backend, Settings},
    operator::{self, Outcome, Position, Task},
    server::{Admin, Server},
    telemetry,
};
use respgate_backend_api::{Access, KvBackend};
use respgate_backend_memory::MemoryBackend;
use tokio::{
    runtime::{self, Runtime},
    signal::unix::{Signal, SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The command line or the settings are wrong (`EX_USAGE` of sysexits.h).
const USAGE: u8 = 64;

/// A check has found something, or there is nothing to show.
const FOUND: u8 = 1;

/// The store cannot be worked on.
const TROUBLE: u8 = 2;

/// A signal came before the end.
const STOPPED: u8 = 130;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are asked for; everything else is a mistake.
            let code = if error.use_stderr() { USAGE } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let (action, file, flags) = cli.into_parts();
    let settings = match config::load(file.as_deref(), flags) {
        Ok(settings) => Arc::new(settings),
        Err(error) => return fail(USAGE, &error),
    };
    if let Action::CheckConfig = action {
        println!("ok");
        return ExitCode::SUCCESS;
    }
    if let Err(error) = telemetry::start(&settings.log) {
        return fail(USAGE, &format!("log.filter: {error}"));
    }
    if let Action::Operate(task, from) = action {
        return match operate(&settings, &task, from) {
            Ok(Outcome::Done) => ExitCode::SUCCESS,
            Ok(Outcome::Found) => ExitCode::from(FOUND),
            Ok(Outcome::Stopped) => ExitCode::from(STOPPED),
            Err(error) => fail(TROUBLE, &error),
        };
    }
    match serve(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &error),
    }
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("respgate: {error}");
    ExitCode::from(code)
}

fn serve(settings: Arc<Settings>) -> Result<(), Box<dyn Error>> {
    raise_descriptor_limit(settings.server.maxclients);
    let runtime = start_runtime(&settings)?;
    let deadline = settings.server.shutdown_timeout.as_duration();
    let result = runtime.block_on(async {
        let admin = Admin::start(&settings.admin).await?;
        if let Some(address) = admin.address() {
            tracing::info!("monitoring at http://{address}/ready and /metrics");
        }
        let backend = open_backend(&settings, Access::Create).await?;
        let server = Server::bind(settings, Arc::clone(&backend)).await?;
        // Before it says that it listens: who has read that may ask for its figures.
        admin.watch(&server);
        for address in server.addresses() {
            tracing::info!("listening on {address}");
        }
        let shutdown = CancellationToken::new();
        tokio::spawn(cancel_on_signal(shutdown.clone(), Signals::new()?));
        server.run(shutdown).await;
        backend.close().await?;
        tracing::info!("closed");
        Ok(())
    });
    runtime.shutdown_timeout(deadline);
    result
}

fn operate(settings: &Settings, task: &Task, from: Option<Position>) -> Result<Outcome, Box<dyn Error>> {
    // All files of a store that is only read are kept open. If there cannot be as many, opening it says so.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    start_runtime(settings)?.block_on(async {
        let backend = open_backend(settings, if task.writes() { Access::Write } else { Access::Read }).await?;
        let keyspace = operator::open(Arc::clone(&backend), settings).await?;
        let stop = CancellationToken::new();
        tokio::spawn(cancel_on_signal(stop.clone(), Signals::new()?));
        let outcome = operator::run(task, from, &keyspace, &mut io::stdout(), stop).await;
        backend.close().await?;
        Ok(outcome?)
    })
}

fn start_runtime(settings: &Settings) -> io::Result<Runtime> {
    runtime::Builder::new_multi_thread().worker_threads(settings.worker_threads()).enable_all().build()
}

async fn open_backend(settings: &Settings, access: Access) -> Result<Arc<dyn KvBackend>, Box<dyn Error>> {
    Ok(match settings.store.backend {
        #[cfg(feature = "rocksdb")]
        Backend::Rocksdb => Arc::new(respgate::embedded::open(settings, access)?),
        #[cfg(feature = "tikv")]
        Backend::Tikv => Arc::new(respgate::remote::open(&settings.tikv, access).await?),
        Backend::Memory if access == Access::Create => Arc::new(MemoryBackend::new()),
        Backend::Memory => {
            return Err("the memory backend keeps nothing to work on; choose another with --backend".into());
        }
    })
}

/// The signals that end the process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// The first signal lets everything in flight finish; a second one ends the process at once.
async fn cancel_on_signal(shutdown: CancellationToken, mut signals: Signals) {
    // Not within the macros: they evaluate nothing at levels that are not logged.
    let first = signals.next().await;
    tracing::info!("{first} received, shutting down");
    shutdown.cancel();
    let second = signals.next().await;
    tracing::warn!("{second} received again, ending at once");
    std::process::exit(1);
}

/// Each client needs a descriptor, and the store some more. Without them connections are refused, so say so.
fn raise_descriptor_limit(maxclients: usize) {
    let wanted = maxclients as u64 + 1_024;
    match rlimit::increase_nofile_limit(wanted) {
        Ok(got) if got >= wanted => {}
        Ok(got) => tracing::warn!(got, wanted, "few file descriptors: fewer clients than maxclients can connect"),
        Err(error) => tracing::warn!(%error, "the limit of file descriptors cannot be raised"),
    }
}
