use std::{collections::BTreeMap, ops::Bound, sync::Arc};

use proptest::prelude::*;
use respgate_backend_memory::MemoryBackend;

use super::*;
use crate::{
    keyspace::{
        Encodings, Intent, Keyspace,
        fixture::{key, keyspace, keyspace_with},
    },
    sidecar::fixture::Redis,
};

/// What is done to a sorted set, and to a map that says what must come of it.
#[derive(Clone, Debug)]
enum Step {
    Add(String, f64),
    Remove(String),
    Pop(Direction, usize),
    RemoveRanks(i64, i64),
    RemoveScoresUpTo(f64),
}

/// Names around the length up to which a bound is kept whole.
fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]{0,2}", "[ab]{63,65}"]
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(-0.0), Just(1.0), Just(-2.5), Just(f64::INFINITY), Just(5e-324)]
}

fn step() -> impl Strategy<Value = Step> {
    let end = prop_oneof![Just(Direction::Forward), Just(Direction::Backward)];
    prop_oneof![
        4 => (name(), score()).prop_map(|(name, score)| Step::Add(name, score)),
        1 => name().prop_map(Step::Remove),
        2 => (end, 0..4_usize).prop_map(|(end, count)| Step::Pop(end, count)),
        1 => (-3..3_i64, -3..3_i64).prop_map(|(start, stop)| Step::RemoveRanks(start, stop)),
        1 => score().prop_map(Step::RemoveScoresUpTo),
    ]
}

async fn run(unit: &mut Unit<'_>, step: Step, model: &mut BTreeMap<Bytes, f64>) {
    let key = key("z");
    let mut ordered: Vec<Scored> = model.iter().map(|(member, score)| (member.clone(), *score)).collect();
    ordered.sort_by(order);
    let gone: Vec<Scored> = match step {
        Step::Add(name, score) => {
            let member = Bytes::from(name);
            add(unit, &key, &[(member.clone(), score)], AddOptions::default()).await.unwrap();
            model.insert(member, score + 0.0);
            Vec::new()
        }
        Step::Remove(name) => {
            let member = Bytes::from(name);
            let removed = remove(unit, &key, std::slice::from_ref(&member)).await.unwrap();
            assert_eq!(removed, usize::from(model.contains_key(&member)));
            vec![(member, 0.0)]
        }
        Step::Pop(end, count) => {
            if end == Direction::Backward {
                ordered.reverse();
            }
            ordered.truncate(count);
            assert_eq!(pop(unit, &key, end, count).await.unwrap().unwrap_or_default(), ordered);
            ordered
        }
        Step::RemoveRanks(start, stop) => {
            let from_start = |rank: i64| if rank < 0 { rank + ordered.len() as i64 } else { rank };
            let ranks = from_start(start).max(0)..=from_start(stop);
            let gone = ordered.into_iter().zip(0..).filter(|(_, rank)| ranks.contains(rank)).map(|(one, _)| one);
            let gone: Vec<Scored> = gone.collect();
            let removed = remove_range(unit, &key, Span::Ranks(start, stop)).await.unwrap();
            assert_eq!(removed, gone.len());
            gone
        }
        Step::RemoveScoresUpTo(max) => {
            let gone: Vec<Scored> = ordered.into_iter().filter(|(_, score)| *score <= max).collect();
            let span = Span::Scores(Bound::Unbounded, Bound::Included(max));
            assert_eq!(remove_range(unit, &key, span).await.unwrap(), gone.len());
            gone
        }
    };
    for (member, _) in gone {
        model.remove(&member);
    }
}

