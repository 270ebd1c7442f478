use std::ops::Bound;

use bytes::Bytes;
use respgate_backend_api::KeyRange;

use crate::encoding::{Garbage, KeyCodec, index_of_member};

/// Where the elements of one version of one key are kept. Elements stay where they were written when their key is
/// renamed, so the owner may be a former name.
#[derive(Clone)]
pub struct Collection<'k> {
    codec: &'k KeyCodec,
    db: u8,
    owner: Bytes,
    pub(super) version: u64,
    /// True if the elements are the members of a sorted set of encode-version 1, which have a tag of their own.
    is_indexed: bool,
}

impl<'k> Collection<'k> {
    pub(super) fn new(codec: &'k KeyCodec, db: u8, owner: Bytes, version: u64, is_indexed: bool) -> Self {
        Self { codec, db, owner, version, is_indexed }
    }

    /// The record of the element with this suffix.
    pub fn element(&self, suffix: &[u8]) -> Bytes {
        if self.is_indexed {
            return self.codec.member_index(self.db, &self.owner, self.version, suffix);
        }
        self.codec.element(self.db, &self.owner, self.version, suffix)
    }

    /// The records of all elements.
    pub fn elements(&self) -> KeyRange {
        if self.is_indexed {
            return self.codec.member_indexes(self.db, &self.owner, self.version);
        }
        self.codec.elements(self.db, &self.owner, self.version)
    }

    /// The suffix of the element with this name: the name, or what stands for it.
    pub fn suffix_of(&self, name: &Bytes) -> Bytes {
        if self.is_indexed { index_of_member(name) } else { name.clone() }
    }

    /// The suffix of one of [`Self::elements`]' records: what is left of it.
    pub fn suffix(&self, record: Bytes) -> Bytes {
        self.codec.suffix(&self.owner, record).unwrap_or_default()
    }

    /// The record of the score index for a member with this score.
    pub fn score(&self, score: f64, member: &[u8]) -> Bytes {
        self.codec.score(self.db, &self.owner, self.version, score, member)
    }

    /// The record at a place in the score index: an ordered score, and the whole or the beginning of a name.
    pub fn score_at(&self, place: &[u8]) -> Bytes {
        self.codec.score_at(self.db, &self.owner, self.version, place)
    }

    /// The records of the whole score index.
    pub fn scores(&self) -> KeyRange {
        self.codec.scores(self.db, &self.owner, self.version)
    }

    /// The records of the score index whose scores lie within two bounds.
    pub fn scores_between(&self, min: Bound<f64>, max: Bound<f64>) -> KeyRange {
        self.codec.scores_between(self.db, &self.owner, self.version, min, max)
    }

    /// The member and the score in one of [`Self::scores`]' records, of which the member is left.
    pub fn scored(&self, record: Bytes) -> (Bytes, f64) {
        let (score, member) = self.codec.score_and_member(&self.owner, record).unwrap_or_default();
        (member, score)
    }

    /// The ranges of all records that hold the value of a collection of this kind, beside its metadata.
    pub fn ranges(&self, kind: Garbage) -> Vec<KeyRange> {
        if self.is_indexed {
            return vec![self.elements()];
        }
        self.codec.garbage_ranges(self.db, &self.owner, self.version, kind)
    }
}
