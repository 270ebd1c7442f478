use std::{sync::Arc, time::Duration};

use parking_lot::RwLock;
use respgate_backend_api::{Error, Result};
use tikv_client::{Config, TransactionClient};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout},
};

use crate::{TikvOptions, cluster::Cluster, failure::closed};

/// The largest answer that is read. The client's default of 4 MiB is less than one value may have.
pub(crate) const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// How long to wait between two attempts to connect, at first and at most.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// How often a connection is made anew at most.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);

/// The way to the cluster, made and made anew in the background for as long as the store is open.
///
/// The client of the cluster keeps one placement driver and what it told for as long as that answers something. Where it
/// is silent instead, or a server is gone that the client believes in, [`Self::renew`] starts with a new client.
pub(crate) struct Connection {
    state: RwLock<State>,
    is_stale: Notify,
    is_connected: watch::Sender<bool>,
}

enum State {
    Connecting,
    Connected(TransactionClient),
    Closed,
}

impl Connection {
    pub(crate) fn new() -> Self {
        Self { state: RwLock::new(State::Connecting), is_stale: Notify::new(), is_connected: watch::Sender::new(false) }
    }

    /// The client to begin something with.
    pub(crate) fn client(&self) -> Result<TransactionClient> {
        match &*self.state.read() {
            State::Connected(client) => Ok(client.clone()),
            State::Connecting => Err(Error::NotReady("the placement driver has not answered yet".to_owned())),
            State::Closed => Err(closed()),
        }
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if matches!(*self.state.read(), State::Closed) { Err(closed()) } else { Ok(()) }
    }

    /// Waits until the cluster has been reached for the first time.
    pub(crate) async fn connected(&self) {
        // It cannot be dropped while `self` lives, so the wait does not fail.
        let _ = self.is_connected.subscribe().wait_for(|is_connected| *is_connected).await;
    }

    /// Asks for a new client, because this one does not get on.
    pub(crate) fn renew(&self) {
        self.is_stale.notify_one();
    }

    pub(crate) fn close(&self) {
        *self.state.write() = State::Closed;
        self.is_stale.notify_one();
    }

    fn publish(&self, client: TransactionClient) {
        let mut state = self.state.write();
        if !matches!(*state, State::Closed) {
            *state = State::Connected(client);
            self.is_connected.send_replace(true);
        }
    }
}

/// Connects, and again whenever that is asked for, until the store is closed.
pub(crate) async fn keep_connected(cluster: Arc<Cluster>, options: TikvOptions) {
    let connection = &cluster.connection;
    while connection.check_open().is_ok() {
        let Some(client) = connect(connection, &options).await else { return };
        let connected_at = Instant::now();
        connection.publish(client);
        tracing::info!(pd = ?options.pd_endpoints, "connected to the cluster");
        connection.is_stale.notified().await;
        tokio::time::sleep_until(connected_at + RENEWAL_INTERVAL).await;
    }
}

/// Tries until the placement driver gives a timestamp. `None` if the store is closed meanwhile.
async fn connect(connection: &Connection, options: &TikvOptions) -> Option<TransactionClient> {
    let mut retry = RETRY_MIN;
    loop {
        match timeout(options.timeout, try_connect(options)).await {
            Ok(Ok(client)) => return Some(client),
            Ok(Err(error)) => {
                tracing::warn!(pd = ?options.pd_endpoints, ?retry, %error, "the placement driver cannot be reached");
            }
            Err(_) => tracing::warn!(pd = ?options.pd_endpoints, ?retry, "the placement driver does not answer"),
        }
        sleep(retry).await;
        retry = (retry * 2).min(RETRY_MAX);
        connection.check_open().ok()?;
    }
}

async fn try_connect(options: &TikvOptions) -> tikv_client::Result<TransactionClient> {
    let client = TransactionClient::new_with_config(options.pd_endpoints.clone(), config(options)).await?;
    client.current_timestamp().await?;
    Ok(client)
}

fn config(options: &TikvOptions) -> Config {
    let mut config =
        Config::default().with_timeout(options.request_timeout).with_grpc_max_decoding_message_size(MESSAGE_BYTES_MAX);
    if let Some(tls) = &options.tls {
        config = config.with_security(&tls.ca, &tls.cert, &tls.key);
    }
    if let Some(keyspace) = &options.keyspace {
        config = config.with_keyspace(keyspace);
    }
    config
}
