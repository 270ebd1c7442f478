use std::collections::BTreeMap;

/// The most times that are told apart: about 32 MiB of them.
const TIMES_MAX: usize = 1 << 20;

/// How many keys expire when.
///
/// Exact to the millisecond until keys expire at more than a million different times; then neighbouring times are put
/// together, and a key may count as alive for that much longer.
pub(super) struct Expiries {
    /// Times are rounded up to a multiple of so many milliseconds.
    step_ms: i64,
    /// How many keys expire at each of the times to come.
    by_time: BTreeMap<i64, u64>,
    to_come: u64,
    /// How many expired before `horizon_ms`.
    passed: u64,
    horizon_ms: i64,
}

impl Default for Expiries {
    fn default() -> Self {
        Self { step_ms: 1, by_time: BTreeMap::new(), to_come: 0, passed: 0, horizon_ms: i64::MIN }
    }
}

impl Expiries {
    pub(super) fn add(&mut self, at_ms: Option<i64>) {
        let Some(at_ms) = at_ms.map(|at_ms| self.rounded(at_ms)) else { return };
        if at_ms < self.horizon_ms {
            self.passed += 1;
            return;
        }
        *self.by_time.entry(at_ms).or_default() += 1;
        self.to_come += 1;
        if self.by_time.len() > TIMES_MAX {
            self.coarsen();
        }
    }

    pub(super) fn remove(&mut self, at_ms: Option<i64>) {
        let Some(at_ms) = at_ms.map(|at_ms| self.rounded(at_ms)) else { return };
        if at_ms < self.horizon_ms {
            self.passed = self.passed.saturating_sub(1);
            return;
        }
        if let Some(keys) = self.by_time.get_mut(&at_ms) {
            *keys -= 1;
            self.to_come -= 1;
            if *keys == 0 {
                self.by_time.remove(&at_ms);
            }
        }
    }

    /// How many keys have expired by `now_ms`: a key has when its time has passed, not while it is there.
    pub(super) fn passed(&mut self, now_ms: i64) -> u64 {
        while let Some(first) = self.by_time.first_entry().filter(|first| *first.key() < now_ms) {
            let keys = first.remove();
            self.passed += keys;
            self.to_come -= keys;
        }
        self.horizon_ms = self.horizon_ms.max(now_ms);
        self.passed
    }

    /// How many keys will expire, after the time that [`Self::passed`] was last asked for.
    pub(super) fn to_come(&self) -> u64 {
        self.to_come
    }

    fn rounded(&self, at_ms: i64) -> i64 {
        round_up(at_ms, self.step_ms)
    }

    /// Doubles the step until half as many times are enough.
    fn coarsen(&mut self) {
        while self.by_time.len() > TIMES_MAX / 2 {
            self.step_ms *= 2;
            let step_ms = self.step_ms;
            let mut coarser = BTreeMap::new();
            for (at_ms, keys) in std::mem::take(&mut self.by_time) {
                *coarser.entry(round_up(at_ms, step_ms)).or_default() += keys;
            }
            self.by_time = coarser;
        }
    }
}

fn round_up(at_ms: i64, step_ms: i64) -> i64 {
    at_ms.checked_add(step_ms - 1).map_or(i64::MAX, |raised| raised - raised.rem_euclid(step_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_alive_at_its_time_and_not_after_it() {
        let mut expiries = Expiries::default();
        expiries.add(None);
        [5, 5, 7].into_iter().for_each(|at| expiries.add(Some(at)));
        assert_eq!((expiries.passed(5), expiries.to_come()), (0, 3));
        assert_eq!((expiries.passed(6), expiries.to_come()), (2, 1));
        expiries.remove(Some(5));
        expiries.add(Some(4));
        expiries.remove(Some(7));
        assert_eq!((expiries.passed(100), expiries.to_come()), (2, 0));
    }

    #[test]
    fn many_times_are_put_together_and_none_is_lost() {
        let mut expiries = Expiries::default();
        let times = TIMES_MAX as i64 + 10;
        (0..times).for_each(|at| expiries.add(Some(at)));
        assert!(expiries.by_time.len() <= TIMES_MAX / 2 + 10);
        assert_eq!(expiries.to_come(), times as u64);
        let half = expiries.passed(times / 2) as i64;
        assert!((times / 2 - expiries.step_ms..=times / 2).contains(&half), "{half}");
        (0..times).for_each(|at| expiries.remove(Some(at)));
        assert_eq!((expiries.passed(times + 10), expiries.to_come()), (0, 0));
    }

    #[test]
    fn the_last_time_there_is_does_not_overflow() {
        assert_eq!(round_up(i64::MAX, 2), i64::MAX);
        assert_eq!(round_up(i64::MAX, 1), i64::MAX);
        assert_eq!([round_up(4, 4), round_up(5, 4), round_up(0, 4)], [4, 8, 0]);
    }
}
