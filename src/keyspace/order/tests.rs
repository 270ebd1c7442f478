use std::collections::BTreeMap;

use proptest::prelude::*;
use respgate_backend_api as backend;

use super::{fixture::*, *};
use crate::{
    keyspace::{Reconciled, fixture::key},
    types::{
        self, key as keys, string,
        zset::{self, AddOptions, Range, Span},
    },
};

#[test]
fn what_a_crash_leaves_out_is_made_up_for() {
    for reconciles in [false, true] {
        let (mut mended, mut polls) = (0, 0);
        loop {
            let site = Site::new();
            let ended = in_a_process(async {
                let gateway = site.gateway().await;
                add(&gateway, "z", &members(0..6)).await.unwrap();
                crash_after(polls, add(&gateway, "z", &members(3..10))).await
            });
            let is_whole = in_a_process(check_after_crash(&site, reconciles, &mut mended));
            if ended.is_some() {
                assert!(is_whole, "it was acknowledged");
                break;
            }
            polls += 1;
        }
        assert!(mended > 0 || !reconciles, "no crash fell between the store and the sidecar");
    }
}

/// Either all of the change has happened or nothing. True if all of it.
async fn check_after_crash(site: &Site, reconciles: bool, mended: &mut usize) -> bool {
    let gateway = site.gateway().await;
    if reconciles {
        *mended += gateway.reconcile().await.unwrap().mended;
    }
    let found = read(&gateway, "z").await.unwrap();
    let is_whole = found == in_order(members(0..10));
    assert!(is_whole || found == in_order(members(0..6)), "{found:?}");
    assert_eq!(gateway.reconcile().await.unwrap(), Reconciled::default());
    add(&gateway, "z", &members(0..12)).await.unwrap();
    assert_eq!(read(&gateway, "z").await.unwrap(), in_order(members(0..12)));
    is_whole
}

#[tokio::test]
async fn a_sidecar_that_has_lost_data_gets_it_back() {
    let site = Site::new();
    let gateway = site.gateway().await;
    let all = members(0..5_000);
    add(&gateway, "z", &all).await.unwrap();
    site.redis.flush();
    assert_eq!(read(&gateway, "z").await.unwrap(), in_order(all.clone()));
    // The revision is still there.
    let order = site.redis.keys(false).into_iter().min_by_key(Vec::len).unwrap();
    redis::cmd("DEL").arg(&order).exec(&mut site.redis.connect()).unwrap();
    assert_eq!(read(&gateway, "z").await.unwrap(), in_order(all.clone()));
    site.redis.flush();
    add(&gateway, "z", &members(5_000..5_001)).await.unwrap();
    assert_eq!(read(&gateway, "z").await.unwrap(), in_order(members(0..5_001)));
    site.redis.flush();
    assert_eq!(gateway.reconcile().await.unwrap(), Reconciled { mended: 1, orphans: 0 });
    assert_eq!(gateway.reconcile().await.unwrap(), Reconciled { mended: 0, orphans: 0 });
}

