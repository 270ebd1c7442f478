//! Removing elements of a set at random: from a [`Hand`], which is made in one walk and serves for many removals.

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use respgate_backend_api::Direction;

use super::{Open, sample::FEW, walk};
use crate::{
    keyspace::{Hand, Random, Unit},
    types::Result,
};

/// Larger sets are not walked for a hand: whoever removes next would wait for tens of milliseconds.
const WALKED_MAX: u64 = 256 << 10;

/// A hand has all elements of a set up to so many, ...
const WHOLE_MAX: usize = 512;

/// ... and one of so many of a larger one. That is how many elements the walk visits for each that is removed.
const SHARE: usize = 8;

impl Open<'_> {
    /// `wanted` different elements, each with the same chance, which the caller is going to remove; `None` where they are
    /// to be chosen in another way. O(1) each on average.
    ///
    /// The latch of the key must be held. Not for stores that others write to, who would not tell what they add.
    pub(in crate::types) async fn deal(&self, unit: &mut Unit<'_>, wanted: usize) -> Result<Option<Vec<Bytes>>> {
        let Some(count) = self.counted().map(u64::from).filter(|count| (1..=WALKED_MAX).contains(count)) else {
            return Ok(None);
        };
        let is_few = wanted == 1 || wanted <= usize::try_from(count).unwrap_or(usize::MAX) / FEW;
        if unit.keyspace().capabilities().shared || !is_few {
            return Ok(None);
        }
        let mut hand = match unit.keyspace().hands().get(self.version()) {
            Some(hand) => hand,
            None => self.make_hand(unit, count).await?,
        };
        let (mut chosen, mut is_anew) = (Vec::with_capacity(wanted), false);
        while chosen.len() < wanted {
            match hand.draw(count - chosen.len() as u64, unit.keyspace().random()) {
                Some(element) => {
                    if !chosen.contains(&element) && unit.read(&self.elements().element(&element)).await?.is_some() {
                        chosen.push(element);
                    }
                }
                // A hand that was made just now has enough, unless the count is wrong.
                None if is_anew => return Ok(None),
                None => {
                    hand = self.make_hand(unit, count).await?;
                    is_anew = true;
                }
            }
        }
        Ok(Some(chosen))
    }

    async fn make_hand(&self, unit: &mut Unit<'_>, count: u64) -> Result<Arc<Hand>> {
        let size = WHOLE_MAX.max(usize::try_from(count).unwrap_or(usize::MAX) / SHARE);
        let mut cards = Reservoir { size, seen: 0, kept: Vec::with_capacity(size) };
        let keyspace = unit.keyspace();
        walk(unit, self.elements().elements(), Direction::Forward, |record, _| {
            cards.offer(&self.elements().suffix(record), keyspace.random());
            ControlFlow::Continue(())
        })
        .await?;
        Ok(keyspace.hands().insert(self.version(), Hand::new(cards.kept, keyspace.random())))
    }
}

/// Keeps so many of the elements that it is offered, all with the same chance: Waterman's algorithm R, as in Knuth, The
/// Art of Computer Programming, volume 2, 3.4.2.
struct Reservoir {
    size: usize,
    seen: u64,
    kept: Vec<Bytes>,
}

