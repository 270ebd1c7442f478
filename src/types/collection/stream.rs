use bytes::Bytes;

use super::Open;
use crate::{
    keyspace::{Unit, Walk},
    types::Result,
};

/// Collections of more elements than this are worth sending page by page.
const LARGE_MIN: u64 = 10_000;

/// Elements that are read at a time.
const PAGE: usize = 500;

/// The elements of a large collection, read page by page, also after the unit has ended.
pub struct Elements {
    walk: Walk,
    /// How many bytes of a record's key stand before the element's suffix.
    suffix_at: usize,
    /// Elements that have not been read yet.
    left: u64,
}

impl Open<'_> {
    /// The elements, if they are many and the unit has changed none.
    pub(in crate::types) async fn stream(&self, unit: &mut Unit<'_>) -> Result<Option<Elements>> {
        if unit.has_writes() {
            return Ok(None);
        }
        let left = self.count(unit).await?;
        if left < LARGE_MIN {
            return Ok(None);
        }
        let range = self.elements().elements();
        Ok(Some(Elements { suffix_at: range.start.len(), walk: unit.walk(range).await?, left }))
    }
}

impl Elements {
    /// How many elements have not been read yet.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next elements, as suffixes and values; none after the last one.
    pub async fn next(&mut self) -> Result<Vec<(Bytes, Bytes)>> {
        let limit = usize::try_from(self.left).map_or(PAGE, |left| left.min(PAGE));
        let page = self.walk.next(limit).await?;
        self.left = if page.len() < limit { 0 } else { self.left - page.len() as u64 };
        let suffix = |record: &Bytes| record.slice(self.suffix_at.min(record.len())..);
        Ok(page.into_iter().map(|(record, value)| (suffix(&record), value)).collect())
    }
}
