//! `pipeline_order = slot`: a pipeline is a unit for each region, and nothing but the order across slots differs.

use std::{collections::BTreeMap, thread, time::Instant};

use respgate_test_cluster::TestCluster;

use super::Fleet;
use crate::{
    pipelines::mixed_commands,
    support::{Conn, DEADLINE, Redis, Value},
};

const REGIONS: u64 = 16;

/// Gateways that know the regions; `None` where the test is to be skipped.
fn fleet(gateways: usize) -> Option<Fleet> {
    let cluster = TestCluster::with(&["--regions", &REGIONS.to_string()])?;
    let fleet = Fleet::over(cluster, gateways, &[("RESPGATE_UNIT__PIPELINE_ORDER", "slot")]);
    let sets = commands((0..100).map(|number| format!("SET warm:{number} up")));
    let until = Instant::now() + DEADLINE;
    for mut conn in fleet.connect() {
        while !is_spread(&sent(&fleet, &mut conn, &sets)) {
            assert!(Instant::now() < until, "the regions are not known");
        }
    }
    Some(fleet)
}

/// What a pipeline of SETs costs in requests.
fn sent(fleet: &Fleet, conn: &mut Conn, sets: &[Vec<String>]) -> BTreeMap<String, u64> {
    fleet.cluster.take_rpcs();
    assert!(conn.pipeline(sets).iter().all(|reply| *reply == Value::ok()));
    fleet.cluster.take_rpcs()
}

/// True if each region got one request, which was the whole commit.
fn is_spread(rpcs: &BTreeMap<String, u64>) -> bool {
    let count = |method: &str| rpcs.get(method).copied().unwrap_or_default();
    // The pipeline may arrive in a few pieces.
    (REGIONS..=3 * REGIONS).contains(&count("KvPrewrite")) && count("KvCommit") == 0
}

fn commands(lines: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<Vec<String>> {
    lines.into_iter().map(|line| line.as_ref().split(' ').map(str::to_owned).collect()).collect()
}

#[test]
fn replies_equal_those_of_redis() {
    const CLIENTS: u64 = 3;
    let Some(fleet) = fleet(3) else { return };
    let redis = Redis::start();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (fleet, redis) = (&fleet, &redis);
            scope.spawn(move || {
                let (mut conns, mut alone) = (fleet.connect(), redis.connect());
                for (piece, commands) in mixed_commands(client).chunks(100).enumerate() {
                    let together = conns[piece % 3].pipeline(commands);
                    for (command, reply) in commands.iter().zip(together) {
                        assert_eq!(reply, alone.call(command), "client {client}, piece {piece}: {command:?}");
                    }
                }
            });
        }
    });
}

/// What only reads is one unit, with a request to each region.
#[test]
fn a_pipeline_of_reads_is_one_unit() {
    let Some(fleet) = fleet(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    let gets = commands((0..100).map(|number| format!("GET warm:{number}")));
    fleet.cluster.take_rpcs();
    assert!(conn.pipeline(&gets).iter().all(|reply| *reply == Value::bulk("up")));
    let counts = fleet.cluster.take_rpcs();
    let count = |method: &str| counts.get(method).copied().unwrap_or_default();
    assert!(count("KvBatchGet") + count("KvGet") <= 3 * REGIONS && count("Tso") <= 8, "{counts:?}");
}

/// A region that has been split is two parts once that is known.
#[test]
fn regions_that_split_are_learnt() {
    let Some(fleet) = fleet(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    let sets = commands((0..400).map(|number| format!("SET key:{number} value")));
    for nibble in 0..16_u8 {
        fleet.cluster.split(&[nibble << 4 | 8]);
    }
    let until = Instant::now() + DEADLINE;
    loop {
        let rpcs = sent(&fleet, &mut conn, &sets);
        let count = |method: &str| rpcs.get(method).copied().unwrap_or_default();
        if count("KvPrewrite") >= 2 * REGIONS && count("KvCommit") == 0 {
            break;
        }
        assert!(Instant::now() < until, "the regions are not known: {rpcs:?}");
    }
}

/// Clients of all gateways write to the same keys, in pipelines that go to all regions.
#[test]
fn the_order_within_a_slot_is_the_order_sent() {
    const KEYS: usize = 13;
    const CLIENTS: usize = 9;
    const ROUNDS: usize = 20;
    let Some(fleet) = fleet(3) else { return };
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let mut conn = fleet.gateways[client % 3].connect();
            scope.spawn(move || {
                let rounds = (0..ROUNDS).flat_map(|round| (0..KEYS).map(move |key| (round, key)));
                let pushes = commands(rounds.map(|(round, key)| format!("RPUSH list:{key} {client}:{round}")));
                for reply in pushes.chunks(KEYS * 5).flat_map(|pushes| conn.pipeline(pushes)) {
                    assert!(matches!(reply, Value::Integer(_)), "{reply}");
                }
            });
        }
    });
    let mut conn = fleet.gateways[0].connect();
    for key in 0..KEYS {
        let pushed: Vec<String> =
            conn.run(&format!("LRANGE list:{key} 0 -1")).elements().iter().map(Value::text).collect();
        assert_eq!(pushed.len(), CLIENTS * ROUNDS);
        for client in 0..CLIENTS {
            let prefix = format!("{client}:");
            let own: Vec<_> = pushed.iter().filter_map(|text| text.strip_prefix(&prefix)).collect();
            let rounds: Vec<_> = (0..ROUNDS).map(|round| round.to_string()).collect();
            assert_eq!(own, rounds, "client {client}, key {key}");
        }
    }
}

