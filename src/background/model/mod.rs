//! Commands, clock jumps, crashes and collections in random order, beside a model: replies never differ from the model's,
//! and when everything has settled the store holds exactly the records of living keys.

mod crash;
mod records;
mod script;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use respgate_backend_api::{Capabilities, Direction, KvBackend};
use respgate_backend_memory::MemoryBackend;

use crate::{
    encoding::rdb::Value,
    keyspace::{
        Clock, Duty, Encodings, Intent, Key, Keyspace, ManualClock, Options, Random, Scope, Unit,
        fixture::{GRACE, START_MS},
    },
    sidecar::fixture::Redis,
    types::{
        Result, key,
        zset::{self, Range, Span},
    },
};
use crash::{Outcome, Yielding, run_for};
use script::Step;

const DATABASES: u8 = 2;

/// What a key should hold, and until when.
type Entry = (Value, Option<i64>);

/// What the keys should hold.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model(BTreeMap<(u8, Bytes), Entry>);

impl Model {
    fn forget_expired(&mut self, now_ms: i64) {
        self.0.retain(|_, (_, expires_at_ms)| expires_at_ms.is_none_or(|at_ms| now_ms <= at_ms));
    }
}

/// A gateway's keyspace that can crash, and what it should hold.
struct World {
    backend: Arc<dyn KvBackend>,
    /// What keeps the order of sorted sets, if that is not the store.
    redis: Option<Redis>,
    keyspace: Keyspace,
    encodings: Encodings,
    clock: Arc<ManualClock>,
    random: SmallRng,
    model: Model,
}

impl World {
    async fn new(seed: u64, capabilities: Capabilities, encodings: Encodings) -> Self {
        let backend: Arc<dyn KvBackend> =
            Arc::new(Yielding::over(MemoryBackend::new().with_capabilities(capabilities)));
        let clock = Arc::new(ManualClock::at_ms(START_MS));
        let random = SmallRng::seed_from_u64(seed);
        let redis = encodings.zsets_in_sidecar.then(Redis::start);
        let keyspace = open(&backend, redis.as_ref(), encodings, &clock, seed).await;
        Self { backend, redis, keyspace, encodings, clock, random, model: Model::default() }
    }

    /// The process dies and another one starts.
    async fn restart(&mut self) {
        let seed = self.random.random();
        self.keyspace = open(&self.backend, self.redis.as_ref(), self.encodings, &self.clock, seed).await;
        self.keyspace.survey_garbage().await.unwrap();
    }

