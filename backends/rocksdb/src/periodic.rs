use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::engine::Engine;

/// A thread that does something to the engine every so often. It ends soon after this is dropped.
pub(crate) struct Periodic {
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl Periodic {
    /// Does `work` whenever `pause` has passed since the last time, until told to stop.
    pub(crate) fn start(
        name: &str,
        engine: Arc<Engine>,
        pause: Duration,
        mut work: impl FnMut(&Engine) + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        let run = move || {
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                work(&engine);
            }
        };
        let thread = thread::Builder::new().name(name.into()).spawn(run)?;
        Ok(Self { stop, thread })
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(self) {
        drop(self.stop);
        if self.thread.join().is_err() {
            tracing::error!("a thread of the store had panicked");
        }
    }
}
