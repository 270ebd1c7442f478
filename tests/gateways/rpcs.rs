//! What commands cost in requests to the cluster: the table in `backends/tikv/README.md`.

use super::Fleet;
use crate::support::Value;

/// How often each command is run. The map of databases is read once in a while, which must not be taken for a cost.
const RUNS: u64 = 200;

fn costs(commands: &[&str], expected: &[(&str, u64)]) {
    let Some(fleet) = Fleet::start(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    for line in ["SET string 1", "HSET hash field 1", "ZADD zset 1 member", "SADD set member", "RPUSH list element"] {
        assert!(!matches!(conn.run(line), Value::Error(_)));
    }
    for command in commands {
        fleet.cluster.take_rpcs();
        for run in 0..RUNS {
            let reply = conn.run(&command.replace("{}", &run.to_string()));
            assert!(!matches!(reply, Value::Error(_)), "{command}: {reply}");
        }
        let counts = fleet.cluster.take_rpcs();
        for (method, count) in &counts {
            let wanted = expected.iter().find(|(name, _)| name == method).map_or(0, |(_, count)| *count);
            let each = *count as f64 / RUNS as f64;
            // Up to a tenth for the map of databases, and for what runs in the background.
            assert!(each < wanted as f64 + 0.3, "{command}: {method} {each} times, not {wanted}: {counts:?}");
        }
        for (method, wanted) in expected {
            let count = counts.get(*method).copied().unwrap_or_default();
            // Timestamps that are asked for at the same time share a request.
            assert!(count + RUNS / 10 >= wanted * RUNS, "{command}: {method} {count} times in {RUNS}");
        }
    }
}

#[test]
fn reads() {
    costs(&["GET string", "EXISTS string", "TYPE string", "LLEN list"], &[("KvGet", 1)]);
    costs(&["HLEN hash", "TTL string"], &[("Tso", 1), ("KvGet", 1)]);
    costs(&["HGET hash field", "SISMEMBER set member", "ZSCORE zset member"], &[("Tso", 1), ("KvGet", 2)]);
    costs(&["MGET string a b c"], &[("Tso", 1), ("KvBatchGet", 1)]);
    costs(&["HGETALL hash", "LRANGE list 0 -1"], &[("Tso", 1), ("KvGet", 1), ("KvScan", 1)]);
}

#[test]
fn writes() {
    costs(&["SET string {}"], &[("Tso", 1), ("KvPrewrite", 1)]);
    costs(&["INCR string", "APPEND string 1"], &[("Tso", 1), ("KvGet", 1), ("KvPrewrite", 1)]);
    costs(&["HSET hash field {}"], &[("Tso", 1), ("KvGet", 2), ("KvPrewrite", 1)]);
    costs(&["RPUSH list {}"], &[("Tso", 1), ("KvGet", 1), ("KvPrewrite", 1)]);
}

/// What walks over a whole database does not ask for each of its slots.
#[test]
fn walks() {
    /// Far less than there are slots, and enough for what runs in the background.
    const SCANS_MAX: u64 = 400;

    let Some(fleet) = Fleet::start(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    for number in 0..20 {
        conn.run(&format!("SET string{number} 1"));
        conn.run(&format!("RPUSH list{number} a b c"));
        conn.run(&format!("ZADD zset{number} 1 a 2 b 3 c"));
    }
    let keys = |reply: Value| if let Value::Array(keys) = reply { keys.len() } else { 0 };
    let mut counted = |command: &str| {
        fleet.cluster.take_rpcs();
        let reply = conn.run(command);
        let scans = fleet.cluster.take_rpcs().get("KvScan").copied().unwrap_or_default();
        assert!(scans <= SCANS_MAX, "{command}: {scans} scans");
        reply
    };
    assert_eq!(counted("DBSIZE"), Value::Integer(60));
    assert_eq!(keys(counted("KEYS *")), 60);
    assert!(matches!(counted("RANDOMKEY"), Value::Bulk(_)));
    let Value::Array(page) = counted("SCAN 0 COUNT 100") else { panic!("not a page") };
    assert_eq!((page[0].clone(), keys(page[1].clone())), (Value::bulk("0"), 60));
    counted("SELECT 1");
    assert_eq!(counted("DBSIZE"), Value::Integer(0));
}

/// A hundred commands in a pipeline cost what one does.
#[test]
fn pipelines() {
    let Some(fleet) = Fleet::start(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    conn.run("SET warm up");
    let sets: Vec<Vec<String>> =
        (0..100).map(|number| vec!["SET".to_owned(), format!("{{p}}{number}"), "v".to_owned()]).collect();
    let gets: Vec<Vec<String>> = (0..100).map(|number| vec!["GET".to_owned(), format!("{{p}}{number}")]).collect();
    fleet.cluster.take_rpcs();
    assert!(conn.pipeline(&sets).iter().all(|reply| *reply == Value::ok()));
    let counts = fleet.cluster.take_rpcs();
    let count = |method: &str| counts.get(method).copied().unwrap_or_default();
    // The pipeline may arrive in a few pieces.
    assert!(count("KvPrewrite") <= 5 && count("Tso") <= 5 && count("KvGet") + count("KvBatchGet") <= 5, "{counts:?}");
    assert!(conn.pipeline(&gets).iter().all(|reply| *reply == Value::bulk("v")));
    let counts = fleet.cluster.take_rpcs();
    let count = |method: &str| counts.get(method).copied().unwrap_or_default();
    assert!(count("Tso") <= 5 && count("KvGet") + count("KvBatchGet") <= 8, "{counts:?}");
    conn.pipeline(&[(0..102).map(|number| if number == 0 { "RPUSH" } else { "list" }).collect::<Vec<_>>()]);
    fleet.cluster.take_rpcs();
    let pops: Vec<Vec<&str>> = (0..100).map(|number| vec![["LPOP", "RPOP"][number / 50], "list"]).collect();
    assert!(conn.pipeline(&pops).iter().all(|reply| *reply == Value::bulk("list")));
    let counts = fleet.cluster.take_rpcs();
    let count = |method: &str| counts.get(method).copied().unwrap_or_default();
    assert!(count("KvGet") + count("KvBatchGet") + count("KvScan") <= 30, "{counts:?}");
    conn.pipeline(&[
        vec!["HSET", "hash", "field", "v"],
        vec!["SADD", "set", "member"],
        vec!["ZADD", "zset", "1", "member"],
    ]);
    let own = |words: &[&str]| -> Vec<Vec<String>> {
        let word = |word: &&str, number| word.replace("{}", &format!("{number}"));
        (0..100).map(|number| words.iter().map(|each| word(each, number)).collect()).collect()
    };
    for (command, reply) in [
        (&["HSET", "hash", "{}", "v"][..], Value::Integer(1)),
        (&["HGET", "hash", "{}"], Value::bulk("v")),
        (&["HINCRBY", "hash", "n{}", "2"], Value::Integer(2)),
        (&["SADD", "set", "{}"], Value::Integer(1)),
        (&["SREM", "set", "{}"], Value::Integer(1)),
        (&["ZADD", "zset", "1", "{}"], Value::Integer(1)),
        (&["ZSCORE", "zset", "{}"], Value::bulk("1")),
    ] {
        fleet.cluster.take_rpcs();
        assert!(conn.pipeline(&own(command)).iter().all(|found| *found == reply), "{command:?}");
        let counts = fleet.cluster.take_rpcs();
        let count = |method: &str| counts.get(method).copied().unwrap_or_default();
        assert!(count("Tso") <= 5 && count("KvGet") + count("KvBatchGet") <= 25, "{command:?}: {counts:?}");
    }
}
