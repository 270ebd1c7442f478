use std::sync::atomic::{AtomicU64, Ordering};

const COUNTER_BITS: u32 = 11;
const COUNTER_MASK: u64 = (1 << COUNTER_BITS) - 1;

/// Hands out key-versions: 53 bits of milliseconds since the Unix epoch, then 11 bits of a counter.
///
/// A version sets the elements of a collection apart from those of an earlier one with the same key, which may still
/// await collection. Within a process versions rise strictly, also when the clock stands still or steps back. Between
/// processes time tells them apart, and within one millisecond the counter, which each starts at random and never
/// starts over.
#[derive(Debug)]
pub struct KeyVersions {
    last: AtomicU64,
}

impl KeyVersions {
    /// Versions whose counter starts at the low bits of `seed`, which should be random.
    pub fn new(seed: u64) -> Self {
        Self { last: AtomicU64::new(seed & COUNTER_MASK) }
    }

    /// A version above all that were handed out before, of the moment `now_ms` if the clock has not stepped back and
    /// fewer than 2048 were asked for within the millisecond; otherwise time is borrowed from the next one.
    pub fn next(&self, now_ms: u64) -> u64 {
        let mut last = self.last.load(Ordering::Relaxed);
        loop {
            let next = successor(last, now_ms);
            match self.last.compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return next,
                Err(newer) => last = newer,
            }
        }
    }
}

fn successor(last: u64, now_ms: u64) -> u64 {
    let counted = last.wrapping_add(1);
    // The counter goes on from one millisecond to the next: two processes that started it differently stay apart.
    let timed = (now_ms << COUNTER_BITS) | (counted & COUNTER_MASK);
    timed.max(counted)
}
