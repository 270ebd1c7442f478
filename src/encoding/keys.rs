use std::{ops::Bound, sync::Arc};

use bytes::{Buf, Bytes};
use respgate_backend_api::KeyRange;

use super::{
    Garbage, Type, decode_score, encode_score,
    slot::{slot, slot_prefix},
};

/// What a record is: the two bytes that stand before the namespace in its key.
type Tag = [u8; 2];

const METADATA: Tag = *b"m#";
const ELEMENT: Tag = *b"s#";
const SCORE: Tag = *b"k#";
const MEMBER: Tag = *b"i#";
const GARBAGE: Tag = *b"g#";
const FORWARDING: Tag = *b"f#";
const DATABASES: Tag = *b"d#";
const CURSOR: Tag = *b"o#";
const LEASE: Tag = *b"w#";

/// The tags of records that belong to a database.
const DATABASE_TAGS: [Tag; 6] = [METADATA, ELEMENT, SCORE, MEMBER, GARBAGE, FORWARDING];

/// The tags of records that carry the version of the key that they belong to, other than garbage.
const ELEMENT_TAGS: [Tag; 3] = [ELEMENT, SCORE, MEMBER];

/// What stands in place of an index in the key of a journal; indexes begin with 0 or 1.
const JOURNAL: u8 = 2;

const SLOT_PREFIX_BYTES: usize = 8;
const TAG_BYTES: usize = 2;
const DATABASE_BYTES: usize = 1;
const LENGTH_BYTES: usize = 4;
const VERSION_BYTES: usize = 8;
const SCORE_BYTES: usize = 8;

/// A namespace whose name is longer than the 255 bytes that its length byte can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a namespace's name may have at most 255 bytes, not {0}")]
pub struct NamespaceTooLong(pub usize);

/// Whom a record with a version belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner<'a> {
    /// The physical database.
    pub db: u8,
    /// The user key under which the elements lie.
    pub key: &'a [u8],
    /// The version of that key.
    pub version: u64,
}

/// Builds and takes apart the keys of records.
///
/// Knows the namespace, and whether the store is range-partitioned so that keys need a slot prefix. `db` is always the
/// physical index of a [`DatabaseMap`](super::DatabaseMap). Every method that builds a key allocates once; cloning a
/// codec is cheap.
///
/// The user key in the keys of elements, scores, members and garbage is the one under which the elements lie: the
/// [origin](super::Metadata::origin) of a renamed key.
#[derive(Clone, Debug)]
pub struct KeyCodec {
    /// Its length in one byte, then its name.
    pub(super) namespace: Arc<[u8]>,
    slot_prefix: bool,
}

impl KeyCodec {
    /// A codec for the records of one namespace; with `slot_prefix` for a range-partitioned store.
    pub fn new(namespace: &str, slot_prefix: bool) -> Result<Self, NamespaceTooLong> {
        let length = u8::try_from(namespace.len()).map_err(|_| NamespaceTooLong(namespace.len()))?;
        Ok(Self { namespace: [&[length], namespace.as_bytes()].concat().into(), slot_prefix })
    }

    /// The metadata record of a key: `P` `m#` ns key.
    pub fn metadata(&self, db: u8, key: &[u8]) -> Bytes {
        let mut record = self.begin(METADATA, db, self.slot_of(key), key.len());
        record.extend_from_slice(key);
        record.into()
    }

    /// True if `record` is some key's metadata record.
    pub fn is_metadata(&self, record: &[u8]) -> bool {
        self.is_tagged(METADATA, record)
    }

    /// True if `record` is an element of some collection, whatever its tag, or a chunk of a string.
    pub fn is_element(&self, record: &[u8]) -> bool {
        self.is_tagged(ELEMENT, record) || self.is_tagged(MEMBER, record)
    }

    /// True if `record` is a member of a sorted set of encode-version 1.
    pub fn is_member(&self, record: &[u8]) -> bool {
        self.is_tagged(MEMBER, record)
    }

    fn is_tagged(&self, tag: Tag, record: &[u8]) -> bool {
        let prefix = if self.slot_prefix { SLOT_PREFIX_BYTES } else { 0 };
        record.get(prefix..).is_some_and(|record| record.starts_with(&tag))
    }

