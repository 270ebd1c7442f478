use std::sync::Arc;

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange, Snapshot};

use super::{Result, Unit};

/// A walk over the records of a range that may go on after its unit has ended, and still sees the unit's snapshot.
pub struct Walk {
    snapshot: Arc<dyn Snapshot>,
    /// What is left of the range.
    range: KeyRange,
}

impl Unit<'_> {
    /// A walk over `range`. It does not see what the unit has written.
    pub async fn walk(&mut self, range: KeyRange) -> Result<Walk> {
        Ok(Walk::over(self.snapshot().await?, range))
    }
}

impl Walk {
    /// A walk over `range` as `snapshot` has it.
    pub(super) fn over(snapshot: Arc<dyn Snapshot>, range: KeyRange) -> Self {
        Self { snapshot, range }
    }

    /// The next `limit` records; fewer are the last ones.
    pub async fn next(&mut self, limit: usize) -> Result<Vec<(Bytes, Bytes)>> {
        let page = self.snapshot.scan(&self.range, Direction::Forward, limit).await?;
        if let Some((last, _)) = page.last() {
            self.range = self.range.clone().after(last);
        }
        Ok(page)
    }
}
