//! Looking ahead over many ranges at once: on a store that spreads keys by slot, most slots of a small database are empty.

use respgate_backend_api::{Direction, KeyRange};

use super::{Result, Unit};

/// Over how many ranges one look for the next record goes: one over too many would go to too many servers.
pub(super) const RANGES_MAX: usize = 512;

impl Unit<'_> {
    /// What is left of `rest` from the first range on that has a record. `rest` is in ascending order.
    pub(super) async fn skip_empty<'r, T>(
        &mut self,
        mut rest: &'r [T],
        range_of: impl Fn(&T) -> &KeyRange,
    ) -> Result<&'r [T]> {
        loop {
            let (left, is_found) = self.look_ahead(rest, &range_of).await?;
            if is_found || left.is_empty() {
                return Ok(left);
            }
            rest = left;
        }
    }

    /// One look into the ranges of `rest`, which is in ascending order. Gives what is left of them after those that are
    /// empty, and whether the first of these has a record.
    ///
    /// Where one look goes over many ranges it may find a record between them. Then the ranges before it are empty too.
    pub(super) async fn look_ahead<'r, T>(
        &mut self,
        rest: &'r [T],
        range_of: impl Fn(&T) -> &KeyRange,
    ) -> Result<(&'r [T], bool)> {
        // Elsewhere ranges lie apart.
        let ranges_max = if self.keyspace().capabilities().range_partitioned { RANGES_MAX } else { 1 };
        let (Some(first), Some(last)) = (rest.first(), rest.get(..ranges_max).unwrap_or(rest).last()) else {
            return Ok((rest, false));
        };
        let end = range_of(last).end.clone();
        let ahead = KeyRange::new(range_of(first).start.clone(), end.clone());
        let found = self.scan(&ahead, Direction::Forward, 1).await?.into_iter().next();
        let reached = found.as_ref().map_or(&end, |(record, _)| record);
        let passed = rest.partition_point(|item| range_of(item).end <= *reached);
        let left = rest.get(passed..).unwrap_or_default();
        let is_inside = |record: &[u8]| left.first().is_some_and(|item| range_of(item).contains(record));
        Ok((left, found.is_some_and(|(record, _)| is_inside(&record))))
    }
}
