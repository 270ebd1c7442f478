//! What the gateway does without being asked.

use std::{sync::Arc, time::Duration};

use crate::command::Gateway;

/// How long to wait before trying again what the store refused.
const RETRY: Duration = Duration::from_secs(1);

/// How often cursors that nobody can want any more are looked for.
const CURSOR_SWEEP: Duration = Duration::from_secs(60 * 60);

/// Works until the gateway shuts down. Whatever is interrupted is taken up again by the next run.
pub async fn run(gateway: Arc<Gateway>) {
    tokio::select! {
        () = gateway.shutdown.cancelled() => {}
        () = reclaim_databases(&gateway) => {}
        () = sweep_cursors(&gateway) => {}
    }
}

/// Deletes the records of flushed databases.
async fn reclaim_databases(gateway: &Gateway) {
    loop {
        gateway.keyspace.databases().retired().await;
        while let Err(error) = gateway.keyspace.reclaim().await {
            tracing::warn!(%error, "flushed data could not be deleted yet");
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Deletes the records of old cursors.
async fn sweep_cursors(gateway: &Gateway) {
    loop {
        tokio::time::sleep(CURSOR_SWEEP).await;
        if let Err(error) = gateway.keyspace.sweep_cursors().await {
            tracing::debug!(%error, "old cursors could not be deleted yet");
        }
    }
}
