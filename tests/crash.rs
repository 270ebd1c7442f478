//! `kill -9` under load: what was acknowledged is there afterwards.

use std::path::Path;
use std::sync::mpsc::{self, Sender};
use std::thread::Scope;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;

use crate::support::{Backend, Conn, Gateway, Options, Value};

const CRASHES: u64 = 20;
const WRITERS: usize = 4;
/// A crash comes after this many acknowledgements at most, so that it falls anywhere in a write, a sync or a start.
const ACKNOWLEDGED_MAX: usize = 400;

/// What one writer knows about its own counter.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// The last value that the server has confirmed.
    acknowledged: u64,
    /// The last value that was sent to it.
    sent: u64,
}

#[test]
fn no_acknowledged_write_is_lost_with_sync_always() {
    crash_again_and_again("always");
}

#[test]
fn no_acknowledged_write_is_lost_to_a_crash_of_the_process_with_sync_interval() {
    crash_again_and_again("interval");
}

fn crash_again_and_again(sync: &str) {
    if Backend::under_test() != Backend::RocksDb {
        println!("skipped: the memory backend keeps nothing");
        return;
    }
    let dir = TempDir::new().unwrap();
    let mut rng = StdRng::seed_from_u64(0);
    let mut progress = [Progress::default(); WRITERS];
    for round in 0..CRASHES {
        let gateway = start(dir.path(), sync);
        check(&mut gateway.connect(), &mut progress, round);
        write_until_crash(gateway, &mut progress, rng.random_range(1..ACKNOWLEDGED_MAX));
    }
    check(&mut start(dir.path(), sync).connect(), &mut progress, CRASHES);
    assert!(progress.iter().all(|known| known.acknowledged > 0), "every writer wrote");
}

/// A gateway whose write buffers are small, so that a crash also meets flushes.
fn start(dir: &Path, sync: &str) -> Gateway {
    Gateway::with(&Options {
        flags: &["--sync", sync],
        env: &[("RESPGATE_ROCKSDB__WRITE_BUFFERS", "1MiB")],
        data_dir: Some(dir),
        ..Options::alone()
    })
}

/// What is written beside the number, to be recognised: some kilobytes of it.
fn ballast(number: u64) -> String {
    format!("{number};").repeat(1_000)
}

/// Every writer's records agree with each other, and are neither older nor newer than what it knows.
fn check(conn: &mut Conn, progress: &mut [Progress], round: u64) {
    for (writer, known) in progress.iter_mut().enumerate() {
        let stored = conn.call(&["MGET", &format!("number:{writer}"), &format!("ballast:{writer}")]);
        let [number, beside] = stored.elements() else { panic!("MGET gave {stored}") };
        let number = if *number == Value::NilBulk { 0 } else { number.text().parse().unwrap() };
        let expected = known.acknowledged..=known.sent;
        assert!(expected.contains(&number), "round {round}, writer {writer}: {number} is not in {expected:?}");
        let whole = number == 0 || *beside == Value::bulk(ballast(number));
        assert!(whole, "round {round}, writer {writer}: half a transaction: {number} with {beside}");
        *known = Progress { acknowledged: number, sent: number };
    }
}

/// Kills the gateway when the writers have seen `after` acknowledgements.
fn write_until_crash(gateway: Gateway, progress: &mut [Progress; WRITERS], after: usize) {
    let (sender, acknowledged) = mpsc::channel();
    std::thread::scope(|scope| {
        for (writer, known) in progress.iter_mut().enumerate() {
            spawn_writer(scope, gateway.connect(), writer, known, sender.clone());
        }
        acknowledged.iter().take(after).for_each(drop);
        gateway.kill();
    });
}

/// Counts in two keys at once, in turn by a transaction and by one command, until the connection breaks.
fn spawn_writer<'a>(
    scope: &'a Scope<'a, '_>,
    mut conn: Conn,
    writer: usize,
    known: &'a mut Progress,
    acknowledged: Sender<()>,
) {
    let (number_key, ballast_key) = (format!("number:{writer}"), format!("ballast:{writer}"));
    scope.spawn(move || {
        loop {
            known.sent += 1;
            let (number, ballast) = (known.sent.to_string(), ballast(known.sent));
            let commands = match known.sent % 2 {
                0 => vec![vec!["MSET", &number_key, &number, &ballast_key, &ballast]],
                _ => vec![vec!["MULTI"], vec!["INCR", &number_key], vec!["SET", &ballast_key, &ballast], vec!["EXEC"]],
            };
            let Ok(replies) = conn.try_pipeline(&commands) else { return };
            assert!(!replies.iter().any(|reply| matches!(reply, Value::Error(_))), "{replies:?}");
            known.acknowledged = known.sent;
            // Nobody listens once enough have been counted.
            let _ = acknowledged.send(());
        }
    });
}
