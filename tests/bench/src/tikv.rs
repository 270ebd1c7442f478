//! A gateway on a TiKV cluster: beside the bare client of the cluster, and its pipelines beside single commands.

use std::{thread, time::Instant};

use anyhow::Context;
use bytes::Bytes;
use clap::Args;
use respgate::encoding::KeyCodec;
use respgate_test_cluster::{TestCluster, real_cluster};
use tikv_client::{CheckLevel, TransactionClient, TransactionOptions, transaction::HeartbeatOption};
use tokio::runtime::{Builder, Runtime};

use crate::{
    random::Xorshift,
    ratio::{redis_benchmark, spread},
    server::{Programs, Server},
};

/// Commands of a pipeline.
const PIPELINE: u64 = 100;

/// What to measure, and how often.
#[derive(Args)]
pub struct Options {
    /// Connections, or tasks of the bare client.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 64])]
    connections: Vec<u64>,
    /// Regions of the test cluster. A real one, which TEST_TIKV_PD names, has those that it has.
    #[arg(long, default_value_t = 16)]
    regions: u32,
    /// Random keys.
    #[arg(long, default_value_t = 100_000)]
    keys: u64,
    /// Bytes of a value.
    #[arg(long, default_value_t = 100)]
    value_bytes: usize,
    /// Requests of a turn with one connection; four times as many with several, and ten times as many in pipelines.
    #[arg(long, default_value_t = 3_000)]
    requests: u64,
    /// Turns of each.
    #[arg(long, default_value_t = 5)]
    turns: u32,
}

impl Options {
    /// How many requests a turn has.
    fn requests(&self, connections: u64, pipeline: u64) -> u64 {
        self.requests * if connections == 1 { 1 } else { 4 } * if pipeline == 1 { 1 } else { 10 }
    }
}

pub fn run(programs: &Programs, options: &Options) -> anyhow::Result<()> {
    let cluster = match real_cluster() {
        Some(_) => None,
        None => TestCluster::with(&["--regions", &options.regions.to_string()]),
    };
    let pd = cluster.as_ref().map(|cluster| cluster.pd().to_owned()).or_else(real_cluster).context("no cluster")?;
    let by_session = programs.start_respgate_on_tikv("session", &pd, "session")?;
    let by_slot = programs.start_respgate_on_tikv("slot", &pd, "slot")?;
    let bare = Bare::connect(&pd, options)?;
    match &cluster {
        Some(_) => println!("the test cluster with {} regions, which says nothing about TiKV's speed", options.regions),
        None => println!("the cluster at {pd}"),
    }
    println!(
        "{} B, {} random keys, {} turns; operations per second, median (min-max)",
        options.value_bytes, options.keys, options.turns
    );
    benchmark(&by_session, options, "set", 64, PIPELINE)?;
    compare_with_bare_client(&by_session, &bare, options)?;
    compare_pipelines(&by_session, &by_slot, options)?;
    redis_benchmark(&by_session, &["-n", "1"], &["FLUSHALL"]).map(drop)
}

fn compare_with_bare_client(server: &Server, bare: &Bare<'_>, options: &Options) -> anyhow::Result<()> {
    println!("{:>8} {:>12} {:>26} {:>26} {:>22}", "test", "connections", "bare client", "respgate", "respgate/bare");
    for (test, operation) in [("get", Operation::Get), ("set", Operation::Set)] {
        for &connections in &options.connections {
            let (mut theirs, mut ours) = (Vec::new(), Vec::new());
            for _ in 0..options.turns {
                theirs.push(bare.measure(operation, connections)?);
                ours.push(benchmark(server, options, test, connections, 1)?);
            }
            println!(
                "{test:>8} {connections:>12} {:>26} {:>26} {:>22}",
                spread(theirs.clone(), 0),
                spread(ours.clone(), 0),
                spread(ratios(&ours, &theirs), 2)
            );
        }
    }
    Ok(())
}

