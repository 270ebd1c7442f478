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

    /// When `version` was handed out, in milliseconds since the Unix epoch.
    pub fn time_ms(version: u64) -> i64 {
        (version >> COUNTER_BITS).cast_signed()
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

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_bits() {
        let versions = KeyVersions::new(41);
        assert_eq!(versions.next(1_700_000_000_000), (1_700_000_000_000 << 11) | 42);
        assert_eq!(versions.next(1_700_000_000_001), (1_700_000_000_001 << 11) | 43);
        assert_eq!(versions.next(1_700_000_000_001), (1_700_000_000_001 << 11) | 44);
    }

    #[test]
    fn only_the_counter_is_seeded() {
        let versions = KeyVersions::new(u64::MAX);
        assert_eq!(versions.next(7), 7 << 11, "and wraps within its bits");
    }

    #[test]
    fn a_used_up_millisecond_borrows_from_the_next() {
        let versions = KeyVersions::new(0);
        let mut last = 0;
        for _ in 0..5000 {
            let next = versions.next(3);
            assert!(next > last);
            last = next;
        }
        assert_eq!(last >> COUNTER_BITS, 5);
    }

    #[test]
    fn threads_never_share_a_version() {
        let versions = KeyVersions::new(0);
        let draw = || (0..2000).map(|_| versions.next(1)).collect::<Vec<_>>();
        let all: Vec<u64> = thread::scope(|scope| {
            let threads = [scope.spawn(draw), scope.spawn(draw)];
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 4000);
    }

    proptest! {
        #[test]
        fn versions_rise_whatever_the_clock_does(seed: u64, clock in prop::collection::vec(0u64..20, 2..200)) {
            let versions = KeyVersions::new(seed);
            let drawn: Vec<u64> = clock.into_iter().map(|now_ms| versions.next(now_ms)).collect();
            prop_assert!(drawn.is_sorted_by(|a, b| a < b), "{:?}", drawn);
        }
    }
}
