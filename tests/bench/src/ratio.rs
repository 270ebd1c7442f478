//! Operations per second of both servers, in turns.

use std::process::Command;

use anyhow::{Context, ensure};
use clap::Args;

use crate::server::{Programs, Server};

/// What to measure, and how often.
#[derive(Args)]
pub struct Options {
    /// Tests of redis-benchmark.
    #[arg(long, value_delimiter = ',', default_values_t = ["set", "get", "incr", "mset"].map(str::to_owned))]
    tests: Vec<String>,
    /// Commands sent at once by each connection.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 100])]
    pipelines: Vec<u32>,
    /// Connections.
    #[arg(long, default_value_t = 50)]
    connections: u32,
    /// Random keys.
    #[arg(long, default_value_t = 1_000_000)]
    keys: u32,
    /// Bytes of a value.
    #[arg(long, default_value_t = 100)]
    value_bytes: u32,
    /// Requests of a turn at pipeline 1; ten times as many with pipelines.
    #[arg(long, default_value_t = 200_000)]
    requests: u32,
    /// Turns of each server.
    #[arg(long, default_value_t = 3)]
    turns: u32,
}

impl Default for Options {
    fn default() -> Self {
        #[derive(clap::Parser)]
        struct Defaults {
            #[command(flatten)]
            options: Options,
        }
        <Defaults as clap::Parser>::parse_from([""]).options
    }
}

pub fn run(programs: &Programs, options: &Options) -> anyhow::Result<()> {
    let (redis, respgate) = (programs.start_redis()?, programs.start_respgate()?);
    println!(
        "{} connections, {} B, {} random keys, {} turns; operations per second, median (min-max)",
        options.connections, options.value_bytes, options.keys, options.turns
    );
    println!("{:>8} {:>8} {:>26} {:>26} {:>22}", "test", "pipeline", "redis", "respgate", "respgate/redis");
    for server in [&redis, &respgate] {
        fill(server, options)?;
    }
    for test in &options.tests {
        for &pipeline in &options.pipelines {
            let mut figures = [Vec::new(), Vec::new()];
            for _ in 0..options.turns {
                for (server, figures) in [&redis, &respgate].into_iter().zip(&mut figures) {
                    figures.push(benchmark(server, options, test, pipeline)?);
                }
            }
            let [of_redis, of_respgate] = figures;
            let ratios = of_respgate.iter().zip(&of_redis).map(|(ours, theirs)| ours / theirs).collect();
            println!(
                "{test:>8} {pipeline:>8} {:>26} {:>26} {:>22}",
                spread(of_redis, 0),
                spread(of_respgate, 0),
                spread(ratios, 2)
            );
        }
    }
    Ok(())
}

/// Writes every key once or more, so that GET finds what it asks for.
fn fill(server: &Server, options: &Options) -> anyhow::Result<()> {
    let filled = Options { requests: options.keys / 5, tests: Vec::new(), pipelines: Vec::new(), ..*options };
    benchmark(server, &filled, "set", 100).map(drop)
}

/// One run of a test of redis-benchmark; its requests per second.
fn benchmark(server: &Server, options: &Options, test: &str, pipeline: u32) -> anyhow::Result<f64> {
    let requests = options.requests * if pipeline == 1 { 1 } else { 10 } / if test == "mset" { 10 } else { 1 };
    redis_benchmark(
        server,
        &["-c", &options.connections.to_string(), "-P", &pipeline.to_string(), "-n", &requests.to_string()],
        &["-r", &options.keys.to_string(), "-d", &options.value_bytes.to_string(), "-t", test],
    )
}

/// One run of redis-benchmark with these arguments; its requests per second.
pub fn redis_benchmark(server: &Server, how: &[&str], what: &[&str]) -> anyhow::Result<f64> {
    let output = Command::new("redis-benchmark")
        .args(["-p", &server.port.to_string(), "--csv"])
        .args(how)
        .args(what)
        .output()
        .context("cannot run redis-benchmark")?;
    ensure!(output.status.success(), "redis-benchmark failed on {}: {output:?}", server.name);
    let text = String::from_utf8_lossy(&output.stdout);
    let row = text.lines().rev().find(|line| !line.trim().is_empty()).context("redis-benchmark printed nothing")?;
    // The last columns are figures; the first is the command, which may hold anything.
    let figure = row.rsplit(',').nth(6).context("redis-benchmark printed no figure")?;
    figure.trim_matches('"').parse().with_context(|| format!("unexpected output of redis-benchmark: {row}"))
}

/// `median (min-max)`.
pub fn spread(mut figures: Vec<f64>, decimals: usize) -> String {
    figures.sort_by(f64::total_cmp);
    match figures.as_slice() {
        [] => "-".to_owned(),
        [first, .., last] => {
            format!("{:.decimals$} ({first:.decimals$}-{last:.decimals$})", figures[figures.len() / 2])
        }
        [only] => format!("{only:.decimals$}"),
    }
}