    /// An element of a collection, or a chunk of a string: `P` `s#` ns key.len key version suffix.
    pub fn element(&self, db: u8, key: &[u8], version: u64, suffix: &[u8]) -> Bytes {
        self.versioned(ELEMENT, db, key, version, &[suffix]).into()
    }

    /// All elements of one version of a key.
    pub fn elements(&self, db: u8, key: &[u8], version: u64) -> KeyRange {
        KeyRange::prefix(self.versioned(ELEMENT, db, key, version, &[]))
    }

    /// Where a member stands in the order of scores: `P` `k#` ns key.len key version score member.
    pub fn score(&self, db: u8, key: &[u8], version: u64, score: f64, member: &[u8]) -> Bytes {
        self.versioned(SCORE, db, key, version, &[&encode_score(score), member]).into()
    }

    /// The whole score index of one version of a key, in ascending order of (score, member).
    pub fn scores(&self, db: u8, key: &[u8], version: u64) -> KeyRange {
        KeyRange::prefix(self.versioned(SCORE, db, key, version, &[]))
    }

    /// A place in the score index: an ordered score, and the whole or the beginning of a name.
    pub fn score_at(&self, db: u8, key: &[u8], version: u64, place: &[u8]) -> Bytes {
        self.versioned(SCORE, db, key, version, &[place]).into()
    }

    /// The part of the score index whose scores lie within two bounds; empty if no score can.
    pub fn scores_between(&self, db: u8, key: &[u8], version: u64, min: Bound<f64>, max: Bound<f64>) -> KeyRange {
        let from = |score| Bytes::from(self.versioned(SCORE, db, key, version, &[&encode_score(score)]));
        let after = |score| KeyRange::prefix(from(score)).end;
        let start = match min {
            Bound::Included(score) => from(score),
            Bound::Excluded(score) => after(score),
            Bound::Unbounded => self.scores(db, key, version).start,
        };
        let end = match max {
            Bound::Included(score) => after(score),
            Bound::Excluded(score) => from(score),
            Bound::Unbounded => self.scores(db, key, version).end,
        };
        KeyRange { start, end }
    }

    /// A member of a sorted set of encode-version 1: `P` `i#` ns key.len key version index, where `index` comes from
    /// [`index_of_member`](super::index_of_member).
    pub fn member_index(&self, db: u8, key: &[u8], version: u64, index: &[u8]) -> Bytes {
        self.versioned(MEMBER, db, key, version, &[index]).into()
    }

    /// All members of one version of a sorted set of encode-version 1.
    pub fn member_indexes(&self, db: u8, key: &[u8], version: u64) -> KeyRange {
        let start = self.versioned(MEMBER, db, key, version, &[]);
        KeyRange::new(start, self.journal(db, key, version))
    }

    /// The [`Journal`](super::Journal) of a sorted set of encode-version 1: `P` `i#` ns key.len key version `2`, behind all
    /// members.
    pub fn journal(&self, db: u8, key: &[u8], version: u64) -> Bytes {
        self.versioned(MEMBER, db, key, version, &[&[JOURNAL]]).into()
    }

    /// The note that one version of a key is dead: `P` `g#` ns key.len key version.
    pub fn garbage(&self, db: u8, key: &[u8], version: u64) -> Bytes {
        self.versioned(GARBAGE, db, key, version, &[]).into()
    }

    /// Where the key went whose elements of this version lie under `key`: `P` `f#` ns key.len key version.
    pub fn forwarding(&self, db: u8, key: &[u8], version: u64) -> Bytes {
        self.versioned(FORWARDING, db, key, version, &[]).into()
    }

    /// What to delete before the garbage record itself goes.
    pub fn garbage_ranges(&self, db: u8, key: &[u8], version: u64, garbage: Garbage) -> Vec<KeyRange> {
        let tags: &[Tag] = match (garbage.kind, garbage.encode_version) {
            (Type::Zset, 0) => &[ELEMENT, SCORE],
            (Type::Zset, _) => &[MEMBER],
            _ => &[ELEMENT],
        };
        tags.iter().map(|&tag| KeyRange::prefix(self.versioned(tag, db, key, version, &[]))).collect()
    }

