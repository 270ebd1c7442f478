//! Starts the TiKV-protocol cluster that tests run against (`tests/tikv-cluster`), and breaks it on purpose.
//!
//! The program is what `RESPGATE_TEST_CLUSTER` names, or is built with Go. It ends when this process does. Where there is
//! neither, tests that need it are skipped: a start gives `None`.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "for tests")]

use std::{
    collections::BTreeMap,
    env,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use serde_json::Value;

mod go;

pub use go::build as build_go;

/// The placement driver of a real cluster to test against instead, if `TEST_TIKV_PD` names one. It cannot be broken.
pub fn real_cluster() -> Option<String> {
    env::var("TEST_TIKV_PD").ok().filter(|pd| !pd.is_empty())
}

/// A running cluster; dropping it kills it.
pub struct TestCluster {
    child: Child,
    pd: String,
    admin: String,
}

impl TestCluster {
    /// Three servers, one region, nothing in it. `None` where the test is to be skipped.
    pub fn start() -> Option<Self> {
        Self::with(&[])
    }

    /// A cluster with these flags of the program. `None` where the test is to be skipped.
    pub fn with(flags: &[&str]) -> Option<Self> {
        let mut command = Command::new(program()?);
        command.args(flags).arg("--until-stdin-closes");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the test cluster starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).expect("the test cluster says where it listens");
        let text = |key: &str| said[key].as_str().unwrap().to_owned();
        Some(Self { pd: text("pd"), admin: text("admin"), child })
    }

    /// Where its placement driver listens.
    pub fn pd(&self) -> &str {
        &self.pd
    }

    /// How often each remote procedure was called since the last time this was asked for.
    pub fn take_rpcs(&self) -> BTreeMap<String, u64> {
        let counts = self.ask("DELETE", "/rpcs", "");
        let counts = counts.as_object().unwrap().iter();
        counts
            .map(|(method, count)| (method.clone(), count.as_u64().unwrap()))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Lets the next `count` calls of `method` go wrong, or all if it is 0. Kinds: `before` and `after` lose the request
    /// or the answer, `busy` and `leaderless` refuse, `hang` says nothing.
    pub fn fault(&self, method: &str, kind: &str, count: u64) {
        let fault = serde_json::json!({ "method": method, "kind": kind, "count": count });
        self.ask("POST", "/faults", &fault.to_string());
    }

    /// Lets every call of `method` wait for `delay_ms` milliseconds, in `chance` of all cases.
    pub fn delay(&self, method: &str, delay_ms: u64, chance: f64) {
        let fault = serde_json::json!({ "method": method, "kind": "delay", "delay_ms": delay_ms, "chance": chance });
        self.ask("POST", "/faults", &fault.to_string());
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.ask("DELETE", "/faults", "");
    }

    /// The identifiers of all regions, in the order of their keys.
    pub fn regions(&self) -> Vec<u64> {
        let regions = self.ask("GET", "/regions", "");
        regions.as_array().unwrap().iter().map(|region| region["id"].as_u64().unwrap()).collect()
    }

    /// Splits the region of `key` there.
    pub fn split(&self, key: &[u8]) {
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        self.ask("POST", &format!("/split?key={hex}"), "");
    }

    /// Merges a region into its right neighbour.
    pub fn merge(&self, region: u64) {
        self.ask("POST", &format!("/merge?region={region}"), "");
    }

    /// Moves the leader of a region to another server.
    pub fn move_leader(&self, region: u64) {
        self.ask("POST", &format!("/leader?region={region}"), "");
    }

    /// Stops a server without a word; nobody takes its place until it is back.
    pub fn stop_store(&self, id: u64) {
        self.ask("POST", &format!("/stores/stop?id={id}&elect=false"), "");
    }

    /// Stops a server; others take its place.
    pub fn replace_store(&self, id: u64) {
        self.ask("POST", &format!("/stores/stop?id={id}"), "");
    }

    /// Starts a server that was stopped.
    pub fn start_store(&self, id: u64) {
        self.ask("POST", &format!("/stores/start?id={id}"), "");
    }

    /// Stops the placement driver.
    pub fn stop_pd(&self) {
        self.ask("POST", "/pd/stop", "");
    }

    /// Starts the placement driver again.
    pub fn start_pd(&self) {
        self.ask("POST", "/pd/start", "");
    }

    /// How many locks there are.
    pub fn locks(&self) -> u64 {
        self.ask("GET", "/data", "")["locks"].as_u64().unwrap()
    }

    /// Up to which moment old versions have been forgotten since the start; 0 for none.
    pub fn collected(&self) -> u64 {
        self.ask("GET", "/data", "")["collected"].as_u64().unwrap()
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Value {
        let mut connection = TcpStream::connect(&self.admin).unwrap();
        let length = body.len();
        write!(connection, "{method} {path} HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.split(' ').nth(1).is_some_and(|status| status.starts_with('2')), "{method} {path}: {answer}");
        serde_json::from_str(body).unwrap_or_default()
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        // It may have ended already; either way it must be reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program, built once.
fn program() -> Option<&'static PathBuf> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || env::var_os("RESPGATE_TEST_CLUSTER").map(PathBuf::from).or_else(|| build_go("tikv-cluster"));
    PROGRAM.get_or_init(find).as_ref()
}
