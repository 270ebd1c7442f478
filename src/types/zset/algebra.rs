//! Union, intersection and difference of sorted sets and sets, whose members have the score 1.

use std::collections::HashMap;

use bytes::Bytes;

use super::{Scored, index::Zset, order};
use crate::{
    encoding::Type,
    keyspace::{Error, Key, Unit},
    types::{Result, collection::Open},
};

/// Members whose scores in another set are asked for in one call to the store.
const PROBES: usize = 1_000;

/// The score of a member of a set.
const SET_SCORE: f64 = 1.0;

/// What becomes of the scores of a member that is in several sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum; 0 for opposite infinities.
    #[default]
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
}

impl Aggregate {
    fn of(self, one: f64, other: f64) -> f64 {
        match self {
            Self::Sum => number(one + other),
            Self::Min => {
                if other < one {
                    other
                } else {
                    one
                }
            }
            Self::Max => {
                if other > one {
                    other
                } else {
                    one
                }
            }
        }
    }
}

/// A sorted set or a set, and what its scores are multiplied with.
#[derive(Clone, Debug)]
pub struct Input {
    /// Where it is.
    pub key: Key,
    /// The factor.
    pub weight: f64,
}

/// The members that are in any of the inputs, in the order of a sorted set.
pub async fn union(unit: &mut Unit<'_>, inputs: &[Input], aggregate: Aggregate) -> Result<Vec<Scored>> {
    let mut scores: HashMap<Bytes, f64> = HashMap::new();
    for source in sources(unit, inputs).await?.into_iter().flatten() {
        for (member, score) in source.all(unit).await? {
            scores.entry(member).and_modify(|old| *old = aggregate.of(*old, score)).or_insert(score);
        }
    }
    Ok(sorted(scores.into_iter().collect()))
}

/// The members that are in all of the inputs, in the order of a sorted set. Reads the smallest input whole, the others
/// only where members are looked for.
pub async fn intersection(unit: &mut Unit<'_>, inputs: &[Input], aggregate: Aggregate) -> Result<Vec<Scored>> {
    let Some(sources) = sources(unit, inputs).await?.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(Vec::new());
    };
    let mut sources = sources.into_iter();
    let Some(smallest) = sources.next() else { return Ok(Vec::new()) };
    let mut members = smallest.all(unit).await?;
    for source in sources {
        let scores = source.scores(unit, &members).await?;
        let found = members.into_iter().zip(scores);
        members = found.filter_map(|((member, one), other)| Some((member, aggregate.of(one, other?)))).collect();
    }
    Ok(sorted(members))
}

/// The members of the first sorted set that are in none of the others, with their scores, in their order.
pub async fn difference(unit: &mut Unit<'_>, keys: &[Key]) -> Result<Vec<Scored>> {
    let mut sources = Vec::with_capacity(keys.len());
    for key in keys {
        sources.push(Source::find(unit, &Input { key: key.clone(), weight: 1.0 }).await?);
    }
    let mut sources = sources.into_iter();
    let Some(Some(first)) = sources.next() else { return Ok(Vec::new()) };
    let mut members = first.all(unit).await?;
    for source in sources.flatten() {
        let scores = source.scores(unit, &members).await?;
        members = members.into_iter().zip(scores).filter(|(_, score)| score.is_none()).map(|(one, _)| one).collect();
    }
    Ok(sorted(members))
}

/// The inputs from the smallest to the largest, which decides in what order scores are added; those that do not exist
/// come first.
async fn sources<'k>(unit: &mut Unit<'k>, inputs: &[Input]) -> Result<Vec<Option<Source<'k>>>> {
    let mut sources = Vec::with_capacity(inputs.len());
    for input in inputs {
        sources.push(Source::find(unit, input).await?);
    }
    sources.sort_by_key(|source| source.as_ref().map_or(0, Source::size));
    Ok(sources)
}

struct Source<'k> {
    members: Members<'k>,
    weight: f64,
}

enum Members<'k> {
    Set(Open<'k>),
    Zset(Zset<'k>),
}

impl<'k> Source<'k> {
    async fn find(unit: &mut Unit<'k>, input: &Input) -> Result<Option<Self>> {
        let Some(metadata) = unit.load(&input.key).await? else { return Ok(None) };
        let members = match metadata.kind() {
            Type::Set => Open::find(unit, &input.key, Type::Set).await?.map(Members::Set),
            Type::Zset => Zset::find(unit, &input.key).await?.map(Members::Zset),
            _ => return Err(Error::WrongType.into()),
        };
        Ok(members.map(|members| Self { members, weight: input.weight }))
    }

    /// How many members there are; very many if nobody has counted them.
    fn size(&self) -> u64 {
        match &self.members {
            Members::Set(set) => u64::from(set.counted().unwrap_or(u32::MAX)),
            Members::Zset(zset) => zset.count(),
        }
    }

    /// Every member with its weighted score.
    async fn all(&self, unit: &mut Unit<'_>) -> Result<Vec<Scored>> {
        let mut members = match &self.members {
            Members::Set(set) => {
                let (elements, _) = set.page(unit, None, usize::MAX).await?;
                elements.into_iter().map(|(member, _)| (member, SET_SCORE)).collect()
            }
            Members::Zset(zset) => zset.all(unit).await?,
        };
        members.iter_mut().for_each(|(_, score)| *score = self.weighted(*score));
        Ok(members)
    }

    /// The weighted scores that `members` have here.
    async fn scores(&self, unit: &mut Unit<'_>, members: &[Scored]) -> Result<Vec<Option<f64>>> {
        let mut scores = Vec::with_capacity(members.len());
        for some in members.chunks(PROBES) {
            let some = some.iter().map(|(member, _)| member);
            match &self.members {
                Members::Set(set) => {
                    let records: Vec<_> = some.map(|member| set.elements().element(member)).collect();
                    let values = unit.read_many(&records).await?;
                    scores.extend(values.into_iter().map(|value| value.map(|_| SET_SCORE)));
                }
                Members::Zset(zset) => scores.extend(zset.scores(unit, &some.cloned().collect::<Vec<_>>()).await?),
            }
        }
        Ok(scores.into_iter().map(|score| score.map(|score| self.weighted(score))).collect())
    }

    fn weighted(&self, score: f64) -> f64 {
        number(self.weight * score)
    }
}

fn sorted(mut members: Vec<Scored>) -> Vec<Scored> {
    members.sort_unstable_by(order);
    members
}

/// Zero in place of what is not a number, such as zero times infinity.
fn number(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}
