//! Looking for differences between the store and the sidecar that nobody has met, and mending them.

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange};

use super::{Intent, Key, Keyspace, Order, Result, Scope, Swept, Unit, order::Members};
use crate::{
    encoding::{Body, Metadata, Owner, ZsetOrder},
    sidecar::Sidecar,
};

/// What a search for differences has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// Sorted sets that were mended.
    pub mended: usize,
    /// Keys of the sidecar that belonged to nothing and are gone.
    pub orphans: usize,
}

/// What comparing an order with the members' records has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// They are the same, or have changed meanwhile.
    Same,
    /// The order is in another revision, or has lost entries.
    Stale,
    /// The order has other entries than its revision should have.
    Wrong,
    /// The metadata tells another number of members than there are.
    Miscounted,
}

impl Keyspace {
    /// Compares every order in the sidecar with the members' records, mends those that differ, and deletes what belongs
    /// to no sorted set: all that the sweeps for [`Duty::Orders`](super::Duty) do bit by bit.
    pub async fn reconcile(&self) -> Result<Reconciled> {
        let mut swept = Swept::default();
        for share in 0..self.shares() {
            for place in self.places_of_share(share) {
                let mut range = Some(place.metadata(&self.codec));
                while let Some(rest) = range {
                    swept.seen = 0;
                    let mut unit = self.begin(Intent::Read).await?;
                    let from = self.sweep_orders(&mut unit, &rest, &mut swept).await?;
                    range = from.map(|start| KeyRange { start, ..rest });
                }
            }
        }
        Ok(Reconciled { mended: swept.found, orphans: self.delete_orphaned_orders().await? })
    }

    /// Compares the orders of the sorted sets among the first keys of a range of metadata, and mends those that differ.
    /// Gives where to go on in it. Reads all their members; takes a key's latch only if there is something to mend.
    pub(super) async fn sweep_orders(
        &self,
        unit: &mut Unit<'_>,
        range: &KeyRange,
        swept: &mut Swept,
    ) -> Result<Option<Bytes>> {
        let Some(sidecar) = &self.sidecar else { return Ok(None) };
        let limit = self.sweep_page() - swept.seen;
        let page = unit.scan(range, Direction::Forward, limit).await?;
        for (record, value) in &page {
            if matches!(Metadata::decode(value)?.body, Body::Zset { order: ZsetOrder::Sidecar(_), .. })
                && let Some(key) = self.key_of(unit, record)
            {
                swept.found += usize::from(self.reconcile_key(sidecar, &key).await?);
                tokio::task::yield_now().await;
            }
        }
        swept.seen += page.len();
        Ok(page.last().filter(|_| page.len() == limit).map(|(last, _)| range.after(last).start))
    }

    /// Deletes every key of a physical database from the sidecar.
    pub(super) async fn forget_database(&self, db: u8) -> Result<()> {
        let Some(sidecar) = &self.sidecar else { return Ok(()) };
        let (prefix, mut cursor) = (self.codec.sidecar_prefix(Some(db)), 0);
        loop {
            let (next, names) = sidecar.scan(&prefix, cursor).await?;
            sidecar.unlink(names.iter().map(|name| &**name).collect()).await?;
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// Compares one sorted set, and mends it if it differs. True if it did.
    async fn reconcile_key(&self, sidecar: &Sidecar, key: &Key) -> Result<bool> {
        let mut unit = self.begin(Intent::Read).await?;
        let Some((order, _)) = unit.sorted_set(key).await? else { return Ok(false) };
        let verdict = unit.compare(sidecar, &order).await?;
        drop(unit);
        if verdict == Verdict::Same {
            return Ok(false);
        }
        let _latches = self.latches.acquire(Scope::Keys(&[&key.name])).await;
        if verdict == Verdict::Miscounted {
            self.recount(key).await?;
        }
        let mut unit = self.begin(Intent::Write).await?;
        let Some((order, _)) = unit.sorted_set(key).await? else { return Ok(false) };
        let state = sidecar.state(&unit.names_of(&order)).await?;
        if state == order.found() && verdict == Verdict::Stale {
            // A change that was under way has arrived.
            return Ok(false);
        }
        tracing::info!(?verdict, "a sorted set and its order in the sidecar differ");
        unit.rebuild(&order, state.revision).await?;
        Ok(true)
    }

    /// Corrects the number of members in the metadata of a sorted set.
    async fn recount(&self, key: &Key) -> Result<()> {
        let mut unit = self.begin(Intent::Write).await?;
        let Some((order, metadata)) = unit.sorted_set(key).await? else { return Ok(()) };
        let (mut members, mut count) = (Members::of(&unit, &order), 0_usize);
        loop {
            let page = members.next(&mut unit, &order).await?.len();
            count += page;
            if page == 0 {
                break;
            }
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        if count == 0 {
            unit.remove(key, &metadata)?;
        } else {
            let body = Body::Zset { count, order: ZsetOrder::Sidecar(order.next_revision()) };
            unit.save(key, &Metadata { body, ..metadata })?;
        }
        unit.commit().await
    }

    /// Deletes the orders that belong to no key and that no garbage record tells of. Returns how many keys of the sidecar
    /// those were.
    pub(super) async fn delete_orphaned_orders(&self) -> Result<usize> {
        let Some(sidecar) = &self.sidecar else { return Ok(0) };
        let (prefix, mut cursor, mut deleted) = (self.codec.sidecar_prefix(None), 0, 0);
        loop {
            let (next, names) = sidecar.scan(&prefix, cursor).await?;
            let mut unit = self.begin(Intent::Read).await?;
            let mut orphans = Vec::new();
            for name in &names {
                let owners = self.codec.decode_sidecar_key(name);
                if !owners.is_empty() && unit.are_orphans(&owners).await? {
                    orphans.push(&**name);
                }
            }
            deleted += orphans.len();
            sidecar.unlink(orphans).await?;
            if next == 0 {
                return Ok(deleted);
            }
            cursor = next;
        }
    }
}

impl Unit<'_> {
    /// The order and the metadata of a sorted set of encode-version 1.
    async fn sorted_set(&mut self, key: &Key) -> Result<Option<(Order, Metadata)>> {
        let Some(metadata) = self.load(key).await? else { return Ok(None) };
        Ok(self.order(key, &metadata)?.map(|order| (order, metadata)))
    }

    async fn are_orphans(&mut self, owners: &[Owner<'_>]) -> Result<bool> {
        for owner in owners {
            if !self.is_orphan(*owner, self.keyspace().grace_ms).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn compare(&mut self, sidecar: &Sidecar, order: &Order) -> Result<Verdict> {
        let names = self.names_of(order);
        let (mut members, mut count, mut verdict) = (Members::of(self, order), 0, Verdict::Same);
        if sidecar.state(&names).await? != order.found() {
            verdict = Verdict::Stale;
        }
        loop {
            let entries = members.next(self, order).await?;
            if entries.is_empty() {
                break;
            }
            count += entries.len() as u64;
            if verdict == Verdict::Same {
                let indexes: Vec<Bytes> = entries.iter().map(|(index, _)| index.clone()).collect();
                let scores = sidecar.scores(&names, &indexes).await?;
                let is_same = entries.iter().map(|(_, score)| Some(*score)).eq(scores);
                // Somebody may have changed it while it was read.
                if !is_same && sidecar.state(&names).await? == order.found() {
                    verdict = Verdict::Wrong;
                }
            }
        }
        Ok(if count == order.found().count { verdict } else { Verdict::Miscounted })
    }
}
