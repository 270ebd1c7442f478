use std::{
    collections::{BTreeSet, HashSet},
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_util::FutureExt;
use respgate_backend_api::{Error, Result, WriteSet};
use tikv_client::{Error as ClientError, Key, TimestampExt, Transaction, transaction::Mutation};
use tokio::{
    runtime::Handle,
    time::{Instant, timeout_at},
};

use crate::{
    at_once,
    cluster::{Cluster, Counts},
    failure::Failure,
    limits,
    pending::Pending,
};

/// Applies `writes` at the end of `pending`.
pub(crate) async fn commit(cluster: &Arc<Cluster>, mut pending: Pending, writes: WriteSet) -> Result<()> {
    limits::check(&cluster.limits, &writes)?;
    if writes.is_empty() {
        return Ok(());
    }
    // What was not locked in time may have changed since, and such a transaction would not notice.
    if !writes.guards.iter().all(|key| pending.may_guard(key)) {
        return Err(Error::Conflict);
    }
    let Some(transaction) = pending.take() else { return Err(Error::Conflict) };
    let locks_early = pending.locks_early();
    let attempt = Attempt::new(cluster, transaction, writes.bytes());
    let work = async move {
        let version = attempt.transaction.start_timestamp().version();
        if !locks_early
            && let Some(outcome) = at_once::commit(&attempt.cluster, version, &writes, attempt.deadline).await
        {
            return outcome;
        }
        attempt.run(writes).await
    };
    // The client may panic.
    let outcome = ToTheEnd::of(AssertUnwindSafe(work).catch_unwind()).await;
    let outcome = outcome.unwrap_or_else(|_| Err(Error::OutcomeUnknown("the client of the cluster failed".to_owned())));
    let counts = &cluster.counts;
    match &outcome {
        Ok(()) => Counts::add(&counts.commits),
        Err(Error::Conflict) => Counts::add(&counts.conflicts),
        Err(Error::OutcomeUnknown(_)) => Counts::add(&counts.outcomes_unknown),
        Err(_) => {}
    }
    outcome
}

/// Goes on by itself if whoever waits for it goes: nobody must stop half-way because a connection was closed. A task from the
/// start would cost a thread that wakes up for it.
struct ToTheEnd<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> ToTheEnd<F> {
    fn of(work: F) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for ToTheEnd<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(work) = &mut self.0 else { return Poll::Pending };
        let outcome = ready!(work.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(outcome)
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for ToTheEnd<F> {
    fn drop(&mut self) {
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

/// One commit, tried until it is done, refused for good, or in doubt.
struct Attempt {
    cluster: Arc<Cluster>,
    transaction: Transaction,
    written: Vec<Key>,
    deadline: Instant,
}

impl Attempt {
    fn new(cluster: &Arc<Cluster>, transaction: Transaction, bytes: usize) -> Self {
        /// Ample, even for disks that turn.
        const BYTES_PER_SECOND_MIN: usize = 2 << 20;

        let deadline = cluster.deadline() + Duration::from_secs((bytes / BYTES_PER_SECOND_MIN) as u64);
        Self { cluster: Arc::clone(cluster), transaction, written: Vec::new(), deadline }
    }

    async fn run(mut self, writes: WriteSet) -> Result<()> {
        match timeout_at(self.deadline, self.fill(writes)).await {
            Ok(Ok(())) => self.finish().await,
            Ok(Err(error)) => {
                let failure = self.cluster.failure(&error);
                self.roll_back().await;
                Err(if failure == Failure::Conflict { Error::Conflict } else { failure.of_read() })
            }
            Err(_) => {
                self.roll_back().await;
                Err(Error::Unavailable("keys could not be locked in time".to_owned()))
            }
        }
    }

    /// Tells the transaction what it is to write. One that locks early asks the cluster for the locks.
    async fn fill(&mut self, writes: WriteSet) -> tikv_client::Result<()> {
        let keys = &self.cluster.keys;
        let WriteSet { writes, guards } = writes;
        let written: HashSet<&Bytes> = writes.iter().map(|(key, _)| key).collect();
        // What is written is guarded by that already.
        let guards: BTreeSet<_> = guards.into_iter().filter(|key| !written.contains(key)).collect();
        let guards: Vec<Key> = guards.iter().map(|key| keys.encode(key)).collect();
        let mutations = writes.into_iter().map(|(key, value)| match value {
            Some(value) => Mutation::Put(keys.encode(&key), value.into()),
            None => Mutation::Delete(keys.encode(&key)),
        });
        let mutations: Vec<Mutation> = mutations.collect();
        self.written = mutations.iter().map(|mutation| mutation.key().clone()).chain(guards.iter().cloned()).collect();
        self.transaction.batch_mutate(mutations).await?;
        if guards.is_empty() { Ok(()) } else { self.transaction.lock_keys(guards).await }
    }

    async fn finish(mut self) -> Result<()> {
        let mut patience = self.cluster.patience(self.deadline);
        loop {
            let error = match timeout_at(self.deadline, self.transaction.commit()).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => error,
                Err(_) => {
                    self.cluster.connection.renew();
                    return Err(Error::OutcomeUnknown("the commit was not answered in time".to_owned()));
                }
            };
            match self.cluster.failure(&error) {
                Failure::Busy(_) if patience.wait().await => {}
                Failure::Moved(_) if patience.wait().await => {
                    let begun_at = self.transaction.start_timestamp();
                    self.cluster.refresh_routes(self.written.clone(), &begun_at, self.deadline).await;
                }
                // Undoing what may be half done, or done, would break it apart.
                Failure::Lost(cause) => return Err(Error::OutcomeUnknown(cause)),
                failure => {
                    if !self.left_nothing(&error) {
                        self.roll_back().await;
                    }
                    return Err(failure.of_commit());
                }
            }
        }
    }

    /// True if a failed commit surely left no locks: a single key is written or is not.
    fn left_nothing(&self, error: &ClientError) -> bool {
        self.written.len() == 1 && matches!(error, ClientError::MultipleKeyErrors(_))
    }

    /// Removes the locks of a commit that has certainly not happened, so that nobody has to wait until they are too old.
    async fn roll_back(&mut self) {
        // If that fails, they will be.
        let _ = timeout_at(self.cluster.deadline(), self.transaction.rollback()).await.map(drop);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::ToTheEnd;

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_goes_on() {
        let (go, gone) = oneshot::channel();
        let (done, is_done) = oneshot::channel();
        let mut work = ToTheEnd::of(async move {
            gone.await.unwrap();
            done.send(()).unwrap();
        });
        assert!(futures_util::poll!(&mut work).is_pending());
        drop(work);
        go.send(()).unwrap();
        is_done.await.unwrap();
    }
}
