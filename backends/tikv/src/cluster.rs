use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use respgate_backend_api::{Capabilities, Error, Result};
use tikv_client::{
    Backoff, CheckLevel, Error as ClientError, Key, RetryOptions, Timestamp, TimestampExt, Transaction,
    TransactionOptions, transaction::HeartbeatOption,
};
use tokio::time::{Instant, timeout_at};

use crate::{
    TikvOptions, connection::Connection, failure::Failure, keys::Keys, limits, regions::Regions, versions::Moments,
};

/// How long to wait for a lock of somebody else: about five seconds in all, because one that nobody removes lives three.
const LOCK_BACKOFF: Backoff = Backoff::no_jitter_backoff(2, 200, 32);

/// What all calls to one cluster share.
pub(crate) struct Cluster {
    pub(crate) connection: Connection,
    pub(crate) keys: Keys,
    pub(crate) limits: Capabilities,
    pub(crate) counts: Counts,
    pub(crate) moments: Moments,
    pub(crate) regions: Regions,
    pub(crate) gc_lag: Option<Duration>,
    pub(crate) request_timeout: Duration,
    timeout: Duration,
}

/// What has been done since the store was opened.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) snapshots: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) conflicts: AtomicU64,
    pub(crate) outcomes_unknown: AtomicU64,
    pub(crate) retries: AtomicU64,
}

impl Cluster {
    pub(crate) fn new(options: &TikvOptions) -> Self {
        let keys = Keys::new(options.key_prefix.clone());
        Self {
            connection: Connection::new(),
            limits: limits::capabilities(keys.prefix_bytes()),
            keys,
            counts: Counts::default(),
            moments: Moments::default(),
            regions: Regions::default(),
            gc_lag: options.gc_lag,
            request_timeout: options.request_timeout,
            timeout: options.timeout,
        }
    }

    /// When a call that begins now has to end.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// A transaction that begins now.
    pub(crate) async fn begin(&self, options: TransactionOptions) -> Result<Transaction> {
        let client = self.connection.client()?;
        self.timestamp(client.begin_with_options(options)).await
    }

    /// The time of the cluster.
    pub(crate) async fn now(&self) -> Result<Timestamp> {
        let client = self.connection.client()?;
        self.timestamp(client.current_timestamp()).await
    }

    /// Waits for the placement driver, which the client would do for ever.
    async fn timestamp<T>(&self, answer: impl Future<Output = tikv_client::Result<T>>) -> Result<T> {
        let cause = match timeout_at(self.deadline(), answer).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(_)) => "the placement driver cannot be reached",
            Err(_) => "the placement driver does not answer",
        };
        self.connection.renew();
        Err(Error::Unavailable(cause.to_owned()))
    }

    /// What an error of the client means. A server that cannot be connected to is one that it will not forget.
    pub(crate) fn failure(&self, error: &ClientError) -> Failure {
        if matches!(error, ClientError::Grpc(_)) {
            self.connection.renew();
        }
        Failure::of(error)
    }

    /// Learns where `keys` are now. Reading is how the client does that; the moment is one at which no lock of a
    /// transaction that began at `begun_at` stands in the way.
    pub(crate) async fn refresh_routes(&self, keys: Vec<Key>, begun_at: &Timestamp, deadline: Instant) {
        let Ok(client) = self.connection.client() else { return };
        let before = Timestamp::from_version(begun_at.version().saturating_sub(1));
        let mut snapshot = client.snapshot(before, reading());
        // What it says does not matter, and if it fails the next attempt will.
        let _ = timeout_at(deadline, snapshot.batch_get(keys)).await.map(drop);
    }

    pub(crate) fn patience(self: &Arc<Self>, deadline: Instant) -> Patience {
        Patience { cluster: Arc::clone(self), deadline, pause: Duration::from_millis(5) }
    }
}

impl Counts {
    pub(crate) fn add(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn figures(&self) -> Vec<(&'static str, u64)> {
        let Self { snapshots, commits, conflicts, outcomes_unknown, retries } = self;
        let named = [
            ("snapshots", snapshots),
            ("commits", commits),
            ("conflicts", conflicts),
            ("outcomes_unknown", outcomes_unknown),
            ("retries", retries),
        ];
        named.map(|(name, count)| (name, count.load(Ordering::Relaxed))).into()
    }
}

/// Trying again what the cluster refused, until a deadline.
pub(crate) struct Patience {
    cluster: Arc<Cluster>,
    pub(crate) deadline: Instant,
    pause: Duration,
}

impl Patience {
    /// Waits a little, longer each time. False, at once, if the deadline would pass meanwhile.
    pub(crate) async fn wait(&mut self) -> bool {
        const PAUSE_MAX: Duration = Duration::from_millis(200);

        if Instant::now() + self.pause >= self.deadline {
            return false;
        }
        Counts::add(&self.cluster.counts.retries);
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        true
    }
}

/// How reads are made. The client follows regions that move, because a read may be repeated; it repeats whatever else
/// fails too, which must not take long.
pub(crate) fn reading() -> TransactionOptions {
    let region_backoff = Backoff::no_jitter_backoff(2, 16, 4);
    let retries = RetryOptions { lock_backoff: LOCK_BACKOFF, region_backoff };
    TransactionOptions::new_optimistic().retry_options(retries).drop_check(CheckLevel::None)
}

/// How commits are made.
///
/// The client does not try again by itself, for then it would not tell whether an answer was lost in between. It sends no
/// heartbeats: locks live for 3 s, and longer for larger commits. Async commit is off: readers would not get past
/// what a gateway that died has left.
pub(crate) fn writing(options: TransactionOptions) -> TransactionOptions {
    let retries = RetryOptions { lock_backoff: LOCK_BACKOFF, region_backoff: Backoff::no_backoff() };
    options
        .retry_options(retries)
        .try_one_pc()
        .drop_check(CheckLevel::None)
        .heartbeat_option(HeartbeatOption::NoHeartbeat)
}
