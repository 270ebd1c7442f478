//! Connections that want the same part of the store at the same time share requests to the cluster.

use std::{
    thread,
    time::{Duration, Instant},
};

use respgate_test_cluster::TestCluster;

use super::Fleet;
use crate::support::{Conn, Value};

const CLIENTS: usize = 32;

const ROUNDS: usize = 10;

/// How long each request takes; others wait for less than twice that, and go their own way then.
const DELAY_MS: u64 = 10;

/// Waits until so many clients have begun a command.
fn until_begun(watcher: &mut Conn, command: &str, count: usize) {
    let until = Instant::now() + Duration::from_secs(30);
    while watcher.run("CLIENT LIST").text().matches(&format!("cmd={command} ")).count() < count {
        assert!(Instant::now() < until, "fewer than {count} clients sent {command}");
        thread::yield_now();
    }
}

/// A gateway that has run a command and whose store is slow since, and clients of it; `None` where the test is to be skipped.
fn clients_of_a_slow_store(command: &str) -> Option<(Fleet, Vec<Conn>)> {
    let fleet = Fleet::start(1)?;
    let conns = slow_down(&fleet, command);
    Some((fleet, conns))
}

fn slow_down(fleet: &Fleet, command: &str) -> Vec<Conn> {
    fleet.gateways[0].connect().run(command);
    let conns = (0..CLIENTS).map(|_| fleet.gateways[0].connect()).collect();
    ["KvPrewrite", "KvGet"].iter().for_each(|method| fleet.cluster.delay(method, DELAY_MS, 1.0));
    conns
}

#[test]
fn commands_of_many_clients_share_requests() {
    let Some((fleet, mut conns)) = clients_of_a_slow_store("SET warm up") else { return };
    fleet.cluster.take_rpcs();
    for round in 0..ROUNDS {
        for (number, conn) in conns.iter_mut().enumerate() {
            conn.send(format!("SET key{number} {round}\r\n").as_bytes());
        }
        assert!(conns.iter_mut().all(|conn| conn.read() == Value::ok()));
    }
    let counts = fleet.cluster.take_rpcs();
    assert!(counts["KvPrewrite"] <= (CLIENTS * ROUNDS / 2) as u64, "{counts:?}");
    for _ in 0..ROUNDS {
        for (number, conn) in conns.iter_mut().enumerate() {
            conn.send(format!("GET key{number}\r\n").as_bytes());
        }
        assert!(conns.iter_mut().all(|conn| conn.read() == Value::bulk((ROUNDS - 1).to_string())));
    }
    let counts = fleet.cluster.take_rpcs();
    let count = |method: &str| counts.get(method).copied().unwrap_or_default();
    assert!(count("KvGet") + count("KvBatchGet") <= (CLIENTS * ROUNDS / 2) as u64, "{counts:?}");
}

#[test]
fn pipelines_of_many_clients_share_requests() {
    const REGIONS: usize = 4;
    const COMMANDS: usize = 24;
    for order in ["session", "slot"] {
        let Some(cluster) = TestCluster::with(&["--regions", &REGIONS.to_string()]) else { return };
        let fleet = Fleet::over(cluster, 1, &[("RESPGATE_UNIT__PIPELINE_ORDER", order)]);
        let mut conns = slow_down(&fleet, "SET warm up");
        fleet.cluster.take_rpcs();
        for round in 0..ROUNDS {
            for (number, conn) in conns.iter_mut().enumerate() {
                let commands = (0..COMMANDS).map(|key| format!("INCRBY {number}:{key} {round}\r\n"));
                conn.send(commands.collect::<String>().as_bytes());
            }
            let sum = Value::Integer((round * (round + 1) / 2) as i64);
            for conn in &mut conns {
                assert!((0..COMMANDS).all(|_| conn.read() == sum), "{order}, round {round}");
            }
        }
        let counts = fleet.cluster.take_rpcs();
        assert!(counts["KvPrewrite"] <= (CLIENTS * ROUNDS * REGIONS / 2) as u64, "{order}: {counts:?}");
    }
}

/// What gateways do together for some of their clients comes in each other's way; then each is helped for itself.
#[test]
fn pipelines_through_several_gateways_lose_nothing() {
    const CLIENTS: usize = 12;
    const KEYS: usize = 40;
    const COMMANDS: usize = 10;
    let Some(cluster) = TestCluster::with(&["--regions", "4"]) else { return };
    let fleet = Fleet::over(cluster, 3, &[]);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let mut conn = fleet.gateways[client % 3].connect();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    // Some keys of each are those of others too, and not always the same ones.
                    let key = |command| (client * 3 + round * 7 + command * (client % 3 + 1)) % KEYS;
                    let commands = (0..COMMANDS).map(|command| format!("INCR {}\r\n", key(command)));
                    conn.send(commands.collect::<String>().as_bytes());
                    assert!((0..COMMANDS).all(|_| matches!(conn.read(), Value::Integer(_))));
                }
            });
        }
    });
    let mut conn = fleet.gateways[0].connect();
    let total: i64 = (0..KEYS).map(|key| conn.run(&format!("INCRBY {key} 0")).integer()).sum();
    assert_eq!(total, (CLIENTS * ROUNDS * COMMANDS) as i64);
}

/// An error of one is no error of the others, and what each of them did is seen by those who come after.
#[test]
fn each_gets_its_own_reply() {
    let Some((_fleet, mut conns)) = clients_of_a_slow_store("RPUSH list a") else { return };
    for (number, conn) in conns.iter_mut().enumerate() {
        let line = match number % 4 {
            0 => "INCR counter".to_owned(),
            1 => "INCR list".to_owned(),
            2 => format!("SETEX key{number} 0 value"),
            _ => format!("SETNX key{number} value"),
        };
        conn.send(format!("{line}\r\n").as_bytes());
    }
    let wrong_type = Value::error("WRONGTYPE Operation against a key holding the wrong kind of value");
    let bad_time = Value::error("ERR invalid expire time in 'setex' command");
    let mut counted = Vec::new();
    for (number, conn) in conns.iter_mut().enumerate() {
        match (number % 4, conn.read()) {
            (0, reply) => counted.push(reply.integer()),
            (1, reply) => assert_eq!(reply, wrong_type),
            (2, reply) => assert_eq!(reply, bad_time),
            (_, reply) => assert_eq!(reply, Value::Integer(1)),
        }
    }
    counted.sort_unstable();
    assert_eq!(counted, (1..=CLIENTS as i64 / 4).collect::<Vec<_>>());
}

/// Who is gone before the store has answered holds up nobody.
#[test]
fn a_client_that_is_killed_lets_the_others_through() {
    let Some(fleet) = Fleet::start(1) else { return };
    let mut watcher = fleet.gateways[0].connect();
    watcher.run("SET key value");
    let [mut first, mut second, mut third] = [(); 3].map(|()| fleet.gateways[0].connect());
    let id = first.run("CLIENT ID").integer();
    // For ever, as far as this test goes: each attempt is made once more.
    fleet.cluster.delay("KvGet", 100_000, 1.0);
    fleet.cluster.delay("KvBatchGet", 100_000, 1.0);
    first.send(b"GET key\r\n");
    until_begun(&mut watcher, "get", 1);
    second.send(b"GET key\r\n");
    third.send(b"GET key\r\n");
    until_begun(&mut watcher, "get", 3);
    fleet.cluster.heal();
    assert_eq!(watcher.run(&format!("CLIENT KILL ID {id}")), Value::Integer(1));
    assert_eq!([second.read(), third.read()], [Value::bulk("value"), Value::bulk("value")]);
    assert!(first.read_to_close().is_empty());
}
