use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;

use super::Key;

/// The keys that transactions of this process watch.
///
/// A change that metadata shows (a key created, deleted, expired, flushed or swapped away) is found by comparing
/// metadata at EXEC. This registry finds the others: a field of a hash that is overwritten leaves its metadata alone.
#[derive(Default)]
pub struct Watches {
    /// How many keys are watched, so that commits of a process in which nobody watches pay one load.
    count: AtomicUsize,
    watched: Mutex<HashMap<Key, Vec<Weak<AtomicBool>>>>,
}

impl Watches {
    /// Watches `key` until the returned watch is dropped.
    pub fn watch(self: &Arc<Self>, key: Key) -> Watch {
        let changed = Arc::new(AtomicBool::new(false));
        let mut watched = self.watched.lock();
        watched.entry(key.clone()).or_default().push(Arc::downgrade(&changed));
        self.count.fetch_add(1, Ordering::SeqCst);
        Watch { key, changed, watches: Arc::clone(self) }
    }

    /// Tells all who watch one of `keys` that it has changed. Called while the keys' latches are held.
    pub(super) fn mark_changed(&self, keys: &[Key]) {
        if keys.is_empty() || self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let watched = self.watched.lock();
        for watch in keys.iter().filter_map(|key| watched.get(key)).flatten().filter_map(Weak::upgrade) {
            watch.store(true, Ordering::SeqCst);
        }
    }
}

/// A key that is being watched.
pub struct Watch {
    key: Key,
    changed: Arc<AtomicBool>,
    watches: Arc<Watches>,
}

impl Watch {
    /// The key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// True if a unit of this process has written to the key since the watch began.
    pub fn is_changed(&self) -> bool {
        self.changed.load(Ordering::SeqCst)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut watched = self.watches.watched.lock();
        let own = Arc::as_ptr(&self.changed);
        if let Some(others) = watched.get_mut(&self.key) {
            others.retain(|watch| watch.as_ptr() != own);
            if others.is_empty() {
                watched.remove(&self.key);
            }
        }
        self.watches.count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn key(name: &'static str) -> Key {
        Key { db: 0, name: Bytes::from(name) }
    }

    #[test]
    fn a_change_reaches_those_who_watch_the_key_and_nobody_else() {
        let watches = Arc::new(Watches::default());
        let (first, second, other) = (watches.watch(key("a")), watches.watch(key("a")), watches.watch(key("b")));
        watches.mark_changed(&[key("a"), key("c")]);
        assert!(first.is_changed() && second.is_changed() && !other.is_changed());
    }

    #[test]
    fn a_dropped_watch_leaves_nothing_behind() {
        let watches = Arc::new(Watches::default());
        drop(watches.watch(key("a")));
        assert!(watches.watched.lock().is_empty());
        assert_eq!(watches.count.load(Ordering::SeqCst), 0);
    }
}
