use proptest::prelude::*;

use super::*;

fn scanner() -> Scanner {
    let mut scanner = Scanner::new(Limits::default());
    scanner.set_authenticated(true);
    scanner
}

/// Everything in the buffer up to an error or its end.
fn drain(scanner: &mut Scanner, buffer: &mut BytesMut) -> (Vec<Request>, Option<ProtocolError>) {
    let mut requests = Vec::new();
    loop {
        match scanner.next(buffer) {
            Ok(Some(request)) => requests.push(request),
            Ok(None) => return (requests, None),
            Err(error) => return (requests, Some(error)),
        }
    }
}

fn scan(bytes: &[u8]) -> (Vec<Request>, Option<ProtocolError>) {
    drain(&mut scanner(), &mut BytesMut::from(bytes))
}

/// The same, the bytes arriving in pieces of the given sizes, over and over.
fn scan_in_pieces(mut bytes: &[u8], sizes: &[usize]) -> (Vec<Request>, Option<ProtocolError>) {
    let (mut scanner, mut buffer, mut requests) = (scanner(), BytesMut::new(), Vec::new());
    for size in sizes.iter().cycle() {
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        buffer.extend_from_slice(piece);
        let (more, error) = drain(&mut scanner, &mut buffer);
        requests.extend(more);
        if error.is_some() || rest.is_empty() {
            return (requests, error);
        }
        bytes = rest;
    }
    unreachable!("a cycle does not end");
}

