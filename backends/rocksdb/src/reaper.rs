//! Compactions that leave out what is dead.
//!
//! A compaction reads and writes records anyway, so leaving some out costs little. But RocksDB asks its filter whether
//! to keep a record without regard to snapshots: what is left out is gone from under everybody who reads an earlier
//! moment. Nobody misses anything, for these reasons:
//!
//! - A [`Judge`] looks the store up as it was at one moment after the compaction began (its [`Past`]). What the compaction
//!   meets had been committed and flushed by then, and a commit is atomic across families, so whatever was committed
//!   together with a record is part of that moment too. A commit that is under way meanwhile is in no file yet.
//! - What is dead at a moment is dead for ever, by the law of [`Judge::is_dead`]. So who reads this moment or a later one
//!   does not want it.
//! - As long as anybody reads an [earlier moment](crate::readers), nothing is left out. Once nobody does, nobody will.
//!
//! Reading the database within a compaction is allowed: no lock of RocksDB is held around the filter.

use std::cell::{Cell, OnceCell};
use std::ffi::CStr;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use respgate_backend_api::Result;
use rocksdb::CompactionDecision;
use rocksdb::compaction_filter::CompactionFilter;
use rocksdb::compaction_filter_factory::{CompactionFilterContext, CompactionFilterFactory};

use crate::engine::Engine;
use crate::error;
use crate::lookup::{self, Lookups};
use crate::pinned::PinnedSnapshot;
use crate::readers::Turn;

const NAME: &CStr = c"respgate";

/// Knows which records are dead. Compactions leave those out.
pub trait Reaper: Send + Sync + 'static {
    /// Begins to judge the records of one compaction.
    fn judge(&self) -> Box<dyn Judge>;
}

/// Judges the records that one compaction meets, in the ascending order of their keys.
pub trait Judge: Send {
    /// True if nobody who begins to read after [`Reaper::judge`] and sees `past`, or any later moment, can want this
    /// record: whether it is there makes no difference to them.
    ///
    /// A record that is dead stays dead until it is written again. After an error it is kept.
    fn is_dead(&mut self, key: &[u8], value: &[u8], past: &dyn Past) -> Result<bool>;
}

/// The store as it was at one moment after a compaction began.
pub trait Past {
    /// The value of a record. May wait for the disk.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>>;
}

/// A reaper, and the engine whose compactions ask it once that is open.
pub(crate) struct Reaping {
    reaper: Arc<dyn Reaper>,
    engine: OnceLock<Weak<Engine>>,
}

impl Reaping {
    pub(crate) fn new(reaper: Arc<dyn Reaper>) -> Arc<Self> {
        Arc::new(Self { reaper, engine: OnceLock::new() })
    }

    /// Compactions that begin before this keep everything.
    pub(crate) fn begin(&self, engine: &Arc<Engine>) {
        // A second call would only repeat the first.
        let _ = self.engine.set(Arc::downgrade(engine));
    }
}

/// Makes the filters of compactions, for several threads at once: it has nothing to change.
pub(crate) struct Filters(pub(crate) Arc<Reaping>);

impl CompactionFilterFactory for Filters {
    type Filter = Filter;

    fn create(&mut self, _: CompactionFilterContext) -> Filter {
        let Self(reaping) = self;
        let engine = reaping.engine.get().and_then(Weak::upgrade);
        // The judge looks at the clock first: who comes to read after the moment comes after that time too.
        Filter { court: engine.map(|engine| (reaping.reaper.judge(), Moment::now(engine))) }
    }

    fn name(&self) -> &CStr {
        NAME
    }
}

/// The filter of one compaction, which keeps the engine alive. It must not be the last to do so, because the database
/// cannot be closed from within a compaction; [`Engine::close`] waits until there is none.
pub(crate) struct Filter {
    /// `None` if there was no engine yet, or is none any more.
    court: Option<(Box<dyn Judge>, Moment)>,
}

impl CompactionFilter for Filter {
    fn filter(&mut self, _level: u32, key: &[u8], value: &[u8]) -> CompactionDecision {
        let Some((judge, moment)) = &mut self.court else { return CompactionDecision::Keep };
        match judge.is_dead(key, value, moment) {
            Ok(true) if moment.is_earliest() => CompactionDecision::Remove,
            _ => CompactionDecision::Keep,
        }
    }

    fn name(&self) -> &CStr {
        NAME
    }
}

/// The moment that a compaction is judged by.
struct Moment {
    engine: Arc<Engine>,
    /// Opened by the first lookup, since many compactions need none.
    lookups: OnceCell<Lookups>,
    /// Who comes later reads this moment or a later one.
    turn: Cell<Turn>,
}

impl Moment {
    fn now(engine: Arc<Engine>) -> Self {
        Self { turn: Cell::new(engine.readers.turn()), engine, lookups: OnceCell::new() }
    }

    fn lookups(&self) -> &Lookups {
        self.lookups.get_or_init(|| {
            let lookups = lookup::at(PinnedSnapshot::of(Arc::clone(&self.engine)));
            self.turn.set(self.engine.readers.turn());
            lookups
        })
    }

    /// True if nobody reads the store as it was before this moment. That then stays so.
    fn is_earliest(&self) -> bool {
        self.engine.readers.have_left(self.turn.get())
    }
}

impl Past for Moment {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.lookups().get(&self.engine, key).map_err(error::of_read)
    }
}
