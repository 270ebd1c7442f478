use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::keyspace::{
    Encodings, Intent, Keyspace,
    fixture::{key, keyspace},
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

async fn run(keyspace: &Keyspace, step: Step, model: &mut BTreeMap<Bytes, f64>) {
    let key = key("z");
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    let mut ordered: Vec<Scored> = model.iter().map(|(member, score)| (member.clone(), *score)).collect();
    ordered.sort_by(order);
    let gone: Vec<Scored> = match step {
        Step::Add(name, score) => {
            let member = Bytes::from(name);
            add(&mut unit, &key, &[(member.clone(), score)], AddOptions::default()).await.unwrap();
            model.insert(member, score + 0.0);
            Vec::new()
        }
        Step::Remove(name) => {
            let member = Bytes::from(name);
            let removed = remove(&mut unit, &key, std::slice::from_ref(&member)).await.unwrap();
            assert_eq!(removed, usize::from(model.contains_key(&member)));
            vec![(member, 0.0)]
        }
        Step::Pop(end, count) => {
            if end == Direction::Backward {
                ordered.reverse();
            }
            ordered.truncate(count);
            assert_eq!(pop(&mut unit, &key, end, count).await.unwrap().unwrap_or_default(), ordered);
            ordered
        }
        Step::RemoveRanks(start, stop) => {
            let from_start = |rank: i64| if rank < 0 { rank + ordered.len() as i64 } else { rank };
            let ranks = from_start(start).max(0)..=from_start(stop);
            let gone = ordered.into_iter().zip(0..).filter(|(_, rank)| ranks.contains(rank)).map(|(one, _)| one);
            let gone: Vec<Scored> = gone.collect();
            let removed = remove_range(&mut unit, &key, Span::Ranks(start, stop)).await.unwrap();
            assert_eq!(removed, gone.len());
            gone
        }
        Step::RemoveScoresUpTo(max) => {
            let gone: Vec<Scored> = ordered.into_iter().filter(|(_, score)| *score <= max).collect();
            let span = Span::Scores(std::ops::Bound::Unbounded, std::ops::Bound::Included(max));
            assert_eq!(remove_range(&mut unit, &key, span).await.unwrap(), gone.len());
            gone
        }
    };
    unit.commit().await.unwrap();
    for (member, _) in gone {
        model.remove(&member);
    }
}

async fn check(keyspace: &Keyspace, model: &BTreeMap<Bytes, f64>) {
    let key = key("z");
    let mut unit = keyspace.begin(Intent::Read).await.unwrap();
    let mut ordered: Vec<Scored> = model.iter().map(|(member, score)| (member.clone(), *score)).collect();
    ordered.sort_by(order);
    assert_eq!(len(&mut unit, &key).await.unwrap(), ordered.len() as u64);
    assert_eq!(unit.load(&key).await.unwrap().is_some(), !ordered.is_empty());
    for (position, (member, score)) in ordered.iter().enumerate() {
        let rank = rank(&mut unit, &key, member, Direction::Forward).await.unwrap();
        assert_eq!(rank, Some((position as u64, *score)));
    }
    for direction in [Direction::Forward, Direction::Backward] {
        let all = Range { span: Span::Ranks(0, -1), direction, offset: 0, limit: usize::MAX };
        assert_eq!(range(&mut unit, &key, &all).await.unwrap(), ordered);
        ordered.reverse();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_sorted_set_is_a_map_ordered_by_score(steps in proptest::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (keyspace, _) = keyspace(Encodings::default()).await;
            let mut model = BTreeMap::new();
            for step in steps {
                run(&keyspace, step, &mut model).await;
                check(&keyspace, &model).await;
            }
        });
    }
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
    let index = range::index(&zset);
    let place = |byte: u8| zset.elements().score(f64::from(byte), &[byte]);
    assert!(index.start >= place(2) && index.start <= place(3));
    assert!(index.end > place(6) && index.end <= place(7));
}