impl Reservoir {
    fn offer(&mut self, element: &Bytes, random: &Random) {
        self.seen += 1;
        // Copied, for it is a part of something larger.
        if self.kept.len() < self.size {
            self.kept.push(Bytes::copy_from_slice(element));
        } else if let Some(place) = usize::try_from(random.below(self.seen)).ok().and_then(|at| self.kept.get_mut(at)) {
            *place = Bytes::copy_from_slice(element);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use crate::{
        keyspace::{
            Encodings, Intent,
            fixture::{key, keyspace},
        },
        types::set,
    };

    fn member(number: u32) -> bytes::Bytes {
        format!("member:{number}").into()
    }

    /// Sets of `count` members of which every one that is left has the same chance, after members have come, gone and come
    /// back.
    async fn chi_squared(count: u32, rounds: u32) -> f64 {
        let (keyspace, _) = keyspace(Encodings::default()).await;
        let mut seen: HashMap<bytes::Bytes, u32> = HashMap::new();
        let name = key("set");
        for _ in 0..rounds {
            let mut unit = keyspace.begin(Intent::Write).await.unwrap();
            let members: Vec<_> = (0..count).map(member).collect();
            set::replace(&mut unit, &name, members.clone()).await.unwrap();
            unit.commit().await.unwrap();
            let mut unit = keyspace.begin(Intent::Write).await.unwrap();
            // The hand is made here; what it gave comes back as a new member.
            let first = set::pop(&mut unit, &name, 1).await.unwrap().unwrap();
            set::add(&mut unit, &name, &first).await.unwrap();
            let again = &members[count as usize / 2..count as usize * 3 / 4];
            set::remove(&mut unit, &name, again).await.unwrap();
            set::add(&mut unit, &name, again).await.unwrap();
            let new: Vec<_> = (count..count + count / 2).map(member).collect();
            set::add(&mut unit, &name, &new).await.unwrap();
            set::remove(&mut unit, &name, &members[..count as usize / 2]).await.unwrap();
            set::remove(&mut unit, &name, &new[..1]).await.unwrap();
            let popped = set::pop(&mut unit, &name, 1).await.unwrap().unwrap();
            assert_eq!(popped.len(), 1);
            *seen.entry(popped[0].clone()).or_default() += 1;
            unit.commit().await.unwrap();
        }
        let left = count / 2 + count / 2 - 1;
        let expected = f64::from(rounds) / f64::from(left);
        let absent = left as usize - seen.len();
        seen.values().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum::<f64>()
            + absent as f64 * expected
    }

    #[tokio::test]
    async fn every_member_has_the_same_chance_to_be_popped() {
        // 18 degrees of freedom: 42.3 is exceeded once in a thousand runs, and the seed is fixed.
        let chi_squared = chi_squared(20, 4_000).await;
        assert!(chi_squared < 42.3, "{chi_squared}");
    }

    #[tokio::test]
    async fn a_set_that_outgrows_its_hand_is_popped_on() {
        let (keyspace, _) = keyspace(Encodings::default()).await;
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        set::add(&mut unit, &key("set"), &[member(0), member(1)]).await.unwrap();
        assert_eq!(set::pop(&mut unit, &key("set"), 1).await.unwrap().unwrap().len(), 1);
        let many: Vec<_> = (2..2_000).map(member).collect();
        assert_eq!(set::add(&mut unit, &key("set"), &many).await.unwrap(), many.len());
        for left in (0..=many.len()).rev() {
            assert_eq!(set::pop(&mut unit, &key("set"), 1).await.unwrap().unwrap().len(), 1);
            assert_eq!(set::len(&mut unit, &key("set")).await.unwrap(), left as u64);
        }
    }

    #[tokio::test]
    async fn a_set_larger_than_a_hand_is_popped_to_the_last_member() {
        let (keyspace, _) = keyspace(Encodings::default()).await;
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        let mut left: std::collections::HashSet<_> = (0..2_000).map(member).collect();
        set::replace(&mut unit, &key("set"), left.clone()).await.unwrap();
        unit.commit().await.unwrap();
        while !left.is_empty() {
            let mut unit = keyspace.begin(Intent::Write).await.unwrap();
            for popped in set::pop(&mut unit, &key("set"), 3).await.unwrap().unwrap() {
                assert!(left.remove(&popped));
            }
            for popped in set::pop(&mut unit, &key("set"), 1).await.unwrap().unwrap_or_default() {
                assert!(left.remove(&popped));
            }
            unit.commit().await.unwrap();
        }
        let mut unit = keyspace.begin(Intent::Read).await.unwrap();
        assert!(!set::exists(&mut unit, &key("set")).await.unwrap());
    }
}