#[tokio::test]
async fn nothing_is_written_while_the_sidecar_is_away_and_the_rest_goes_on() {
    let mut site = Site::new();
    let gateway = site.gateway().await;
    add(&gateway, "z", &members(0..4)).await.unwrap();
    site.redis.stop();
    let is_refused = |result| assert!(matches!(result, Err(types::Error::Keyspace(Error::Sidecar(_)))), "{result:?}");
    is_refused(read(&gateway, "z").await.map(drop));
    is_refused(add(&gateway, "z", &members(4..6)).await);
    is_refused(add(&gateway, "new", &members(0..1)).await);
    let mut unit = gateway.begin(Intent::Write).await.unwrap();
    string::set(&mut unit, &key("s"), "x".into(), None).unwrap();
    assert_eq!(zset::scores(&mut unit, &key("z"), &[member(3)]).await.unwrap(), [Some(1.0)]);
    assert_eq!(zset::len(&mut unit, &key("z")).await.unwrap(), 4);
    unit.commit().await.unwrap();
    site.redis.restart();
    assert_eq!(read(&gateway, "z").await.unwrap(), in_order(members(0..4)));
    assert!(read(&gateway, "new").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_change_that_the_sidecar_misses_is_not_lost() {
    let mut site = Site::new();
    let gateway = site.gateway().await;
    add(&gateway, "z", &members(0..4)).await.unwrap();
    let mut unit = gateway.begin(Intent::Write).await.unwrap();
    zset::add(&mut unit, &key("z"), &members(4..6), AddOptions::default()).await.unwrap();
    site.redis.stop();
    unit.commit().await.unwrap();
    site.redis.restart();
    assert_eq!(read(&gateway, "z").await.unwrap(), in_order(members(0..6)));
}

#[tokio::test]
async fn one_missed_change_is_made_up_for_from_its_journal_by_who_only_reads() {
    let site = Site::new();
    let gateway = site.gateway().await;
    add(&gateway, "z", &members(0..4)).await.unwrap();
    let mut conn = site.redis.connect();
    let mut before: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    for name in site.redis.keys(false) {
        let dump = redis::cmd("DUMP").arg(&name).query(&mut conn).unwrap();
        before.push((name, dump));
    }
    let mut roll_back = || {
        for (name, dump) in &before {
            redis::cmd("RESTORE").arg(name).arg(0).arg(dump).arg("REPLACE").exec(&mut conn).unwrap();
        }
    };
    let all = Range { span: Span::Ranks(0, -1), direction: Direction::Forward, offset: 0, limit: usize::MAX };
    let only_read = async || zset::range(&mut gateway.begin(Intent::Read).await?, &key("z"), &all).await;

    add(&gateway, "z", &members(4..6)).await.unwrap();
    roll_back();
    assert_eq!(only_read().await, Ok(in_order(members(0..6))));
    // A journal tells of the last change. For what is further behind, all members are read again, by who writes.
    add(&gateway, "z", &members(6..8)).await.unwrap();
    roll_back();
    assert_eq!(only_read().await, Err(Error::Store(backend::Error::Conflict).into()));
    assert_eq!(read(&gateway, "z").await.unwrap(), in_order(members(0..8)));
}

#[tokio::test]
async fn an_old_snapshot_does_not_read_a_newer_order_and_a_late_change_does_not_come_back() {
    let site = Site { backend: Site::shared_backend(), ..Site::new() };
    let (one, other) = (site.gateway().await, site.gateway().await);
    add(&one, "z", &members(0..4)).await.unwrap();
    let mut old = one.begin(Intent::Read).await.unwrap();
    let metadata = old.load(&key("z")).await.unwrap().unwrap();
    let order = old.order(&key("z"), &metadata).unwrap().unwrap();
    add(&other, "z", &members(4..6)).await.unwrap();
    let window =
        Window { min: Bound::Unbounded, max: Bound::Unbounded, direction: Direction::Forward, offset: 0, limit: 1 };
    assert_eq!(old.read_order(&order, &window).await, Err(Error::Store(backend::Error::Conflict)));
    let (names, late) = (old.names_of(&order), [(Bytes::from_static(b"\0late"), Some(1.0))]);
    assert!(
        !one.sidecar().unwrap().apply(&names, order.found.revision, order.found.revision + 1, &late).await.unwrap()
    );
    assert_eq!(read(&one, "z").await.unwrap(), in_order(members(0..6)));
}

#[tokio::test]
async fn dead_sorted_sets_leave_nothing_in_the_sidecar() {
    let site = Site::new();
    let gateway = site.gateway().await;
    for name in ["deleted", "emptied", "replaced", "popped", "kept"] {
        add(&gateway, name, &members(0..4)).await.unwrap();
    }
    let mut unit = gateway.begin(Intent::Write).await.unwrap();
    keys::delete(&mut unit, &[key("deleted")]).await.unwrap();
    for (member, _) in members(0..4) {
        zset::remove(&mut unit, &key("emptied"), &[member]).await.unwrap();
    }
    zset::replace(&mut unit, &key("replaced"), members(0..1)).await.unwrap();
    zset::pop(&mut unit, &key("popped"), Direction::Forward, 9).await.unwrap();
    unit.commit().await.unwrap();
    while gateway.collect_garbage().await.unwrap().is_some() {}
    assert_eq!(site.redis.keys(false).len(), 2 * 2, "an order and a revision each");
    let mut unit = gateway.begin(Intent::Write).await.unwrap();
    unit.flush_databases([0]).await.unwrap();
    unit.commit().await.unwrap();
    gateway.reclaim().await.unwrap();
    assert!(site.redis.keys(false).is_empty() && site.redis.keys(true).is_empty());
}

#[tokio::test]
async fn garbage_waits_for_a_sidecar_that_is_away() {
    let mut site = Site::new();
    let gateway = site.gateway().await;
    add(&gateway, "z", &members(0..4)).await.unwrap();
    let mut unit = gateway.begin(Intent::Write).await.unwrap();
    keys::delete(&mut unit, &[key("z")]).await.unwrap();
    unit.commit().await.unwrap();
    site.redis.stop();
    assert!(matches!(gateway.collect_garbage().await, Err(Error::Sidecar(_))));
    site.redis.restart();
    assert_eq!(gateway.collect_garbage().await, Ok(Some(1)));
}

#[tokio::test]
async fn the_reconciler_finds_what_nobody_has_met() {
    let site = Site::new();
    let (gateway, clock) = site.gateway_and_clock().await;
    for name in ["wrong", "miscounted", "right"] {
        add(&gateway, name, &members(0..4)).await.unwrap();
    }
    let mut unit = gateway.begin(Intent::Write).await.unwrap();
    let metadata = unit.load(&key("miscounted")).await.unwrap().unwrap();
    let Body::Zset { order, .. } = metadata.body.clone() else { panic!() };
    unit.save(&key("miscounted"), &Metadata { body: Body::Zset { count: 9, order }, ..metadata }).unwrap();
    let metadata = unit.load(&key("wrong")).await.unwrap().unwrap();
    unit.commit().await.unwrap();
    let mut conn = site.redis.connect();
    let wrong = gateway.codec().sidecar_order(0, b"wrong", metadata.version);
    redis::cmd("ZADD").arg(&*wrong).arg(7).arg(b"\x000").exec(&mut conn).unwrap();
    let orphan = gateway.codec().sidecar_order(0, b"orphan", metadata.version - 1);
    redis::cmd("ZADD").arg(&*orphan).arg(7).arg(b"\x000").exec(&mut conn).unwrap();
    let foreign = "c#something else";
    redis::cmd("SET").arg(foreign).arg("x").exec(&mut conn).unwrap();

    assert_eq!(gateway.reconcile().await.unwrap(), Reconciled { mended: 2, orphans: 0 });
    clock.advance_ms(3_600_000);
    assert_eq!(gateway.reconcile().await.unwrap(), Reconciled { mended: 0, orphans: 1 });
    assert!(redis::cmd("EXISTS").arg(foreign).query::<bool>(&mut conn).unwrap());
    for name in ["wrong", "miscounted", "right"] {
        assert_eq!(read(&gateway, name).await.unwrap(), in_order(members(0..4)), "{name}");
    }
}

#[tokio::test]
async fn members_are_found_in_either_cache_or_in_the_store_and_never_taken_on_trust() {
    let site = Site::new();
    add(&site.gateway().await, "z", &members(0..4)).await.unwrap();
    assert_eq!(read(&site.gateway().await, "z").await.unwrap(), in_order(members(0..4)));
    let cached = site.redis.keys(true);
    assert_eq!(cached.len(), 2, "the long ones");
    for name in cached {
        // A gateway that remembers nothing must not believe a cache that has been tampered with.
        let forgery = "forged, but long enough";
        redis::cmd("SET").arg(&name).arg(forgery).arg("KEEPTTL").exec(&mut site.redis.connect()).unwrap();
    }
    let gateway = site.gateway().await;
    for _ in 0..2 {
        assert_eq!(read(&gateway, "z").await.unwrap(), in_order(members(0..4)));
    }
}

#[tokio::test]
async fn a_large_sorted_set_is_written_at_once() {
    let site = Site::new();
    let gateway = site.gateway().await;
    let mut unit = gateway.begin(Intent::Write).await.unwrap();
    zset::replace(&mut unit, &key("z"), members(0..12_000)).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(gateway.reconcile().await.unwrap(), Reconciled::default(), "it was there at once");
    // Neither a journal nor one step holds as much as this.
    add(&gateway, "z", &members(8_000..19_000)).await.unwrap();
    let mut all = in_order(members(0..19_000));
    assert_eq!(read(&gateway, "z").await.unwrap(), all);
    all.reverse();
    let most = Range { span: Span::Ranks(1, 18_000), direction: Direction::Backward, offset: 0, limit: usize::MAX };
    let mut unit = gateway.begin(Intent::Read).await.unwrap();
    assert_eq!(zset::range(&mut unit, &key("z"), &most).await.unwrap(), all[1..=18_000]);
    assert_eq!(gateway.reconcile().await.unwrap(), Reconciled::default());
}

/// What one of two gateways does, and after how many polls it ends before its time.
#[derive(Clone, Debug)]
struct Deed {
    gateway: usize,
    first: usize,
    removes: bool,
    polls: Option<usize>,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = (0..2_usize, 0..12_usize, any::<bool>(), prop::option::of(0..6_usize))
        .prop_map(|(gateway, first, removes, polls)| Deed { gateway, first, removes, polls });
    prop::collection::vec(deed, 1..20)
}

async fn act(keyspace: &Keyspace, deed: &Deed) -> types::Result<()> {
    let mut unit = keyspace.begin(Intent::Write).await?;
    let some = members(deed.first..deed.first + 4);
    if deed.removes {
        let names: Vec<Bytes> = some.into_iter().map(|(member, _)| member).collect();
        zset::remove(&mut unit, &key("z"), &names).await?;
    } else {
        zset::add(&mut unit, &key("z"), &some, AddOptions::default()).await?;
    }
    Ok(unit.commit().await?)
}

/// The members as the store has them.
async fn stored(keyspace: &Keyspace) -> BTreeMap<Bytes, f64> {
    let mut unit = keyspace.begin(Intent::Read).await.unwrap();
    zset::all(&mut unit, &key("z")).await.unwrap().into_iter().collect()
}

/// Two gateways, and others that crash.
fn act_in_turns(site: &Site, deeds: &[Deed]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let gateways = runtime.block_on(async { [site.gateway().await, site.gateway().await] });
    for deed in deeds {
        match deed.polls {
            Some(polls) => _ = in_a_process(async { crash_after(polls, act(&site.gateway().await, deed)).await }),
            None => runtime.block_on(act(&gateways[deed.gateway], deed)).unwrap(),
        }
        for gateway in &gateways {
            runtime.block_on(async {
                let expected = in_order(stored(gateway).await.into_iter().collect());
                assert_eq!(read(gateway, "z").await.unwrap(), expected);
            });
        }
    }
    runtime.block_on(async {
        while gateways[0].collect_garbage().await.unwrap().is_some() {}
        assert_eq!(gateways[0].reconcile().await.unwrap().mended, 0);
    });
}

#[test]
fn gateways_that_crash_leave_what_the_others_can_read() {
    let site = std::cell::RefCell::new(Site { backend: Site::shared_backend(), ..Site::new() });
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) };
    let run = |deeds: Vec<Deed>| {
        let mut site = site.borrow_mut();
        site.redis.flush();
        site.backend = Site::shared_backend();
        act_in_turns(&site, &deeds);
        Ok(())
    };
    proptest::test_runner::TestRunner::new(config).run(&deeds(), run).unwrap();
}
