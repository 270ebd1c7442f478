use std::time::Duration;

use bytes::Bytes;
use respgate_backend_api::Error as StoreError;

use super::{Error, Intent, Keyspace, Result};
use crate::encoding::LeaseRecord;

/// For how long a lease is taken and renewed. Many times what a step of the work takes, so that only an owner that is
/// gone, or paused, loses it.
const TERM: Duration = Duration::from_secs(10);

/// What one gateway at a time does for all of them. Numbers are stored and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Duty {
    /// Deleting keys that have expired.
    Expired = 1,
    /// Finding elements that belong to no key, and garbage that nobody collects.
    Orphans = 2,
    /// Comparing the orders in the sidecar with the store.
    Orders = 3,
    /// Letting the store forget old versions of records.
    Versions = 4,
}

/// The right to do one share of a duty, for some time.
#[derive(Debug)]
pub struct Lease {
    /// What is to be done.
    pub duty: Duty,
    /// Which share of it.
    pub share: u8,
    pub(super) state: LeaseRecord,
}

/// Whether work goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// There is more to do.
    Work,
    /// Somebody else may go on.
    Rest,
}

impl Duty {
    /// True if the work is not about keys, and so is not cut into shares: it is share 0.
    fn is_whole(self) -> bool {
        self == Self::Versions
    }
}

impl Lease {
    /// When it was last taken or renewed, in milliseconds.
    pub(super) fn kept_at_ms(&self) -> i64 {
        self.state.deadline_ms - millis(TERM)
    }
}

