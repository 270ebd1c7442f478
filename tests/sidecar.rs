//! Sorted sets whose order is in a Redis beside the gateway.

use crate::support::{Backend, Conn, Gateway, Options, Redis, Value};

fn start(sidecar: &Redis, settings: &[(&str, &str)]) -> Gateway {
    start_with(sidecar, settings, Options::default())
}

fn start_with(sidecar: &Redis, settings: &[(&str, &str)], options: Options<'_>) -> Gateway {
    let url = sidecar.url();
    let env = [&[("RESPGATE_ENCODING__ZSET", "1"), ("RESPGATE_SIDECAR__URL", &url)], settings].concat();
    Gateway::with(&Options { env: &env, ..options })
}

fn check(conn: &mut Conn, script: &[(&str, &str)]) {
    for (line, reply) in script {
        assert_eq!(conn.run(line).to_string(), *reply, "{line}");
    }
}

/// The keys of the sidecar that are no caches.
fn storage(sidecar: &Redis) -> usize {
    let mut conn = sidecar.connect();
    let Value::Array(names) = conn.run("KEYS *") else { panic!() };
    let stays = |name: &&Value| conn.call(&["PTTL".as_bytes(), name.bytes()]).integer() == -1;
    names.iter().filter(stays).count()
}

const LONG: &str = "a:member:of:more:than:fourteen:bytes";

#[test]
fn a_sorted_set_keeps_its_order_wherever_it_goes() {
    let sidecar = Redis::start();
    let gateway = start(&sidecar, &[]);
    let mut conn = gateway.connect();
    let zadd = format!("ZADD z 1 b 1 {LONG} 2 c 1 zz");
    let in_order = format!("[\"{LONG}\", \"b\", \"zz\", \"c\"]");
    let script = [
        (&*zadd, ":4"),
        ("PEXPIREAT z 33177117420000", ":1"),
        ("ZRANGE z 0 -1", &in_order),
        ("ZRANGE z 0 0", &format!("[\"{LONG}\"]")),
        ("ZRANGE z 2 2", "[\"zz\"]"),
        ("ZREVRANGEBYSCORE z 1 1 LIMIT 1 1", "[\"b\"]"),
        ("ZRANK z b", ":1"),
        ("RENAME z renamed", "+OK"),
        ("ZADD z 5 another", ":1"),
        ("ZRANGE renamed 0 -1", &in_order),
        ("ZADD renamed 3 d", ":1"),
        ("ZREM renamed d", ":1"),
        ("COPY renamed copied", ":1"),
        ("ZRANGE copied 0 -1", &in_order),
        ("ZADD copied 0 first", ":1"),
        ("ZRANGE renamed 0 -1", &in_order),
        ("MOVE renamed 1", ":1"),
        ("SELECT 1", "+OK"),
        ("ZRANGE renamed 0 -1", &in_order),
        ("PEXPIRETIME renamed", ":33177117420000"),
        ("RESPGATE ENCODE renamed 0", "+OK"),
        ("ZRANGE renamed 0 -1", &in_order),
        ("PEXPIRETIME renamed", ":33177117420000"),
        ("RESPGATE ENCODE renamed 1", "+OK"),
        ("RESPGATE ENCODE renamed 1", "+OK"),
        ("ZRANGE renamed 0 -1", &in_order),
        ("OBJECT ENCODING renamed", "\"listpack\""),
        ("TYPE renamed", "+zset"),
        ("SORT renamed BY nothing", &in_order),
        ("RESPGATE ENCODE renamed 2", "-ERR a key of this type has no such encode-version"),
    ];
    check(&mut conn, &script);
    let dump = conn.run("DUMP renamed");
    assert_eq!(conn.call(&["RESTORE".as_bytes(), b"restored", b"0", dump.bytes()]), Value::ok());
    assert_eq!(conn.run("ZRANGE restored 0 -1").to_string(), in_order);
    assert_eq!(conn.run("RESPGATE ENCODE renamed 0"), Value::ok());
    assert_eq!(conn.run("DUMP renamed"), dump, "both encode-versions give the same bytes");
}

#[test]
fn a_transaction_sees_its_own_changes_and_a_failed_one_makes_none() {
    let sidecar = Redis::start();
    let gateway = start(&sidecar, &[]);
    let (mut conn, mut other) = (gateway.connect(), gateway.connect());
    check(
        &mut conn,
        &[
            ("ZADD z 1 a 2 b", ":2"),
            ("MULTI", "+OK"),
            ("ZADD z 0 first 9 last", "+QUEUED"),
            ("ZPOPMIN z", "+QUEUED"),
            ("ZINCRBY z 5 a", "+QUEUED"),
            ("ZRANGE z 0 -1", "+QUEUED"),
            ("ZCOUNT z 2 6", "+QUEUED"),
            ("ZRANK z a", "+QUEUED"),
            ("EXEC", "[:2, [\"first\", \"0\"], \"6\", [\"b\", \"a\", \"last\"], :2, :1]"),
            ("WATCH z", "+OK"),
        ],
    );
    check(&mut other, &[("ZADD z 3 c", ":1")]);
    check(&mut conn, &[("MULTI", "+OK"), ("ZADD z 4 d", "+QUEUED"), ("EXEC", "nil array")]);
    check(&mut other, &[("ZRANGE z 0 -1", "[\"b\", \"c\", \"a\", \"last\"]")]);
}

