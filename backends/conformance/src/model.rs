use std::collections::BTreeMap;

use bytes::Bytes;
use respgate_backend_api::{Direction, KeyRange, KvBackend};

use crate::area::Area;

/// A store that is used by one task alone answers as an ordered map would, whatever the sequence of commits,
/// deleted ranges and reads. `seed` picks the sequence.
pub async fn a_store_is_an_ordered_map(store: &dyn KvBackend, seed: u64) {
    let area = Area::new(store, "model").await;
    let mut map = BTreeMap::<Bytes, Bytes>::new();
    let mut dice = Dice(seed);
    for step in 0..1_000 {
        match dice.roll(10) {
            0..6 => {
                let writes: BTreeMap<_, _> =
                    (0..=dice.roll(8)).map(|i| (dice.key(&area), dice.value(step, i))).collect();
                for (key, value) in &writes {
                    match value {
                        Some(value) => map.insert(key.clone(), value.clone()),
                        None => map.remove(key),
                    };
                }
                area.write(writes).await;
            }
            6 => {
                let range = dice.range(&area);
                map.retain(|key, _| !range.contains(key));
                store.delete_range(range).await.unwrap();
            }
            7 => {
                let keys: Vec<_> = (0..dice.roll(20)).map(|_| dice.key(&area)).collect();
                let expected: Vec<_> = keys.iter().map(|key| map.get(key).cloned()).collect();
                assert_eq!(area.snapshot().await.multi_get(&keys).await.unwrap(), expected, "seed {seed} step {step}");
            }
            _ => {
                let (range, limit) = (dice.range(&area), dice.roll(100) as usize);
                let mut expected: Vec<_> = map.clone().into_iter().filter(|(key, _)| range.contains(key)).collect();
                let direction = if dice.roll(2) == 0 { Direction::Forward } else { Direction::Backward };
                if direction == Direction::Backward {
                    expected.reverse();
                }
                expected.truncate(limit);
                let found = area.snapshot().await.scan(&range, direction, limit).await.unwrap();
                assert_eq!(found, expected, "seed {seed} step {step}");
            }
        }
    }
}

/// A linear congruential generator (Knuth's MMIX constants): repeatable, and random enough to pick keys.
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn key(&mut self, area: &Area<'_>) -> Bytes {
        area.key(self.roll(200).to_string())
    }

    /// A new value, an empty one, or a deletion.
    fn value(&mut self, step: u64, i: u64) -> Option<Bytes> {
        match self.roll(8) {
            0..3 => None,
            3 => Some(Bytes::new()),
            _ => Some(format!("{step} {i}").into()),
        }
    }

    /// A range of some keys; one in several is empty because its end is below its start.
    fn range(&mut self, area: &Area<'_>) -> KeyRange {
        KeyRange::new(self.key(area), self.key(area))
    }
}
