//! Sorted sets of encode-version 1, whose order is in the sidecar.
//!
//! A unit asks the order for the revision that its snapshot tells of, and changes it once the store has the change. What
//! the sidecar lacks, because a gateway ended in between or because it lost data, whoever finds it adds: from the journal
//! that is written with each change, or else from the members' records.

use std::{collections::HashMap, ops::Bound};

use bytes::Bytes;
use respgate_backend_api::{self as backend, Direction, KeyRange};

use super::{Error, Intent, Key, Keyspace, Result, Unit};
use crate::{
    encoding::{Body, Journal, Metadata, OrderChange, ZsetOrder, decode_member, index_of_member},
    sidecar::{Answer, Entries, Names, Sidecar, State, Window},
};

/// Changes that a journal tells one by one. After more of them it is as cheap to read all members again.
const JOURNALED_MAX: usize = 1_024;

/// Changes that are made in one step. More would keep others waiting.
const APPLIED_MAX: usize = 10_000;

/// Entries that are read, and sent to the sidecar, at a time when an order is made again.
const LOADED: usize = 2_000;

/// How often an order is mended before the unit gives up.
const ATTEMPTS: usize = 3;

/// The order of a sorted set of encode-version 1, as a unit has found it.
#[derive(Clone, Debug)]
pub struct Order {
    db: u8,
    owner: Bytes,
    version: u64,
    /// Before the unit; without revision if the unit creates it.
    found: State,
    /// The revision that the unit gives it if it changes it.
    next: u64,
    /// Where entries have been loaded already that a new order will have.
    loading: Option<Bytes>,
}

/// What a unit does to an order once it has committed.
pub(super) struct Update {
    order: Order,
    changes: Vec<OrderChange>,
}

impl Order {
    /// Its state before the unit.
    pub(super) fn found(&self) -> State {
        self.found
    }

    /// Where entries of a new order are loaded before the unit commits.
    pub(super) fn loading(&mut self, keyspace: &Keyspace) -> Bytes {
        let Self { db, owner, version, .. } = self;
        let name = || keyspace.codec.sidecar_loading(*db, owner, *version, keyspace.random.next_u64());
        self.loading.get_or_insert_with(name).clone()
    }

    /// The revision that it has once the unit has committed a change.
    pub fn next_revision(&self) -> u64 {
        self.next
    }
}

