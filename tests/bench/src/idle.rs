//! What idle connections cost, in memory and in speed.

use std::{net::TcpStream, process::Command};

use anyhow::{Context, ensure};
use clap::Args;

use crate::{
    ratio::spread,
    server::{Programs, Server, ask},
};

/// How many connections idle.
#[derive(Args)]
pub struct Options {
    /// Idle connections.
    #[arg(long, default_value_t = 9_900)]
    connections: usize,
    /// Requests of a turn.
    #[arg(long, default_value_t = 200_000)]
    requests: u32,
    /// Turns.
    #[arg(long, default_value_t = 3)]
    turns: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { connections: 9_900, requests: 200_000, turns: 3 }
    }
}

pub fn run(programs: &Programs, options: &Options) -> anyhow::Result<()> {
    let server = programs.start_respgate()?;
    // Buffers and pools have their working size after this, so what grows later is the connections'.
    set_rate(&server, options)?;
    let before_bytes = server.resident_bytes()?;
    let idle = connect(&server, options.connections)?;
    let idle_bytes = server.resident_bytes()?.saturating_sub(before_bytes);
    println!("{} idle connections: {} bytes each", options.connections, idle_bytes / options.connections as u64);
    drop(idle);

    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..options.turns {
        without.push(set_rate(&server, options)?);
        let idle = connect(&server, options.connections)?;
        with.push(set_rate(&server, options)?);
        drop(idle);
    }
    let ratios = with.iter().zip(&without).map(|(with, without)| with / without).collect();
    println!("SET of 50 connections beside them: {} of the speed without them", spread(ratios, 2));
    Ok(())
}

/// Connections that have said one thing and now wait.
fn connect(server: &Server, count: usize) -> anyhow::Result<Vec<TcpStream>> {
    (0..count)
        .map(|number| {
            let mut connection =
                server.connect().with_context(|| format!("connection {number} (is `ulimit -n` high enough?)"))?;
            ensure!(ask(&mut connection, "PING")? == "+PONG", "connection {number} was refused");
            Ok(connection)
        })
        .collect()
}

fn set_rate(server: &Server, options: &Options) -> anyhow::Result<f64> {
    let output = Command::new("redis-benchmark")
        .args(["-p", &server.port.to_string(), "-t", "set", "--csv", "-c", "50", "-r", "100000", "-d", "100"])
        .args(["-n", &options.requests.to_string()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let row = text.lines().last().context("redis-benchmark printed nothing")?;
    Ok(row.split(',').nth(1).context("no figure")?.trim_matches('"').parse()?)
}
