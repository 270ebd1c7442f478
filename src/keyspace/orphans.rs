use super::{Result, Unit, place::Place};
use crate::encoding::{Garbage, KeyVersions, Metadata, Owner, Type, slot};

impl Unit<'_> {
    /// True if the elements of `owner` belong to no key, no record tells the collector so, and the version is older than
    /// `grace_ms`.
    ///
    /// Such elements are what a write leaves that replaces a key without reading it. Whoever creates a collection commits
    /// its elements together with its metadata, and a version that has died never comes back; so what is an orphan in one
    /// snapshot stays one. The time of grace is for elements that are [staged](Unit::stage), and for what no snapshot shows:
    /// clocks and releases that behave otherwise.
    pub(super) async fn is_orphan(&mut self, owner: Owner<'_>, grace_ms: i64) -> Result<bool> {
        if self.now_ms() - KeyVersions::time_ms(owner.version) < grace_ms {
            return Ok(false);
        }
        let named = self.version_at(owner.db, owner.key).await?;
        if named == Some((owner.version, true)) {
            return Ok(false);
        }
        let forwarding = self.codec().forwarding(owner.db, owner.key, owner.version);
        if let Some(name) = self.peek(&forwarding).await?
            && self.version_at(owner.db, &name).await? == Some((owner.version, false))
        {
            return Ok(false);
        }
        let garbage = self.codec().garbage(owner.db, owner.key, owner.version);
        Ok(self.peek(&garbage).await?.is_none())
    }

    /// Tells the collector that the elements of `owner` belong to no key.
    pub(super) fn bury_orphan(&mut self, owner: Owner<'_>, is_member: bool) {
        let garbage = self.codec().garbage(owner.db, owner.key, owner.version);
        // Which type it was nobody knows any more. These two have records of every kind there is.
        let encode_version = u8::from(is_member);
        let value = Garbage { kind: Type::Zset, encode_version, elements: 0 }.encode();
        self.put_record(garbage, value);
        self.delete_record(self.codec().forwarding(owner.db, owner.key, owner.version));
        let slot = self.keyspace().capabilities().range_partitioned.then(|| slot(owner.key));
        self.litter.push((Place { db: owner.db, slot }, 0));
    }

    /// The version of the key with this name, whether it has expired or not, and whether its elements lie under it.
    async fn version_at(&mut self, db: u8, name: &[u8]) -> Result<Option<(u64, bool)>> {
        let Some(value) = self.peek(&self.codec().metadata(db, name)).await? else { return Ok(None) };
        let metadata = Metadata::decode(&value)?;
        Ok(Some((metadata.version, metadata.origin.is_none())))
    }
}