impl Unit<'_> {
    /// The order of the sorted set that is or was at `key`; `None` if it is not in the sidecar.
    pub fn order(&mut self, key: &Key, metadata: &Metadata) -> Result<Option<Order>> {
        let Body::Zset { count, order: ZsetOrder::Sidecar(revision) } = metadata.body else { return Ok(None) };
        if let Some(order) = self.orders.get(&metadata.version) {
            return Ok(Some(order.clone()));
        }
        let order = Order {
            db: self.physical(key.db)?,
            owner: metadata.origin.as_ref().unwrap_or(&key.name).clone(),
            version: metadata.version,
            found: State { revision, count: u64::from(count) },
            next: self.new_version().max(revision.saturating_add(1)),
            loading: None,
        };
        self.orders.insert(metadata.version, order.clone());
        Ok(Some(order))
    }

    /// Begins a new order for the key that gets this version, whose members the unit writes. Returns its first revision.
    pub fn create_order(&mut self, key: &Key, version: u64) -> Result<u64> {
        let body = Body::Zset { count: 0, order: ZsetOrder::Sidecar(0) };
        let order = self.order(key, &Metadata { version, expires_at_ms: None, body, origin: None })?;
        Ok(order.map_or(0, |order| order.next))
    }

    /// Makes sure that the order can be changed once the unit has committed, and lacks nothing now.
    ///
    /// # Errors
    /// [`Error::Sidecar`]; nothing has been written then.
    pub async fn ready_to_change(&mut self, order: &Order) -> Result<()> {
        let sidecar = self.keyspace().sidecar()?;
        if sidecar.is_known(order.version, order.found.revision) {
            return Ok(());
        }
        let names = self.names_of(order);
        for _ in 0..ATTEMPTS {
            let state = sidecar.state(&names).await?;
            if order.found.revision == 0 || state == order.found {
                sidecar.learn(order.version, order.found.revision);
                return Ok(());
            }
            self.mend(order, state).await?;
        }
        Err(backend::Error::Conflict.into())
    }

    /// A part of the order as it was before the unit.
    pub async fn read_order(&mut self, order: &Order, window: &Window) -> Result<Entries> {
        if order.found.revision == 0 {
            return Ok(Entries::default());
        }
        let (sidecar, names) = (self.keyspace().sidecar()?, self.names_of(order));
        for _ in 0..ATTEMPTS {
            match sidecar.read(&names, order.found, window).await? {
                Answer::Is(entries) => return Ok(entries),
                Answer::Differs(state) => self.mend(order, state).await?,
            }
        }
        Err(backend::Error::Conflict.into())
    }

    /// How many entries of the order had scores between two bounds before the unit.
    pub async fn count_order(&mut self, order: &Order, min: Bound<f64>, max: Bound<f64>) -> Result<u64> {
        if order.found.revision == 0 {
            return Ok(0);
        }
        let (sidecar, names) = (self.keyspace().sidecar()?, self.names_of(order));
        for _ in 0..ATTEMPTS {
            match sidecar.count(&names, order.found, min, max).await? {
                Answer::Is(count) => return Ok(count),
                Answer::Differs(state) => self.mend(order, state).await?,
            }
        }
        Err(backend::Error::Conflict.into())
    }

    /// What the unit has written itself: indexes, and their members' records if they are still there.
    pub fn own_changes(&self, order: &Order) -> Vec<(Bytes, Option<Bytes>)> {
        let range = self.codec().member_indexes(order.db, &order.owner, order.version);
        let own = self.overlay.own(&range);
        own.map(|(record, value)| (self.index_in(order, record), value.clone())).collect()
    }

    /// The scores that indexes had before the unit.
    pub async fn scores_before(&mut self, order: &Order, indexes: &[Bytes]) -> Result<Vec<Option<f64>>> {
        let records: Vec<Bytes> = indexes.iter().map(|index| self.member_record(order, index)).collect();
        let values = self.snapshot().await?.multi_get(&records).await?;
        values
            .into_iter()
            .map(|value| Ok(value.map(|value| decode_member(&value)).transpose()?.map(|one| one.1)))
            .collect()
    }

    /// The members behind digests that the unit has not changed: from this process' cache, else the sidecar's, else the
    /// store.
    pub async fn members_behind(&mut self, order: &Order, digests: Vec<Bytes>) -> Result<HashMap<Bytes, Bytes>> {
        let sidecar = self.keyspace().sidecar()?;
        let (mut members, mut unknown) = (HashMap::with_capacity(digests.len()), Vec::new());
        for index in digests {
            match sidecar.remembered(order.version, &index) {
                Some(member) => _ = members.insert(index, member),
                None => unknown.push(index),
            }
        }
        if unknown.is_empty() {
            return Ok(members);
        }
        let names = |index: &Bytes| self.codec().sidecar_member(order.db, &order.owner, order.version, index);
        let cached = sidecar.cached(&unknown.iter().map(names).collect::<Vec<_>>()).await?;
        let mut missing = Vec::new();
        for (index, member) in unknown.into_iter().zip(cached) {
            // A cache in a place that others can write to: only the digest proves that it is right.
            match member.filter(|member| index_of_member(member) == index) {
                Some(member) => {
                    sidecar.remember(order.version, &index, &member);
                    members.insert(index, member);
                }
                None => missing.push(index),
            }
        }
        if !missing.is_empty() {
            members.extend(self.stored_members(order, sidecar, missing).await?);
        }
        Ok(members)
    }

    async fn stored_members(
        &mut self,
        order: &Order,
        sidecar: &Sidecar,
        indexes: Vec<Bytes>,
    ) -> Result<Vec<(Bytes, Bytes)>> {
        let records: Vec<_> = indexes.iter().map(|index| self.member_record(order, index)).collect();
        let values = self.read_many(&records).await?;
        let (mut members, mut to_cache) = (Vec::with_capacity(indexes.len()), Vec::with_capacity(indexes.len()));
        for (index, value) in indexes.into_iter().zip(values) {
            let missing = || backend::Error::Corrupt("a member of a sorted set has no record".to_owned());
            let (member, _) = decode_member(&value.ok_or_else(missing)?)?;
            sidecar.remember(order.version, &index, &member);
            let name = self.codec().sidecar_member(order.db, &order.owner, order.version, &index);
            to_cache.push((name, member.clone()));
            members.push((index, member));
        }
        sidecar.cache(&to_cache).await?;
        Ok(members)
    }

    /// Brings an order that is in state `state` to the one that the unit has found in the store.
    ///
    /// # Errors
    /// A conflict if that must be left to a unit that writes: the order may be ahead of the snapshot, and the key may be
    /// gone since.
    async fn mend(&mut self, order: &Order, state: State) -> Result<()> {
        let journal = self.codec().journal(order.db, &order.owner, order.version);
        if let Some(journal) = self.peek(&journal).await? {
            let Journal { from, to, changes } = Journal::decode(&journal)?;
            if from == state.revision && to == order.found.revision {
                self.keyspace().sidecar()?.apply(&self.names_of(order), from, to, &changes).await?;
                return Ok(());
            }
        }
        let may_be_newer = state.revision > order.found.revision && self.keyspace().capabilities.shared;
        if self.intent == Intent::Read || may_be_newer {
            return Err(backend::Error::Conflict.into());
        }
        tracing::info!(count = order.found.count, "an order in the sidecar is made again");
        self.rebuild(order, state.revision).await
    }

    /// Makes an order that is in revision `from` again, from the members' records.
    pub(super) async fn rebuild(&mut self, order: &Order, from: u64) -> Result<()> {
        let sidecar = self.keyspace().sidecar()?;
        let loader = self.keyspace().random().next_u64();
        let loading = self.codec().sidecar_loading(order.db, &order.owner, order.version, loader);
        let mut members = Members::of(self, order);
        let mut count = 0;
        loop {
            let entries = members.next(self, order).await?;
            if entries.is_empty() {
                break;
            }
            count += entries.len() as u64;
            sidecar.load(&loading, &entries).await?;
        }
        if count != order.found.count {
            let cause = format!("a sorted set has {count} members, not {} as it says", order.found.count);
            return Err(backend::Error::Corrupt(cause).into());
        }
        sidecar.install(&self.names_of(order), &loading, from, order.found.revision).await?;
        Ok(())
    }

    /// Writes the journals of the orders that the unit changes, and gives what is to be done to them after the commit.
    pub(super) fn journal_orders(&mut self) -> Vec<Update> {
        let mut updates = Vec::new();
        for order in std::mem::take(&mut self.orders).into_values() {
            let changes = self.own_changes(&order);
            let garbage = self.codec().garbage(order.db, &order.owner, order.version);
            let is_unchanged = changes.is_empty() && order.loading.is_none();
            if is_unchanged || matches!(self.overlay.get(&garbage), Some(Some(_))) {
                continue;
            }
            let score = |value: Bytes| decode_member(&value).ok().map(|(_, score)| score);
            let changes = changes.into_iter().map(|(index, value)| (index, value.and_then(score))).collect();
            let journal = Journal { from: order.found.revision, to: order.next, changes };
            // An order that is new can be made again at the same cost.
            if journal.from != 0 {
                let record = self.codec().journal(order.db, &order.owner, order.version);
                let is_kept = journal.changes.len() <= JOURNALED_MAX;
                self.overlay.write(record, is_kept.then(|| journal.encode()));
            }
            updates.push(Update { order, changes: journal.changes });
        }
        updates
    }

    pub(super) fn names_of(&self, order: &Order) -> Names {
        Names::new(self.codec(), order.db, &order.owner, order.version)
    }

    fn member_record(&self, order: &Order, index: &[u8]) -> Bytes {
        self.codec().member_index(order.db, &order.owner, order.version, index)
    }

    fn index_in(&self, order: &Order, record: &Bytes) -> Bytes {
        self.codec().suffix(&order.owner, record.clone()).unwrap_or_default()
    }
}