#[test]
fn without_its_sidecar_a_gateway_serves_everything_else() {
    let mut sidecar = Redis::start();
    // Each gateway notices for itself that nobody answers.
    let gateway = start_with(&sidecar, &[("RESPGATE_SIDECAR__TIMEOUT", "300ms")], Options::alone());
    let mut conn = gateway.connect();
    check(&mut conn, &[("ZADD z 1 a 2 b", ":2"), ("SET s x", "+OK")]);
    let is_refused =
        |reply: &Value| matches!(reply, Value::Error(text) if text.starts_with("ERR sidecar unavailable: "));
    for hangs in [false, true] {
        if hangs {
            sidecar.signal("STOP");
        } else {
            sidecar.stop();
        }
        let commands = [vec!["ZRANGE", "z", "0", "-1"], vec!["GET", "s"], vec!["ZPOPMIN", "z"], vec!["INCR", "n"]];
        let replies = conn.pipeline(&commands);
        assert!(is_refused(&replies[0]) && is_refused(&replies[2]), "{replies:?}");
        assert_eq!((&*replies[1].text(), replies[3].integer()), ("x", i64::from(hangs) + 1));
        let reply = conn.run("ZADD z 3 c");
        assert!(is_refused(&reply), "{reply}");
        // The store knows this by itself.
        check(&mut conn, &[("ZSCORE z b", "\"2\""), ("ZCARD z", ":2"), ("EXPIRE z 1000", ":1")]);
        if hangs {
            sidecar.signal("CONT");
        } else {
            sidecar.restart();
        }
        check(&mut conn, &[("ZRANGE z 0 -1", "[\"a\", \"b\"]")]);
    }
}

#[test]
fn what_is_flushed_or_deleted_leaves_the_sidecar() {
    let sidecar = Redis::start();
    let gateway = start(&sidecar, &[]);
    let mut conn = gateway.connect();
    for name in ["deleted", "flushed"] {
        check(&mut conn, &[(&format!("ZADD {name} 1 a 2 {LONG}"), ":2"), (&format!("ZCOUNT {name} 0 3"), ":2")]);
    }
    check(&mut conn, &[("UNLINK deleted", ":1"), ("SELECT 1", "+OK"), ("ZADD kept 1 a", ":1"), ("SELECT 0", "+OK")]);
    check(&mut conn, &[("FLUSHDB", "+OK")]);
    // Collecting is done beside.
    while storage(&sidecar) != 2 {
        std::thread::yield_now();
    }
    check(&mut conn, &[("SELECT 1", "+OK"), ("ZRANGE kept 0 -1", "[\"a\"]"), ("FLUSHALL", "+OK")]);
    while storage(&sidecar) != 0 {
        std::thread::yield_now();
    }
}

/// Clients that write and read one sorted set while its order is lost again and again.
#[test]
fn readers_and_writers_of_one_sorted_set_get_along() {
    const WRITERS: usize = 3;
    const EACH: usize = 200;
    let sidecar = Redis::start();
    let gateway = start(&sidecar, &[]);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let mut conn = gateway.connect();
            scope.spawn(move || {
                for number in 0..EACH {
                    let reply = conn.run(&format!("ZADD z {number} {writer}:{number}:{LONG}"));
                    assert_eq!(reply.to_string(), ":1");
                }
            });
        }
        let (mut conn, mut beside) = (gateway.connect(), sidecar.connect());
        scope.spawn(move || {
            let mut seen = 0;
            while seen < WRITERS * EACH {
                let members = conn.run("ZRANGE z 0 -1");
                let Value::Array(members) = members else { panic!("{members}") };
                assert!(members.len() >= seen, "{} after {seen}", members.len());
                if members.len() / 100 > seen / 100 {
                    beside.run("FLUSHALL");
                }
                seen = members.len();
            }
        });
    });
    assert_eq!(gateway.connect().run("ZCARD z").integer(), (WRITERS * EACH) as i64);
}

#[test]
fn a_gateway_that_was_killed_finds_its_sorted_sets_again() {
    if Backend::under_test() != Backend::RocksDb {
        println!("skipped: the memory backend keeps nothing");
        return;
    }
    let sidecar = Redis::start();
    let url = sidecar.url();
    let dir = tempfile::TempDir::new().unwrap();
    let env = [("RESPGATE_ENCODING__ZSET", "1"), ("RESPGATE_SIDECAR__URL", &*url)];
    let options = Options { env: &env, data_dir: Some(dir.path()), ..Options::default() };
    let mut acknowledged = 0;
    for round in 0..10 {
        let gateway = Gateway::with(&options);
        let mut conn = gateway.connect();
        let count = conn.run("ZCARD z").integer();
        assert!(count >= acknowledged, "round {round}: {count} of {acknowledged}");
        let Value::Array(members) = conn.run("ZRANGE z 0 -1") else { panic!() };
        assert_eq!(members.len() as i64, count);
        for number in count..count + 50 {
            conn.run(&format!("ZADD z {number} {LONG}:{number}"));
        }
        acknowledged = count + 50;
        for number in acknowledged..acknowledged + 20 {
            conn.send(format!("ZADD z {number} {LONG}:{number}\r\n").as_bytes());
        }
        gateway.kill();
    }
}
