//! What the gateway does without being asked.

#[cfg(test)]
mod model;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    command::Gateway,
    keyspace::{Duty, Lease, Result},
};

/// How long to wait before trying again what the store refused.
const RETRY: Duration = Duration::from_secs(1);

/// How often cursors that nobody can want any more are looked for.
const CURSOR_SWEEP: Duration = Duration::from_secs(60 * 60);

/// How often the tally of keys is asked whether anybody still needs it.
const TALLY_REST: Duration = Duration::from_secs(10);

/// How often the store is told which versions of records it may forget.
const FORGETTING: Duration = Duration::from_secs(60);

/// Works until the gateway shuts down. Whatever is interrupted is taken up again by the next run.
pub async fn run(gateway: Arc<Gateway>) {
    tokio::select! {
        () = gateway.shutdown.cancelled() => {}
        () = reclaim_databases(&gateway) => {}
        () = sweep_cursors(&gateway) => {}
        () = collect_garbage(&gateway) => {}
        () = sweep(&gateway, Duty::Expired) => {}
        () = sweep(&gateway, Duty::Orphans) => {}
        () = rest_tally(&gateway) => {}
        () = forget_versions(&gateway), if gateway.keyspace.capabilities().shared => {}
        () = sweep(&gateway, Duty::Orders), if gateway.keyspace.has_sidecar() => {}
    }
}

/// Deletes the records of flushed databases.
///
/// Where other gateways may still be writing to one, not before they must have ended, and not all at the same time.
async fn reclaim_databases(gateway: &Gateway) {
    /// More than the longest commit takes.
    const GRACE: Duration = Duration::from_secs(25);
    const SPREAD_MS: u64 = 10_000;

    loop {
        gateway.keyspace.databases().retired().await;
        if gateway.keyspace.capabilities().shared {
            tokio::time::sleep(GRACE + Duration::from_millis(gateway.keyspace.random().below(SPREAD_MS))).await;
        }
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

/// Lets a store that many gateways share forget old versions, unless another gateway does. Never ends.
async fn forget_versions(gateway: &Gateway) {
    loop {
        let pause = match try_to_forget_versions(gateway).await {
            Ok(true) => FORGETTING,
            Ok(false) => return std::future::pending().await,
            Err(error) => {
                tracing::warn!(%error, "old versions could not be forgotten yet");
                FORGETTING / 10
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// False if the store needs nobody for it. Whoever fails lets the lease run out, and so tells nobody that it was done.
async fn try_to_forget_versions(gateway: &Gateway) -> Result<bool> {
    let Some(mut lease) = gateway.keyspace.take_lease(Duty::Versions, 0, FORGETTING / 2).await? else {
        return Ok(true);
    };
    let is_ours = gateway.keyspace.backend().forget_versions().await?;
    gateway.keyspace.rest(&mut lease).await?;
    Ok(is_ours)
}

/// Lets the tally of keys fall asleep when nobody asks for it any more.
async fn rest_tally(gateway: &Gateway) {
    loop {
        tokio::time::sleep(TALLY_REST).await;
        gateway.keyspace.rest_tally();
    }
}

/// Goes on with a sweep every so often, wherever it was stopped, in each share of the store that no other gateway is at.
/// Sooner while much is found: keys that were created together expire together.
async fn sweep(gateway: &Gateway, duty: Duty) {
    /// How much sooner.
    const HASTE: u32 = 10;

    let mut found_much = false;
    loop {
        let interval = gateway.settings().background.sweep_interval.as_duration();
        let pause = if found_much { interval / HASTE } else { interval };
        tokio::time::sleep(pause).await;
        found_much = false;
        let shares = gateway.keyspace.shares();
        let first = gateway.keyspace.random().below(u64::from(shares)) as u8;
        for share in (0..shares).map(|share| (first + share) % shares) {
            match sweep_share(gateway, duty, share, pause).await {
                Ok(much) => found_much |= much,
                Err(error) => tracing::warn!(%error, ?duty, "a sweep of the store was interrupted"),
            }
        }
    }
}

/// One round of a share, unless another gateway has it. True if much was found.
async fn sweep_share(gateway: &Gateway, duty: Duty, share: u8, pause: Duration) -> Result<bool> {
    // The round before this one may have rested a little later than it began.
    let Some(mut lease) = gateway.keyspace.take_lease(duty, share, pause / 2).await? else { return Ok(false) };
    let swept = sweep_round(gateway, &mut lease).await;
    gateway.keyspace.rest(&mut lease).await?;
    swept
}

/// One round: some keys or collections, and more as long as many of them are to be deleted. True if many were.
async fn sweep_round(gateway: &Gateway, lease: &mut Lease) -> Result<bool> {
    /// One of so many seen is many.
    const MANY: usize = 10;
    /// How long to work, a step at a time, before a pause: timers know no shorter one.
    const STINT: Duration = Duration::from_millis(1);
    /// Most of the time belongs to the clients, whatever there is to do: so many times as long as the work is a pause, ...
    const PAUSE: u32 = 2;
    /// ... and this is where there is much to look into and next to nothing to find: orphans in a store by slots.
    const LONG_PAUSE: u32 = 20;

    let settings = gateway.settings().background.clone();
    let (wanted, counter) = match lease.duty {
        Duty::Expired => (settings.sweep_keys, &gateway.statistics.expired_swept),
        Duty::Orphans => (settings.sweep_collections, &gateway.statistics.orphans_found),
        Duty::Orders | Duty::Versions => (settings.sweep_keys, &gateway.statistics.orders_mended),
    };
    let looks_far = lease.duty == Duty::Orphans && gateway.keyspace.capabilities().range_partitioned;
    let (mut seen, mut found) = (0, 0);
    let mut worked = Duration::ZERO;
    loop {
        let began = Instant::now();
        let swept = gateway.keyspace.sweep(lease).await?;
        counter.add(swept.found as u64);
        (seen, found) = (seen + swept.seen, found + swept.found);
        let goes_on = seen < wanted || swept.found * MANY >= swept.seen.max(1);
        if swept.is_round_over || !swept.is_ours || !goes_on {
            if found > 0 {
                tracing::info!(duty = ?lease.duty, share = lease.share, seen, found, "a round of a sweep has ended");
            }
            return Ok(found > 0 && found * MANY >= seen);
        }
        worked += began.elapsed();
        if worked < STINT {
            tokio::task::yield_now().await;
        } else {
            let pause = if looks_far && swept.found == 0 { LONG_PAUSE } else { PAUSE };
            // Not so long that somebody else takes the lease.
            tokio::time::sleep((std::mem::take(&mut worked) * pause).min(Duration::from_secs(1))).await;
        }
    }
}
