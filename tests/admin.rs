//! Monitoring over HTTP.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
};

use crate::support::{Gateway, Monitor, Options, Value};

fn start() -> (Gateway, Monitor) {
    let mut gateway = Gateway::with(&Options { flags: &["--admin", "127.0.0.1:0"], ..Options::alone() });
    let monitor = Monitor::of(&mut gateway);
    monitor.until_ready_says(200);
    (gateway, monitor)
}

/// What is sent until the connection is closed, by whatever means.
fn read_to_close(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => panic!("not closed: {error}"),
        _ => bytes,
    }
}

#[test]
fn a_gateway_that_serves_is_live_and_ready() {
    let (_gateway, monitor) = start();
    assert_eq!(monitor.get("/live"), (200, "ok\n".to_owned()));
    assert_eq!(monitor.get("/ready"), (200, "ok\n".to_owned()));
    let (status, head, body) = monitor.ask("HEAD", "/ready");
    assert!(status == 200 && head.contains("content-length: 3") && body.is_empty(), "{head}");
    let (status, head, _) = monitor.ask("POST", "/ready");
    assert!(status == 405 && head.contains("allow: GET, HEAD"), "{head}");
    assert_eq!(monitor.get("/nothing").0, 404);
}

#[test]
fn a_gateway_opens_no_port_unasked() {
    let mut gateway = Gateway::alone();
    assert!(!gateway.log().iter().any(|line| line.contains("monitoring at")));
}

#[test]
fn a_gateway_that_drains_is_live_but_not_ready() {
    let env = &[("RESPGATE_SERVER__SHUTDOWN_TIMEOUT", "5m")];
    let mut gateway = Gateway::with(&Options { flags: &["--admin", "127.0.0.1:0"], env, ..Options::alone() });
    let monitor = Monitor::of(&mut gateway);
    let (mut busy, mut watcher) = (gateway.connect(), gateway.connect());
    busy.send(b"DEBUG SLEEP 300\r\n");
    while !watcher.run("CLIENT LIST").text().contains("cmd=debug") {
        std::thread::yield_now();
    }
    monitor.until_ready_says(200);
    gateway.signal("TERM");
    assert_eq!(monitor.until_ready_says(503), "shutting down\n");
    assert_eq!(monitor.get("/live").0, 200);
    assert!(gateway.is_running());
}

#[test]
fn figures_tell_what_clients_do() {
    let (gateway, monitor) = start();
    let mut conn = gateway.connect();
    conn.pipeline(&[vec!["SET", "a", "1"], vec!["SET", "b", "2"], vec!["LPUSH", "a", "1"], vec!["GET"]]);
    conn.run("CONFIG GET port");
    let counted = |name: &str| monitor.figure(name).unwrap_or_else(|| panic!("no {name}"));
    assert_eq!(counted("respgate_commands_total{command=\"set\"}"), 2.0);
    assert_eq!(counted("respgate_commands_total{command=\"config|get\"}"), 1.0);
    assert_eq!(counted("respgate_commands_failed_total{command=\"lpush\"}"), 1.0);
    assert!(counted("respgate_command_duration_seconds_total{command=\"set\"}") >= 0.0);
    assert_eq!(counted("respgate_error_replies_total{code=\"WRONGTYPE\"}"), 1.0);
    assert_eq!(counted("respgate_clients"), 1.0);
    assert_eq!(counted("respgate_garbage_pending"), 0.0);
    assert!(counted("respgate_input_bytes_total") > 0.0);
    assert!(counted("respgate_units_committed_total") >= 2.0);
    assert!(counted("process_resident_memory_bytes") > 0.0);
    assert!(counted("respgate_store_memory_bytes") >= 0.0);
    assert_eq!(monitor.figure("respgate_commands_total{command=\"hset\"}"), None);
    let (_, head, text) = monitor.ask("GET", "/metrics");
    assert!(head.contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(text.contains("# TYPE respgate_commands counter\n") && text.ends_with("# EOF\n"), "{text}");
}

#[test]
fn nonsense_harms_nobody() {
    let (gateway, monitor) = start();
    let long = format!("GET /live HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(1 << 20));
    let many = format!("GET /live HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(10_000));
    let body = b"POST /live HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\nrest".to_vec();
    let random: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for nonsense in [b"*1\r\n$4\r\nPING\r\n".to_vec(), b"\r\n".repeat(50_000), random, long.into(), many.into(), body] {
        let mut stream = monitor.connect();
        // It may hang up before all has been sent.
        let _ = stream.write_all(&nonsense);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let answer = read_to_close(&mut stream);
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
    }
    let silent: Vec<TcpStream> = (0..32).map(|_| monitor.connect()).collect();
    assert_eq!(monitor.get("/ready").0, 200);
    assert_eq!(gateway.connect().run("PING"), Value::Simple("PONG".into()));
    drop(silent);
}