    /// How many bytes of a record's key stand before its suffix, score, or member index. The same for all records of
    /// `key`, whatever their tag and version: a scan cuts them off.
    pub fn suffix_at(&self, key: &[u8]) -> usize {
        self.head_bytes() + LENGTH_BYTES + key.len() + VERSION_BYTES
    }

    /// The suffix in the key of an element, or the index in the key of a member: what is left of `record`.
    /// `None` if `record` is too short to be one of `key`.
    pub fn suffix(&self, key: &[u8], mut record: Bytes) -> Option<Bytes> {
        let at = self.suffix_at(key);
        (at <= record.len()).then(|| {
            record.advance(at);
            record
        })
    }

    /// The score and the member in the key of a score-index record; the member is what is left of `record`.
    /// `None` if `record` is too short to be one of `key`.
    pub fn score_and_member(&self, key: &[u8], record: Bytes) -> Option<(f64, Bytes)> {
        let mut suffix = self.suffix(key, record)?;
        let score = decode_score(*suffix.first_chunk()?);
        suffix.advance(SCORE_BYTES);
        Some((score, suffix))
    }

    /// The metadata records of a database, on a store without slot prefixes.
    pub fn metadata_range(&self, db: u8) -> KeyRange {
        self.range(METADATA, db, None)
    }

    /// The metadata records of a database and a slot, on a store with slot prefixes.
    pub fn metadata_range_of_slot(&self, db: u8, slot: u16) -> KeyRange {
        self.range(METADATA, db, Some(slot))
    }

