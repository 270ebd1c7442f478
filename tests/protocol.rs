//! Raw bytes: what is not a request, and what is one but looks strange.

use crate::support::{Conn, DEADLINE, Gateway, Redis, Value, command};

use std::time::Instant;

/// Malformed input by name, and the text of the error that Redis closes the connection with.
const MALFORMED: &[(&str, &[u8], &str)] = &[
    ("count that is text", b"*abc\r\n", "invalid multibulk length"),
    ("count that is empty, with a sign", b"*-\r\n", "invalid multibulk length"),
    ("count with a plus sign", b"*+1\r\n", "invalid multibulk length"),
    ("count with a leading zero", b"*01\r\n", "invalid multibulk length"),
    ("count with a space", b"* 1\r\n", "invalid multibulk length"),
    ("count that is fractional", b"*1.0\r\n", "invalid multibulk length"),
    ("count over 31 bits", b"*2147483648\r\n", "invalid multibulk length"),
    ("count over 64 bits", b"*9223372036854775808\r\n", "invalid multibulk length"),
    ("count ended by a bare line feed", b"*1\n$4\r\nPING\r\n", "invalid multibulk length"),
    ("simple string for an argument", b"*1\r\n+PING\r\n", "expected '$', got '+'"),
    ("integer for an argument", b"*1\r\n:1\r\n", "expected '$', got ':'"),
    ("array for an argument", b"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', got '*'"),
    ("argument without a header", b"*2\r\n$4\r\nPING\r\nabc\r\n", "expected '$', got 'a'"),
    ("argument longer than its length", b"*3\r\n$4\r\nECHO\r\n$1\r\nabcd\r\n", "expected '$', got 'd'"),
    ("length that is text", b"*1\r\n$abc\r\n", "invalid bulk length"),
    ("length that is empty", b"*1\r\n$\r\n", "invalid bulk length"),
    ("length that is negative", b"*1\r\n$-1\r\n", "invalid bulk length"),
    ("length with a leading zero", b"*1\r\n$04\r\nPING\r\n", "invalid bulk length"),
    ("length with a space", b"*1\r\n$ 4\r\nPING\r\n", "invalid bulk length"),
    ("length over 512 MiB", b"*1\r\n$536870913\r\n", "invalid bulk length"),
    ("length over 64 bits", b"*1\r\n$18446744073709551616\r\n", "invalid bulk length"),
    ("inline with an open double quote", b"SET a \"b\r\n", "unbalanced quotes in request"),
    ("inline with an open single quote", b"SET a 'b\r\n", "unbalanced quotes in request"),
    ("inline with text after a quote", b"SET a \"b\"c\r\n", "unbalanced quotes in request"),
];

