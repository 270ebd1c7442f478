//! Servers that are started for a measurement and ended with it.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

/// Where the programs are.
pub struct Programs {
    pub respgate: PathBuf,
    pub redis: PathBuf,
}

/// A server that runs until it is dropped.
pub struct Server {
    pub name: &'static str,
    pub port: u16,
    process: Child,
    directory: TempDir,
}

impl Programs {
    /// A gateway on RocksDB with the default settings, in an empty directory.
    pub fn start_respgate(&self) -> anyhow::Result<Server> {
        self.start_respgate_with("respgate", &[])
    }

    /// The same with other settings, as the environment has them.
    pub fn start_respgate_with(&self, name: &'static str, settings: &[(&str, &str)]) -> anyhow::Result<Server> {
        let directory = tempfile::tempdir()?;
        let port = free_port()?;
        let mut command = Command::new(&self.respgate);
        command
            // For this program, and no setting of a gateway.
            .env_remove("RESPGATE_TEST_CLUSTER")
            .envs(settings.iter().copied())
            .args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--data-dir"])
            .arg(directory.path().join("data"));
        Server::start(name, command, port, directory)
    }

    /// A gateway in front of the TiKV cluster whose placement driver this is, once it has reached it. Its data are in a
    /// namespace of their own.
    pub fn start_respgate_on_tikv(&self, name: &'static str, pd: &str, order: &str) -> anyhow::Result<Server> {
        let server = self.start_respgate_with(
            name,
            &[
                ("RESPGATE_STORE__BACKEND", "tikv"),
                ("RESPGATE_STORE__NAMESPACE", "bench"),
                ("RESPGATE_TIKV__PD", pd),
                ("RESPGATE_UNIT__PIPELINE_ORDER", order),
            ],
        )?;
        let mut connection = server.connect()?;
        for _ in 0..200 {
            if ask(&mut connection, "EXISTS ready")?.starts_with(':') {
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("{name} does not reach the cluster at {pd}")
    }

    /// Redis without persistence: the speed of memory alone, which is what a store on disk is up against.
    pub fn start_redis(&self) -> anyhow::Result<Server> {
        let directory = tempfile::tempdir()?;
        let port = free_port()?;
        let mut command = Command::new(&self.redis);
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--maxclients", "20000", "--dir"]).arg(directory.path());
        Server::start("redis", command, port, directory)
    }
}

impl Server {
    fn start(name: &'static str, mut command: Command, port: u16, directory: TempDir) -> anyhow::Result<Self> {
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.with_context(|| format!("cannot start {name} ({:?})", command.get_program()))?;
        let mut server = Self { name, port, process, directory };
        for _ in 0..200 {
            if let Ok(mut connection) = server.connect() {
                ensure!(ask(&mut connection, "PING")? == "+PONG", "{name} does not answer PING");
                return Ok(server);
            }
            if let Some(status) = server.process.try_wait()? {
                bail!("{name} ended at once: {status}");
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("{name} does not listen on port {port}")
    }

    pub fn connect(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect(("127.0.0.1", self.port))
    }

    /// Bytes of all files in the directory of the data.
    pub fn disk_bytes(&self) -> anyhow::Result<u64> {
        let files = fs::read_dir(self.directory.path().join("data"))?;
        // A file may go while it is looked at.
        Ok(files.flatten().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum())
    }

    /// Bytes of memory that the process holds now.
    pub fn resident_bytes(&self) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
        Ok(kib * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way nothing is left of it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends one inline command and returns the first line of the reply.
pub fn ask(connection: &mut TcpStream, command: &str) -> anyhow::Result<String> {
    connection.write_all(format!("{command}\r\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(connection).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
