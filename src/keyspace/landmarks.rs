use std::sync::Arc;

use bytes::Bytes;
use quick_cache::{Weighter, sync};

/// Memory for all landmarks together.
const BYTES_MAX: u64 = 32 << 20;

/// What a landmark takes beside its bytes.
const OVERHEAD_BYTES: usize = 64;

/// Suffixes that cut the elements of one version of a collection into blocks, all of about the same size when they were
/// chosen.
///
/// Any suffixes are right: whoever uses them reads the blocks, which by then may hold more elements or fewer. That is
/// why they can be kept while the collection changes.
pub struct Landmarks {
    /// The first suffix of each block but the first, in ascending order.
    pub suffixes: Vec<Bytes>,
    /// How many elements a block may hold for the landmarks to be of use.
    pub block_max: usize,
}

/// Landmarks by the version of the collection. Versions are never used again.
pub struct LandmarkCache(sync::Cache<u64, Arc<Landmarks>, ByBytes>);

#[derive(Clone)]
struct ByBytes;

impl Weighter<u64, Arc<Landmarks>> for ByBytes {
    fn weight(&self, _: &u64, landmarks: &Arc<Landmarks>) -> u64 {
        let bytes = landmarks.suffixes.iter().map(|suffix| suffix.len() + OVERHEAD_BYTES).sum::<usize>();
        (bytes + OVERHEAD_BYTES) as u64
    }
}

impl LandmarkCache {
    /// An empty cache.
    pub(super) fn new() -> Self {
        /// Few collections are large, and chosen from at random.
        const COLLECTIONS: usize = 64;

        Self(sync::Cache::with_weighter(COLLECTIONS, BYTES_MAX, ByBytes))
    }

    /// The landmarks of the collection with this version, if they are known.
    pub fn get(&self, version: u64) -> Option<Arc<Landmarks>> {
        self.0.get(&version)
    }

    /// Keeps landmarks for a while.
    pub fn insert(&self, version: u64, landmarks: Arc<Landmarks>) {
        self.0.insert(version, landmarks);
    }
}