/// Well-formed, if odd, input by name, and the bytes of the reply.
const ODD: &[(&str, &[u8], &[u8])] = &[
    ("inline", b"PING\r\n", b"+PONG\r\n"),
    ("inline ended by a bare line feed", b"PING\n", b"+PONG\r\n"),
    ("inline with spaces and tabs", b"  ECHO \t hi  \r\n", b"$2\r\nhi\r\n"),
    ("inline with quotes", b"ECHO \"a b\\x00\\n\\\"\"\r\n", b"$6\r\na b\x00\n\"\r\n"),
    ("inline with single quotes", b"ECHO 'a \\x \\' b'\r\n", b"$8\r\na \\x ' b\r\n"),
    ("inline with an empty argument", b"ECHO \"\"\r\n", b"$0\r\n\r\n"),
    ("empty lines before a command", b"\r\n\r\n\nPING\r\n", b"+PONG\r\n"),
    ("array of no arguments", b"*0\r\n*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
    ("array of minus one arguments", b"*-1\r\n*1\r\n$4\r\nPING\r\n", b"+PONG\r\n"),
    ("array of a very negative count", b"*-9223372036854775808\r\nPING\r\n", b"+PONG\r\n"),
    ("empty command name", b"*1\r\n$0\r\n\r\n", b"-ERR unknown command '', with args beginning with: \r\n"),
    ("command in small letters", b"*1\r\n$4\r\nping\r\n", b"+PONG\r\n"),
    ("inline after an array", b"*1\r\n$4\r\nPING\r\nECHO x\r\n", b"+PONG\r\n$1\r\nx\r\n"),
    ("argument that looks like a request", b"*2\r\n$4\r\nECHO\r\n$4\r\n*1\r\n\r\n", b"$4\r\n*1\r\n\r\n"),
    (
        "unknown command with line breaks",
        b"*2\r\n$3\r\nA\r\n\r\n$3\r\nb\nc\r\n",
        b"-ERR unknown command 'A  ', with args beginning with: 'b c' \r\n",
    ),
];

#[test]
fn malformed_input_gets_the_error_of_redis_and_is_closed() {
    let gateway = Gateway::alone();
    let mut bystander = gateway.connect();
    for (name, bytes, text) in MALFORMED {
        let mut conn = gateway.connect();
        conn.send(bytes);
        let expected = format!("-ERR Protocol error: {text}\r\n");
        assert_eq!(conn.read_to_close().escape_ascii().to_string(), expected.escape_default().to_string(), "{name}");
        assert_eq!(bystander.run("PING").text(), "PONG", "{name}");
    }
}

#[test]
fn malformed_input_cut_into_bytes_gets_the_same_error() {
    let gateway = Gateway::alone();
    for (name, bytes, text) in MALFORMED {
        let mut conn = gateway.connect();
        // The server may close before the last byte; the error tells.
        let _ = bytes.chunks(1).try_for_each(|byte| conn.try_send(byte));
        let expected = format!("ERR Protocol error: {text}");
        match conn.try_read() {
            Ok(reply) => assert_eq!(reply, Value::error(&expected), "{name}"),
            // Bytes that arrive after the server has closed make the system drop the reply.
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{name}"),
        }
    }
}

#[test]
fn replies_before_malformed_input_are_delivered() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    conn.send(b"SET before 1\r\n*1\r\n$4\r\nPING\r\n*1\r\n!\r\n");
    assert_eq!(conn.read(), Value::ok());
    assert_eq!(conn.read().text(), "PONG");
    assert_eq!(conn.read(), Value::error("ERR Protocol error: expected '$', got '!'"));
    assert!(conn.read_to_close().is_empty());
    assert_eq!(gateway.connect().run("GET before").text(), "1");
}

#[test]
fn odd_input_is_understood() {
    let gateway = Gateway::alone();
    for (name, bytes, reply) in ODD {
        for piece in [bytes.len(), 1] {
            let mut conn = gateway.connect();
            bytes.chunks(piece).for_each(|part| conn.send(part));
            conn.finish_sending();
            let got = conn.read_to_close();
            assert_eq!(
                got.escape_ascii().to_string(),
                reply.escape_ascii().to_string(),
                "{name}, in pieces of {piece}"
            );
        }
    }
}

#[test]
fn endless_lines_end_the_connection() {
    let long = vec![b'a'; 1 << 20];
    let cases: [(&str, Vec<u8>, &str); 3] = [
        ("inline", long.clone(), "too big inline request"),
        ("count", [b"*".as_slice(), &long].concat(), "too big mbulk count string"),
        ("length", [b"*1\r\n$".as_slice(), &long].concat(), "too big bulk count string"),
    ];
    let gateway = Gateway::alone();
    for (name, bytes, text) in cases {
        let mut conn = gateway.connect();
        // It hangs up long before it has read all of this, which may drop its own last words.
        let _ = conn.try_send(&bytes);
        let said = conn.read_to_close();
        let expected = format!("-ERR Protocol error: {text}\r\n");
        assert!(said.is_empty() || said == expected.as_bytes(), "{name}: {}", said.escape_ascii());

        let mut conn = gateway.connect();
        conn.send(&bytes[..(64 << 10) + 64]);
        assert_eq!(conn.read(), Value::error(expected[1..].trim_end()), "{name}");
    }
    assert_eq!(gateway.connect().run("PING").text(), "PONG");
}

