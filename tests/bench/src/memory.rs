//! How much memory the gateway takes while much is written.

use std::{
    io::{Read, Write},
    thread,
};

use anyhow::Context;
use clap::Args;

use crate::server::{Programs, Server};

const COMMANDS_AT_ONCE: u64 = 16;

/// How much is written.
#[derive(Args)]
pub struct Options {
    /// Bytes of values.
    #[arg(long, default_value_t = 10_000_000_000)]
    bytes: u64,
    /// Bytes of a value.
    #[arg(long, default_value_t = 10_000)]
    value_bytes: usize,
    /// Connections that write.
    #[arg(long, default_value_t = 8)]
    connections: u64,
}

pub fn run(programs: &Programs, options: &Options) -> anyhow::Result<()> {
    let server = programs.start_respgate()?;
    println!("at the start: {} MiB", server.resident_bytes()? >> 20);
    let count = options.bytes / options.value_bytes as u64;
    let most_bytes = thread::scope(|scope| {
        let writers: Vec<_> = (0..options.connections)
            .map(|writer| {
                scope.spawn({
                    let server = &server;
                    move || write(server, options, writer, count)
                })
            })
            .collect();
        let mut most_bytes = 0;
        while writers.iter().any(|writer| !writer.is_finished()) {
            most_bytes = most_bytes.max(server.resident_bytes()?);
            thread::sleep(std::time::Duration::from_millis(200));
        }
        for writer in writers {
            writer.join().expect("a writer panicked")?;
        }
        anyhow::Ok(most_bytes)
    })?;
    println!(
        "{} GB written: at most {} MiB, now {} MiB",
        options.bytes / 1_000_000_000,
        most_bytes >> 20,
        server.resident_bytes()? >> 20
    );
    Ok(())
}

/// Writes every key whose number leaves `writer` when divided by the number of connections.
fn write(server: &Server, options: &Options, writer: u64, count: u64) -> anyhow::Result<()> {
    let mut connection = server.connect()?;
    let mut state = writer + 1;
    let mut number = writer;
    while number < count {
        let mut request = Vec::new();
        let mut replies = 0;
        while number < count && replies < COMMANDS_AT_ONCE {
            let value = random_bytes(&mut state, options.value_bytes);
            let key = format!("key:{number:012}");
            write!(request, "*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n${}\r\n", key.len(), value.len())?;
            request.extend_from_slice(&value);
            request.extend_from_slice(b"\r\n");
            number += options.connections;
            replies += 1;
        }
        connection.write_all(&request)?;
        let mut answer = vec![0; b"+OK\r\n".len() * replies as usize];
        connection.read_exact(&mut answer).context("the gateway hung up")?;
        anyhow::ensure!(answer == b"+OK\r\n".repeat(replies as usize), "{}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}

/// Bytes that do not compress.
fn random_bytes(state: &mut u64, count: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        bytes.extend_from_slice(&state.to_be_bytes());
    }
    bytes.truncate(count);
    bytes
}
