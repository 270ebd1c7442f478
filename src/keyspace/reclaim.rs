//! Deleting flushed databases on a store that gateways share.

use respgate_backend_api::{Direction, Error as StoreError, KeyRange};

use super::{Error, Intent, Keyspace, Result};

/// How many records one unit deletes: about what a commit in one phase takes.
const PAGE: usize = 200;

impl Keyspace {
    /// Deletes the records of a retired database, and then makes its number free again.
    ///
    /// Each unit conflicts with any change of the map: a gateway that was paused here cannot touch a database that got the
    /// number since.
    pub(super) async fn reclaim_shared(&self, physical: u8) -> Result<()> {
        let places = self.places_of_database(physical);
        let mut ranges: Vec<KeyRange> = places.flat_map(|place| place.everything(&self.codec)).collect();
        ranges.sort_unstable_by(|one, other| one.start.cmp(&other.start));
        let mut rest = ranges.as_slice();
        while !rest.is_empty() {
            match self.reclaim_some(physical, rest).await {
                Ok(Some(left)) => rest = left,
                Ok(None) => return Ok(()),
                Err(Error::Store(StoreError::Conflict)) => tokio::task::yield_now().await,
                Err(error) => return Err(error),
            }
        }
        loop {
            match self.set_free(physical).await {
                Err(Error::Store(StoreError::Conflict)) => tokio::task::yield_now().await,
                outcome => return outcome,
            }
        }
    }

    /// Deletes the first records of `ranges`, and returns the ranges that may have more. `None` if somebody else was
    /// quicker with the whole.
    async fn reclaim_some<'r>(&self, physical: u8, ranges: &'r [KeyRange]) -> Result<Option<&'r [KeyRange]>> {
        let mut unit = self.begin(Intent::Write).await?;
        if !unit.reread_databases().await?.is_retired(physical) {
            return Ok(None);
        }
        let rest = unit.skip_empty(ranges, |range| range).await?;
        if let Some(range) = rest.first() {
            for (record, _) in unit.scan(range, Direction::Forward, PAGE).await? {
                unit.delete_record(record);
            }
            unit.commit().await?;
        }
        Ok(Some(rest))
    }

    async fn set_free(&self, physical: u8) -> Result<()> {
        let mut unit = self.begin(Intent::Write).await?;
        unit.reread_databases().await?;
        unit.set_database_free(physical);
        unit.commit().await
    }
}