#[test]
fn nested_arrays_are_refused_at_once() {
    let gateway = Gateway::alone();
    let mut conn = gateway.connect();
    let _ = conn.try_send(&b"*1\r\n".repeat(100_000));
    let said = conn.read_to_close();
    assert!(said.is_empty() || said == b"-ERR Protocol error: expected '$', got '*'\r\n", "{}", said.escape_ascii());
    assert_eq!(gateway.connect().run("PING").text(), "PONG");
}

#[test]
fn a_browser_is_hung_up_on() {
    let gateway = Gateway::start();
    for line in ["POST / HTTP/1.1\r\n", "Host: localhost\r\n"] {
        let mut conn = gateway.connect();
        conn.send(line.as_bytes());
        conn.send(b"SET attack 1\r\n");
        assert!(conn.read_to_close().is_empty(), "{line}");
    }
    assert_eq!(gateway.connect().run("EXISTS attack").integer(), 0);
}

#[test]
fn a_hundred_thousand_arguments_arrive_in_small_pieces() {
    const COUNT: usize = 100_000;
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    let mut args = vec!["EXISTS".to_owned()];
    args.extend((1..COUNT).map(|at| (at % 10).to_string()));
    conn.run("SET 7 x");
    command(&args).chunks(7).for_each(|piece| conn.send(piece));
    assert_eq!(conn.read().integer(), i64::try_from(COUNT / 10).unwrap());
}

#[test]
fn every_byte_may_be_in_a_key() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    let every: Vec<u8> = (0..=255).collect();
    let mut keys: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    keys.extend([Vec::new(), every.clone(), every.repeat(10)]);
    for key in &keys {
        assert_eq!(conn.call(&[b"SET", key.as_slice(), key]), Value::ok());
    }
    for key in &keys {
        assert_eq!(conn.call(&[b"GET".as_slice(), key]).bytes(), key);
    }
    let found = conn.run("KEYS *");
    let mut found: Vec<&[u8]> = found.elements().iter().map(Value::bytes).collect();
    found.sort_unstable();
    keys.sort_unstable();
    assert_eq!(found, keys);
}

#[test]
fn large_values_come_back_whole() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    let value: Vec<u8> = (0..20 << 20).map(|at: u32| at.to_be_bytes().iter().fold(7, |sum, byte| sum ^ byte)).collect();
    assert_eq!(conn.call(&[b"SET", b"large".as_slice(), &value]), Value::ok());
    assert!(conn.run("GET large").bytes() == value);
    assert_eq!(conn.run("STRLEN large").integer(), 20 << 20);
}

#[test]
fn clients_that_vanish_within_a_request_leave_nothing() {
    const CLIENTS: usize = 20;
    let gateway = Gateway::alone();
    let mut bystander = gateway.connect();
    bystander.run("SET kept 1");
    let before = gateway.resident_bytes();
    let part = vec![b'x'; 16 << 20];
    for _ in 0..CLIENTS {
        let mut conn = gateway.connect();
        conn.send(b"*3\r\n$3\r\nSET\r\n$4\r\nkept\r\n$100000000\r\n");
        conn.send(&part);
        assert_eq!(bystander.run("GET kept").text(), "1");
    }
    // Each question to the server is a pause for it to notice, too.
    let (until, bound) = (Instant::now() + DEADLINE, before + (100 << 20));
    while gateway.resident_bytes() > bound {
        assert!(Instant::now() < until, "{before} bytes before, {} after", gateway.resident_bytes());
        assert_eq!(bystander.run("GET kept").text(), "1");
    }
    assert_eq!(bystander.run("GET kept").text(), "1");
}

#[test]
fn a_length_alone_reserves_no_memory() {
    let gateway = Gateway::alone();
    let before = gateway.resident_bytes();
    let mut clients: Vec<Conn> = (0..100).map(|_| gateway.connect()).collect();
    for conn in &mut clients {
        conn.send(b"*2147483647\r\n$4\r\nPING\r\n$536870912\r\nabc");
    }
    assert_eq!(gateway.connect().run("PING").text(), "PONG");
    let after = gateway.resident_bytes();
    assert!(after < before + (64 << 20), "{before} bytes before, {after} after");
}

