//! Pipelines: many commands in one write, many clients at once.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::support::{Gateway, Redis, Value};

const CONNECTIONS: u64 = 50;
const COMMANDS: usize = 1_000;

/// Mixed commands on keys that only this client uses, some of which fail.
pub(crate) fn mixed_commands(client: u64) -> Vec<Vec<String>> {
    let mut rng = StdRng::seed_from_u64(client);
    let mut command = || {
        let key = format!("client:{client}:{}", rng.random_range(0..8));
        let other = format!("client:{client}:{}", rng.random_range(0..8));
        let number = rng.random_range(0..100);
        let line = match rng.random_range(0..16) {
            0..3 => format!("SET {key} {number}"),
            3..6 => format!("GET {key}"),
            6 => format!("INCRBY {key} {number}"),
            7 => format!("APPEND {key} x{number}"),
            8 => format!("MSET {key} {number} {other} text"),
            9 => format!("MGET {key} {other} {key}"),
            10 => format!("DEL {key} {other}"),
            11 => format!("SETRANGE {key} {number} y"),
            12 => format!("EXISTS {key} {key} {other}"),
            13 => format!("RENAME {key} {other}"),
            14 => format!("NOTHING {key}"),
            _ => format!("SET {key} {number} EX notanumber"),
        };
        line.split(' ').map(str::to_owned).collect()
    };
    (0..COMMANDS).map(|_| command()).collect()
}

#[test]
fn replies_come_in_order_and_equal_those_of_commands_sent_alone() {
    let (gateway, redis) = (Gateway::start(), Redis::start());
    std::thread::scope(|scope| {
        for client in 0..CONNECTIONS {
            let (gateway, redis) = (&gateway, &redis);
            scope.spawn(move || {
                let commands = mixed_commands(client);
                let together = gateway.connect().pipeline(&commands);
                let mut alone = redis.connect();
                for (at, (command, reply)) in commands.iter().zip(together).enumerate() {
                    assert_eq!(reply, alone.call(command), "client {client}, command {at}: {command:?}");
                }
            });
        }
    });
}

#[test]
fn a_counter_that_everybody_increments_loses_nothing() {
    let gateway = Gateway::start();
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let replies = gateway.connect().pipeline(&vec![vec!["INCR", "shared"]; 500]);
                let numbers: Vec<i64> = replies.iter().map(Value::integer).collect();
                assert!(numbers.is_sorted_by(|a, b| a < b), "a client's own increments grow");
            });
        }
    });
    assert_eq!(gateway.connect().run("GET shared").text(), "10000");
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all() {
    let gateway = Gateway::start();
    gateway.connect().run("MSET a 0 b 0");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut conn = gateway.connect();
                for _ in 0..250 {
                    conn.pipeline(&[vec!["MULTI"], vec!["INCR", "a"], vec!["INCR", "b"], vec!["EXEC"]]);
                }
            });
        }
        scope.spawn(|| {
            let mut conn = gateway.connect();
            for _ in 0..500 {
                let both = conn.run("MGET a b");
                assert_eq!(both.elements()[0], both.elements()[1]);
            }
        });
    });
    assert_eq!(gateway.connect().run("GET a").text(), "1000");
}

#[test]
fn optimistic_updates_with_watch_lose_nothing() {
    let gateway = Gateway::start();
    gateway.connect().run("SET balance 0");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut conn = gateway.connect();
                let mut done = 0;
                while done < 50 {
                    conn.run("WATCH balance");
                    let next = (conn.run("GET balance").text().parse::<i64>().unwrap() + 1).to_string();
                    conn.run("MULTI");
                    conn.call(&["SET", "balance", &next]);
                    done += usize::from(conn.run("EXEC") != Value::NilArray);
                }
            });
        }
    });
    assert_eq!(gateway.connect().run("GET balance").text(), "400");
}

#[test]
fn a_pipeline_larger_than_every_buffer_is_answered() {
    const LARGE: usize = 200_000;
    let gateway = Gateway::alone();
    let value = "v".repeat(1_000);
    gateway.connect().call(&["SET", "large", &value]);
    let mut reader = gateway.connect();
    let requests = b"*2\r\n$3\r\nGET\r\n$5\r\nlarge\r\n".repeat(LARGE);
    reader.send_aside(requests);
    for _ in 0..LARGE {
        assert_eq!(reader.read().bytes().len(), value.len());
    }
}