#[test]
fn commands_across_slots_wait_for_those_before_and_hold_up_those_after() {
    let Some(fleet) = fleet(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    for round in 0..20 {
        let values: Vec<String> = (0..30).map(|key| format!("{round}:{key}")).collect();
        let sets = values.iter().enumerate().map(|(key, value)| format!("SET key:{key} {value}"));
        let all = (0..30).map(|key| format!("key:{key}")).collect::<Vec<_>>().join(" ");
        let between = [format!("MGET {all}"), format!("DEL {all}"), "PING".to_owned()];
        let after = (0..30).map(|key| format!("APPEND key:{key} {round}"));
        let replies = conn.pipeline(&commands(sets.chain(between).chain(after)));
        let expected: Vec<Value> = values.iter().map(Value::bulk).collect();
        assert_eq!(replies[30].elements(), expected);
        assert_eq!(replies[31..33], [Value::Integer(30), Value::Simple("PONG".to_owned())]);
        let length = Value::Integer(round.to_string().len() as i64);
        assert!(replies[33..].iter().all(|reply| *reply == length), "{replies:?}");
    }
}

#[test]
fn a_unit_that_fails_leaves_the_others_alone() {
    let Some(fleet) = fleet(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    conn.run("SET warm up");
    let sets = commands((0..48).map(|number| format!("SET key:{number} value")));
    fleet.cluster.fault("KvPrewrite", "before", 1);
    let replies = conn.pipeline(&sets);
    let lost = replies.iter().filter(|reply| matches!(reply, Value::Error(text) if text.contains("outcome unknown")));
    let lost = lost.count();
    assert!(lost > 0 && lost < 24, "{replies:?}");
    assert_eq!(replies.iter().filter(|reply| **reply == Value::ok()).count(), 48 - lost);
    let gets = commands((0..48).map(|number| format!("GET key:{number}")));
    for (set, get) in replies.iter().zip(conn.pipeline(&gets)) {
        assert_eq!(get == Value::bulk("value"), *set == Value::ok());
    }
}

#[test]
fn replies_that_are_not_wanted_are_not_sent() {
    let Some(fleet) = fleet(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    let lines = [
        "SET a 1",
        "CLIENT REPLY SKIP",
        "SET b 2",
        "SET c 3",
        "CLIENT REPLY OFF",
        "SET d 4",
        "INCR e",
        "CLIENT REPLY ON",
        "INCR e",
        "SET a 5",
        "GET d",
    ];
    conn.send(format!("{}\r\n", lines.join("\r\n")).as_bytes());
    let replies = [Value::ok(), Value::ok(), Value::ok(), Value::Integer(2), Value::ok(), Value::bulk("4")];
    for expected in replies {
        assert_eq!(conn.read(), expected);
    }
    assert_eq!(conn.run("MGET a b c").elements(), [Value::bulk("5"), Value::bulk("2"), Value::bulk("3")]);
}

#[test]
fn transactions_within_a_pipeline_stay_whole() {
    let Some(fleet) = fleet(2) else { return };
    let mut conns = fleet.connect();
    let watched = ["SET a 1", "SET b 1", "WATCH a", "SET c 1"];
    assert!(conns[0].pipeline(&commands(watched)).iter().all(|reply| *reply == Value::ok()));
    let transaction = ["SET d 1", "SET e 1", "MULTI", "INCR a", "INCR b", "INCR c", "EXEC", "INCR d", "INCR a"];
    let replies = conns[0].pipeline(&commands(transaction));
    assert_eq!(replies[6].elements(), [2, 2, 2].map(Value::Integer));
    assert_eq!(replies[7..], [2, 3].map(Value::Integer));
    conns[0].pipeline(&commands(["SET d 1", "WATCH a", "SET e 1"]));
    conns[1].run("SET a 9");
    let replies = conns[0].pipeline(&commands(transaction));
    assert_eq!((replies[6].clone(), &replies[7..]), (Value::NilArray, &[2, 10].map(Value::Integer)[..]));
    // One that watches what the pipeline itself writes is not spared.
    let own = ["WATCH a b", "SET a 1", "SET c 1", "MULTI", "INCR a", "EXEC"];
    assert_eq!(conns[0].pipeline(&commands(own))[5], Value::NilArray);
}

#[test]
fn large_replies_keep_their_places() {
    const KEYS: usize = 40;
    let Some(fleet) = fleet(1) else { return };
    let mut conn = fleet.gateways[0].connect();
    let value = |key: usize| format!("{key:04}").repeat(25_000);
    for key in 0..KEYS {
        conn.call(&["SET", &format!("key:{key}"), &value(key)]);
    }
    for thousand in 0..20 {
        let pairs = (thousand * 1_000..(thousand + 1) * 1_000).flat_map(|field| [field.to_string(), "v".repeat(50)]);
        conn.call(&["HSET".to_owned(), "hash".to_owned()].into_iter().chain(pairs).collect::<Vec<_>>());
    }
    let mut lines: Vec<String> = (0..KEYS).map(|key| format!("GET key:{key}")).collect();
    lines.extend((0..KEYS).map(|key| format!("SET key:{key} short")));
    lines.insert(KEYS / 2, "HGETALL hash".to_owned());
    lines.push("HLEN hash".to_owned());
    lines.extend((0..KEYS).map(|key| format!("GET key:{key}")));
    let replies = conn.pipeline(&commands(&lines));
    let mut long = replies.iter().take(KEYS + 1).collect::<Vec<_>>();
    assert_eq!(long.remove(KEYS / 2).elements().len(), 2 * 20_000);
    for (key, reply) in long.into_iter().enumerate() {
        assert_eq!(reply.text(), value(key));
    }
    assert_eq!(replies[2 * KEYS + 1], Value::Integer(20_000));
    assert!(replies[2 * KEYS + 2..].iter().all(|reply| *reply == Value::bulk("short")));
}
