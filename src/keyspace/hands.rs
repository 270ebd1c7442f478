use std::sync::Arc;

use bytes::Bytes;
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use parking_lot::Mutex;
use quick_cache::{Weighter, sync};

use super::Random;

/// Memory for all hands together.
const BYTES_MAX: u64 = 32 << 20;

/// What a card takes beside its bytes.
const OVERHEAD_BYTES: usize = 40;

/// Elements of one version of a set in an order left to chance, to be removed one after the other.
///
/// The *cards* are some of the elements that there were when the hand was made, drawn and shuffled so that every order of
/// every choice has the same chance. Elements added since are beside them. So an element that is still there comes next
/// with the same chance as any other: who asks says how many there are, which tells how many of them are not new.
///
/// Kept up to date by those who change the set, before they commit and with its latch taken. If they fail, elements may be
/// missing here, or be here that are not in the set: who draws one looks whether it is.
pub struct Hand {
    cards: Vec<Bytes>,
    added: IndexSet<Bytes, RandomState>,
    added_max: usize,
}

/// What a [`Hand`] gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// One of the elements that were there from the start. If it no longer is, the next such element takes its place.
    Card(Bytes),
    /// An element that was added later.
    Added(Bytes),
}

impl Hand {
    /// A hand of these elements, which were chosen by chance.
    pub fn new(mut cards: Vec<Bytes>, random: &Random) -> Self {
        // Fisher and Yates: every order has the same chance.
        for last in (1..cards.len()).rev() {
            let other = random.below(last as u64 + 1);
            cards.swap(last, usize::try_from(other).unwrap_or(last));
        }
        let added_max = cards.len();
        Self { cards, added: IndexSet::default(), added_max }
    }

    /// One of the `count` elements of the set; `None` if the hand must be made anew.
    pub fn draw(&mut self, count: u64, random: &Random) -> Option<Drawn> {
        let place = usize::try_from(random.below(count)).ok()?;
        match self.added.swap_remove_index(place) {
            Some(element) => Some(Drawn::Added(element)),
            None => self.next_card().map(Drawn::Card),
        }
    }

    /// The next of the elements that were there from the start; `None` if the hand must be made anew.
    pub fn next_card(&mut self) -> Option<Bytes> {
        loop {
            let card = self.cards.pop()?;
            // It was removed and came back, and is drawn as one that was added.
            if !self.added.contains(&card) {
                return Some(card);
            }
        }
    }
}

/// Hands by the version of the set. Versions are never used again.
pub struct Hands(sync::Cache<u64, Arc<Mutex<Hand>>, ByBytes>);

#[derive(Clone)]
struct ByBytes;

impl Weighter<u64, Arc<Mutex<Hand>>> for ByBytes {
    fn weight(&self, _: &u64, hand: &Arc<Mutex<Hand>>) -> u64 {
        // Twice, because as many may be added.
        let bytes = hand.lock().cards.iter().map(|card| 2 * (card.len() + OVERHEAD_BYTES)).sum::<usize>();
        (bytes + OVERHEAD_BYTES) as u64
    }
}

impl Hands {
    /// None yet.
    pub(super) fn new() -> Self {
        /// Few sets have elements removed at random.
        const SETS: usize = 64;

        Self(sync::Cache::with_weighter(SETS, BYTES_MAX, ByBytes))
    }

    /// The hand of the set with this version, if there is one.
    pub fn get(&self, version: u64) -> Option<Arc<Mutex<Hand>>> {
        self.0.get(&version)
    }

    /// Keeps a hand for a while.
    pub fn insert(&self, version: u64, hand: Hand) -> Arc<Mutex<Hand>> {
        let hand = Arc::new(Mutex::new(hand));
        self.0.insert(version, Arc::clone(&hand));
        hand
    }

    /// Tells that elements are added to a set, which were not in it.
    pub fn add(&self, version: u64, elements: impl Iterator<Item = Bytes>) {
        let Some(hand) = self.get(version) else { return };
        let mut hand = hand.lock();
        // Copied, for they are parts of something larger.
        hand.added.extend(elements.map(|element| Bytes::copy_from_slice(&element)));
        if hand.added.len() > hand.added_max {
            self.0.remove(&version);
        }
    }

    /// Tells that elements are removed from a set.
    pub fn remove(&self, version: u64, elements: impl Iterator<Item = Bytes>) {
        let Some(hand) = self.get(version) else { return };
        let mut hand = hand.lock();
        if !hand.added.is_empty() {
            elements.for_each(|element| {
                hand.added.swap_remove(&element);
            });
        }
    }
}
