use std::{
    hash::BuildHasher,
    sync::atomic::{AtomicBool, Ordering},
};

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
    latches: Vec<Latch>,
    hasher: RandomState,
}

#[derive(Default)]
struct Latch {
    mutex: Mutex<()>,
    /// True if those who came for it lately came together.
    is_crowded: AtomicBool,
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
        Self { latches: (0..COUNT).map(|_| Latch::default()).collect(), hasher: RandomState::default() }
    }

    /// Waits for all the latches of `scope`.
    pub async fn acquire(&self, scope: Scope<'_>) -> LatchGuards<'_> {
        let held = match scope {
            Scope::Keys([name]) => vec![self.lock(self.position(name)).await],
            Scope::Keys(names) => self.lock_all(self.positions(names)).await,
            Scope::Everything => self.lock_all(0..COUNT).await,
        };
        LatchGuards { _held: held.into_iter().flatten().collect() }
    }

    /// Takes the latches of `names`, if all are free.
    pub fn try_acquire(&self, names: &[&[u8]]) -> Option<LatchGuards<'_>> {
        let take = |position: usize| self.latches.get(position)?.mutex.try_lock().ok();
        let held: Option<Vec<_>> = self.positions(names).into_iter().map(take).collect();
        Some(LatchGuards { _held: held? })
    }

    /// The number of the latch that all of `names` need, if there is one such latch, and somebody holds it now or others
    /// will probably come for it in a moment.
    pub fn contended<'n>(&self, names: impl IntoIterator<Item = &'n Bytes>) -> Option<usize> {
        let mut positions = names.into_iter().map(|name| self.position(name));
        let first = positions.next()?;
        let Latch { mutex, is_crowded } = self.latches.get(first)?;
        let is_contended = is_crowded.load(Ordering::Relaxed) || mutex.try_lock().is_err();
        (is_contended && positions.all(|position| position == first)).then_some(first)
    }

    /// True if somebody holds a latch that one of `names` needs.
    pub fn any_taken<'n>(&self, names: impl IntoIterator<Item = &'n Bytes>) -> bool {
        let latch = |name| self.latches.get(self.position(name));
        names.into_iter().filter_map(|name| latch(name)).any(|latch| latch.mutex.try_lock().is_err())
    }

    /// Notes whether those who have just come for a latch came together, which is probably so the next time.
    pub fn note_crowd(&self, position: usize, is_crowd: bool) {
        if let Some(latch) = self.latches.get(position) {
            latch.is_crowded.store(is_crowd, Ordering::Relaxed);
        }
    }

    async fn lock_all(&self, ascending: impl IntoIterator<Item = usize>) -> Vec<Option<MutexGuard<'_, ()>>> {
        let mut held = Vec::new();
        for position in ascending {
            held.push(self.lock(position).await);
        }
        held
    }

    async fn lock(&self, position: usize) -> Option<MutexGuard<'_, ()>> {
        let Latch { mutex, .. } = self.latches.get(position)?;
        // Almost always free: then there is nothing to wait for, and nobody who waits is overtaken.
        match mutex.try_lock() {
            Ok(held) => Some(held),
            Err(_) => Some(mutex.lock().await),
        }
    }

    /// The numbers of the latches of `names`, in the order in which they are taken.
    fn positions(&self, names: &[&[u8]]) -> Vec<usize> {
        let mut positions: Vec<usize> = names.iter().map(|name| self.position(name)).collect();
        positions.sort_unstable();
        positions.dedup();
        positions
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
        assert!(latches.try_acquire(&[b"c", b"a"]).is_none());
        let other = latches.try_acquire(&[b"c", b"d", b"c"]);
        assert!(other.is_some() && !is_ready(latches.acquire(Scope::Keys(&[b"d"]))));
        drop((held, other));
        // Awaited, because the runtime makes a task that takes so many latches yield in between.
        latches.acquire(Scope::Everything).await;
    }

    #[tokio::test]
    async fn a_latch_is_contended_while_it_is_held_and_after_a_crowd_came_for_it() {
        let latches = Latches::new();
        let [a, b] = [&Bytes::from("a"), &Bytes::from("b")];
        assert_eq!(latches.contended([a]), None);
        let held = latches.acquire(Scope::Keys(&[b"a"])).await;
        let latch = latches.contended([a]);
        assert!(latch.is_some_and(|latch| latches.contended([a, a]) == Some(latch)));
        assert_eq!(latches.contended([a, b]), None);
        drop(held);
        assert_eq!(latches.contended([a]), None);
        latches.note_crowd(latch.unwrap(), true);
        assert_eq!((latches.contended([a]), latches.contended([b])), (latch, None));
        latches.note_crowd(latch.unwrap(), false);
        assert_eq!(latches.contended([a]), None);
    }
}
