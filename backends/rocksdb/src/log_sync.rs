use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::engine::Engine;

/// The thread that brings commits to the disk every so often ([`SyncMode::Interval`](crate::SyncMode)).
///
/// A failure makes RocksDB refuse commits until it has recovered, and is logged. The thread tries again at the next
/// interval. It ends soon after this is dropped.
pub(crate) struct LogSync {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl LogSync {
    /// Syncs `engine` every `interval` until told to stop.
    pub(crate) fn start(engine: Arc<Engine>, interval: Duration) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let run = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                // The engine has logged the failure, if any, and the commits that follow report it.
                let _logged = engine.sync_log();
            }
        };
        let thread = thread::Builder::new().name("log-sync".into()).spawn(run)?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("the thread that syncs the log had panicked");
        }
    }
}