    async fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..70 => {
                let now_ms = self.now_ms();
                let step = Step::random(&mut self.random, now_ms);
                self.run(step).await;
            }
            70..80 => {
                let polls = self.random.random_range(0..40);
                run_for(self.background_step(), polls).await;
                if self.random.random_bool(0.3) {
                    self.restart().await;
                }
            }
            80..90 => {
                self.background_step().await;
            }
            90..99 => self.clock.advance_ms(self.random.random_range(0..400)),
            _ => self.clock.advance_ms(GRACE.as_millis() as u64),
        }
        let now_ms = self.now_ms();
        self.model.forget_expired(now_ms);
    }

    fn now_ms(&self) -> i64 {
        self.clock.now_ms().cast_signed()
    }

    /// Runs a command to its end, or only so far.
    async fn run(&mut self, step: Step) {
        let mut after = self.model.clone();
        step.apply_to_model(&mut after.0);
        // An expiry in the past deletes.
        after.forget_expired(self.now_ms());
        let polls = if self.random.random_bool(0.1) { self.random.random_range(0..40) } else { usize::MAX };
        let outcome = run_for(commit(&self.keyspace, &step), polls).await;
        match outcome {
            Outcome::Done(result) => {
                result.unwrap_or_else(|error| panic!("{step:?}: {error}"));
                self.model = after;
            }
            // Crashed: all of it has happened, or nothing.
            Outcome::GivenUp => {
                self.restart().await;
                let found = self.contents().await;
                assert!(found == self.model || found == after, "{step:?} was half done: {found:?}");
                self.model = found;
            }
        }
    }

    async fn background_step(&self) {
        for duty in [Duty::Expired, Duty::Orphans, Duty::Orders] {
            for share in 0..self.keyspace.shares() {
                if let Some(mut lease) = self.keyspace.take_lease(duty, share, Duration::ZERO).await.unwrap() {
                    self.keyspace.sweep(&mut lease).await.unwrap();
                    self.keyspace.rest(&mut lease).await.unwrap();
                }
            }
        }
        self.keyspace.collect_garbage().await.unwrap();
        self.keyspace.reclaim().await.unwrap();
    }

    /// Everything that clients can see.
    async fn contents(&self) -> Model {
        let mut contents = Model::default();
        for db in 0..DATABASES {
            let mut unit = self.keyspace.begin(Intent::Read).await.unwrap();
            let mut position = None;
            loop {
                let page = unit.names(db, position.as_deref(), 100).await.unwrap();
                for (name, metadata) in page.keys {
                    let key = Key { db, name: name.clone() };
                    let value = key::value(&mut unit, &key).await.unwrap().unwrap();
                    contents.0.insert((db, name), (value, metadata.expires_at_ms));
                }
                if page.next.is_none() {
                    break;
                }
                position = page.next;
            }
        }
        contents
    }

    /// Every sorted set has its members in their order.
    async fn check_orders(&self) {
        let all = Range { span: Span::Ranks(0, -1), direction: Direction::Forward, offset: 0, limit: usize::MAX };
        for ((db, name), (value, _)) in &self.model.0 {
            if let Value::Zset(members) = value {
                let mut members = members.clone();
                members.sort_by(zset::order);
                // As a unit that writes, which never has to be run again.
                let mut unit = self.keyspace.begin(Intent::Write).await.unwrap();
                let key = Key { db: *db, name: name.clone() };
                assert_eq!(zset::range(&mut unit, &key, &all).await.unwrap(), members);
            }
        }
    }

    async fn check(&self) {
        assert_eq!(self.contents().await, self.model);
        self.check_orders().await;
        for db in 0..DATABASES {
            let mut unit = self.keyspace.begin(Intent::Read).await.unwrap();
            let expected = self.model.0.keys().filter(|(of, _)| *of == db).count() as u64;
            assert_eq!(unit.census(db).await.unwrap().keys, expected);
        }
    }

    /// Lets everything be collected that is ever going to be.
    async fn settle(&mut self) {
        self.clock.advance_ms(GRACE.as_millis() as u64);
        let now_ms = self.now_ms();
        self.model.forget_expired(now_ms);
        for _ in 0..2 {
            for duty in [Duty::Expired, Duty::Orphans, Duty::Orders] {
                for share in 0..self.keyspace.shares() {
                    let mut lease = self.keyspace.take_lease(duty, share, Duration::ZERO).await.unwrap().unwrap();
                    // The first round may have begun in the middle.
                    let mut rounds = 0;
                    while rounds < 2 {
                        rounds += usize::from(self.keyspace.sweep(&mut lease).await.unwrap().is_round_over);
                    }
                    self.keyspace.rest(&mut lease).await.unwrap();
                }
            }
            while self.keyspace.collect_garbage().await.unwrap().is_some() {}
            self.keyspace.reclaim().await.unwrap();
        }
    }
}

async fn open(
    backend: &Arc<dyn KvBackend>,
    redis: Option<&Redis>,
    encodings: Encodings,
    clock: &Arc<ManualClock>,
    seed: u64,
) -> Keyspace {
    let options = Options {
        namespace: "model".to_owned(),
        databases: DATABASES,
        encodings,
        cache_bytes: 1 << 20,
        sidecar: redis.map(Redis::sidecar),
        grace: GRACE,
        clock: Arc::<ManualClock>::clone(clock),
        random: Random::seeded(seed),
    };
    Keyspace::open(Arc::clone(backend), options).await.unwrap()
}

/// The step as a unit of work of its own, under its latches.
async fn commit(keyspace: &Keyspace, step: &Step) -> Result<()> {
    let _latches = keyspace.latches().acquire(Scope::Everything).await;
    let mut unit: Unit<'_> = keyspace.begin(Intent::Write).await?;
    step.run(&mut unit).await?;
    Ok(unit.commit().await?)
}

async fn live_and_let_die(seed: u64, capabilities: Capabilities, encodings: Encodings) {
    println!("seed {seed}");
    let mut world = World::new(seed, capabilities, encodings).await;
    for round in 0..300 {
        world.step().await;
        if round % 10 == 0 {
            world.check().await;
        }
    }
    world.settle().await;
    world.check().await;
    records::check(&world).await;
}

#[tokio::test]
async fn nothing_but_living_keys_stays() {
    let uncounted = Encodings { counted_hashes: false, counted_sets: false, ..encodings() };
    for seed in 0..60 {
        live_and_let_die(seed, MemoryBackend::CAPABILITIES, if seed % 2 == 0 { encodings() } else { uncounted }).await;
    }
}

#[tokio::test]
async fn nothing_but_living_keys_stays_on_a_store_of_many_ranges() {
    let by_slot = Capabilities { range_partitioned: true, ..MemoryBackend::CAPABILITIES };
    live_and_let_die(0, by_slot, encodings()).await;
}

#[tokio::test]
async fn nothing_but_living_keys_stays_in_a_sidecar() {
    for seed in 0..8 {
        let encodings = Encodings { zsets_in_sidecar: true, ..encodings() };
        live_and_let_die(seed, MemoryBackend::CAPABILITIES, encodings).await;
    }
}

fn encodings() -> Encodings {
    Encodings { string_chunk_threshold: 64, ..Encodings::default() }
}
