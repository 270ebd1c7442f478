use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use super::{Options, Sidecar};

/// A Redis server on a Unix socket, for tests; dropping it ends it.
pub(crate) struct Redis {
    process: Child,
    dir: TempDir,
}

impl Redis {
    /// Starts a server. It need not be ready: who connects tries again.
    pub(crate) fn start() -> Self {
        let dir = TempDir::new().unwrap();
        let process = Self::spawn(&dir);
        Self { process, dir }
    }

    fn spawn(dir: &TempDir) -> Child {
        let mut command = Command::new("redis-server");
        command.args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", "redis.sock"]);
        command.arg("--dir").arg(dir.path()).current_dir(dir.path());
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while std::os::unix::net::UnixStream::connect(dir.path().join("redis.sock")).is_err() {
            std::thread::yield_now();
        }
        process
    }

    /// Ends the server, which forgets everything.
    pub(crate) fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts the server that was ended again.
    pub(crate) fn restart(&mut self) {
        self.process = Self::spawn(&self.dir);
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    /// A gateway's connection to the server.
    pub(crate) fn sidecar(&self) -> Sidecar {
        let options = Options {
            url: format!("unix://{}", self.socket().display()),
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(10),
            cache_ttl: Duration::from_secs(60),
            member_cache_bytes: 1 << 20,
        };
        Sidecar::new(&options).unwrap()
    }

    /// Makes the server forget everything.
    pub(crate) fn flush(&self) {
        redis::cmd("FLUSHALL").exec(&mut self.connect()).unwrap();
    }

    /// The keys that are storage, or those that are caches and go by themselves.
    pub(crate) fn keys(&self, are_caches: bool) -> Vec<Vec<u8>> {
        let mut conn = self.connect();
        let mut names: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut conn).unwrap();
        names.retain(|name| are_caches == (redis::cmd("PTTL").arg(name).query::<i64>(&mut conn).unwrap() > 0));
        names
    }

    /// A connection that does whatever it likes.
    pub(crate) fn connect(&self) -> redis::Connection {
        redis::Client::open(format!("unix://{}", self.socket().display())).unwrap().get_connection().unwrap()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended already; either way it must be reaped.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
