use bytes::Bytes;
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use parking_lot::Mutex;

use super::{
    Random,
    version_cache::{VersionCache, Weighed},
};

/// What a card takes beside its bytes.
const OVERHEAD_BYTES: usize = 64;

/// Elements of one version of a set in an order left to chance, to be removed one after the other.
///
/// The *cards* are some of the elements that there were when the hand was made, drawn and shuffled so that every order of
/// every choice has the same chance. Elements added since are beside them. So an element that is still there comes next
/// with the same chance as any other: who asks says how many there are, which tells how many of them are not new.
///
/// Kept up to date by those who change the set, before they commit and with its latch taken. If they fail, elements may be
/// missing here, or be here that are not in the set: who draws one looks whether it is.
pub struct Hand {
    held: Mutex<Held>,
    /// What it may come to, for the cache, which takes it that this does not change.
    bytes: usize,
}

#[derive(Default)]
struct Held {
    cards: IndexSet<Bytes, RandomState>,
    added: IndexSet<Bytes, RandomState>,
    added_bytes: usize,
}

impl Hand {
    /// A hand of these elements, which were chosen by chance.
    pub fn new(mut cards: Vec<Bytes>, random: &Random) -> Self {
        // Fisher and Yates: every order has the same chance.
        for last in (1..cards.len()).rev() {
            let other = random.below(last as u64 + 1);
            cards.swap(last, usize::try_from(other).unwrap_or(last));
        }
        // Twice, because as much may be added.
        let bytes = OVERHEAD_BYTES + 2 * cards.iter().map(bytes_of).sum::<usize>();
        let held = Held { cards: cards.into_iter().collect(), ..Held::default() };
        Self { held: Mutex::new(held), bytes }
    }

    /// One of the `count` elements of the set; `None` if the hand must be made anew.
    pub fn draw(&self, count: u64, random: &Random) -> Option<Bytes> {
        let place = usize::try_from(random.below(count)).ok()?;
        let mut held = self.held.lock();
        // Whatever the place is: otherwise those that were added would have another chance in the next hand.
        if held.cards.is_empty() {
            return None;
        }
        let Some(added) = held.added.swap_remove_index(place) else { return held.cards.pop() };
        held.added_bytes -= bytes_of(&added);
        Some(added)
    }

    /// Notes elements that are added to the set, which were not in it.
    fn add(&self, elements: impl Iterator<Item = Bytes>) {
        let mut held = self.held.lock();
        for element in elements {
            held.added_bytes += bytes_of(&element);
            if held.added_bytes > self.bytes / 2 {
                // Without cards it is made anew.
                *held = Held::default();
                return;
            }
            // Copied, for it is a part of something larger.
            held.added.insert(Bytes::copy_from_slice(&element));
        }
    }

    /// Notes elements that are removed from the set. Those that were left keep their chances.
    fn remove(&self, elements: impl Iterator<Item = Bytes>) {
        let mut held = self.held.lock();
        for element in elements {
            if !held.cards.swap_remove(&element) && held.added.swap_remove(&element) {
                held.added_bytes -= bytes_of(&element);
            }
        }
    }
}

fn bytes_of(element: &Bytes) -> usize {
    element.len() + OVERHEAD_BYTES
}

impl Weighed for Hand {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl VersionCache<Hand> {
    /// Tells that elements are added to a set, which were not in it.
    pub fn added(&self, version: u64, elements: impl Iterator<Item = Bytes>) {
        if let Some(hand) = self.get(version) {
            hand.add(elements);
        }
    }

    /// Tells that elements are removed from a set.
    pub fn removed(&self, version: u64, elements: impl Iterator<Item = Bytes>) {
        if let Some(hand) = self.get(version) {
            hand.remove(elements);
        }
    }
}
