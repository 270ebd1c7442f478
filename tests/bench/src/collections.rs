//! Operations per second on collections: Redis, and Respgate with both encode-versions, in turns.

use clap::Args;

use crate::{
    ratio::{redis_benchmark, spread},
    server::{Programs, Server},
};

/// What to measure, and how often.
#[derive(Args)]
pub struct Options {
    /// Commands sent at once by each connection.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16])]
    pipelines: Vec<u32>,
    /// Connections.
    #[arg(long, default_value_t = 50)]
    connections: u32,
    /// Elements to choose from.
    #[arg(long, default_value_t = 100_000)]
    elements: u32,
    /// Requests of a turn at pipeline 1; five times as many with pipelines.
    #[arg(long, default_value_t = 50_000)]
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

/// A name, and the command as redis-benchmark takes it.
const TESTS: &[(&str, &[&str])] = &[
    ("lpush", &["LPUSH", "list", "element:__rand_int__"]),
    ("rpush", &["RPUSH", "list", "element:__rand_int__"]),
    ("lrange 100", &["LRANGE", "list", "0", "99"]),
    ("lpop", &["LPOP", "list"]),
    ("rpop", &["RPOP", "list"]),
    ("sadd", &["SADD", "set", "member:__rand_int__"]),
    // Hardly any of these is there already: where most are, encode-version 0 reads only, and 1 writes all the same.
    ("sadd new", &["SADD", "set:new", "member:__rand_int__:__rand_int__"]),
    ("sinter", &["SINTER", "set:a", "set:b"]),
    ("spop", &["SPOP", "set"]),
    ("hset", &["HSET", "hash", "field:__rand_int__", "value"]),
    ("hget", &["HGET", "hash", "field:__rand_int__"]),
    ("zadd", &["ZADD", "zset", "__rand_int__", "member:__rand_int__"]),
    ("zrange 100", &["ZRANGE", "zset", "0", "99"]),
    ("zpopmin", &["ZPOPMIN", "zset"]),
];

pub fn run(programs: &Programs, options: &Options) -> anyhow::Result<()> {
    let sidecar = programs.start_redis()?;
    let url = format!("redis://127.0.0.1:{}", sidecar.port);
    let version_1 = [
        ("RESPGATE_ENCODING__HASH", "1"),
        ("RESPGATE_ENCODING__SET", "1"),
        ("RESPGATE_ENCODING__ZSET", "1"),
        ("RESPGATE_SIDECAR__URL", &*url),
    ];
    let servers =
        [programs.start_redis()?, programs.start_respgate()?, programs.start_respgate_with("respgate", &version_1)?];
    println!("{} connections, {} turns; operations per second, median (min-max)", options.connections, options.turns);
    println!("{:>10} {:>8} {:>26} {:>26} {:>18} {:>18}", "test", "pipeline", "redis", "version 0", "v0/redis", "v1/v0");
    for server in &servers {
        for set in ["set:a", "set:b"] {
            redis_benchmark(server, &["-n", "200", "-r", "100"], &["SADD", set, "member:__rand_int__"])?;
        }
    }
    for (name, command) in TESTS {
        for &pipeline in &options.pipelines {
            let mut figures = [Vec::new(), Vec::new(), Vec::new()];
            for _ in 0..options.turns {
                for (server, figures) in servers.iter().zip(&mut figures) {
                    figures.push(benchmark(server, options, command, pipeline)?);
                }
            }
            let [redis, version_0, version_1] = figures;
            let ratios = |ours: &[f64], theirs: &[f64]| ours.iter().zip(theirs).map(|(a, b)| a / b).collect();
            let (to_redis, to_version_0) = (ratios(&version_0, &redis), ratios(&version_1, &version_0));
            println!(
                "{name:>10} {pipeline:>8} {:>26} {:>26} {:>18} {:>18}",
                spread(redis, 0),
                spread(version_0, 0),
                spread(to_redis, 2),
                spread(to_version_0, 2)
            );
        }
    }
    Ok(())
}

fn benchmark(server: &Server, options: &Options, command: &[&str], pipeline: u32) -> anyhow::Result<f64> {
    let requests = options.requests * if pipeline == 1 { 1 } else { 5 };
    redis_benchmark(
        server,
        &[
            "-c",
            &options.connections.to_string(),
            "-P",
            &pipeline.to_string(),
            "-n",
            &requests.to_string(),
            "-r",
            &options.elements.to_string(),
        ],
        command,
    )
}
