use std::hash::BuildHasher;

use bytes::Bytes;
use foldhash::quality::RandomState;
use tokio::sync::{Mutex, MutexGuard};

/// How many latches there are. More of them make it rarer that unrelated keys wait for each other; all of them
/// together must be cheap enough to take for FLUSHALL (well under a millisecond).
const COUNT: usize = 8192;

/// The latches of a process: while a unit holds a key's latch, no other unit here reads that key to change it.
///
/// Keys share a fixed number of latches by hash. They are always taken in ascending order, so units cannot wait for
/// each other in a circle.
pub struct Latches {
    latches: Vec<Mutex<()>>,
    hasher: RandomState,
}

/// The keys that a unit declares before it starts.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// These names, in whatever database: MOVE, COPY and SWAPDB need no rule of their own then.
    Keys(&'a [&'a [u8]]),
    /// Every key there is or could be.
    Everything,
}

/// Latches that are held until this is dropped.
pub struct LatchGuards<'a> {
    _held: Vec<MutexGuard<'a, ()>>,
}

impl Latches {
    /// A new set of latches, all free.
    pub fn new() -> Self {
        Self { latches: (0..COUNT).map(|_| Mutex::new(())).collect(), hasher: RandomState::default() }
    }

    /// Waits for all the latches of `scope`.
    pub async fn acquire(&self, scope: Scope<'_>) -> LatchGuards<'_> {
        let held = match scope {
            Scope::Keys([name]) => vec![self.lock(self.position(name)).await],
            Scope::Keys(names) => {
                let mut positions: Vec<usize> = names.iter().map(|name| self.position(name)).collect();
                positions.sort_unstable();
                positions.dedup();
                self.lock_all(positions).await
            }
            Scope::Everything => self.lock_all(0..COUNT).await,
        };
        LatchGuards { _held: held.into_iter().flatten().collect() }
    }

    /// The number of the latch that all of `names` need, if there is one such latch and somebody holds it now.
    pub fn contended<'n>(&self, names: impl IntoIterator<Item = &'n Bytes>) -> Option<usize> {
        let mut positions = names.into_iter().map(|name| self.position(name));
        let first = positions.next()?;
        let latch = self.latches.get(first)?;
        (latch.try_lock().is_err() && positions.all(|position| position == first)).then_some(first)
    }

    async fn lock_all(&self, ascending: impl IntoIterator<Item = usize>) -> Vec<Option<MutexGuard<'_, ()>>> {
        let mut held = Vec::new();
        for position in ascending {
            held.push(self.lock(position).await);
        }
        held
    }

    async fn lock(&self, position: usize) -> Option<MutexGuard<'_, ()>> {
        let latch = self.latches.get(position)?;
        // Almost always free: then there is nothing to wait for, and nobody who waits is overtaken.
        match latch.try_lock() {
            Ok(held) => Some(held),
            Err(_) => Some(latch.lock().await),
        }
    }

    fn position(&self, name: &[u8]) -> usize {
        usize::try_from(self.hasher.hash_one(name) % COUNT as u64).unwrap_or_default()
    }
}

impl Default for Latches {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, pin::pin, task};

    use super::*;

    fn is_ready<T>(future: impl Future<Output = T>) -> bool {
        let mut context = task::Context::from_waker(task::Waker::noop());
        pin!(future).poll(&mut context).is_ready()
    }

    #[tokio::test]
    async fn a_latch_keeps_out_the_same_key_and_lets_in_others() {
        let latches = Latches::new();
        let held = latches.acquire(Scope::Keys(&[b"a", b"b", b"a"])).await;
        assert!(!is_ready(latches.acquire(Scope::Keys(&[b"b"]))));
        assert!(is_ready(latches.acquire(Scope::Keys(&[b"c"]))));
        assert!(!is_ready(latches.acquire(Scope::Everything)));
        drop(held);
        // Awaited, because the runtime makes a task that takes so many latches yield in between.
        latches.acquire(Scope::Everything).await;
    }
}
