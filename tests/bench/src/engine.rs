//! Puts and gets straight on the store, through the same crate as the gateway: the limit that no server can beat.

use std::{sync::Arc, time::Instant};

use anyhow::Context;
use bytes::Bytes;
use clap::Args;
use respgate_backend_api::{KvBackend, WriteSet};
use respgate_backend_rocksdb::{RocksdbBackend, RocksdbOptions};
use tokio::runtime::Builder;

use crate::{random::Xorshift, ratio::spread};

/// What to measure, and how often.
#[derive(Args)]
pub struct Options {
    /// Threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Tasks that work at once.
    #[arg(long, default_value_t = 50)]
    tasks: u64,
    /// Operations of a turn.
    #[arg(long, default_value_t = 1_000_000)]
    operations: u64,
    /// Keys.
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// Bytes of a value.
    #[arg(long, default_value_t = 100)]
    value_bytes: usize,
    /// Turns.
    #[arg(long, default_value_t = 3)]
    turns: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { threads: 1, tasks: 50, operations: 1_000_000, keys: 1_000_000, value_bytes: 100, turns: 3 }
    }
}

pub fn run(options: &Options) -> anyhow::Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(options.threads).enable_all().build()?;
    let directory = tempfile::tempdir()?;
    let store = RocksdbOptions::new(directory.path().join("data"));
    let backend: Arc<dyn KvBackend> = Arc::new(RocksdbBackend::open(&store)?);
    println!(
        "the store alone, {} threads, {} tasks: operations per second, median (min-max)",
        options.threads, options.tasks
    );
    for (name, operation) in [
        ("put, one by one", Operation::Put(1)),
        ("put, 16 at once", Operation::Put(16)),
        ("put, 100 at once", Operation::Put(100)),
        ("get, one by one", Operation::Get(1)),
        ("get, 16 at once", Operation::Get(16)),
        ("get, 100 at once", Operation::Get(100)),
    ] {
        let mut figures = Vec::new();
        for _ in 0..options.turns {
            figures.push(runtime.block_on(measure(&backend, options, operation))?);
        }
        println!("{name:>18} {:>26}", spread(figures, 0));
    }
    runtime.block_on(backend.close()).context("cannot close the store")
}

#[derive(Clone, Copy)]
enum Operation {
    /// Writes so many keys in one commit.
    Put(u64),
    /// Reads so many keys in one call.
    Get(u64),
}

async fn measure(backend: &Arc<dyn KvBackend>, options: &Options, operation: Operation) -> anyhow::Result<f64> {
    let began = Instant::now();
    let share = options.operations / options.tasks;
    let tasks: Vec<_> = (0..options.tasks)
        .map(|task| {
            let work = Work {
                backend: Arc::clone(backend),
                keys: options.keys,
                value: vec![b'x'; options.value_bytes].into(),
                random: Xorshift::new(task),
            };
            tokio::spawn(work.run(operation, share))
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok((share * options.tasks) as f64 / began.elapsed().as_secs_f64())
}

struct Work {
    backend: Arc<dyn KvBackend>,
    keys: u64,
    value: Bytes,
    random: Xorshift,
}

impl Work {
    async fn run(mut self, operation: Operation, share: u64) -> anyhow::Result<()> {
        let (Operation::Put(at_once) | Operation::Get(at_once)) = operation;
        for _ in 0..share / at_once {
            let mut keys: Vec<Bytes> = (0..at_once).map(|_| self.random_key()).collect();
            let snapshot = self.backend.snapshot().await?;
            if matches!(operation, Operation::Get(_)) {
                match keys.as_slice() {
                    [key] => drop(snapshot.get(key).await?),
                    keys => drop(snapshot.multi_get(keys).await?),
                }
                continue;
            }
            keys.sort();
            keys.dedup();
            let writes = keys.into_iter().map(|key| (key, Some(self.value.clone()))).collect();
            snapshot.commit(WriteSet { writes, guards: Vec::new() }).await?;
        }
        Ok(())
    }

    /// A key as the gateway would write it for redis-benchmark.
    fn random_key(&mut self) -> Bytes {
        format!("m#\x07default\0key:{:012}", self.random.below(self.keys)).into()
    }
}
