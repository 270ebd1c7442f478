//! Several gateways in front of one TiKV cluster behave like one Redis.

mod by_slot;
mod chaos;
mod crowds;
mod faults;
mod linearizability;
mod rpcs;
mod shared;

use std::{
    thread,
    time::{Duration, Instant},
};

use respgate_test_cluster::TestCluster;

use crate::support::{Conn, Gateway, Options, Value};

/// A cluster and some gateways in front of it.
struct Fleet {
    cluster: TestCluster,
    gateways: Vec<Gateway>,
}

impl Fleet {
    /// `None` where the test is to be skipped.
    fn start(gateways: usize) -> Option<Self> {
        Some(Self::over(TestCluster::start()?, gateways, &[]))
    }

    /// Gateways with these settings in front of `cluster`.
    fn over(cluster: TestCluster, gateways: usize, env: &[(&str, &str)]) -> Self {
        let gateways = (0..gateways).map(|_| gateway(&cluster, env)).collect();
        Self { cluster, gateways }
    }

    /// A connection to each gateway.
    fn connect(&self) -> Vec<Conn> {
        self.gateways.iter().map(Gateway::connect).collect()
    }
}

/// One more gateway in front of a cluster.
fn gateway(cluster: &TestCluster, env: &[(&str, &str)]) -> Gateway {
    let mut gateway = Gateway::with(&Options { pd: Some(cluster.pd()), env, ..Options::default() });
    gateway.wait_until_ready();
    gateway
}

#[test]
fn what_one_gateway_writes_the_others_see_at_once() {
    let Some(fleet) = Fleet::start(3) else { return };
    let mut conns = fleet.connect();
    for round in 0..60 {
        let [writer, reader] = [round % 3, (round + 1) % 3];
        assert_eq!(conns[writer].run(&format!("SET string {round}")), Value::ok());
        assert_eq!(conns[reader].run("GET string"), Value::bulk(round.to_string()));
        conns[reader].run(&format!("RPUSH list {round}"));
        assert_eq!(conns[writer].run("LLEN list"), Value::Integer(round as i64 + 1));
        conns[writer].run(&format!("HSET hash f {round}"));
        assert_eq!(conns[reader].run("HGET hash f"), Value::bulk(round.to_string()));
        assert_eq!(conns[reader].run("DEL hash"), Value::Integer(1));
        assert_eq!(conns[writer].run("EXISTS hash"), Value::Integer(0));
    }
}

/// One of the gateways moves the cluster's safe point, and every one can tell.
#[test]
fn old_versions_are_forgotten() {
    let Some(fleet) = Fleet::start(2) else { return };
    for mut conn in fleet.connect() {
        let until = Instant::now() + Duration::from_secs(30);
        while !conn.run("INFO background").text().contains("versions_last_forgotten_age:0") {
            assert!(Instant::now() < until, "{}", conn.run("INFO background"));
            thread::yield_now();
        }
    }
    assert!(fleet.cluster.take_rpcs().contains_key("UpdateGCSafePoint"));
}

/// Counters, and a list, under clients of all gateways at once.
#[test]
fn contended_keys_lose_nothing_and_nobody_starves() {
    const CLIENTS: usize = 24;
    const ROUNDS: usize = 15;
    let Some(fleet) = Fleet::start(3) else { return };
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let mut conn = fleet.gateways[client % 3].connect();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    assert!(matches!(conn.run("INCR counter"), Value::Integer(_)));
                    assert!(matches!(conn.run("HINCRBY hash field 1"), Value::Integer(_)));
                    assert!(matches!(conn.run(&format!("LPUSH list {client}:{round}")), Value::Integer(_)));
                }
            });
        }
    });
    let mut conn = fleet.gateways[0].connect();
    let all = (CLIENTS * ROUNDS).to_string();
    assert_eq!(conn.run("GET counter"), Value::bulk(&all));
    assert_eq!(conn.run("HGET hash field"), Value::bulk(&all));
    let mut pushed: Vec<_> = conn.run("LRANGE list 0 -1").elements().iter().map(Value::text).collect();
    pushed.sort_unstable();
    pushed.dedup();
    assert_eq!(pushed.len(), CLIENTS * ROUNDS);
}

