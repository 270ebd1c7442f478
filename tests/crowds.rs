//! Many connections that write to one key at once: their commands share units.

use std::collections::BTreeSet;

use crate::support::{Conn, Gateway, Options, Value, command};

const CLIENTS: i64 = 24;
const ROUNDS: i64 = 50;

/// How often the gateway has committed a unit.
fn units(conn: &mut Conn) -> u64 {
    let info = conn.run("INFO stats").text();
    let line = info.lines().find_map(|line| line.strip_prefix("units_committed:")).unwrap();
    line.parse().unwrap()
}

/// Holds the latch of `key` while `waiting` is sent by a connection each, and gives the replies to that.
fn behind_a_slow_unit(gateway: &Gateway, key: &str, waiting: &[Vec<Vec<String>>]) -> Vec<Vec<Value>> {
    let mut slow = gateway.connect();
    slow.run("MULTI");
    slow.run(&format!("EXISTS {key}"));
    slow.run(&format!("TOUCH {key}"));
    slow.run(&format!("PERSIST {key}"));
    slow.run("DEBUG SLEEP 0.3");
    slow.send(&command(&["EXEC"]));
    let mut conns: Vec<Conn> = waiting.iter().map(|_| gateway.connect()).collect();
    for (conn, commands) in conns.iter_mut().zip(waiting) {
        conn.send(&commands.iter().flat_map(|words| command(words)).collect::<Vec<u8>>());
    }
    assert!(matches!(slow.read(), Value::Array(_)));
    conns.iter_mut().zip(waiting).map(|(conn, commands)| commands.iter().map(|_| conn.read()).collect()).collect()
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn those_who_wait_for_a_key_share_a_unit() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    let before = units(&mut conn);
    let requests = vec![vec![words("INCR counter")]; CLIENTS as usize];
    let replies = behind_a_slow_unit(&gateway, "counter", &requests);
    let numbers: BTreeSet<i64> = replies.iter().flatten().map(Value::integer).collect();
    assert_eq!(numbers, (1..=CLIENTS).collect());
    let taken = units(&mut conn) - before;
    // The commands of the slow client, and INFO, have units of their own.
    assert!(taken < CLIENTS as u64, "{taken} units for {CLIENTS} clients who waited for the same key");
}

#[test]
fn each_client_of_a_shared_unit_gets_its_own_replies() {
    let gateway = Gateway::start();
    gateway.connect().run("SET text value");
    let mut requests = Vec::new();
    for client in 0..CLIENTS {
        requests.push(match client / 6 {
            0 => vec![words("INCR text"), words(&format!("APPEND text {}", client % 10))],
            1 => vec![words("SELECT 1"), words("APPEND text x")],
            2 => vec![words("HELLO 3"), words("LPUSH text x"), words("SETRANGE text 0 V")],
            _ => vec![words("NOTHING text"), words("APPEND text"), words("APPEND text y")],
        });
    }
    let replies = behind_a_slow_unit(&gateway, "text", &requests);
    let not_a_number = Value::error("ERR value is not an integer or out of range");
    let wrong_type = Value::error("WRONGTYPE Operation against a key holding the wrong kind of value");
    let mut lengths = [Vec::new(), Vec::new()];
    for (client, replies) in replies.iter().enumerate() {
        match (client / 6, replies.as_slice()) {
            (0, [error, length]) => {
                assert_eq!(*error, not_a_number);
                lengths[0].push(length.integer());
            }
            (1, [ok, length]) => {
                assert_eq!(*ok, Value::ok());
                lengths[1].push(length.integer());
            }
            (2, [_, error, length]) => {
                assert_eq!(*error, wrong_type);
                assert!(length.integer() >= 5);
            }
            (3, [unknown, _, length]) => {
                assert!(matches!(unknown, Value::Error(text) if text.starts_with("ERR unknown command")));
                lengths[0].push(length.integer());
            }
            other => panic!("{other:?}"),
        }
    }
    for (lengths, first) in lengths.iter_mut().zip([6, 1]) {
        lengths.sort_unstable();
        let expected: Vec<i64> = (first..).take(lengths.len()).collect();
        assert_eq!(*lengths, expected, "each APPEND made the string one byte longer");
    }
}

#[test]
fn replies_that_are_large_together_reach_everyone() {
    let settings = [("RESPGATE_UNIT__REPLY_BYTES_MAX", "4KiB")];
    let gateway = Gateway::with(&Options { env: &settings, ..Options::default() });
    let mut conn = gateway.connect();
    let value = "v".repeat(3_000);
    for number in 0..2 * CLIENTS {
        conn.run(&format!("RPUSH list {number}:{value}"));
    }
    let requests = vec![vec![words("LPOP list"), words("RPOP list")]; CLIENTS as usize];
    let replies = behind_a_slow_unit(&gateway, "list", &requests);
    let popped: BTreeSet<i64> =
        replies.iter().flatten().map(|value| value.text().split(':').next().unwrap().parse().unwrap()).collect();
    assert_eq!(popped, (0..2 * CLIENTS).collect());
    assert_eq!(conn.run("EXISTS list"), Value::Integer(0));
}