fn compare_pipelines(by_session: &Server, by_slot: &Server, options: &Options) -> anyhow::Result<()> {
    println!("SETs in pipelines of {PIPELINE}, in the order of the session and of slots, beside SETs alone");
    println!(
        "{:>12} {:>26} {:>26} {:>26} {:>22} {:>22}",
        "connections", "alone", "session", "slot", "session/alone", "slot/alone"
    );
    for &connections in &options.connections {
        let (mut alone, mut session, mut slot) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.turns {
            alone.push(benchmark(by_session, options, "set", connections, 1)?);
            session.push(benchmark(by_session, options, "set", connections, PIPELINE)?);
            slot.push(benchmark(by_slot, options, "set", connections, PIPELINE)?);
        }
        println!(
            "{connections:>12} {:>26} {:>26} {:>26} {:>22} {:>22}",
            spread(alone.clone(), 0),
            spread(session.clone(), 0),
            spread(slot.clone(), 0),
            spread(ratios(&session, &alone), 2),
            spread(ratios(&slot, &alone), 2)
        );
    }
    Ok(())
}

fn ratios(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
}

fn benchmark(server: &Server, options: &Options, test: &str, connections: u64, pipeline: u64) -> anyhow::Result<f64> {
    let requests = options.requests(connections, pipeline);
    redis_benchmark(
        server,
        &["-c", &connections.to_string(), "-P", &pipeline.to_string(), "-n", &requests.to_string()],
        &["-r", &options.keys.to_string(), "-d", &options.value_bytes.to_string(), "-t", test],
    )
}

#[derive(Clone, Copy)]
enum Operation {
    Get,
    Set,
}

/// The client of the cluster without a gateway, on records like those of a gateway, with as many threads as a gateway has.
struct Bare<'o> {
    runtime: Runtime,
    client: TransactionClient,
    codec: KeyCodec,
    options: &'o Options,
}

impl<'o> Bare<'o> {
    fn connect(pd: &str, options: &'o Options) -> anyhow::Result<Self> {
        let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        let client = runtime.block_on(TransactionClient::new(vec![pd.to_owned()]))?;
        // As long as the gateway's.
        let codec = KeyCodec::new("naked", true)?;
        Ok(Self { runtime, client, codec, options })
    }

    /// Operations per second of so many tasks.
    fn measure(&self, operation: Operation, tasks: u64) -> anyhow::Result<f64> {
        let share = self.options.requests(tasks, 1) / tasks;
        let began = Instant::now();
        self.runtime.block_on(async {
            let running: Vec<_> = (0..tasks)
                .map(|seed| {
                    let work = Work {
                        client: self.client.clone(),
                        codec: self.codec.clone(),
                        keys: self.options.keys,
                        value: vec![b'x'; self.options.value_bytes],
                        random: Xorshift::new(seed),
                    };
                    tokio::spawn(work.run(operation, share))
                })
                .collect();
            for task in running {
                task.await??;
            }
            anyhow::Ok(())
        })?;
        Ok((share * tasks) as f64 / began.elapsed().as_secs_f64())
    }
}

struct Work {
    client: TransactionClient,
    codec: KeyCodec,
    keys: u64,
    value: Vec<u8>,
    random: Xorshift,
}

impl Work {
    async fn run(mut self, operation: Operation, count: u64) -> anyhow::Result<()> {
        for _ in 0..count {
            let key = self.random_key();
            match operation {
                Operation::Get => {
                    let now = self.client.current_timestamp().await?;
                    let mut snapshot = self.client.snapshot(now, TransactionOptions::new_optimistic());
                    snapshot.get(key.to_vec()).await?;
                }
                Operation::Set => {
                    let options = TransactionOptions::new_optimistic()
                        .try_one_pc()
                        .drop_check(CheckLevel::None)
                        .heartbeat_option(HeartbeatOption::NoHeartbeat);
                    let mut transaction = self.client.begin_with_options(options).await?;
                    transaction.put(key.to_vec(), self.value.clone()).await?;
                    // Two tasks may want the same key, and one of them loses.
                    if transaction.commit().await.is_err() {
                        transaction.rollback().await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A record as the gateway would write it for redis-benchmark.
    fn random_key(&mut self) -> Bytes {
        self.codec.metadata(0, format!("key:{:012}", self.random.below(self.keys)).as_bytes())
    }
}
