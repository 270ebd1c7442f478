use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::SmallRng};

/// Where chance comes from: one seedable source, so that a run can be repeated.
pub struct Random {
    source: Mutex<SmallRng>,
}

impl Random {
    /// A source that repeats itself for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self { source: Mutex::new(SmallRng::seed_from_u64(seed)) }
    }

    /// A source seeded by the operating system.
    pub fn from_entropy() -> Self {
        #[expect(clippy::disallowed_methods, reason = "this is the source that everything else is injected with")]
        let source = SmallRng::from_rng(&mut rand::rng());
        Self { source: Mutex::new(source) }
    }

    /// 64 random bits.
    pub fn next_u64(&self) -> u64 {
        self.source.lock().random()
    }

    /// A number from 0 up to but without `bound`; 0 if `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.source.lock().random_range(0..bound) }
    }
}
