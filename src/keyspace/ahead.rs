//! Looking ahead over many ranges at once: on a store that spreads keys by slot, most slots of a small database are empty.

use respgate_backend_api::{Direction, KeyRange};

use super::{Result, Unit};

/// Over how many ranges one look for the next record goes: one over too many would go to too many servers.
pub(super) const RANGES_MAX: usize = 512;

impl Unit<'_> {
    /// What is left of `rest` from the first range on that has a record. `rest` is in ascending order.
    ///
    /// Where one look goes over many ranges it may find a record between them. Then the ranges before it are empty too.
    pub(super) async fn skip_empty<'r, T>(
        &mut self,
        mut rest: &'r [T],
        range_of: impl Fn(&T) -> &KeyRange,
    ) -> Result<&'r [T]> {
        // Elsewhere ranges lie apart.
        let ranges_max = if self.keyspace().capabilities().range_partitioned { RANGES_MAX } else { 1 };
        loop {
            let (Some(first), Some(last)) = (rest.first(), rest.get(..ranges_max).unwrap_or(rest).last()) else {
                return Ok(rest);
            };
            let end = range_of(last).end.clone();
            let ahead = KeyRange::new(range_of(first).start.clone(), end.clone());
            let found = self.scan(&ahead, Direction::Forward, 1).await?.into_iter().next();
            let reached = found.as_ref().map_or(&end, |(record, _)| record);
            let passed = rest.partition_point(|item| range_of(item).end <= *reached);
            rest = rest.get(passed..).unwrap_or_default();
            if found.is_some_and(|(record, _)| rest.first().is_some_and(|item| range_of(item).contains(&record))) {
                return Ok(rest);
            }
        }
    }
}
