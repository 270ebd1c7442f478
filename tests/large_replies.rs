//! Replies that are sent page by page, because they are too large to be held.

use std::collections::BTreeSet;

use crate::support::{Conn, Gateway, Value};

/// More than the gateway sends in one piece.
const ELEMENTS: usize = 25_000;

fn fill(conn: &mut Conn) {
    for hundred in 0..ELEMENTS / 100 {
        let numbers = hundred * 100..(hundred + 1) * 100;
        let mut hset = vec!["HSET".to_owned(), "hash".to_owned()];
        let mut sadd = vec!["SADD".to_owned(), "set".to_owned()];
        for number in numbers {
            hset.extend([format!("field:{number}"), format!("value:{number}")]);
            sadd.push(format!("member:{number}"));
        }
        conn.call(&hset);
        conn.call(&sadd);
    }
}

fn texts(values: &[Value]) -> BTreeSet<String> {
    values.iter().map(Value::text).collect()
}

fn expected(prefix: &str) -> BTreeSet<String> {
    (0..ELEMENTS).map(|number| format!("{prefix}:{number}")).collect()
}

#[test]
fn every_element_is_sent_once_and_in_its_turn() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    fill(&mut conn);
    for (command, prefix) in [("HKEYS hash", "field"), ("HVALS hash", "value"), ("SMEMBERS set", "member")] {
        let reply = conn.run(command);
        assert_eq!(reply.elements().len(), ELEMENTS);
        assert_eq!(texts(reply.elements()), expected(prefix), "{command}");
    }
    let pairs = conn.run("HGETALL hash");
    assert_eq!(pairs.elements().len(), 2 * ELEMENTS);
    for pair in pairs.elements().chunks(2) {
        assert_eq!(pair[0].text().replace("field", "value"), pair[1].text());
    }
    conn.run("HELLO 3");
    assert!(matches!(conn.run("HGETALL hash"), Value::Map(pairs) if pairs.len() == ELEMENTS));
    assert!(matches!(conn.run("SMEMBERS set"), Value::Set(members) if members.len() == ELEMENTS));
}

#[test]
fn what_comes_before_and_after_stays_in_order() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    fill(&mut conn);
    let lines = ["ECHO 1", "HKEYS hash", "DEL hash", "HKEYS hash", "SMEMBERS set", "ECHO 2"];
    conn.send(format!("{}\r\n", lines.join("\r\n")).as_bytes());
    assert_eq!(conn.read().to_string(), "\"1\"");
    assert_eq!(conn.read().elements().len(), ELEMENTS);
    assert_eq!(conn.read().to_string(), ":1");
    assert_eq!(conn.read().to_string(), "[]");
    assert_eq!(conn.read().elements().len(), ELEMENTS);
    assert_eq!(conn.read().to_string(), "\"2\"");
}

#[test]
fn a_transaction_and_its_own_writes_are_seen_whole() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    fill(&mut conn);
    conn.run("MULTI");
    conn.run("SADD set one-more");
    conn.run("SMEMBERS set");
    let replies = conn.run("EXEC");
    assert_eq!(replies.elements()[1].elements().len(), ELEMENTS + 1);
    conn.send(b"CLIENT REPLY OFF\r\nSMEMBERS set\r\nCLIENT REPLY ON\r\n");
    assert_eq!(conn.read().to_string(), "+OK");
    conn.send(b"SMEMBERS set\r\nQUIT\r\n");
    assert_eq!(conn.read().elements().len(), ELEMENTS + 1);
    assert_eq!(conn.read().to_string(), "+OK");
}
