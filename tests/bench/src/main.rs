//! Respgate beside Redis, and beside the stores under it, in one run on one machine.
//!
//! Absolute speeds depend on the machine and on what else it does; ratios of two servers that take turns do so much
//! less. Every figure that this program prints is therefore measured in turns, and the spread is printed with it.

mod collections;
mod engine;
mod idle;
mod memory;
mod random;
mod ratio;
mod server;
mod space;
mod tikv;
mod traffic;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Compares Respgate with Redis and with the store under it.
#[derive(Parser)]
struct Arguments {
    /// The gateway to measure.
    #[arg(long, default_value = "target/release/respgate", global = true)]
    respgate: PathBuf,
    /// Redis.
    #[arg(long, default_value = "redis-server", global = true)]
    redis: PathBuf,
    /// Without one, everything but `expiry`, `deletion`, `memory` and `tikv` is measured.
    #[command(subcommand)]
    measure: Option<Measure>,
}

#[derive(Subcommand)]
enum Measure {
    /// Operations per second of both servers, and their ratio.
    Ratio(ratio::Options),
    /// The same for hashes, lists, sets and sorted sets, in both encode-versions.
    Collections(collections::Options),
    /// Puts and gets straight on the store, without a server.
    Engine(engine::Options),
    /// What idle connections cost, in memory and in speed.
    Idle(idle::Options),
    /// How soon the space of keys that have expired comes back.
    Expiry(space::Expiry),
    /// How soon the space of deleted hashes comes back.
    Deletion(space::Deletion),
    /// How much memory the gateway takes while much is written.
    Memory(memory::Options),
    /// A gateway on a TiKV cluster, beside the bare client of the cluster, and its pipelines beside single commands.
    Tikv(tikv::Options),
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let servers = server::Programs { respgate: arguments.respgate, redis: arguments.redis };
    match arguments.measure {
        Some(Measure::Ratio(options)) => ratio::run(&servers, &options),
        Some(Measure::Collections(options)) => collections::run(&servers, &options),
        Some(Measure::Engine(options)) => engine::run(&options),
        Some(Measure::Idle(options)) => idle::run(&servers, &options),
        Some(Measure::Memory(options)) => memory::run(&servers, &options),
        Some(Measure::Tikv(options)) => tikv::run(&servers, &options),
        Some(Measure::Expiry(options)) => space::expiry(&servers, &options),
        Some(Measure::Deletion(options)) => space::deletion(&servers, &options),
        None => {
            ratio::run(&servers, &ratio::Options::default())?;
            collections::run(&servers, &collections::Options::default())?;
            engine::run(&engine::Options::default())?;
            idle::run(&servers, &idle::Options::default())
        }
    }
}
