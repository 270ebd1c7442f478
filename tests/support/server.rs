//! The processes under test: a gateway, and the Redis that it is compared with.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Instant;

use respgate_test_cluster::TestCluster;
use tempfile::TempDir;

use super::balancer::Balancer;
use super::{Conn, DEADLINE};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Addr {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// What the gateway keeps its data in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Memory,
    RocksDb,
    /// A cluster of its own for each gateway.
    Tikv,
}

impl Backend {
    /// The backend that this run tests.
    pub(crate) fn under_test() -> Self {
        match std::env::var("RESPGATE_TEST_BACKEND").as_deref() {
            Ok("memory") => Self::Memory,
            Ok("rocksdb") => Self::RocksDb,
            Ok("tikv") => Self::Tikv,
            Ok(other) => panic!("RESPGATE_TEST_BACKEND is memory, rocksdb or tikv, not {other:?}"),
            Err(_) if cfg!(feature = "rocksdb") => Self::RocksDb,
            Err(_) => Self::Memory,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::RocksDb => "rocksdb",
            Self::Tikv => "tikv",
        }
    }
}

/// For clusters in which nothing is meant to go wrong: that a machine is busy is no failure.
const PATIENCE: [(&str, &str); 2] = [("RESPGATE_TIKV__TIMEOUT", "45s"), ("RESPGATE_TIKV__REQUEST_TIMEOUT", "20s")];

/// How to start a gateway. The default listens on a free port of the loopback address and keeps its data in a folder
/// that goes when the gateway does.
#[derive(Default)]
pub(crate) struct Options<'a> {
    /// More flags.
    pub(crate) flags: &'a [&'a str],
    /// Settings by environment variable.
    pub(crate) env: &'a [(&'a str, &'a str)],
    /// A folder that outlives the gateway, to start another on.
    pub(crate) data_dir: Option<&'a Path>,
    /// Where the cluster is that keeps the data, instead of what this run tests.
    pub(crate) pd: Option<&'a str>,
    /// The port, to take the place of another gateway.
    pub(crate) port: u16,
    /// How many gateways share the cluster, behind one address; otherwise as many as this run tests, or one if `pd` is set.
    pub(crate) gateways: Option<usize>,
}

impl Options<'_> {
    /// One gateway, however many this run tests: for what a process does with its own clients, memory and signals.
    pub(crate) fn alone() -> Self {
        Self { gateways: Some(1), ..Self::default() }
    }
}

/// A running gateway, or several that look like one; dropping it kills it.
pub(crate) struct Gateway {
    process: Process,
    addr: SocketAddr,
    /// Those that share the cluster with it.
    peers: Vec<Gateway>,
    balancer: Option<Balancer>,
    _own_dir: Option<TempDir>,
    _own_cluster: Option<TestCluster>,
}

impl Gateway {
    pub(crate) fn start() -> Self {
        Self::with(&Options::default())
    }

    /// One gateway, however many this run tests.
    pub(crate) fn alone() -> Self {
        Self::with(&Options::alone())
    }

    /// Starts a gateway and waits until it listens.
    pub(crate) fn with(options: &Options<'_>) -> Self {
        let own_dir = options.data_dir.is_none().then(|| TempDir::new().unwrap());
        let data_dir = options.data_dir.or(own_dir.as_ref().map(TempDir::path)).unwrap();
        let backend = options.pd.map_or_else(Backend::under_test, |_| Backend::Tikv);
        let needs_cluster = backend == Backend::Tikv && options.pd.is_none();
        let own_cluster = needs_cluster.then(|| start_cluster(data_dir));
        let pd = options.pd.or(own_cluster.as_ref().map(TestCluster::pd));
        let mut gateway = Self::spawn(options, backend, data_dir, pd);
        let count = options.gateways.unwrap_or_else(|| if needs_cluster { gateways_under_test() } else { 1 });
        if needs_cluster || count > 1 {
            gateway.peers = (1..count).map(|_| Self::spawn(options, backend, data_dir, pd)).collect();
            gateway.wait_until_ready();
            gateway.peers.iter_mut().for_each(Self::wait_until_ready);
            let addrs = std::iter::once(&gateway).chain(&gateway.peers).map(|gateway| gateway.addr).collect();
            gateway.balancer = (count > 1).then(|| Balancer::start(addrs));
        }
        Self { _own_dir: own_dir, _own_cluster: own_cluster, ..gateway }
    }

    fn spawn(options: &Options<'_>, backend: Backend, data_dir: &Path, pd: Option<&str>) -> Self {
        let mut command = Self::command();
        command.args(["--bind", "127.0.0.1", "--port", &options.port.to_string(), "--backend", backend.name()]);
        if let Some(pd) = pd {
            command.args(["--pd", pd]);
        }
        if options.pd.is_none() || options.gateways.is_some() {
            command.envs(PATIENCE);
        }
        command.arg("--data-dir").arg(data_dir).args(options.flags);
        command.envs(options.env.iter().copied()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = Process::spawn("respgate", &mut command);
        let said = process.child.stderr.take().unwrap();
        process.listen_to(said);
        let addr = process.wait_for_line(address_in);
        Self { process, addr, peers: Vec::new(), balancer: None, _own_dir: None, _own_cluster: None }
    }

    /// Waits until the gateway has reached its cluster.
    pub(crate) fn wait_until_ready(&mut self) {
        self.wait_for_log("connected to the cluster");
    }

    /// Waits until there is a line in the log with this text.
    pub(crate) fn wait_for_log(&mut self, text: &str) {
        self.process.wait_for_line(|line| line.contains(text).then_some(()));
    }

    /// The program, with nothing of this process' environment that could configure it.
    pub(crate) fn command() -> Command {
        let program = std::env::var_os("RESPGATE_TEST_PROGRAM");
        let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_respgate").into()));
        let ours = std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("RESPGATE_"));
        ours.for_each(|(name, _)| {
            command.env_remove(name);
        });
        command.env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    pub(crate) fn addr(&self) -> Addr {
        Addr::Tcp(self.balancer.as_ref().map_or(self.addr, Balancer::addr))
    }

    pub(crate) fn port(&self) -> u16 {
        self.balancer.as_ref().map_or(self.addr, Balancer::addr).port()
    }

    pub(crate) fn connect(&self) -> Conn {
        Conn::open(&self.addr())
    }

    /// Memory that the process holds, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib * 1024
    }

