//! What the gateway does without being asked.

use std::{sync::Arc, time::Duration};

use crate::{command::Gateway, keyspace::SweepPosition};

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
        () = collect_garbage(&gateway) => {}
        () = sweep_expired(&gateway) => {}
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

/// Deletes what dead keys have left behind, as soon as there is some.
async fn collect_garbage(gateway: &Gateway) {
    loop {
        match gateway.keyspace.collect_garbage().await {
            Ok(0) => gateway.keyspace.littered().await,
            Ok(collected) => gateway.statistics.garbage_collected.add(collected as u64),
            Err(error) => {
                tracing::warn!(%error, "garbage could not be collected yet");
                tokio::time::sleep(RETRY).await;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Looks at some keys in each round, wherever it stopped in the last one, and deletes those that have expired. As long as
/// many of them have, it goes on.
async fn sweep_expired(gateway: &Gateway) {
    let mut position = SweepPosition::default();
    loop {
        let settings = gateway.settings();
        tokio::time::sleep(settings.background.sweep_interval.as_duration()).await;
        match sweep_round(gateway, position.clone(), settings.background.sweep_keys).await {
            Ok(next) => position = next,
            Err(error) => tracing::warn!(%error, "expired keys could not be deleted yet"),
        }
    }
}

async fn sweep_round(
    gateway: &Gateway,
    mut position: SweepPosition,
    keys: usize,
) -> crate::keyspace::Result<SweepPosition> {
    /// One expired key among so many seen is many.
    const MANY: usize = 10;

    let mut seen = 0;
    loop {
        let swept = gateway.keyspace.sweep_expired(&position).await?;
        gateway.statistics.expired_swept.add(swept.expired as u64);
        seen += swept.seen;
        let is_end = swept.next.is_none();
        position = swept.next.unwrap_or_default();
        let goes_on = seen < keys || swept.expired * MANY >= swept.seen.max(1);
        if is_end || !goes_on {
            return Ok(position);
        }
        tokio::task::yield_now().await;
    }
}