/// Asks for everything in every way, parts of groups with equal scores included.
async fn check(unit: &mut Unit<'_>, model: &BTreeMap<Bytes, f64>) {
    let key = key("z");
    let mut ordered: Vec<Scored> = model.iter().map(|(member, score)| (member.clone(), *score)).collect();
    ordered.sort_by(order);
    assert_eq!(len(unit, &key).await.unwrap(), ordered.len() as u64);
    assert_eq!(unit.load(&key).await.unwrap().is_some(), !ordered.is_empty());
    assert_eq!(all(unit, &key).await.unwrap(), model.clone().into_iter().collect::<Vec<_>>());
    for (position, (member, score)) in ordered.iter().enumerate() {
        let rank_from = async |unit: &mut Unit<'_>, end| rank(unit, &key, member, end).await.unwrap();
        assert_eq!(rank_from(unit, Direction::Forward).await, Some((position as u64, *score)));
        let behind = ordered.len() - position - 1;
        assert_eq!(rank_from(unit, Direction::Backward).await, Some((behind as u64, *score)));
    }
    for direction in [Direction::Forward, Direction::Backward] {
        for start in 0..=ordered.len() as i64 {
            let span = Span::Ranks(start, start + 2);
            let part = Range { span, direction, offset: 0, limit: usize::MAX };
            let expected: Vec<Scored> = ordered.iter().skip(start as usize).take(3).cloned().collect();
            assert_eq!(range(unit, &key, &part).await.unwrap(), expected);
        }
        check_scores(unit, &ordered, direction).await;
        ordered.reverse();
    }
}

async fn check_scores(unit: &mut Unit<'_>, ordered: &[Scored], direction: Direction) {
    for (min, max) in [
        (Bound::Included(0.0), Bound::Included(0.0)),
        (Bound::Excluded(-2.5), Bound::Included(1.0)),
        (Bound::Included(0.0), Bound::Excluded(f64::INFINITY)),
        (Bound::Included(1.0), Bound::Included(0.0)),
    ] {
        let is_within = |score: &f64| std::ops::RangeBounds::contains(&(min, max), score);
        let within: Vec<Scored> = ordered.iter().filter(|(_, score)| is_within(score)).cloned().collect();
        let span = Span::Scores(min, max);
        assert_eq!(count(unit, &key("z"), &span).await.unwrap(), within.len() as u64);
        for offset in 0..3 {
            let part = Range { span: span.clone(), direction, offset, limit: 2 };
            let expected: Vec<Scored> = within.iter().skip(offset).take(2).cloned().collect();
            assert_eq!(range(unit, &key("z"), &part).await.unwrap(), expected, "{part:?}");
        }
    }
}

/// Runs units of several steps; each step must see those before it, and the next unit all of them.
async fn run_units(keyspace: &Keyspace, units: Vec<Vec<Step>>) {
    let mut model = BTreeMap::new();
    for steps in units {
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        for step in steps {
            run(&mut unit, step, &mut model).await;
            check(&mut unit, &model).await;
        }
        unit.commit().await.unwrap();
        check(&mut keyspace.begin(Intent::Read).await.unwrap(), &model).await;
    }
}

fn units() -> impl Strategy<Value = Vec<Vec<Step>>> {
    proptest::collection::vec(proptest::collection::vec(step(), 1..4), 1..15)
}

fn is_a_map_ordered_by_score(open: impl AsyncFn() -> Keyspace) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let run = |units| {
        runtime.block_on(async {
            run_units(&open().await, units).await;
            Ok(())
        })
    };
    proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(64)).run(&units(), run).unwrap();
}

#[test]
fn a_sorted_set_is_a_map_ordered_by_score() {
    is_a_map_ordered_by_score(async || keyspace(Encodings::default()).await.0);
}

#[test]
fn so_is_one_in_the_sidecar() {
    let redis = Redis::start();
    is_a_map_ordered_by_score(async || {
        // The clock and the source of chance are the same for every case, and so are the key-versions.
        redis.flush();
        let encodings = Encodings { zsets_in_sidecar: true, ..Encodings::default() };
        keyspace_with(Arc::new(MemoryBackend::new()), encodings, 0, Some(redis.sidecar())).await.0
    });
}

#[tokio::test]
async fn what_is_taken_from_an_end_is_not_walked_over_again() {
    let (keyspace, _) = keyspace(Encodings::default()).await;
    let key = key("z");
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    let members: Vec<Scored> = (0..10_u8).map(|byte| (Bytes::from(vec![byte]), f64::from(byte))).collect();
    add(&mut unit, &key, &members, AddOptions::default()).await.unwrap();
    pop(&mut unit, &key, Direction::Forward, 3).await.unwrap();
    pop(&mut unit, &key, Direction::Backward, 3).await.unwrap();
    let zset = find(&mut unit, &key).await.unwrap().unwrap();
    let index = stored::index(&zset.open);
    let place = |byte: u8| zset.open.elements().score(f64::from(byte), &[byte]);
    assert!(index.start >= place(2) && index.start <= place(3));
    assert!(index.end > place(6) && index.end <= place(7));
}
