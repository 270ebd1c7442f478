//! Lookups that memory could not answer, handed over together.
//!
//! To hand work to a thread that may wait, and to be woken by it, costs several times as much as to take a block from the
//! system's cache. So the first lookup starts a task that waits for its next turn, and then hands over what has come by
//! then: as much to one thread as it does in a moment, so that lookups which have to wait for the disk are still made
//! side by side.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use respgate_backend_api::{Error, Result};
use tokio::sync::oneshot;
use tokio::task;

use crate::engine::Engine;

/// For how long, as far as can be foreseen, one thread is busy with what is handed to it.
const HANDFUL_NS: u64 = 200_000;

/// What a lookup is expected to take before one was made: about as long as a fast disk.
const LOOKUP_NS: u64 = 100_000;

/// The lookups that are to be handed over next.
pub(crate) struct Fetches {
    waiting: Mutex<Vec<Fetch>>,
    /// What a lookup took lately, on average.
    lookup_ns: AtomicU64,
}

impl Default for Fetches {
    fn default() -> Self {
        Self { waiting: Mutex::default(), lookup_ns: AtomicU64::new(LOOKUP_NS) }
    }
}

struct Fetch {
    lookups: usize,
    work: Box<dyn FnOnce() + Send>,
}

impl Fetches {
    /// Runs `fetch`, and learns from it.
    fn run(&self, fetch: Fetch) {
        /// How much the past counts against one lookup.
        const INERTIA: u64 = 15;

        let began = Instant::now();
        (fetch.work)();
        let took_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX) / (fetch.lookups as u64).max(1);
        // Others may learn at the same time; that one of them is forgotten is no loss.
        let average_ns = self.lookup_ns.load(Ordering::Relaxed);
        self.lookup_ns
            .store(average_ns.saturating_mul(INERTIA).saturating_add(took_ns) / (INERTIA + 1), Ordering::Relaxed);
    }

    /// How many lookups one thread is done with in a moment.
    pub(crate) fn handful(&self) -> usize {
        let lookups = HANDFUL_NS / self.lookup_ns.load(Ordering::Relaxed).max(1);
        usize::try_from(lookups).unwrap_or(usize::MAX).max(1)
    }

    /// Takes what waits, in parts that one thread is done with in a moment.
    fn take(&self) -> Vec<Vec<Fetch>> {
        let lookups_max = self.handful();
        let mut handfuls: Vec<Vec<Fetch>> = Vec::new();
        let mut lookups = 0;
        for fetch in mem::take(&mut *self.waiting.lock()) {
            lookups += fetch.lookups;
            match handfuls.last_mut() {
                Some(handful) if lookups <= lookups_max => handful.push(fetch),
                _ => {
                    lookups = fetch.lookups;
                    handfuls.push(vec![fetch]);
                }
            }
        }
        handfuls
    }
}

/// Runs `work`, which makes so many lookups, on a thread that may wait.
pub(crate) async fn fetch<T: Send + 'static>(
    engine: &Arc<Engine>,
    lookups: usize,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (found, outcome) = oneshot::channel();
    let work = Box::new(move || {
        // Who is gone needs no answer.
        let _ = found.send(work());
    });
    let is_first = {
        let mut waiting = engine.fetches.waiting.lock();
        waiting.push(Fetch { lookups, work });
        waiting.len() == 1
    };
    if is_first {
        task::spawn(hand_over(Arc::clone(engine)));
    }
    outcome.await.unwrap_or_else(|_| Err(Error::Unavailable("the process is shutting down".into())))
}

async fn hand_over(engine: Arc<Engine>) {
    task::yield_now().await;
    for handful in engine.fetches.take() {
        let engine = Arc::clone(&engine);
        task::spawn_blocking(move || handful.into_iter().for_each(|fetch| engine.fetches.run(fetch)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handfuls(lookup_ns: u64, lookups: &[usize]) -> Vec<usize> {
        let fetch = |&lookups: &usize| Fetch { lookups, work: Box::new(|| ()) };
        let waiting = Mutex::new(lookups.iter().map(fetch).collect());
        let fetches = Fetches { waiting, lookup_ns: AtomicU64::new(lookup_ns) };
        fetches.take().iter().map(Vec::len).collect()
    }

    #[test]
    fn quick_lookups_share_a_thread_and_slow_ones_have_one_each() {
        assert_eq!(handfuls(4_000, &[1; 50]), [50]);
        assert_eq!(handfuls(20_000, &[1; 25]), [10, 10, 5]);
        assert_eq!(handfuls(20_000, &[16, 1, 9, 1]), [1, 2, 1]);
        assert_eq!(handfuls(5_000_000, &[1; 4]), [1; 4]);
        assert_eq!(handfuls(0, &[1_000, 1]), [2]);
        assert_eq!(handfuls(1, &[]), []);
    }

    #[test]
    fn what_lookups_take_is_learned() {
        let fetches = Fetches::default();
        for _ in 0..200 {
            fetches.run(Fetch { lookups: 1_000_000, work: Box::new(|| ()) });
        }
        assert!(fetches.lookup_ns.load(Ordering::Relaxed) < LOOKUP_NS / 100);
    }
}
