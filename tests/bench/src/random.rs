//! Chance that costs next to nothing.

/// xorshift: random enough to spread keys.
pub struct Xorshift(u64);

impl Xorshift {
    /// Each seed is the beginning of another sequence.
    pub fn new(seed: u64) -> Self {
        Self(seed + 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
