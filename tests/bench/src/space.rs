//! How soon disk space comes back, and what that costs those who use the server meanwhile.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;
use clap::Args;

use crate::{
    server::{Programs, Server},
    traffic,
};

/// How often the disk is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// For how long speed is measured without anything beside it.
const ALONE: Duration = Duration::from_secs(10);

/// Strings that expire.
#[derive(Args)]
pub struct Expiry {
    /// Keys, each with a lifetime of 1 to 60 seconds.
    #[arg(long, default_value_t = 10_000_000)]
    keys: u64,
    /// Bytes of a value.
    #[arg(long, default_value_t = 32)]
    value_bytes: usize,
    /// How long to wait, in seconds, for the space to come back.
    #[arg(long, default_value_t = 900)]
    patience: u64,
}

/// Hashes that are deleted.
#[derive(Args)]
pub struct Deletion {
    /// Hashes.
    #[arg(long, default_value_t = 1_000)]
    hashes: u64,
    /// Fields of a hash.
    #[arg(long, default_value_t = 10_000)]
    fields: u64,
    /// Bytes of a value.
    #[arg(long, default_value_t = 64)]
    value_bytes: usize,
    /// Connections that use the server meanwhile.
    #[arg(long, default_value_t = 16)]
    connections: u64,
    /// How long to wait, in seconds, for the space to come back.
    #[arg(long, default_value_t = 900)]
    patience: u64,
}

/// Writes keys that expire, and tells when their space was back and what GET took meanwhile.
pub fn expiry(programs: &Programs, options: &Expiry) -> anyhow::Result<()> {
    const LIFETIME_MAX: u64 = 60;
    const CONNECTIONS: u64 = 4;
    const PAUSE: Duration = Duration::from_millis(2);

    let server = programs.start_respgate()?;
    traffic::prepare(&server)?;
    let (before, empty) = traffic::paced_reads(&server, CONNECTIONS, PAUSE, || {
        thread::sleep(ALONE);
        server.disk_bytes()
    })?;
    let began = Instant::now();
    traffic::pipeline(&server, options.keys, |number, request| {
        let lifetime = (number % LIFETIME_MAX + 1).to_string();
        let (name, value) = (format!("key:{number:010}"), traffic::noise(number, options.value_bytes));
        traffic::command(request, &[b"SET", name.as_bytes(), &value, b"EX", lifetime.as_bytes()]);
    })?;
    println!("{} keys written in {:.0} s", options.keys, began.elapsed().as_secs_f64());
    let (peak, last_expiry) = (server.disk_bytes()?, Instant::now() + Duration::from_secs(LIFETIME_MAX));
    // The keys have filled the caches and made files to compact, which GETs feel whether anything expires or not.
    let ((), without) = traffic::paced_reads(&server, CONNECTIONS, PAUSE, || {
        thread::sleep(ALONE);
        Ok(())
    })?;
    let (back, with) = traffic::paced_reads(&server, CONNECTIONS, PAUSE, || {
        wait(&server, before, peak, last_expiry, Duration::from_secs(options.patience))
    })?;
    back.print("after the last key has expired");
    println!(
        "p99 of GET: {:.2} ms before the keys were written, {:.2} ms after, {:.2} ms while they went: {:.2} times",
        empty.p99().as_secs_f64() * 1e3,
        without.p99().as_secs_f64() * 1e3,
        with.p99().as_secs_f64() * 1e3,
        with.p99().as_secs_f64() / without.p99().as_secs_f64()
    );
    Ok(())
}

