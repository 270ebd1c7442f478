use std::sync::Arc;

use rocksdb::Snapshot;
use self_cell::self_cell;

use crate::engine::Engine;

type EngineSnapshot<'engine> = Snapshot<'engine>;

self_cell!(
    /// A snapshot together with the engine from which it borrows.
    pub(crate) struct PinnedSnapshot {
        owner: Arc<Engine>,
        #[covariant]
        dependent: EngineSnapshot,
    }
);

impl PinnedSnapshot {
    /// The database as it is now.
    pub(crate) fn of(engine: Arc<Engine>) -> Self {
        Self::new(engine, |engine| engine.db().snapshot())
    }
}
