//! RESPGATE ENCODE: a key changes its encode-version and nothing else.

use crate::support::Gateway;

#[test]
fn a_key_changes_its_encode_version_and_keeps_its_elements() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    let script = [
        ("HSET h a 1 b 2 c 3", ":3"),
        ("PEXPIREAT h 33177117420000", ":1"),
        ("RESPGATE ENCODE h 1", "+OK"),
        // Version 1 counts arguments.
        ("HSET h a 1 d 4", ":2"),
        ("HDEL h nothing", ":1"),
        ("HLEN h", ":4"),
        ("RESPGATE ENCODE h 0", "+OK"),
        ("HSET h a 1 e 5", ":1"),
        ("HDEL h nothing", ":0"),
        ("HLEN h", ":5"),
        ("PEXPIRETIME h", ":33177117420000"),
        ("SADD s a b", ":2"),
        ("RESPGATE ENCODE s 1", "+OK"),
        ("RENAME s t", "+OK"),
        ("SADD t a", ":1"),
        ("RESPGATE ENCODE t 0", "+OK"),
        ("SADD t a", ":0"),
        ("SCARD t", ":2"),
        ("RESPGATE ENCODE nothing 0", "-ERR no such key"),
        ("RESPGATE ENCODE t 2", "-ERR a key of this type has no such encode-version"),
        ("RESPGATE ENCODE t x", "-ERR value is not an integer or out of range"),
        ("SET string x", "+OK"),
        ("RESPGATE ENCODE string 1", "-ERR a key of this type has no such encode-version"),
    ];
    for (line, reply) in script {
        assert_eq!(conn.run(line).to_string(), reply, "{line}");
    }
}