impl Keyspace {
    /// Takes the lease on a share of a duty, if nobody else holds it and it has rested for `pause`.
    ///
    /// On a store that only this process writes to, whatever an earlier process held is free.
    pub async fn take_lease(&self, duty: Duty, share: u8, pause: Duration) -> Result<Option<Lease>> {
        let record = self.codec.lease(duty as u8, share);
        let mut unit = self.begin(Intent::Write).await?;
        let mut state =
            unit.peek(&record).await?.map(|value| LeaseRecord::decode(&value)).transpose()?.unwrap_or_default();
        let now_ms = unit.now_ms();
        let is_held = self.capabilities.shared && state.owner != self.identity && now_ms <= state.deadline_ms;
        // A time of rest in the future comes from a clock that has been set back since.
        let has_rested = now_ms - state.rested_at_ms >= millis(pause) || state.rested_at_ms > now_ms;
        if is_held || !has_rested {
            return Ok(None);
        }
        state.term += 1;
        state.owner = self.identity;
        state.deadline_ms = now_ms + millis(TERM);
        unit.guard(record.clone());
        unit.put_record(record, state.encode());
        match unit.commit().await {
            Ok(()) => Ok(Some(Lease { duty, share, state })),
            Err(Error::Store(StoreError::Conflict)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Renews `lease`, or lays the work down, and notes how far it has come. False if the lease has been lost.
    ///
    /// This is the fence: an owner that was paused for longer than its lease finds another term here, or conflicts, so
    /// it cannot move the position of whoever took over. What it did meanwhile does no harm, since every unit of the work
    /// looks again at what it deletes.
    pub(super) async fn keep_lease(&self, lease: &mut Lease, next: Next) -> Result<bool> {
        let record = self.codec.lease(lease.duty as u8, lease.share);
        let mut unit = self.begin(Intent::Write).await?;
        let stored = unit.peek(&record).await?.map(|value| LeaseRecord::decode(&value)).transpose()?;
        if stored.is_none_or(|stored| (stored.term, stored.owner) != (lease.state.term, lease.state.owner)) {
            return Ok(false);
        }
        let now_ms = unit.now_ms();
        match next {
            Next::Work => lease.state.deadline_ms = now_ms + millis(TERM),
            Next::Rest => (lease.state.deadline_ms, lease.state.rested_at_ms) = (now_ms - 1, now_ms),
        }
        if lease.state.position.is_empty() {
            lease.state.round_ended_at_ms = now_ms;
        }
        unit.guard(record.clone());
        unit.put_record(record, lease.state.encode());
        match unit.commit().await {
            Ok(()) => Ok(true),
            Err(Error::Store(StoreError::Conflict)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The leases on all shares of a duty as the store has them, for operators; `None` for one that was never taken.
    pub async fn leases(&self, duty: Duty) -> Result<Vec<Option<LeaseRecord>>> {
        let shares = if duty.is_whole() { 1 } else { self.shares() };
        let records: Vec<Bytes> = (0..shares).map(|share| self.codec.lease(duty as u8, share)).collect();
        let values = self.begin(Intent::Read).await?.read_many(&records).await?;
        values.into_iter().map(|value| Ok(value.map(|value| LeaseRecord::decode(&value)).transpose()?)).collect()
    }
}

/// How long ago all of the store was last gone through by a duty, as the leases on its shares say; `None` if some share
/// never was.
pub fn last_round_age_ms(leases: &[Option<LeaseRecord>], now_ms: i64) -> Option<i64> {
    let ended = leases.iter().map(|lease| lease.as_ref().map_or(0, |lease| lease.round_ended_at_ms)).min();
    ended.filter(|&ended| ended > 0).map(|ended| now_ms - ended)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use respgate_backend_api::{Capabilities, KvBackend};
    use respgate_backend_memory::MemoryBackend;

    use super::*;
    use crate::keyspace::{
        Encodings, ManualClock,
        fixture::{keyspace_over, keyspace_with_random},
    };

    const PAUSE: Duration = Duration::from_secs(60);

    async fn two_gateways() -> [(Keyspace, Arc<ManualClock>); 2] {
        let shared = Capabilities { shared: true, ..MemoryBackend::CAPABILITIES };
        let store: Arc<dyn KvBackend> = Arc::new(MemoryBackend::new().with_capabilities(shared));
        [keyspace_with_random(Arc::clone(&store), 1).await, keyspace_with_random(store, 2).await]
    }

    async fn take(keyspace: &Keyspace) -> Option<Lease> {
        keyspace.take_lease(Duty::Expired, 0, PAUSE).await.unwrap()
    }

    fn advance(gateways: &[(Keyspace, Arc<ManualClock>)], duration: Duration) {
        gateways.iter().for_each(|(_, clock)| clock.advance_ms(duration.as_millis() as u64));
    }

    #[tokio::test]
    async fn one_gateway_at_a_time_holds_a_lease() {
        let gateways = two_gateways().await;
        let [(first, _), (second, _)] = &gateways;
        let mut lease = take(first).await.unwrap();
        assert!(take(second).await.is_none());
        advance(&gateways, TERM);
        assert!(first.keep_lease(&mut lease, Next::Work).await.unwrap());
        advance(&gateways, TERM);
        assert!(take(second).await.is_none());
        assert!(first.keep_lease(&mut lease, Next::Rest).await.unwrap());
        advance(&gateways, PAUSE - Duration::from_millis(1));
        assert!(take(second).await.is_none(), "it has not rested for long enough");
        advance(&gateways, Duration::from_millis(1));
        assert_eq!(take(second).await.unwrap().state.term, 2);
    }

    #[tokio::test]
    async fn an_owner_that_wakes_late_has_lost_its_lease() {
        let gateways = two_gateways().await;
        let [(first, _), (second, _)] = &gateways;
        let mut late = take(first).await.unwrap();
        advance(&gateways, TERM + Duration::from_millis(1));
        let mut lease = take(second).await.unwrap();
        late.state.position = Bytes::from_static(b"late");
        assert!(!first.keep_lease(&mut late, Next::Work).await.unwrap());
        lease.state.position = Bytes::from_static(b"here");
        assert!(second.keep_lease(&mut lease, Next::Work).await.unwrap());
        let stored = first.leases(Duty::Expired).await.unwrap();
        assert_eq!(stored, [Some(lease.state)]);
    }

    #[tokio::test]
    async fn what_an_earlier_process_held_is_free_where_there_is_only_one() {
        let store: Arc<dyn KvBackend> = Arc::new(MemoryBackend::new());
        let (first, _) = keyspace_over(Arc::clone(&store), Encodings::default()).await;
        assert!(take(&first).await.is_some());
        let (second, _) = keyspace_with_random(store, 2).await;
        assert!(take(&second).await.is_some());
    }
}