    /// Sends a signal by name, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    /// Waits until the process has ended by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.process.wait()
    }

    /// Ends the process at once, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.process.child.kill().unwrap();
        self.process.child.wait().unwrap();
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.process.child.try_wait().unwrap().is_none() && self.peers.iter_mut().all(Self::is_running)
    }

    /// What it has logged; all of it once [`Gateway::wait`] has returned.
    pub(crate) fn log(&mut self) -> &[String] {
        let heard = self.process.log.get_mut().unwrap().try_iter();
        self.process.said.extend(heard);
        &self.process.said
    }
}

/// How many gateways share a cluster in this run.
fn gateways_under_test() -> usize {
    std::env::var("RESPGATE_TEST_GATEWAYS").map_or(1, |count| count.parse().unwrap())
}

fn start_cluster(data_dir: &Path) -> TestCluster {
    // In several regions, so that there are units that span them.
    TestCluster::with(&["--regions", "4", "--data", data_dir.to_str().unwrap()])
        .expect("there is a cluster to test with")
}

/// The address in a line of the log such as `… listening on 127.0.0.1:6379`.
fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once("listening on ")?;
    rest.split_whitespace().next()?.trim_matches('"').parse().ok()
}

/// A Redis server without persistence; dropping it kills it.
pub(crate) struct Redis {
    process: Process,
    dir: TempDir,
}

impl Redis {
    /// Starts Redis on a Unix socket, which needs no free port, and waits until it accepts.
    pub(crate) fn start() -> Self {
        let dir = TempDir::new().unwrap();
        Self { process: Self::spawn(&dir), dir }
    }

    fn spawn(dir: &TempDir) -> Process {
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", "redis.sock"]);
        command.arg("--dir").arg(dir.path()).current_dir(dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process::spawn("redis-server", &mut command);
        let said = process.child.stdout.take().unwrap();
        process.listen_to(said);
        process.wait_for_line(|line| line.contains("ready to accept connections").then_some(()));
        process
    }

    /// Ends it at once; its data is gone.
    pub(crate) fn stop(&mut self) {
        self.process.child.kill().unwrap();
        self.process.child.wait().unwrap();
    }

    /// Starts it again after [`Redis::stop`].
    pub(crate) fn restart(&mut self) {
        self.process = Self::spawn(&self.dir);
    }

    /// Sends a signal by name, such as `STOP`.
    pub(crate) fn signal(&self, name: &str) {
        self.process.signal(name);
    }

    pub(crate) fn addr(&self) -> Addr {
        Addr::Unix(self.dir.path().join("redis.sock"))
    }

    /// The address as a client library takes it.
    pub(crate) fn url(&self) -> String {
        format!("unix://{}", self.dir.path().join("redis.sock").display())
    }

    pub(crate) fn connect(&self) -> Conn {
        Conn::open(&self.addr())
    }
}

/// A child that does not outlive its test, and what it says.
struct Process {
    name: &'static str,
    child: Child,
    /// In a mutex only so that threads of a test may share the server.
    log: Mutex<Receiver<String>>,
    said: Vec<String>,
}

impl Process {
    fn spawn(name: &'static str, command: &mut Command) -> Self {
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        Self { name, child, log: Mutex::new(mpsc::channel().1), said: Vec::new() }
    }

    /// Reads what the child says on a thread of its own, so that it never blocks.
    fn listen_to(&mut self, said: impl Read + Send + 'static) {
        let (sender, log) = mpsc::channel();
        self.log = Mutex::new(log);
        std::thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                // Nobody need listen, but the pipe must not fill up.
                let _ = sender.send(line);
            }
        });
    }

    /// Waits until the child says, or has said, a line in which `wanted` finds something.
    fn wait_for_line<T>(&mut self, wanted: impl Fn(&str) -> Option<T>) -> T {
        let until = Instant::now() + DEADLINE;
        let mut heard = 0;
        loop {
            if let Some(found) = self.said[heard..].iter().find_map(|line| wanted(line)) {
                return found;
            }
            heard = self.said.len();
            match self.log.get_mut().unwrap().recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.said.push(line),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("{} is not ready; it said:\n{}", self.name, self.said.join("\n"))
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("{} ended; it said:\n{}", self.name, self.said.join("\n"))
                }
            }
        }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + DEADLINE;
        loop {
            match self.log.get_mut().unwrap().recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => self.said.push(line),
                // Its end of the pipe closes when it ends.
                Err(RecvTimeoutError::Disconnected) => return self.child.wait().unwrap(),
                Err(RecvTimeoutError::Timeout) => {
                    panic!("{} did not end; it said:\n{}", self.name, self.said.join("\n"))
                }
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already; either way it must be reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
