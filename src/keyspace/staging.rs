use std::time::Instant;

use respgate_backend_api::{Error, Write, WriteSet};

use super::{Collection, Result, Unit, walk::Walk};
use crate::encoding::{KeyVersions, decode_member};

/// Records that are counted at a time.
const COUNTED: usize = 10_000;

impl Unit<'_> {
    /// Commits the elements that the unit has written to a new collection at once, and not together with the unit: for
    /// collections that are too large for one commit. Entries of an order are loaded into the sidecar, too. The unit
    /// does not see these elements any more.
    ///
    /// Nobody else sees them before the unit commits the metadata that names their version. If it never does, they are
    /// orphans, which are swept once they are older than the time of grace; so the unit has half of that.
    ///
    /// # Errors
    /// A conflict if the databases have changed since the unit began; `TooLarge` if it has taken too long.
    pub async fn stage(&mut self, collection: &Collection<'_>) -> Result<()> {
        let keyspace = self.keyspace();
        let began = Instant::now();
        let snapshot = keyspace.backend.snapshot().await?;
        let now_ms = snapshot.time_ms().unwrap_or_else(|| keyspace.clock.now_ms());
        if now_ms.cast_signed() - KeyVersions::time_ms(collection.version) > keyspace.grace_ms / 2 {
            let cause = "a collection that takes longer to write than half of background.grace".to_owned();
            return Err(Error::TooLarge(cause).into());
        }
        // What is written to a database after it was flushed would stay there.
        if keyspace.capabilities.shared
            && *keyspace.databases.at(&*snapshot, &keyspace.codec, began).await? != *self.databases
        {
            return Err(Error::Conflict.into());
        }
        let mut writes = self.overlay.take(&collection.elements());
        self.load_order(collection, &writes).await?;
        writes.append(&mut self.overlay.take(&collection.scores()));
        Ok(snapshot.commit(WriteSet { writes, guards: Vec::new() }).await?)
    }

    /// Loads staged members into the sidecar, if their order will be there.
    async fn load_order(&mut self, collection: &Collection<'_>, writes: &[Write]) -> Result<()> {
        let keyspace = self.keyspace();
        let Some(order) = self.orders.get_mut(&collection.version) else { return Ok(()) };
        let loading = order.loading(keyspace);
        let mut entries = Vec::with_capacity(writes.len());
        for (record, value) in writes {
            let Some(value) = value else { continue };
            entries.push((collection.suffix(record.clone()), decode_member(value)?.1));
        }
        Ok(keyspace.sidecar()?.load(&loading, &entries).await?)
    }

    /// How many elements of a collection are in the store now, staged ones included.
    pub async fn count_staged(&self, collection: &Collection<'_>) -> Result<usize> {
        let mut staged = Walk::over(self.keyspace().backend.snapshot().await?, collection.elements());
        let mut count = 0;
        loop {
            let page = staged.next(COUNTED).await?.len();
            count += page;
            if page < COUNTED {
                return Ok(count);
            }
        }
    }
}

#[cfg(test)]
mod tests;
