//! A cluster that is away, for a while or at the start, and one that does not say what it did.

use std::time::{Duration, Instant};

use respgate_test_cluster::TestCluster;

use super::{Fleet, gateway};
use crate::support::{Conn, DEADLINE, Gateway, Monitor, Options, Value};

/// More than any command may take: its calls to the store have five seconds each.
const COMMAND_MAX: Duration = Duration::from_secs(30);

/// Repeats a command until it succeeds, and gives the errors that it met before.
fn until_ok(conn: &mut Conn, line: &str) -> Vec<String> {
    let (mut errors, until) = (Vec::new(), Instant::now() + DEADLINE);
    loop {
        let began = Instant::now();
        let reply = conn.run(line);
        assert!(began.elapsed() < COMMAND_MAX, "{line} took {:?}", began.elapsed());
        let Value::Error(error) = reply else { return errors };
        assert!(Instant::now() < until, "{line}: {error}");
        errors.push(error);
    }
}

#[test]
fn a_gateway_waits_for_its_store_and_says_so() {
    let Some(cluster) = TestCluster::start() else { return };
    cluster.stop_pd();
    let gateway = Gateway::with(&Options { pd: Some(cluster.pd()), ..Options::default() });
    let mut conn = gateway.connect();
    assert_eq!(conn.run("PING"), Value::Simple("PONG".into()));
    for line in ["GET key", "SET key value", "FLUSHALL"] {
        let Value::Error(error) = conn.run(line) else { panic!("{line} without a store") };
        assert!(error.starts_with("LOADING Respgate is waiting for its store"), "{error}");
    }
    cluster.start_pd();
    until_ok(&mut conn, "SET key value");
    assert_eq!(conn.run("GET key"), Value::bulk("value"));
}

#[test]
fn monitoring_is_told_that_the_store_is_away() {
    let Some(cluster) = TestCluster::start() else { return };
    cluster.stop_pd();
    let options = Options { pd: Some(cluster.pd()), flags: &["--admin", "127.0.0.1:0"], ..Options::default() };
    let mut gateway = Gateway::with(&options);
    let monitor = Monitor::of(&mut gateway);
    let reason = monitor.until_ready_says(503);
    assert!(reason.lines().count() == 1 && reason.contains("store"), "{reason}");
    assert_eq!(monitor.get("/live").0, 200);
    assert!(monitor.figure("respgate_clients").is_some());
    cluster.start_pd();
    monitor.until_ready_says(200);
    (1..=3).for_each(|id| cluster.stop_store(id));
    monitor.until_ready_says(503);
    (1..=3).for_each(|id| cluster.start_store(id));
    monitor.until_ready_says(200);
}

