//! The server: listeners, connections, and the grouping of requests into units of work.

mod admin;
mod connection;
mod listener;
mod pipeline;

use std::{io, sync::Arc};

use respgate_backend_api::KvBackend;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{background, command::Gateway, config::Settings};
use listener::Listener;

pub use admin::Admin;

/// A gateway that listens.
pub struct Server {
    gateway: Arc<Gateway>,
    listeners: Vec<Listener>,
}

impl Server {
    /// Opens the keyspace and listens on every configured address.
    ///
    /// # Errors
    /// An address is taken or not permitted, or the store cannot be read; the text names which.
    pub async fn bind(settings: Arc<Settings>, backend: Arc<dyn KvBackend>) -> io::Result<Self> {
        let listeners = Listener::bind_all(&settings.server).await?;
        let gateway = Gateway::open(settings, backend).await.map_err(io::Error::other)?;
        Ok(Self { gateway: Arc::new(gateway), listeners })
    }

    /// Where it listens: `host:port`, or the path of a Unix socket.
    pub fn addresses(&self) -> Vec<String> {
        self.listeners.iter().map(Listener::address).collect()
    }

    /// Serves until `shutdown` is cancelled or a client sends SHUTDOWN; then stops accepting, lets every connection
    /// finish the unit it is in, and returns when all are closed or the configured deadline has passed.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { gateway, listeners } = self;
        let connections = TaskTracker::new();
        let accepting: Vec<_> = listeners
            .into_iter()
            .map(|listener| tokio::spawn(listener.accept(Arc::clone(&gateway), connections.clone())))
            .collect();
        let in_background = tokio::spawn(background::run(Arc::clone(&gateway)));

        tokio::select! {
            () = shutdown.cancelled() => gateway.shutdown.cancel(),
            () = gateway.shutdown.cancelled() => {}
        }
        for listener in accepting {
            // A listener ends by itself when the gateway shuts down; it fails only by a panic, which has been logged.
            let _ = listener.await;
        }
        connections.close();
        let deadline = gateway.settings().server.shutdown_timeout.as_duration();
        if tokio::time::timeout(deadline, connections.wait()).await.is_err() {
            tracing::warn!(open = connections.len(), "connections did not end in time and are cut off");
        }
        let _ = in_background.await;
    }
}