/// Writes hashes and deletes them, and tells when their space was back and how fast the server was meanwhile.
pub fn deletion(programs: &Programs, options: &Deletion) -> anyhow::Result<()> {
    const FIELDS_AT_ONCE: u64 = 100;

    let server = programs.start_respgate()?;
    traffic::prepare(&server)?;
    let before = server.disk_bytes()?;
    let pieces = options.fields.div_ceil(FIELDS_AT_ONCE);
    traffic::pipeline(&server, options.hashes * pieces, |number, request| {
        let (hash, first) = (number / pieces, number % pieces * FIELDS_AT_ONCE);
        let name = format!("hash:{hash}");
        let fields: Vec<(String, Vec<u8>)> = (first..options.fields.min(first + FIELDS_AT_ONCE))
            .map(|field| (format!("field:{field}"), traffic::noise(hash << 32 | field, options.value_bytes)))
            .collect();
        let mut arguments = vec![&b"HSET"[..], name.as_bytes()];
        fields.iter().for_each(|(field, value)| arguments.extend([field.as_bytes(), value]));
        traffic::command(request, &arguments);
    })?;
    settle(&server)?;
    let peak = server.disk_bytes()?;
    let (_, without) = traffic::reads_and_writes(&server, options.connections, || {
        thread::sleep(ALONE);
        Ok(())
    })?;
    let (back, with) = traffic::reads_and_writes(&server, options.connections, || {
        traffic::pipeline(&server, options.hashes, |number, request| {
            traffic::command(request, &[b"DEL", format!("hash:{number}").as_bytes()]);
        })?;
        wait(&server, before, peak, Instant::now(), Duration::from_secs(options.patience))
    })?;
    back.print("after the last hash was deleted");
    println!(
        "requests per second: {:.0} without, {:.0} beside: {:.2}",
        without.rate(),
        with.rate(),
        with.rate() / without.rate()
    );
    Ok(())
}

/// What the disk held, in bytes, and when most of it was free again.
struct Back {
    before: u64,
    peak: u64,
    after: u64,
    /// Until a tenth of the growth was left.
    tenth: Duration,
    /// Until it was at most a tenth above what it had been before.
    empty: Option<Duration>,
}

impl Back {
    fn print(&self, since: &str) {
        let mib = |bytes| bytes as f64 / f64::from(1 << 20);
        println!(
            "disk: {:.1} MiB before, {:.1} MiB full, {:.1} MiB after",
            mib(self.before),
            mib(self.peak),
            mib(self.after)
        );
        let empty = self.empty.map_or("never".to_owned(), |time| format!("after {:.1} s", time.as_secs_f64()));
        println!(
            "{since}: a tenth of the growth left after {:.1} s, within a tenth of the empty store {empty}",
            self.tenth.as_secs_f64()
        );
    }
}

/// Waits until the disk is about as full as `before`. Times count from `since`, which may be still to come.
fn wait(server: &Server, before: u64, mut peak: u64, since: Instant, patience: Duration) -> anyhow::Result<Back> {
    /// For how long the last of it is waited for.
    const EXTRA: Duration = Duration::from_secs(120);

    let mut tenth = None;
    loop {
        let now = server.disk_bytes()?;
        peak = peak.max(now);
        let (left, elapsed) = (now.saturating_sub(before), since.elapsed());
        if tenth.is_none() && left <= (peak - before) / 10 {
            tenth = Some(elapsed);
        }
        let is_over = tenth.is_some_and(|tenth| elapsed > tenth + EXTRA);
        if let Some(tenth) = tenth
            && (left <= before / 10 || is_over)
        {
            return Ok(Back { before, peak, after: now, tenth, empty: (!is_over).then_some(elapsed) });
        }
        if elapsed > patience {
            bail!(
                "{} MiB are still taken after {} s; it were {} MiB before",
                now >> 20,
                elapsed.as_secs(),
                before >> 20
            );
        }
        thread::sleep(LOOK);
    }
}

/// Waits until the files have not changed for a while.
fn settle(server: &Server) -> anyhow::Result<()> {
    let mut calm = 0;
    let mut last = server.disk_bytes()?;
    while calm < 10 {
        thread::sleep(LOOK);
        let now = server.disk_bytes()?;
        calm = if now == last { calm + 1 } else { 0 };
        last = now;
    }
    Ok(())
}
