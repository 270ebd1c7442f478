//! Requests beside which something else is measured.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};

use crate::server::Server;

/// How many keys the requests choose from.
const KEYS: u64 = 100_000;

/// One request of so many writes.
const WRITE_PART: u64 = 10;

/// What requests have taken.
pub struct Latencies {
    sorted: Vec<Duration>,
    elapsed: Duration,
}

impl Latencies {
    /// The latency that 99 of 100 requests stay within.
    pub fn p99(&self) -> Duration {
        let last = self.sorted.len().saturating_sub(1);
        self.sorted.get((last as f64 * 0.99) as usize).copied().unwrap_or_default()
    }

    /// Requests per second.
    pub fn rate(&self) -> f64 {
        self.sorted.len() as f64 / self.elapsed.as_secs_f64()
    }
}

/// Creates the keys that [`reads_and_writes`] and [`paced_reads`] ask for.
pub fn prepare(server: &Server) -> anyhow::Result<()> {
    pipeline(server, KEYS, |number, request| set(request, number))
}

/// GETs and a SET now and then from so many connections, each as fast as replies come, while `work` is done.
pub fn reads_and_writes<T>(
    server: &Server,
    connections: u64,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<(T, Latencies)> {
    beside(server, connections, None, work)
}

/// GETs from so many connections, one in each `pause`, while `work` is done.
pub fn paced_reads<T>(
    server: &Server,
    connections: u64,
    pause: Duration,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<(T, Latencies)> {
    beside(server, connections, Some(pause), work)
}

fn beside<T>(
    server: &Server,
    connections: u64,
    pause: Option<Duration>,
    work: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<(T, Latencies)> {
    let is_over = AtomicBool::new(false);
    let began = Instant::now();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..connections)
            .map(|seed| {
                scope.spawn({
                    let is_over = &is_over;
                    move || requests(server, seed, pause, is_over)
                })
            })
            .collect();
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        let elapsed = began.elapsed();
        let mut sorted = Vec::new();
        for client in clients {
            sorted.extend(client.join().expect("a client panicked")?);
        }
        sorted.sort_unstable();
        Ok((done?, Latencies { sorted, elapsed }))
    })
}

fn requests(
    server: &Server,
    seed: u64,
    pause: Option<Duration>,
    is_over: &AtomicBool,
) -> anyhow::Result<Vec<Duration>> {
    let mut connection = server.connect()?;
    connection.set_nodelay(true)?;
    let mut latencies = Vec::new();
    let mut number = seed;
    while !is_over.load(Ordering::Relaxed) {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = (number >> 33) % KEYS;
        let mut request = Vec::new();
        if pause.is_none() && (number >> 20).is_multiple_of(WRITE_PART) {
            set(&mut request, key);
        } else {
            command(&mut request, &[b"GET", &name(key)]);
        }
        let began = Instant::now();
        connection.write_all(&request)?;
        read_reply(&mut connection)?;
        latencies.push(began.elapsed());
        if let Some(pause) = pause {
            thread::sleep(pause);
        }
    }
    Ok(latencies)
}

/// Sends `count` requests over a few connections, many at a time, and waits for their replies.
pub fn pipeline(server: &Server, count: u64, request: impl Fn(u64, &mut Vec<u8>) + Send + Sync) -> anyhow::Result<()> {
    const CONNECTIONS: u64 = 4;
    const AT_ONCE: usize = 200;

    thread::scope(|scope| {
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|client| {
                let request = &request;
                scope.spawn(move || {
                    let mut connection = server.connect()?;
                    let numbers: Vec<u64> = (client..count).step_by(CONNECTIONS as usize).collect();
                    for numbers in numbers.chunks(AT_ONCE) {
                        let mut bytes = Vec::new();
                        numbers.iter().for_each(|&number| request(number, &mut bytes));
                        connection.write_all(&bytes)?;
                        read_lines(&mut connection, numbers.len())?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        clients.into_iter().try_for_each(|client| client.join().expect("a client panicked"))
    })
}

/// Adds a command to what will be sent.
pub fn command(request: &mut Vec<u8>, arguments: &[&[u8]]) {
    request.extend_from_slice(format!("*{}\r\n", arguments.len()).as_bytes());
    for argument in arguments {
        request.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        request.extend_from_slice(argument);
        request.extend_from_slice(b"\r\n");
    }
}

/// Bytes that do not compress, the same for the same number.
pub fn noise(number: u64, count: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_be_bytes());
    }
    bytes.truncate(count);
    bytes
}

fn name(number: u64) -> Vec<u8> {
    format!("live:{number:08}").into_bytes()
}

fn set(request: &mut Vec<u8>, number: u64) {
    command(request, &[b"SET", &name(number), &noise(number, 100)]);
}

/// Reads a bulk string or a line.
fn read_reply(connection: &mut TcpStream) -> anyhow::Result<()> {
    let mut buffer = [0; 512];
    let mut filled = 0;
    loop {
        let read = connection.read(buffer.get_mut(filled..).context("a long reply")?)?;
        ensure!(read > 0, "the gateway hung up");
        filled += read;
        let reply = buffer.get(..filled).unwrap_or_default();
        ensure!(!reply.starts_with(b"-"), "{}", String::from_utf8_lossy(reply));
        let is_whole = match reply.strip_prefix(b"$") {
            Some(rest) => {
                let head = rest.iter().position(|&byte| byte == b'\n');
                let length = head.and_then(|head| String::from_utf8_lossy(&rest[..head]).trim().parse::<usize>().ok());
                head.zip(length).is_some_and(|(head, length)| rest.len() == head + 1 + length + 2)
            }
            None => reply.ends_with(b"\n"),
        };
        if is_whole {
            return Ok(());
        }
    }
}

/// Reads so many replies of a line each.
fn read_lines(connection: &mut TcpStream, count: usize) -> anyhow::Result<()> {
    let mut missing = count;
    let mut buffer = [0; 16 << 10];
    while missing > 0 {
        let read = connection.read(&mut buffer)?;
        ensure!(read > 0, "the gateway hung up");
        let lines = buffer.get(..read).unwrap_or_default();
        ensure!(!lines.contains(&b'-'), "{}", String::from_utf8_lossy(lines));
        missing = missing.saturating_sub(lines.iter().filter(|&&byte| byte == b'\n').count());
    }
    Ok(())
}