#[test]
fn a_queue_that_everybody_uses_loses_nothing_and_keeps_the_order_of_each() {
    let gateway = Gateway::start();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let gateway = &gateway;
            scope.spawn(move || {
                let mut conn = gateway.connect();
                for round in 0..ROUNDS {
                    conn.run(&format!("RPUSH queue {client}:{round}"));
                }
            });
        }
    });
    let queue: Vec<(i64, i64)> = gateway
        .connect()
        .run("LRANGE queue 0 -1")
        .elements()
        .iter()
        .map(|element| {
            let text = element.text();
            let (client, round) = text.split_once(':').unwrap();
            (client.parse().unwrap(), round.parse().unwrap())
        })
        .collect();
    for client in 0..CLIENTS {
        let rounds: Vec<i64> = queue.iter().filter(|(of, _)| *of == client).map(|(_, round)| *round).collect();
        assert_eq!(rounds, (0..ROUNDS).collect::<Vec<_>>());
    }
}

#[test]
fn those_who_write_a_little_at_the_same_time_share_units() {
    let settings = [("RESPGATE_SERVER__WORKER_THREADS", "1")];
    let gateway = Gateway::with(&Options { env: &settings, ..Options::default() });
    let mut conn = gateway.connect();
    let mut busy = gateway.connect();
    conn.run("SET text value");
    let mut conns: Vec<Conn> = (0..CLIENTS).map(|_| gateway.connect()).collect();
    for conn in conns.iter_mut().skip(1).step_by(3) {
        conn.run("HELLO 3");
        conn.run("SELECT 1");
    }
    let before = units(&mut conn);
    for round in 1..=ROUNDS {
        let requests: Vec<(String, Value)> = (0..CLIENTS)
            .map(|client| match client % 6 {
                // Some need to know what was there, or give it back.
                0 if client % 12 == 0 => (format!("SET value:{client} {round} KEEPTTL"), Value::ok()),
                0 if round > 1 => (format!("SET value:{client} {round} GET"), Value::bulk((round - 1).to_string())),
                0 => (format!("SET value:{client} {round}"), Value::ok()),
                1 => (format!("INCR count:{client}"), Value::Integer(round)),
                2 => (format!("MSET value:{client} {round} twin:{client} {round}"), Value::ok()),
                3 => ("INCR text".into(), Value::error("ERR value is not an integer or out of range")),
                4 => (format!("INCRBY count:{client} 2"), Value::Integer(2 * round)),
                _ => (format!("PEXPIRE value:{client} 1"), Value::Integer(0)),
            })
            .collect();
        // While this is looked up, the requests arrive.
        let absent: String = (0..1_000).map(|number| format!(" absent:{round}:{number}")).collect();
        busy.send(&command(&words(&format!("MGET{absent}"))));
        for (conn, (request, _)) in conns.iter_mut().zip(&requests) {
            conn.send(&command(&words(request)));
        }
        assert_eq!(busy.read().elements().len(), 1_000);
        for (conn, (request, reply)) in conns.iter_mut().zip(requests) {
            assert_eq!(conn.read(), reply, "{request}");
        }
    }
    // MGET too.
    let commands = ((CLIENTS + 1) * ROUNDS) as u64;
    let taken = units(&mut conn) - before;
    assert!(taken < commands, "{taken} units for {commands} commands");
    let kept: BTreeSet<String> = conn.run("KEYS *").elements().iter().map(Value::text).collect();
    let of = |name, kind| (0..CLIENTS / 6).map(move |nth| format!("{name}:{}", 6 * nth + kind));
    let written = of("value", 0).chain(of("value", 2)).chain(of("twin", 2));
    for name in written.clone() {
        assert_eq!(conn.run(&format!("GET {name}")).text(), ROUNDS.to_string());
    }
    assert_eq!(kept, written.chain(["text".to_owned()]).collect());
}

#[test]
fn nobody_waits_for_the_keys_of_others() {
    let gateway = Gateway::start();
    let (mut slow, mut conn) = (gateway.connect(), gateway.connect());
    for line in ["MULTI", "SET held 1", "DEBUG SLEEP 1", "SET ended 1"] {
        slow.run(line);
    }
    slow.send(&command(&["EXEC"]));
    let mut conns: Vec<Conn> = (0..CLIENTS).map(|_| gateway.connect()).collect();
    for (client, conn) in conns.iter_mut().enumerate() {
        let request = if client % 2 == 0 { "INCR held".into() } else { format!("SET other:{client} 1") };
        conn.send(&command(&words(&request)));
    }
    for conn in conns.iter_mut().skip(1).step_by(2) {
        assert_eq!(conn.read(), Value::ok());
    }
    assert_eq!(conn.run("EXISTS ended"), Value::Integer(0));
    let numbers: BTreeSet<i64> = conns.iter_mut().step_by(2).map(|conn| conn.read().integer()).collect();
    assert_eq!(numbers, (2..).take(CLIENTS as usize / 2).collect());
}
