//! What operators do with a store: beside the gateway if they only read, without it if they write.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::{Backend, Conn, Gateway, Options, Value};

/// More hashes than a pipe holds lines about.
const ORPHANS: usize = 20_000;

/// The memory backend has nothing that could be worked on.
fn is_skipped() -> bool {
    let is_skipped = Backend::under_test() != Backend::RocksDb;
    if is_skipped {
        println!("skipped: the memory backend keeps nothing");
    }
    is_skipped
}

fn respgate(data: &Path, args: &[&str]) -> Command {
    let mut command = Gateway::command();
    command.args(args).args(["--log", "off", "--data-dir"]).arg(data);
    command
}

/// Runs a command to its end; gives its exit code and what it said.
fn run(data: &Path, args: &[&str]) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = respgate(data, args).output().unwrap();
    (status.code(), String::from_utf8([stdout, stderr].concat()).unwrap())
}

fn fill(conn: &mut Conn) {
    for line in
        ["SET string value", "HSET old a 1 b 2", "RENAME old hash", "RPUSH list a b c", "SADD set a", "SELECT 3"]
    {
        assert!(!conn.run(line).to_string().starts_with('-'), "{line}");
    }
    assert_eq!(conn.call(&["ZADD", "z\0set", "1", "a", "2", "b"]), Value::Integer(2));
    assert_eq!(conn.run("SET expired x PX 1"), Value::ok());
}

/// A SET that does not read leaves the elements of a hash without a key.
fn leave_orphans(conn: &mut Conn) {
    for command in ["HSET", "SET"] {
        for first in (0..ORPHANS).step_by(1_000) {
            let names: Vec<_> = (first..first + 1_000).map(|number| format!("key {number}")).collect();
            let pair: &[&str] = if command == "SET" { &["v"] } else { &["f", "v"] };
            let commands: Vec<_> = names.iter().map(|name| [&[command, name.as_str()], pair].concat()).collect();
            let replies = conn.pipeline(&commands);
            assert!(replies.iter().all(|reply| !reply.to_string().starts_with('-')));
        }
    }
}

#[test]
fn what_only_reads_runs_beside_the_gateway() {
    if is_skipped() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let data = dir.path();
    let gateway = Gateway::with(&Options { data_dir: Some(data), ..Options::alone() });
    let mut conn = gateway.connect();
    fill(&mut conn);

    let (code, said) = run(data, &["verify"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.ends_with(": 0 findings\n"), "{said}");
    let (code, said) = run(data, &["bigkeys", "--top", "1"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("list: 1 key, 3 elements"), "{said}");
    assert!(said.contains("  2 elements: db3 \"z\\x00set\"\n"), "{said}");
    let (code, said) = run(data, &["inspect", r#""z\x00set""#, "--db", "3", "--limit", "1"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1) member \"a\": 1\n"), "{said}");
    assert!(said.ends_with("there is more; go on with --resume records:1\n"), "{said}");
    assert_eq!(run(data, &["inspect", "nothing"]).0, Some(1));
    assert_eq!(run(data, &["gc", "--dry-run"]).0, Some(0));
    for args in [&["gc"][..], &["verify", "--repair"]] {
        let (code, said) = run(data, args);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("another process is using it"), "{said}");
    }
    assert_eq!(conn.call(&["ZCARD", "z\0set"]), Value::Integer(2));

    // What the gateway had acknowledged before it was killed is there for the next reader.
    assert_eq!(conn.run("SET last x"), Value::ok());
    gateway.kill();
    assert_eq!(run(data, &["inspect", "last", "--db", "3"]).0, Some(0));
    assert_eq!(run(data, &["verify", "--repair"]).0, Some(0));
}

#[test]
fn a_walk_that_was_interrupted_goes_on_where_it_was() {
    if is_skipped() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let data = dir.path();
    let mut gateway = Gateway::with(&Options { data_dir: Some(data), ..Options::alone() });
    leave_orphans(&mut gateway.connect());

    let mut verify = respgate(data, &["verify"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = BufReader::new(verify.stdout.take().unwrap()).lines();
    let first = said.next().unwrap().unwrap();
    assert!(first.ends_with(", which no key has"), "{first}");
    // It cannot come to its end before we have read what it says.
    let pid = verify.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let said: Vec<_> = said.map(Result::unwrap).collect();
    assert_eq!(verify.wait().unwrap().code(), Some(130));
    let (last, lines) = said.split_last().unwrap();
    let position = last.strip_prefix("stopped; go on with --resume ").unwrap();
    assert!(position.starts_with("orphans:"), "{position}");

    let (code, rest) = run(data, &["verify", "--resume", position]);
    assert_eq!(code, Some(1));
    assert_eq!(1 + lines.len() + rest.lines().count() - 1, ORPHANS);
    assert!(rest.ends_with(&format!(": {} findings\n", ORPHANS - lines.len() - 1)), "{:?}", rest.lines().last());

    gateway.signal("TERM");
    assert!(gateway.wait().success());
    let (code, said) = run(data, &["gc"]);
    assert_eq!((code, &*said), (Some(0), &*format!("orphaned: {ORPHANS}\n")));
    assert_eq!(run(data, &["verify"]).0, Some(0));
}

#[test]
fn there_must_be_a_store() {
    let dir = TempDir::new().unwrap();
    let missing = dir.path().join("missing");
    for task in [&["verify"][..], &["gc"], &["bigkeys"], &["inspect", "key"]] {
        let args = [task, &["--backend", "memory"]].concat();
        let (code, said) = run(&missing, &args);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("the memory backend keeps nothing"), "{said}");
        if !is_skipped() {
            let (code, said) = run(&missing, task);
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains("there is no database in it"), "{said}");
            assert!(!missing.exists());
        }
    }
    assert_eq!(run(&missing, &["verify", "--resume", "nowhere"]).0, Some(64));
}