#[test]
fn a_placement_driver_that_goes_and_comes_back_is_found_again() {
    let Some(fleet) = Fleet::start(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    assert_eq!(conn.run("SET key 1"), Value::ok());
    fleet.cluster.stop_pd();
    let Value::Error(error) = conn.run("GET key") else { panic!("a read without a timestamp") };
    assert!(error.starts_with("ERR store unavailable: the placement driver"), "{error}");
    fleet.cluster.start_pd();
    until_ok(&mut conn, "SET key 2");
    assert_eq!(conn.run("GET key"), Value::bulk("2"));
}

#[test]
fn a_silent_placement_driver_hangs_nobody() {
    let Some(fleet) = Fleet::start(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    assert_eq!(conn.run("SET key 1"), Value::ok());
    fleet.cluster.fault("Tso", "hang", 0);
    let began = Instant::now();
    let Value::Error(error) = conn.run("GET key") else { panic!("a read without a timestamp") };
    assert!(error.starts_with("ERR store unavailable: the placement driver"), "{error}");
    assert!(began.elapsed() < COMMAND_MAX);
    fleet.cluster.heal();
    until_ok(&mut conn, "SET key 2");
}

#[test]
fn servers_that_go_and_come_back_are_found_again() {
    let Some(fleet) = Fleet::start(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    assert_eq!(conn.run("SET key 1"), Value::ok());
    (1..=3).for_each(|id| fleet.cluster.stop_store(id));
    for line in ["GET key", "SET key 2"] {
        let began = Instant::now();
        let Value::Error(error) = conn.run(line) else { panic!("{line} without a store") };
        assert!(error.starts_with("ERR store unavailable") || error.starts_with("ERR outcome unknown"), "{error}");
        assert!(began.elapsed() < COMMAND_MAX);
    }
    (1..=3).for_each(|id| fleet.cluster.start_store(id));
    until_ok(&mut conn, "SET key 3");
    assert_eq!(conn.run("GET key"), Value::bulk("3"));
}

/// The commit is done, but its answer is lost: the client must not be told OK, and nothing is done twice.
#[test]
fn a_lost_answer_is_told_and_nothing_is_done_twice() {
    let Some(fleet) = Fleet::start(2) else { return };
    let mut conns = fleet.connect();
    assert_eq!(conns[0].run("SET counter 1"), Value::ok());
    fleet.cluster.fault("KvPrewrite", "after", 1);
    let Value::Error(error) = conns[0].run("INCR counter") else { panic!("nobody knows that") };
    assert!(error.starts_with("ERR outcome unknown"), "{error}");
    assert_eq!(conns[1].run("GET counter"), Value::bulk("2"));
    fleet.cluster.fault("KvPrewrite", "before", 1);
    assert!(matches!(conns[0].run("INCR counter"), Value::Error(_)));
    assert_eq!(conns[1].run("GET counter"), Value::bulk("2"));
    assert_eq!(conns[1].run("INCR counter"), Value::Integer(3));
}

#[test]
fn busy_servers_and_moving_regions_are_waited_for() {
    let Some(fleet) = Fleet::start(2) else { return };
    let mut conns = fleet.connect();
    let mut expected = 0;
    for round in 0..24 {
        match round % 4 {
            0 => {
                fleet.cluster.fault("KvPrewrite", "busy", 3);
                fleet.cluster.fault("KvGet", "busy", 3);
            }
            1 => fleet.cluster.split(&[0x20 + round as u8 * 8]),
            2 => fleet.cluster.regions().into_iter().for_each(|region| fleet.cluster.move_leader(region)),
            _ => fleet.cluster.merge(fleet.cluster.regions()[0]),
        }
        for conn in &mut conns {
            expected += 1;
            assert_eq!(conn.run("INCR counter"), Value::Integer(expected), "round {round}");
            let pairs: String = (0..20).map(|number| format!(" key:{number} {round}")).collect();
            assert_eq!(conn.run(&format!("MSET{pairs}")), Value::ok(), "round {round}");
            let keys: String = (0..20).map(|number| format!(" key:{number}")).collect();
            let values = conn.run(&format!("MGET{keys}"));
            assert!(values.elements().iter().all(|value| *value == Value::bulk(round.to_string())), "round {round}");
        }
    }
    let late = gateway(&fleet.cluster, &[]);
    assert_eq!(late.connect().run("GET counter"), Value::bulk(expected.to_string()));
}

#[test]
fn what_is_too_large_for_the_cluster_is_refused_with_a_reason() {
    let Some(fleet) = Fleet::start(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    let long = "k".repeat(7_000);
    let Value::Error(error) = conn.run(&format!("SET {long} v")) else { panic!("a key of 7,000 bytes") };
    assert!(error.starts_with("ERR too large for the store: a key"), "{error}");
    let Value::Error(error) = conn.run(&format!("HSET hash {long} v")) else { panic!("a field of 7,000 bytes") };
    assert!(error.starts_with("ERR too large for the store: a key"), "{error}");
    assert_eq!(conn.run("EXISTS hash"), Value::Integer(0));
    // Longer than one record may be: it is stored in chunks.
    let value = "v".repeat(15 << 19);
    assert_eq!(conn.call(&["SET", "large", &value]), Value::ok());
    assert_eq!(conn.run("STRLEN large"), Value::Integer(15 << 19));
    assert_eq!(conn.run("GET large").bytes().len(), 15 << 19);
}