fn array(args: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[test]
fn requests_are_taken_in_order_with_their_sizes() {
    let (requests, error) = scan(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n*1\r\n$");
    assert_eq!(error, None);
    let [get, ping, quit] = &requests[..] else { panic!("{requests:?}") };
    assert_eq!((get.args.as_slice(), get.bytes), (&[Bytes::from("GET"), Bytes::from("k")][..], 20));
    assert_eq!((ping.args.as_slice(), ping.bytes), (&[Bytes::from("PING")][..], 6));
    assert_eq!((quit.args.as_slice(), quit.bytes), (&[Bytes::from("QUIT")][..], 14));
}

#[test]
fn every_malformed_frame_has_redis_words() {
    let many_digits = |prefix: &str| [prefix.as_bytes(), &b"1".repeat(65_537)].concat();
    let cases: [(&str, Vec<u8>, &str); 33] = [
        ("count: none", b"*\r\n".into(), "invalid multibulk length"),
        ("count: a letter", b"*x\r\n".into(), "invalid multibulk length"),
        ("count: leading zero", b"*01\r\n".into(), "invalid multibulk length"),
        ("count: plus sign", b"*+1\r\n".into(), "invalid multibulk length"),
        ("count: a blank", b"* 1\r\n".into(), "invalid multibulk length"),
        ("count: minus zero", b"*-0\r\n".into(), "invalid multibulk length"),
        ("count: fraction", b"*1.0\r\n".into(), "invalid multibulk length"),
        ("count: zero byte", b"*\0\r\n".into(), "invalid multibulk length"),
        ("count: beyond 31 bits", b"*2147483648\r\n".into(), "invalid multibulk length"),
        ("count: beyond 64 bits", b"*9223372036854775808\r\n".into(), "invalid multibulk length"),
        ("count: no end", many_digits("*"), "too big mbulk count string"),
        ("count: only a newline", [b"*1\n".as_slice(), &[b'x'; 65_536]].concat(), "too big mbulk count string"),
        ("argument: integer", b"*1\r\n:5\r\n".into(), "expected '$', got ':'"),
        ("argument: nested array", b"*1\r\n*1\r\n".into(), "expected '$', got '*'"),
        ("argument: no header", b"*1\r\nPING\r\n".into(), "expected '$', got 'P'"),
        ("argument: empty header", b"*1\r\n\r\n".into(), "expected '$', got '\r'"),
        ("argument: beyond ASCII", b"*1\r\n\xff\r\n".into(), "expected '$', got '\u{fffd}'"),
        ("second argument", b"*2\r\n$4\r\nPING\r\nx\r\n".into(), "expected '$', got 'x'"),
        ("length: none", b"*1\r\n$\r\n".into(), "invalid bulk length"),
        ("length: a letter", b"*1\r\n$x\r\n".into(), "invalid bulk length"),
        ("length: leading zero", b"*1\r\n$04\r\nPING\r\n".into(), "invalid bulk length"),
        ("length: null", b"*1\r\n$-1\r\n".into(), "invalid bulk length"),
        ("length: least", b"*1\r\n$-9223372036854775808\r\n".into(), "invalid bulk length"),
        ("length: beyond 512 MiB", b"*1\r\n$536870913\r\n".into(), "invalid bulk length"),
        ("length: greatest", b"*1\r\n$9223372036854775807\r\n".into(), "invalid bulk length"),
        ("length: beyond 64 bits", b"*1\r\n$18446744073709551616\r\n".into(), "invalid bulk length"),
        ("length: no end", many_digits("*1\r\n$"), "too big bulk count string"),
        ("inline: 1 MB", vec![b'A'; 1_000_000], "too big inline request"),
        ("inline: one byte too many", [&[b'A'; 65_537], b"\r\n".as_slice()].concat(), "too big inline request"),
        ("inline: open double quote", b"PING \"a\r\n".into(), "unbalanced quotes in request"),
        ("inline: open single quote", b"PING 'a\n".into(), "unbalanced quotes in request"),
        ("inline: text behind a quote", b"PING \"a\"b\r\n".into(), "unbalanced quotes in request"),
        ("inline: only a quote", b"\"\r\n".into(), "unbalanced quotes in request"),
    ];
    for (name, bytes, text) in cases {
        let (requests, error) = scan(&bytes);
        assert_eq!(requests, [], "{name}");
        assert_eq!(error.map(|error| error.to_string()), Some(format!("Protocol error: {text}")), "{name}");
        assert_eq!(scan_in_pieces(&bytes, &[1]).1, error, "{name}, byte by byte");
    }
}

#[test]
fn what_is_no_request_is_skipped() {
    for blank in ["\r\n", "\n", "  \t \r\n", "*0\r\n", "*-1\r\n", "*-9223372036854775808\r\n"] {
        let (requests, error) = scan(format!("{blank}{blank}PING\r\n{blank}").as_bytes());
        assert_eq!((requests.len(), error), (1, None), "{blank:?}");
        assert_eq!(requests[0].args, ["PING"], "{blank:?}");
    }
}

#[test]
fn ends_of_lines_are_not_checked_as_in_redis() {
    for bytes in ["*1\r\n$4\r\nPINGxx", "*1\rx$4\ryPING\r\n"] {
        assert_eq!(scan(bytes.as_bytes()).0[0].args, ["PING"], "{bytes:?}");
    }
}

#[test]
fn an_unfinished_request_waits() {
    let headers = ["*", "*1", "*1\r", "*1\r\n", "*1\r\n$", "*1\r\n$4", "*1\r\n$4\r", "*1\r\n$4\r\n", "*1\nx", "x"];
    let bodies = ["*1\r\n$4\r\nPING", "*1\r\n$4\r\nPING\r", "*2147483647\r\n", "*1\r\n$536870912\r\n"];
    for bytes in headers.iter().chain(&bodies) {
        assert_eq!(scan(bytes.as_bytes()), (vec![], None), "{bytes:?}");
    }
}

#[test]
fn lines_up_to_the_limit_pass() {
    let line = [&[b'A'; 65_536], b"\n".as_slice()].concat();
    assert_eq!(scan(&line).0[0].args[0].len(), 65_536);
    assert_eq!(scan_in_pieces(&line, &[1]).0[0].args[0].len(), 65_536);
}

#[test]
fn arguments_and_lengths_have_configured_limits() {
    let limits = Limits { args_max: 2, bulk_bytes_max: 3, inline_bytes_max: 4 };
    let scan = |bytes: &str| {
        let mut scanner = Scanner::new(limits);
        scanner.set_authenticated(true);
        scanner.next(&mut BytesMut::from(bytes))
    };
    assert!(scan("*2\r\n$1\r\na\r\n$3\r\nabc\r\n").unwrap().is_some());
    assert_eq!(scan("*3\r\n"), Err(ProtocolError::InvalidCount));
    assert_eq!(scan("*1\r\n$4\r\n"), Err(ProtocolError::InvalidLength));
    assert!(scan("PING\n").unwrap().is_some());
    assert_eq!(scan("PING \n"), Err(ProtocolError::InlineTooBig));
}

#[test]
fn before_authentication_requests_are_small() {
    let scan = |bytes: &str| Scanner::new(Limits::default()).next(&mut BytesMut::from(bytes));
    assert_eq!(scan("*10\r\n$16384\r\n"), Ok(None));
    assert_eq!(scan("*11\r\n"), Err(ProtocolError::UnauthenticatedCount));
    assert_eq!(scan("*1\r\n$16385\r\n"), Err(ProtocolError::UnauthenticatedLength));
    assert_eq!(scan("*2147483648\r\n"), Err(ProtocolError::InvalidCount));
    assert_eq!(scan("*1\r\n$536870913\r\n"), Err(ProtocolError::InvalidLength));
    assert_eq!(ProtocolError::UnauthenticatedCount.to_string(), "Protocol error: unauthenticated multibulk length");
    assert_eq!(ProtocolError::UnauthenticatedLength.to_string(), "Protocol error: unauthenticated bulk length");
}

#[test]
fn authentication_counts_from_the_next_header_on() {
    let mut scanner = Scanner::new(Limits::default());
    let mut buffer = BytesMut::from(&b"AUTH x\r\n"[..]);
    assert!(scanner.next(&mut buffer).unwrap().is_some());
    scanner.set_authenticated(true);
    buffer.extend_from_slice(&array(&[b"x"; 11]));
    assert_eq!(scanner.next(&mut buffer).unwrap().unwrap().args.len(), 11);
}

#[test]
fn requests_before_an_error_are_served() {
    let (requests, error) = scan(b"*1\r\n$4\r\nPING\r\n*x\r\n*1\r\n$4\r\nPING\r\n");
    assert_eq!((requests.len(), error), (1, Some(ProtocolError::InvalidCount)));
}

#[test]
fn work_is_linear_however_the_bytes_are_cut() {
    let args = vec![&b"0123456789"[..]; 100_000];
    let bytes = array(&args);
    let (mut scanner, mut buffer, mut requests) = (scanner(), BytesMut::new(), Vec::new());
    for piece in bytes.chunks(7) {
        buffer.extend_from_slice(piece);
        requests.extend(scanner.next(&mut buffer).unwrap());
    }
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].args, args);
    // Headers only, once each, but for a `\r` whose `\n` had not arrived.
    assert!(scanner.bytes_examined < 5 * args.len(), "examined {} bytes", scanner.bytes_examined);
}