/// Latches leave at most one unit of each gateway to contend for a key, so few conflict, and none for ever.
#[test]
fn a_hot_counter_meets_few_conflicts() {
    const CLIENTS: u64 = 64;
    const ROUNDS: u64 = 10;
    let Some(fleet) = Fleet::start(3) else { return };
    thread::scope(|scope| {
        for client in 0..CLIENTS as usize {
            let mut conn = fleet.gateways[client % 3].connect();
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    assert!(matches!(conn.run("INCR counter"), Value::Integer(_)));
                }
            });
        }
    });
    let mut conns = fleet.connect();
    assert_eq!(conns[0].run("GET counter"), Value::bulk((CLIENTS * ROUNDS).to_string()));
    let mut counted = |name: &str| conns.iter_mut().map(|conn| figure(conn, name)).sum::<u64>();
    let (conflicts, lockings) = (counted("unit_conflicts"), counted("unit_lockings"));
    // Who loses has lost to somebody who won, and seven times in a row is rare.
    assert!((1..=4 * CLIENTS * ROUNDS).contains(&conflicts), "{conflicts} conflicts");
    assert!(lockings <= CLIENTS * ROUNDS / 2, "{lockings} units locked what they rely on");
    assert_eq!(counted("units_given_up"), 0);
}

/// A number that INFO tells.
fn figure(conn: &mut Conn, name: &str) -> u64 {
    let info = conn.run("INFO stats").text();
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {info}"))
}

#[test]
fn swapped_and_flushed_databases_are_so_everywhere_at_once() {
    let Some(fleet) = Fleet::start(3) else { return };
    let mut conns = fleet.connect();
    for round in 0..6 {
        let [changer, other, third] = [round % 3, (round + 1) % 3, (round + 2) % 3];
        assert_eq!(conns[other].run("SET key zero"), Value::ok());
        assert_eq!(conns[third].run("GET key"), Value::bulk("zero"));
        assert_eq!(conns[changer].run("SWAPDB 0 1"), Value::ok());
        for conn in [other, third] {
            assert_eq!(conns[conn].run("GET key"), Value::NilBulk);
            conns[conn].run("SELECT 1");
            assert_eq!(conns[conn].run("GET key"), Value::bulk("zero"));
        }
        assert_eq!(conns[other].run("FLUSHDB"), Value::ok());
        assert_eq!(conns[third].run("GET key"), Value::NilBulk);
        assert_eq!(conns[third].run("SET key one"), Value::ok());
        assert_eq!(conns[changer].run("FLUSHALL"), Value::ok());
        assert_eq!(conns[other].run("GET key"), Value::NilBulk);
        for conn in &mut conns {
            conn.run("SELECT 0");
        }
    }
}

#[test]
fn a_watched_key_that_another_gateway_changes_aborts_the_transaction() {
    let Some(fleet) = Fleet::start(2) else { return };
    let mut conns = fleet.connect();
    let others = [
        ("SET string 1", "string"),
        ("HSET hash field 1", "hash"),
        ("HSET hash field 2", "hash"),
        ("SETRANGE string 0 2", "string"),
        ("DEL string", "string"),
        ("SWAPDB 0 1", "hash"),
        ("FLUSHALL", "other"),
    ];
    conns[0].run("SELECT 1");
    conns[0].run("SET other 1");
    conns[0].run("SELECT 0");
    for (change, watched) in others {
        conns[0].run(&format!("WATCH {watched}"));
        assert!(!matches!(conns[1].run(change), Value::Error(_)), "{change}");
        conns[0].run("MULTI");
        conns[0].run("SET result 1");
        assert_eq!(conns[0].run("EXEC"), Value::NilArray, "{change}");
    }
    conns[0].run("WATCH string");
    conns[1].run("SET unrelated 1");
    conns[0].run("MULTI");
    conns[0].run("SET result 1");
    assert_eq!(conns[0].run("EXEC").elements(), [Value::ok()]);
}

/// A gateway that is killed takes nothing with it that it has acknowledged, and leaves nothing that holds up the others for
/// longer than its locks live.
#[test]
fn a_killed_gateway_loses_no_acknowledged_write() {
    const KILLS: usize = 3;
    let Some(mut fleet) = Fleet::start(2) else { return };
    let mut acknowledged = 0;
    for _ in 0..KILLS {
        let victim = fleet.gateways.remove(0);
        let mut conns = [victim.connect(), fleet.gateways[0].connect()];
        for round in 0..40 {
            assert!(matches!(conns[round % 2].run("INCR counter"), Value::Integer(_)));
            acknowledged += 1;
        }
        // One more is on its way when the gateway dies. Whether it arrives nobody knows.
        conns[0].send(b"*2\r\n$4\r\nINCR\r\n$7\r\ncounter\r\n");
        victim.kill();
        let counted = conns[1].run("GET counter").text().parse::<i64>().unwrap();
        assert!((acknowledged..=acknowledged + 1).contains(&counted), "{counted} after {acknowledged}");
        let Value::Integer(counted) = conns[1].run("INCR counter") else { panic!("the survivor is held up") };
        acknowledged = counted;
        fleet.gateways.push(gateway(&fleet.cluster, &[]));
    }
}