#[test]
fn hello_switches_the_protocol_and_back() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    assert_eq!(conn.run("GET nothing"), Value::NilBulk);
    let Value::Map(agreed) = conn.run("HELLO 3 SETNAME me") else { panic!("HELLO 3 answers with a map") };
    let fields: Vec<String> = agreed.iter().map(|(name, _)| name.text()).collect();
    assert_eq!(fields, ["server", "version", "proto", "id", "mode", "role", "modules"]);
    assert_eq!(agreed[2].1, Value::Integer(3));
    assert_eq!(conn.run("GET nothing"), Value::Null);
    assert_eq!(conn.run("CLIENT GETNAME").text(), "me");
    assert!(matches!(conn.run("CONFIG GET maxclients"), Value::Map(_)));
    assert!(matches!(conn.run("HELLO 2"), Value::Array(fields) if fields.len() == 14));
    assert_eq!(conn.run("GET nothing"), Value::NilBulk);
    assert_eq!(conn.run("HELLO 4"), Value::error("NOPROTO unsupported protocol version"));
    assert_eq!(conn.run("HELLO x"), Value::error("ERR Protocol version is not an integer or out of range"));
    assert_eq!(conn.run("HELLO 3 SETNAME"), Value::error("ERR Syntax error in HELLO option 'SETNAME'"));
    assert_eq!(conn.run("RESET"), Value::Simple("RESET".into()));
    assert_eq!(conn.run("CLIENT GETNAME"), Value::NilBulk);
}

#[test]
fn client_reply_holds_replies_back() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    conn.send(
        b"CLIENT REPLY SKIP\r\nECHO skipped\r\nECHO a\r\nCLIENT REPLY OFF\r\nECHO off\r\nCLIENT REPLY ON\r\nECHO b\r\n",
    );
    assert_eq!(conn.read().text(), "a");
    assert_eq!(conn.read(), Value::ok());
    assert_eq!(conn.read().text(), "b");
}

#[test]
fn quit_answers_and_closes() {
    let gateway = Gateway::start();
    let mut conn = gateway.connect();
    conn.send(b"SET a 1\r\nQUIT\r\nSET a 2\r\n");
    assert_eq!(conn.read_to_close(), b"+OK\r\n+OK\r\n");
    assert_eq!(gateway.connect().run("GET a").text(), "1");
}

/// Redis words each reply when its command has run, and so does this: those before HELLO are in the old protocol.
#[test]
fn a_hello_in_a_transaction_changes_what_follows_it() {
    let (gateway, redis) = (Gateway::start(), Redis::start());
    let script = [
        "HSET h a 1",
        "HGETALL h",
        "GET none",
        "HELLO 3 SETNAME x",
        "HGETALL h",
        "GET none",
        "HELLO 2",
        "HGETALL h",
        "GET none",
        "HELLO 3",
        "HELLO 4",
    ];
    let [ours, theirs] = [gateway.addr(), redis.addr()].map(|addr| {
        let mut conn = Conn::open(&addr);
        assert_eq!(conn.run("MULTI"), Value::ok());
        script.iter().for_each(|line| assert_eq!(conn.run(line), Value::Simple("QUEUED".into())));
        let replies = conn.run("EXEC");
        assert!(matches!(conn.run("HGETALL h"), Value::Map(_)), "the last HELLO counts");
        replies
    });
    for ((line, ours), theirs) in script.iter().zip(ours.elements()).zip(theirs.elements()) {
        // Who serves is its own.
        let is_alike = if line.starts_with("HELLO") {
            std::mem::discriminant(ours) == std::mem::discriminant(theirs)
        } else {
            ours == theirs
        };
        assert!(is_alike, "{line}: {ours} is not {theirs}");
    }
    assert_eq!((&ours.elements()[2], &ours.elements()[5]), (&Value::NilBulk, &Value::Null));
}
