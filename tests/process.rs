//! The program: how it starts, what it says about its settings, and how it ends.

use std::process::{Output, Stdio};

use tempfile::TempDir;

use crate::support::{Addr, Backend, Conn, Gateway, Options, Value};

/// Runs the program to its end.
fn run(args: &[&str], env: &[(&str, &str)]) -> Output {
    Gateway::command().args(args).envs(env.iter().copied()).stderr(Stdio::piped()).output().unwrap()
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_signal_ends_it_in_order() {
    for signal in ["TERM", "INT"] {
        let dir = TempDir::new().unwrap();
        let options = Options { data_dir: Some(dir.path()), ..Options::alone() };
        let mut gateway = Gateway::with(&options);
        let (mut conn, mut idle) = (gateway.connect(), gateway.connect());
        assert_eq!(conn.run("SET kept 1"), Value::ok());
        gateway.signal(signal);
        assert!(gateway.wait().success(), "{signal}");
        assert!(conn.read_to_close().is_empty());
        assert!(idle.read_to_close().is_empty());
        assert!(Conn::try_open(&gateway.addr()).is_err());
        if Backend::under_test() == Backend::RocksDb {
            assert_eq!(Gateway::with(&options).connect().run("GET kept").text(), "1");
        }
    }
}

#[test]
fn a_signal_lets_a_transaction_in_flight_finish() {
    let mut gateway = Gateway::alone();
    let mut conn = gateway.connect();
    conn.pipeline(&[vec!["MULTI"], vec!["SET", "a", "1"]]);
    let replies = std::thread::scope(|scope| {
        let exec = scope.spawn(|| {
            conn.send(b"EXEC\r\n");
            conn.try_read()
        });
        gateway.signal("TERM");
        exec.join().unwrap()
    });
    assert!(gateway.wait().success());
    // The signal may have come first; but a reply that has begun is whole.
    if let Ok(reply) = replies {
        assert_eq!(reply, Value::Array(vec![Value::ok()]));
    }
}

#[test]
fn shutdown_ends_it() {
    for command in ["SHUTDOWN", "SHUTDOWN NOSAVE", "SHUTDOWN SAVE NOW"] {
        let mut gateway = Gateway::alone();
        let mut conn = gateway.connect();
        conn.send(format!("{command}\r\n").as_bytes());
        assert!(conn.read_to_close().is_empty(), "{command}");
        assert!(gateway.wait().success(), "{command}");
    }
    let gateway = Gateway::alone();
    assert_eq!(gateway.connect().run("SHUTDOWN MAYBE"), Value::error("ERR syntax error"));
    assert_eq!(gateway.connect().run("PING").text(), "PONG");
}

#[test]
fn it_listens_on_a_unix_socket() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("respgate.sock");
    let gateway = Gateway::with(&Options {
        env: &[("RESPGATE_SERVER__UNIX_SOCKET", path.to_str().unwrap())],
        ..Options::alone()
    });
    let mut local = Conn::open(&Addr::Unix(path));
    assert_eq!(local.run("SET a 1"), Value::ok());
    assert_eq!(gateway.connect().run("GET a").text(), "1");
}

#[test]
fn a_port_in_use_is_an_error_that_says_so() {
    let gateway = Gateway::alone();
    let dir = TempDir::new().unwrap();
    let port = gateway.port().to_string();
    let output = run(&["--backend", "memory", "--port", &port, "--data-dir", dir.path().to_str().unwrap()], &[]);
    assert!(!output.status.success());
    assert!(complaint(&output).contains(&port), "{}", complaint(&output));
}

#[test]
fn a_data_directory_has_one_owner() {
    if Backend::under_test() != Backend::RocksDb {
        println!("skipped: the memory backend has no directory");
        return;
    }
    let dir = TempDir::new().unwrap();
    let _owner = Gateway::with(&Options { data_dir: Some(dir.path()), ..Options::alone() });
    let path = dir.path().to_str().unwrap();
    let output = run(&["--backend", "rocksdb", "--port", "0", "--data-dir", path], &[]);
    assert!(!output.status.success());
    assert!(complaint(&output).contains(path), "{}", complaint(&output));
}

/// A configuration file, the environment, and what the complaint must name; none if nothing is wrong.
type ConfigCase = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const CONFIGS: &[ConfigCase] = &[
    ("", &[], &[]),
    ("[server]\nport = 7000\nidle_timeout = \"5m\"\n", &[], &[]),
    ("[server]\nprot = 7000\n", &[], &["prot", "respgate.toml"]),
    ("[sever]\nport = 7000\n", &[], &["sever", "respgate.toml"]),
    ("[server]\nport = \"many\"\n", &[], &["port", "respgate.toml"]),
    ("[server]\nport = 70000\n", &[], &["port", "respgate.toml"]),
    ("[server]\nidle_timeout = \"soon\"\n", &[], &["idle_timeout", "respgate.toml"]),
    ("[server\n", &[], &["respgate.toml"]),
    ("", &[("RESPGATE_SERVER__PORT", "many")], &["port", "environment"]),
    ("", &[("RESPGATE_SERVER__PROT", "7000")], &["prot", "environment"]),
];

#[test]
fn check_config_names_the_key_and_where_it_is() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("respgate.toml");
    for (file, env, named) in CONFIGS {
        std::fs::write(&path, file).unwrap();
        let output = run(&["check-config", "--config", path.to_str().unwrap()], env);
        let said = complaint(&output).to_lowercase();
        assert_eq!(output.status.code(), Some(if named.is_empty() { 0 } else { 64 }), "{file:?} {env:?}: {said}");
        named.iter().for_each(|name| assert!(said.contains(name), "{file:?} {env:?}: {name} is not in {said}"));
    }
    let missing = dir.path().join("missing.toml");
    let output = run(&["check-config", "--config", missing.to_str().unwrap()], &[]);
    assert_eq!(output.status.code(), Some(64));
    assert!(complaint(&output).contains("missing.toml"));
}

#[test]
fn flags_come_before_the_environment_and_that_before_the_file() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("respgate.toml");
    std::fs::write(&path, "[server]\nmaxclients = 11\ndatabases = 5\nport = 1\n").unwrap();
    let gateway = Gateway::with(&Options {
        flags: &["--config", path.to_str().unwrap()],
        env: &[("RESPGATE_SERVER__MAXCLIENTS", "12")],
        ..Options::alone()
    });
    let mut conn = gateway.connect();
    assert_eq!(conn.run("CONFIG GET maxclients").elements()[1].text(), "12");
    assert_eq!(conn.run("CONFIG GET databases").elements()[1].text(), "5");
    assert_eq!(conn.run("SELECT 4"), Value::ok());
    assert_eq!(conn.run("SELECT 5"), Value::error("ERR DB index is out of range"));
}
