//! Keys that expire while the tests look: nobody sees an expired key, collected or not.

use std::time::Instant;

use crate::support::{Conn, DEADLINE, Gateway, Value};

/// A command on the expired key `k`, and what it replies where there is no such key. Redis agrees with each.
const ON_AN_EXPIRED_KEY: &[(&str, &str)] = &[
    ("GET k", "nil bulk"),
    ("EXISTS k", ":0"),
    ("TYPE k", "+none"),
    ("TTL k", ":-2"),
    ("EXPIRETIME k", ":-2"),
    ("STRLEN k", ":0"),
    ("GETRANGE k 0 -1", "\"\""),
    ("MGET k", "[nil bulk]"),
    ("KEYS *", "[]"),
    ("SCAN 0", "[\"0\", []]"),
    ("RANDOMKEY", "nil bulk"),
    ("TOUCH k", ":0"),
    ("OBJECT ENCODING k", "nil bulk"),
    ("DUMP k", "nil bulk"),
    ("PERSIST k", ":0"),
    ("EXPIRE k 100", ":0"),
    ("DEL k", ":0"),
    ("UNLINK k", ":0"),
    ("RENAME k other", "-ERR no such key"),
    ("COPY k other", ":0"),
    ("MOVE k 1", ":0"),
    ("GETDEL k", "nil bulk"),
    ("GETEX k PERSIST", "nil bulk"),
    ("GETSET k new", "nil bulk"),
    ("SET k new XX", "nil bulk"),
    ("SET k new NX", "+OK"),
    ("SET k new GET", "nil bulk"),
    ("SET k new KEEPTTL", "+OK"),
    ("SETNX k new", ":1"),
    ("MSETNX k new", ":1"),
    ("APPEND k new", ":3"),
    ("SETRANGE k 1 n", ":2"),
    ("INCR k", ":1"),
    ("HSET k f v", ":1"),
];

/// Sets `k` and waits until it has expired, without looking at it.
fn expire_unseen(conn: &mut Conn) {
    conn.run("FLUSHALL");
    conn.run("SET k 41 PX 5");
    conn.run("SET later x PX 5");
    let until = Instant::now() + DEADLINE;
    while conn.run("EXISTS later") != Value::Integer(0) {
        assert!(Instant::now() < until, "a key outlives its expiry");
    }
}

#[test]
fn no_command_sees_an_expired_key() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    for (line, reply) in ON_AN_EXPIRED_KEY {
        expire_unseen(&mut conn);
        assert_eq!(conn.run(line).to_string(), *reply, "{line}");
        assert!(conn.run("PTTL k").integer() < 0, "{line} takes over the old expiry");
    }
}

#[test]
fn an_expired_key_is_not_counted() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    expire_unseen(&mut conn);
    assert_eq!(conn.run("DBSIZE").integer(), 0);
    assert_eq!(conn.run("SET past x EXAT 1"), Value::ok());
    assert_eq!(conn.run("DBSIZE").integer(), 0);
    assert_eq!(conn.run("GET past"), Value::NilBulk);
}

#[test]
fn a_key_that_is_set_again_lives() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    for line in ["SET k new", "INCR k", "APPEND k new", "HSET k f v", "SETRANGE k 1 x"] {
        expire_unseen(&mut conn);
        conn.run(line);
        assert_eq!(conn.run("PTTL k").integer(), -1, "{line}");
    }
}

#[test]
fn a_watched_key_that_expires_has_changed() {
    let gateway = Gateway::start();
    let (mut conn, mut other) = (gateway.connect(), gateway.connect());
    conn.run("SET k x PX 1000");
    conn.run("WATCH k");
    let until = Instant::now() + DEADLINE;
    while other.run("EXISTS k") != Value::Integer(0) {
        assert!(Instant::now() < until, "a key outlives its expiry");
    }
    conn.run("MULTI");
    conn.run("SET done 1");
    assert_eq!(conn.run("EXEC"), Value::NilArray);
    assert_eq!(other.run("EXISTS done").integer(), 0);
}

#[test]
fn time_stands_still_in_a_transaction() {
    const CALLS: usize = 2_000;
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    conn.run("MULTI");
    conn.run("SET k x PX 2");
    // Long enough for the key to expire half-way, if time went on.
    let mut commands = vec![vec!["EXISTS", "k"]; CALLS];
    commands.push(vec!["EXEC"]);
    let replies = conn.pipeline(&commands);
    let Some(Value::Array(ran)) = replies.last() else { panic!("EXEC gave {:?}", replies.last()) };
    assert!(ran[1..].iter().all(|reply| *reply == Value::Integer(1)));
}
