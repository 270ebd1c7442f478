//! Group commit: what tasks commit at about the same time is written together.
//!
//! One write of RocksDB costs a system call and a passage through its queue of writers, however little it carries. So
//! the first commit starts a task that waits for its next turn: by then every task that is ready to run, and every
//! connection whose request has arrived, has had the opportunity to add its commit.
//!
//! Where commits come one after the other, such as those of one much used key, waiting is in vain. So after a commit
//! that nobody joined some are written at once.

use std::iter;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use respgate_backend_api::{Error, Result, Write};
use tokio::sync::oneshot;
use tokio::task;

use crate::engine::{Engine, blocking};
use crate::limits;

/// The most bytes that are written on the thread that polls: about a millisecond of work, if nobody has to wait.
const BYTES_MAX: usize = 128 << 10;

/// The most bytes of a commit that waits for others. The cost of larger ones lies in their bytes, which are not shared.
const SHARED_BYTES_MAX: usize = 4 << 10;

/// Commits that are written at once after one that nobody joined.
const ALONE: u32 = 15;

/// The commits that are to be written next.
#[derive(Default)]
pub(crate) struct Group {
    waiting: Mutex<Vec<Waiting>>,
    /// How many of the next commits are not to wait for others.
    alone: AtomicU32,
}

impl Group {
    fn goes_alone(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.alone.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

struct Waiting {
    writes: Vec<Write>,
    bytes: usize,
    written: oneshot::Sender<Result<()>>,
}

/// Writes all of `writes` or nothing, together with what other tasks write if that pays.
pub(crate) async fn write(engine: &Arc<Engine>, writes: Vec<Write>) -> Result<()> {
    let bytes = limits::check(&writes)?;
    if writes.is_empty() {
        return Ok(());
    }
    if bytes <= SHARED_BYTES_MAX {
        return join(engine, writes, bytes).await;
    }
    if bytes <= BYTES_MAX
        && let Some(written) = engine.try_write(writes.iter())
    {
        return written;
    }
    let engine = Arc::clone(engine);
    blocking(move || {
        let _shared = engine.commits.read();
        engine.write(writes.iter())
    })
    .await
}

async fn join(engine: &Arc<Engine>, writes: Vec<Write>, bytes: usize) -> Result<()> {
    if engine.group.goes_alone()
        && let Some(written) = engine.try_write(writes.iter())
    {
        return written;
    }
    let (written, outcome) = oneshot::channel();
    let is_first = {
        let mut waiting = engine.group.waiting.lock();
        waiting.push(Waiting { writes, bytes, written });
        waiting.len() == 1
    };
    if is_first {
        task::spawn(write_waiting(Arc::clone(engine)));
    }
    outcome.await.unwrap_or_else(|_| Err(Error::OutcomeUnknown("the process is shutting down".into())))
}

async fn write_waiting(engine: Arc<Engine>) {
    task::yield_now().await;
    let waiting = mem::take(&mut *engine.group.waiting.lock());
    if waiting.len() == 1 {
        engine.group.alone.store(ALONE, Ordering::Relaxed);
    }
    let mut waiting = waiting.into_iter().peekable();
    while waiting.peek().is_some() {
        let mut bytes = 0;
        let group: Vec<Waiting> = iter::from_fn(|| {
            let next = waiting.next_if(|next| bytes == 0 || bytes + next.bytes <= BYTES_MAX)?;
            bytes += next.bytes;
            Some(next)
        })
        .collect();
        let (writes, writers): (Vec<_>, Vec<_>) = group.into_iter().map(|one| (one.writes, one.written)).unzip();
        let written = write_group(&engine, writes).await;
        for writer in writers {
            // A task that is gone needs no answer.
            let _ = writer.send(written.clone());
        }
    }
}

async fn write_group(engine: &Arc<Engine>, group: Vec<Vec<Write>>) -> Result<()> {
    if let Some(written) = engine.try_write(group.iter().flatten()) {
        return written;
    }
    let engine = Arc::clone(engine);
    blocking(move || {
        let _shared = engine.commits.read();
        engine.write(group.iter().flatten())
    })
    .await
}
