//! What the gateway does without being asked.

#[cfg(test)]
mod model;

use std::{sync::Arc, time::Duration};

use crate::{
    command::Gateway,
    keyspace::{Duty, Lease, Result},
};

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
        () = sweep(&gateway, Duty::Expired) => {}
        () = sweep(&gateway, Duty::Orphans) => {}
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
    while let Err(error) = gateway.keyspace.survey_garbage().await {
        tracing::warn!(%error, "garbage could not be looked for yet");
        tokio::time::sleep(RETRY).await;
    }
    loop {
        match gateway.keyspace.collect_garbage().await {
            Ok(None) => gateway.keyspace.littered().await,
            Ok(Some(collected)) => gateway.statistics.garbage_collected.add(collected as u64),
            Err(error) => {
                tracing::warn!(%error, "garbage could not be collected yet");
                tokio::time::sleep(RETRY).await;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Goes on with a sweep every so often, wherever it was stopped, in each share of the store that no other gateway is at.
async fn sweep(gateway: &Gateway, duty: Duty) {
    loop {
        let pause = gateway.settings().background.sweep_interval.as_duration();
        tokio::time::sleep(pause).await;
        let shares = gateway.keyspace.shares();
        let first = gateway.keyspace.random().below(u64::from(shares)) as u8;
        for share in (0..shares).map(|share| (first + share) % shares) {
            if let Err(error) = sweep_share(gateway, duty, share, pause).await {
                tracing::warn!(%error, ?duty, "a sweep of the store was interrupted");
            }
        }
    }
}

async fn sweep_share(gateway: &Gateway, duty: Duty, share: u8, pause: Duration) -> Result<()> {
    // The round before this one may have rested a little later than it began.
    let Some(mut lease) = gateway.keyspace.take_lease(duty, share, pause / 2).await? else { return Ok(()) };
    let swept = sweep_round(gateway, &mut lease).await;
    gateway.keyspace.rest(&mut lease).await?;
    swept
}

/// One round: some keys or collections, and more as long as many of them are to be deleted.
async fn sweep_round(gateway: &Gateway, lease: &mut Lease) -> Result<()> {
    /// One of so many seen is many.
    const MANY: usize = 10;

    let settings = gateway.settings().background.clone();
    let (wanted, found) = match lease.duty {
        Duty::Expired => (settings.sweep_keys, &gateway.statistics.expired_swept),
        Duty::Orphans => (settings.sweep_collections, &gateway.statistics.orphans_found),
    };
    let mut seen = 0;
    loop {
        let swept = gateway.keyspace.sweep(lease).await?;
        found.add(swept.found as u64);
        seen += swept.seen;
        let goes_on = seen < wanted || swept.found * MANY >= swept.seen.max(1);
        if swept.is_round_over || !swept.is_ours || !goes_on {
            return Ok(());
        }
        tokio::task::yield_now().await;
    }
}