#[test]
fn a_long_line_is_looked_at_once() {
    let (mut scanner, mut buffer) = (scanner(), BytesMut::new());
    for _ in 0..65_536 {
        buffer.extend_from_slice(b"x");
        assert_eq!(scanner.next(&mut buffer), Ok(None));
    }
    assert_eq!(scanner.bytes_examined, 65_536);
}

#[test]
fn deeply_nested_arrays_end_at_the_first_level() {
    assert_eq!(scan(&b"*1\r\n".repeat(100_000)), (vec![], Some(ProtocolError::ExpectedBulk(b'*'))));
}

#[test]
fn announced_sizes_take_no_memory() {
    let (mut scanner, mut buffer) = (scanner(), BytesMut::from(&b"*2147483647\r\n$536870912\r\n"[..]));
    assert_eq!(scanner.next(&mut buffer), Ok(None));
    assert!(scanner.args.capacity() <= ARGS_RESERVED_MAX);
    assert_eq!(scanner.wanted(), WANTED_BYTES_MAX);
}

#[test]
fn room_for_many_arguments_is_given_back() {
    let mut scanner = scanner();
    scanner.next(&mut BytesMut::from(&array(&[b""; 10_000])[..])).unwrap().unwrap();
    assert!(scanner.args.capacity() <= ARGS_KEPT_MAX);
}

#[test]
fn what_is_wanted_is_what_is_missing() {
    let (mut scanner, mut buffer) = (scanner(), BytesMut::from(&b"*2\r\n$4\r\nECHO\r\n$1000\r\nx"[..]));
    assert_eq!(scanner.wanted(), 0);
    assert_eq!(scanner.next(&mut buffer), Ok(None));
    assert_eq!(scanner.wanted(), 1001);
    buffer.extend_from_slice(&[b'x'; 1001]);
    assert_eq!(scanner.next(&mut buffer).unwrap().unwrap().args[1].len(), 1000);
    assert_eq!((scanner.wanted(), buffer.len()), (0, 0));
}

#[test]
fn arguments_are_not_copied() {
    let mut buffer = BytesMut::from(&array(&["SET".into(), "k".into(), "v".repeat(1000)])[..]);
    let before = buffer.as_ptr_range();
    let request = scanner().next(&mut buffer).unwrap().unwrap();
    assert!(request.args.iter().all(|arg| before.contains(&arg.as_ptr())));
}

/// Requests, and what looks like them.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let args = prop::collection::vec(any::<Vec<u8>>(), 1..5);
    let piece = prop_oneof![
        4 => args.prop_map(|args| array(&args)),
        2 => "[a-z\"' \\\\]{0,20}\r?\n".prop_map(String::into_bytes),
        1 => "[*$0-9x\r\n-]{0,8}".prop_map(String::into_bytes),
        1 => any::<Vec<u8>>(),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_cut_makes_no_difference(bytes in any_bytes(), sizes in prop::collection::vec(1..20_usize, 1..8)) {
        let whole = scan(&bytes);
        prop_assert_eq!(scan_in_pieces(&bytes, &[1]), whole.clone());
        prop_assert_eq!(scan_in_pieces(&bytes, &sizes), whole);
    }

    #[test]
    fn what_is_sent_is_scanned(sent in prop::collection::vec(prop::collection::vec(any::<Vec<u8>>(), 1..5), 0..5)) {
        let mut bytes = Vec::new();
        for args in &sent {
            bytes.extend(array(args));
        }
        let (requests, error) = scan(&bytes);
        prop_assert_eq!(error, None);
        prop_assert_eq!(requests.iter().map(|request| request.bytes).sum::<usize>(), bytes.len());
        let scanned: Vec<_> = requests.into_iter().map(|request| request.args).collect();
        prop_assert_eq!(scanned, sent);
    }
}
