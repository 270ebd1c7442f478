use std::{sync::Arc, time::Duration};

use respgate_backend_api::Result;
use respgate_backend_rocksdb::{Judge, Past, Reaper};

use crate::{
    encoding::{KeyCodec, KeyVersions, Metadata, Owner},
    keyspace::Clock,
};

/// Tells compactions which records of one namespace are dead:
///
/// - the metadata of a string in one record that has expired. That of a collection is left to the sweep, which leaves a
///   note of the elements, so that they need not be looked for;
/// - an element, a score or a member whose version belongs to no key any more.
///
/// Both stay as they are. An expired key is never given more time: every command takes it for missing. And a version
/// that no metadata names is never named again: a new key has a new version, and units that write to one that is there
/// exclude each other by its latch, and commit its elements together with its metadata.
///
/// Whatever is younger than the grace is spared. Compactions look after their readers by themselves; this is for elements
/// that are staged before a key names them, for a unit whose time is earlier than its snapshot, and for clocks that step.
pub(super) struct KeyspaceReaper {
    codec: KeyCodec,
    clock: Arc<dyn Clock>,
    grace_ms: i64,
}

impl KeyspaceReaper {
    /// A reaper for the records of `codec`.
    pub(super) fn new(codec: KeyCodec, clock: Arc<dyn Clock>, grace: Duration) -> Self {
        Self { codec, clock, grace_ms: i64::try_from(grace.as_millis()).unwrap_or(i64::MAX) }
    }
}

impl Reaper for KeyspaceReaper {
    fn judge(&self) -> Box<dyn Judge> {
        Box::new(KeyspaceJudge {
            codec: self.codec.clone(),
            before_ms: self.clock.now_ms().cast_signed().saturating_sub(self.grace_ms),
            collection: Vec::new(),
            collection_is_dead: false,
        })
    }
}

struct KeyspaceJudge {
    codec: KeyCodec,
    /// What is from this time or later is spared.
    before_ms: i64,
    /// What all records of the collection begin with that was looked up last. Records come in the order of their keys, so
    /// those of one collection follow each other, and it is the only one worth remembering.
    collection: Vec<u8>,
    collection_is_dead: bool,
}

impl Judge for KeyspaceJudge {
    fn is_dead(&mut self, key: &[u8], value: &[u8], past: &dyn Past) -> Result<bool> {
        if self.codec.decode_metadata_key(key).is_some() {
            return Ok(self.is_expired(value));
        }
        let Some(owner) = self.codec.decode_owner(key) else { return Ok(false) };
        if KeyVersions::time_ms(owner.version) >= self.before_ms {
            return Ok(false);
        }
        let head = key.get(..self.codec.suffix_at(owner.key)).unwrap_or_default();
        if head != self.collection {
            self.collection.clear();
            self.collection_is_dead = !self.has_key(owner, past)?;
            self.collection.extend_from_slice(head);
        }
        Ok(self.collection_is_dead)
    }
}

impl KeyspaceJudge {
    fn is_expired(&self, metadata: &[u8]) -> bool {
        Metadata::expiry_of_whole(metadata).is_some_and(|at| at < self.before_ms)
    }

    /// True if there is a key to which the elements of `owner` belong: under the name in their keys, or under the one
    /// that it was renamed to.
    fn has_key(&self, owner: Owner<'_>, past: &dyn Past) -> Result<bool> {
        if self.names(owner.db, owner.key, owner.version, past)? {
            return Ok(true);
        }
        match past.get(&self.codec.forwarding(owner.db, owner.key, owner.version))? {
            Some(name) => self.names(owner.db, &name, owner.version, past),
            None => Ok(false),
        }
    }

    /// True if the metadata of `key` names `version`, or cannot be read.
    fn names(&self, db: u8, key: &[u8], version: u64, past: &dyn Past) -> Result<bool> {
        let Some(metadata) = past.get(&self.codec.metadata(db, key))? else { return Ok(false) };
        Ok(Metadata::decode(&metadata).map_or(true, |metadata| metadata.version == version))
    }
}
