//! Taking stock: walks over all that is stored, for those who count it, check it or clean it up.

mod groups;

use bytes::Bytes;
use respgate_backend_api::KeyRange;

use super::{Key, Keyspace, Result, Unit, Walk, names::position_after};
use crate::encoding::{DecodeError, Metadata};

pub use groups::{Group, GroupPage, GroupPosition};

/// How many keys one page holds at most.
const KEYS_MAX: usize = 128;

/// About how many bytes a page of records holds, whatever the length of the records.
const PAGE_BYTES: usize = 256 << 10;

/// The most records on a page.
const PAGE_RECORDS_MAX: usize = 1_024;

/// How many records the first page holds, of which nothing is known yet.
const PAGE_RECORDS_FIRST: usize = 16;

/// A walk over the keys of all databases, page by page, each page in a unit of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyWalk {
    /// The database.
    pub db: u8,
    /// After which key the next page begins; a position as [`NamePage::next`](super::NamePage) has it.
    pub after: Option<Bytes>,
    /// The last database, if it is not the last of all.
    pub last_db: Option<u8>,
}

/// Some keys of one database, expired ones included.
pub struct KeyPage {
    /// The database.
    pub db: u8,
    /// Their names, and what their metadata records say.
    pub keys: Vec<(Bytes, std::result::Result<Metadata, DecodeError>)>,
}

impl KeyWalk {
    /// The same walk, going on after `key`.
    pub fn after(&self, key: &Key, keyspace: &Keyspace) -> Self {
        let after = position_after(&key.name, keyspace.capabilities().range_partitioned);
        Self { db: key.db, after: Some(after), last_db: self.last_db }
    }

    /// The next page, as `unit` sees it, and the walk that goes on after it; `None` after the last one.
    pub async fn next(&self, unit: &mut Unit<'_>) -> Result<Option<(KeyPage, Self)>> {
        let Self { db, ref after, last_db } = *self;
        if last_db.is_some_and(|last| db > last) || unit.physical(db).is_err() {
            return Ok(None);
        }
        let (records, next) = unit.metadata_page(db, after.as_deref(), KEYS_MAX).await?;
        let keys = records.into_iter().map(|(name, value)| (name, Metadata::decode(&value))).collect();
        // The last possible database needs no successor: there are at most 128.
        let db_next = if next.is_some() { db } else { db.saturating_add(1) };
        Ok(Some((KeyPage { db, keys }, Self { db: db_next, after: next, last_db })))
    }
}

/// A walk over the records of a range in pages of about the same number of bytes.
pub struct Pages {
    walk: Walk,
    limit: usize,
    has_begun: bool,
    is_over: bool,
}

impl Unit<'_> {
    /// The records of `range`, as the unit's snapshot has them.
    pub async fn pages(&mut self, range: KeyRange) -> Result<Pages> {
        Ok(Pages { walk: self.walk(range).await?, limit: PAGE_RECORDS_FIRST, has_begun: false, is_over: false })
    }
}

impl Pages {
    /// True if some of the records have been read and others have not.
    pub fn is_midway(&self) -> bool {
        self.has_begun && !self.is_over
    }

    /// The next page, never empty; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<Vec<(Bytes, Bytes)>>> {
        if self.is_over {
            return Ok(None);
        }
        let page = self.walk.next(self.limit).await?;
        (self.has_begun, self.is_over) = (true, page.len() < self.limit);
        let bytes: usize = page.iter().map(|(record, value)| record.len() + value.len()).sum();
        // Grows slowly and shrinks at once: a few long records must not come by the thousand.
        let fitting = page.len() * PAGE_BYTES / bytes.max(1);
        self.limit = fitting.clamp(1, (2 * self.limit).min(PAGE_RECORDS_MAX));
        Ok((!page.is_empty()).then_some(page))
    }
}