/// A walk over the members' records of an order as they were before the unit.
pub(super) struct Members {
    range: KeyRange,
}

impl Members {
    pub(super) fn of(unit: &Unit<'_>, order: &Order) -> Self {
        Self { range: unit.codec().member_indexes(order.db, &order.owner, order.version) }
    }

    /// The next indexes and their scores; none after the last one.
    pub(super) async fn next(&mut self, unit: &mut Unit<'_>, order: &Order) -> Result<Vec<(Bytes, f64)>> {
        let page = unit.snapshot().await?.scan(&self.range, Direction::Forward, LOADED).await?;
        if let Some((last, _)) = page.last() {
            self.range = self.range.after(last);
        }
        page.iter().map(|(record, value)| Ok((unit.index_in(order, record), decode_member(value)?.1))).collect()
    }
}

impl Keyspace {
    /// True if there is a sidecar.
    pub fn has_sidecar(&self) -> bool {
        self.sidecar.is_some()
    }

    /// The sidecar.
    ///
    /// # Errors
    /// [`Error::Sidecar`] if none is configured.
    pub(super) fn sidecar(&self) -> Result<&Sidecar> {
        self.sidecar.as_ref().ok_or_else(|| Error::Sidecar("none is configured".to_owned()))
    }

    /// Changes orders in the sidecar, which the store has committed. What fails is made up for by the next one who reads,
    /// and everybody looks before they read: that is why nobody need be told.
    pub(super) async fn update_orders(&self, updates: &[Update]) {
        let Some(sidecar) = &self.sidecar else { return };
        futures_util::future::join_all(updates.iter().map(async |update| {
            let Update { order, changes } = update;
            match self.update_order(sidecar, order, changes).await {
                Ok(true) => sidecar.learn(order.version, order.next),
                Ok(false) => tracing::debug!("an order in the sidecar was not where it was expected"),
                Err(error) => tracing::warn!(%error, "the sidecar lacks a change, which will be made up for"),
            }
        }))
        .await;
    }

    async fn update_order(&self, sidecar: &Sidecar, order: &Order, changes: &[OrderChange]) -> Result<bool> {
        let Order { db, owner, version, found, next, loading } = order;
        let names = Names::new(&self.codec, *db, owner, *version);
        if loading.is_none() && changes.len() <= APPLIED_MAX {
            return Ok(sidecar.apply(&names, found.revision, *next, changes).await?);
        }
        if found.revision != 0 {
            return Ok(false);
        }
        let loading = order.clone().loading(self);
        for some in changes.chunks(LOADED) {
            let present: Vec<_> = some.iter().filter_map(|(index, score)| Some((index.clone(), (*score)?))).collect();
            sidecar.load(&loading, &present).await?;
        }
        Ok(sidecar.install(&names, &loading, found.revision, *next).await?)
    }
}

#[cfg(test)]
pub(super) mod fixture;
#[cfg(test)]
mod tests;
