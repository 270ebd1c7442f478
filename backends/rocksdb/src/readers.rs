use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::engine::Engine;

/// Who reads the database as it was at some moment.
///
/// RocksDB keeps a list of its own, but the snapshots that compactions hold for themselves are on it too.
#[derive(Default)]
pub(crate) struct Readers {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    /// The number of the next reader.
    next: u64,
    reading: BTreeSet<u64>,
}

/// A point in the order in which readers come: those who come later open their snapshots after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn(u64);

impl Readers {
    /// Between those who have come and those who will.
    pub(crate) fn turn(&self) -> Turn {
        Turn(self.queue.lock().next)
    }

    /// True if nobody who came before `turn` still reads. That then stays so.
    pub(crate) fn have_left(&self, turn: Turn) -> bool {
        self.queue.lock().reading.first().is_none_or(|&first| first >= turn.0)
    }
}

/// Someone who reads the database as it was at one moment, until dropped.
pub(crate) struct Reader {
    engine: Arc<Engine>,
    number: u64,
}

impl Reader {
    /// Announces a reader. Its snapshot is opened after this and released before this is dropped.
    pub(crate) fn announce(engine: Arc<Engine>) -> Self {
        let number = {
            let mut queue = engine.readers.queue.lock();
            let number = queue.next;
            queue.next += 1;
            queue.reading.insert(number);
            number
        };
        Self { engine, number }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.engine.readers.queue.lock().reading.remove(&self.number);
    }
}
