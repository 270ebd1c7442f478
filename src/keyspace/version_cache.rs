use std::sync::Arc;

use quick_cache::{Weighter, sync};

/// What can be kept in a [`VersionCache`].
pub trait Weighed {
    /// About how many bytes of memory it takes; always the same of the same thing.
    fn bytes(&self) -> usize;
}

/// What this process has found out about collections, by their version. Versions are never used again.
pub struct VersionCache<T: Weighed>(sync::Cache<u64, Arc<T>, ByBytes>);

#[derive(Clone)]
struct ByBytes;

impl<T: Weighed> Weighter<u64, Arc<T>> for ByBytes {
    fn weight(&self, _: &u64, kept: &Arc<T>) -> u64 {
        kept.bytes() as u64
    }
}

impl<T: Weighed> VersionCache<T> {
    /// An empty cache.
    pub(super) fn new() -> Self {
        /// Memory for all of it together.
        const BYTES_MAX: u64 = 32 << 20;
        /// Few collections are large, and chosen from at random.
        const COLLECTIONS: usize = 64;

        Self(sync::Cache::with_weighter(COLLECTIONS, BYTES_MAX, ByBytes))
    }

    /// What is known about the collection with this version.
    pub fn get(&self, version: u64) -> Option<Arc<T>> {
        self.0.get(&version)
    }

    /// Keeps something for a while.
    pub fn insert(&self, version: u64, known: T) -> Arc<T> {
        let known = Arc::new(known);
        self.0.insert(version, Arc::clone(&known));
        known
    }
}
