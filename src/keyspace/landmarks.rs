use bytes::Bytes;

use super::version_cache::Weighed;

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

impl Weighed for Landmarks {
    fn bytes(&self) -> usize {
        OVERHEAD_BYTES + self.suffixes.iter().map(|suffix| suffix.len() + OVERHEAD_BYTES).sum::<usize>()
    }
}