    /// The database and the user key of a metadata record; `None` if `record` is the key of another record.
    pub fn decode_metadata_key<'a>(&self, record: &'a [u8]) -> Option<(u8, &'a [u8])> {
        self.strip_head(METADATA, record)
    }

    /// The garbage records of a database, on a store without slot prefixes.
    pub fn garbage_range(&self, db: u8) -> KeyRange {
        self.range(GARBAGE, db, None)
    }

    /// The garbage records of a database and a slot, on a store with slot prefixes.
    pub fn garbage_range_of_slot(&self, db: u8, slot: u16) -> KeyRange {
        self.range(GARBAGE, db, Some(slot))
    }

    /// Whose death a garbage record tells of; `None` if `record` is the key of another record.
    pub fn decode_garbage_key<'a>(&self, record: &'a [u8]) -> Option<Owner<'a>> {
        let (owner, suffix) = self.strip_version(GARBAGE, record)?;
        suffix.is_empty().then_some(owner)
    }

    /// Whom an element, a score or a member belongs to; `None` if `record` is the key of another record.
    pub fn decode_owner<'a>(&self, record: &'a [u8]) -> Option<Owner<'a>> {
        ELEMENT_TAGS.iter().find_map(|&tag| self.strip_version(tag, record)).map(|(owner, _)| owner)
    }

    /// Every record with the same tag and owner as `record`, which is an element, a score or a member; `None` if it is
    /// another record.
    pub fn range_of_owner(&self, record: &Bytes) -> Option<KeyRange> {
        self.collection_of(record).map(|collection| KeyRange::prefix(record.slice_ref(collection)))
    }

    /// What every record with the same tag and owner as `record` begins with, and no other one. `None` if `record` is not
    /// an element, a score or a member.
    pub fn collection_of<'a>(&self, record: &'a [u8]) -> Option<&'a [u8]> {
        let owner = self.decode_owner(record)?;
        record.get(..self.suffix_at(owner.key))
    }

    /// The elements, scores and members of a database, on a store without slot prefixes: one range a tag.
    pub fn element_ranges(&self, db: u8) -> Vec<KeyRange> {
        ELEMENT_TAGS.map(|tag| self.range(tag, db, None)).into()
    }

    /// The elements, scores and members of a database and a slot, on a store with slot prefixes: one range a tag.
    pub fn element_ranges_of_slot(&self, db: u8, slot: u16) -> Vec<KeyRange> {
        ELEMENT_TAGS.map(|tag| self.range(tag, db, Some(slot))).into()
    }

    /// Every record of a database, on a store without slot prefixes: one range a tag.
    pub fn database_ranges(&self, db: u8) -> Vec<KeyRange> {
        DATABASE_TAGS.map(|tag| self.range(tag, db, None)).into()
    }

    /// Every record of a database and a slot, on a store with slot prefixes: one range a tag.
    pub fn database_ranges_of_slot(&self, db: u8, slot: u16) -> Vec<KeyRange> {
        DATABASE_TAGS.map(|tag| self.range(tag, db, Some(slot))).into()
    }

    /// The record of the [`DatabaseMap`](super::DatabaseMap): `d#`, the namespace's length and name. Never with a slot
    /// prefix: it belongs to no key.
    pub fn databases(&self) -> Bytes {
        [&DATABASES[..], &self.namespace].concat().into()
    }

    /// The record of a cursor that SCAN gave out: `o#`, the namespace's length and name, `u64` cursor. Never with a slot
    /// prefix: it belongs to no key.
    pub fn cursor(&self, cursor: u64) -> Bytes {
        [&CURSOR[..], &self.namespace, &cursor.to_be_bytes()].concat().into()
    }

    /// The records of all cursors.
    pub fn cursors(&self) -> KeyRange {
        KeyRange::prefix([&CURSOR[..], &self.namespace].concat())
    }

    /// The record of the [lease](super::LeaseRecord) on a share of a duty: `w#`, the namespace's length and name, `u8`
    /// duty, `u8` share. Never with a slot prefix: it belongs to no key.
    pub fn lease(&self, duty: u8, share: u8) -> Bytes {
        [&LEASE[..], &self.namespace, &[duty, share]].concat().into()
    }

    fn slot_of(&self, key: &[u8]) -> Option<u16> {
        self.slot_prefix.then(|| slot(key))
    }

    /// The bytes before the user key, or before its length.
    fn head_bytes(&self) -> usize {
        let prefix_bytes = if self.slot_prefix { SLOT_PREFIX_BYTES } else { 0 };
        prefix_bytes + TAG_BYTES + self.namespace.len() + DATABASE_BYTES
    }

    /// `P` tag ns, with room for `more` bytes. The exact capacity is what lets it become `Bytes` without a copy.
    fn begin(&self, tag: Tag, db: u8, slot: Option<u16>, more: usize) -> Vec<u8> {
        let mut record = Vec::with_capacity(self.head_bytes() + more);
        if let Some(slot) = slot {
            record.extend_from_slice(&slot_prefix(slot));
        }
        record.extend_from_slice(&tag);
        record.extend_from_slice(&self.namespace);
        record.push(db);
        record
    }

    fn versioned(&self, tag: Tag, db: u8, key: &[u8], version: u64, suffix: &[&[u8]]) -> Vec<u8> {
        let suffix_bytes: usize = suffix.iter().map(|part| part.len()).sum();
        let more = LENGTH_BYTES + key.len() + VERSION_BYTES + suffix_bytes;
        let mut record = self.begin(tag, db, self.slot_of(key), more);
        record.extend_from_slice(&(key.len() as u32).to_be_bytes());
        record.extend_from_slice(key);
        record.extend_from_slice(&version.to_be_bytes());
        suffix.iter().for_each(|part| record.extend_from_slice(part));
        record
    }

    fn range(&self, tag: Tag, db: u8, slot: Option<u16>) -> KeyRange {
        KeyRange::prefix(self.begin(tag, db, slot, 0))
    }

    /// Whom a record with this tag belongs to, and what follows that in its key.
    fn strip_version<'a>(&self, tag: Tag, record: &'a [u8]) -> Option<(Owner<'a>, &'a [u8])> {
        let (db, rest) = self.strip_head(tag, record)?;
        let (length, rest) = rest.split_first_chunk()?;
        let (key, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let (version, suffix) = rest.split_first_chunk()?;
        Some((Owner { db, key, version: u64::from_be_bytes(*version) }, suffix))
    }

    /// The database and what follows it in the key of a record with this tag.
    fn strip_head<'a>(&self, tag: Tag, record: &'a [u8]) -> Option<(u8, &'a [u8])> {
        let record = if self.slot_prefix { record.get(SLOT_PREFIX_BYTES..)? } else { record };
        let rest = record.strip_prefix(&tag)?.strip_prefix(&*self.namespace)?;
        rest.split_first().map(|(&db, rest)| (db, rest))
    }
}

#[cfg(test)]
mod tests;
