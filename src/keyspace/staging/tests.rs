use bytes::Bytes;
use respgate_backend_api::{Error as StoreError, KvBackend};

use crate::{
    keyspace::{
        Duty, Error, Intent, Keyspace, ManualClock, Reconciled,
        fixture::{GRACE, key, records},
        order::fixture::{Site, add, crash_after, in_a_process, in_order, member, members, read},
    },
    types::{self, key as keys},
};

/// Four commits' worth, and some more.
const MEMBERS: usize = 4_321;

async fn encode(keyspace: &Keyspace, version: u8) -> types::Result<()> {
    let mut unit = keyspace.begin(Intent::Write).await?;
    keys::set_encode_version(&mut unit, &key("z"), version).await?;
    Ok(unit.commit().await?)
}

/// Deletes whatever belongs to no key, as the background does in time.
async fn clean(gateway: &Keyspace, clock: &ManualClock) {
    clock.advance_ms(GRACE.as_millis() as u64 + 1);
    let mut lease = gateway.take_lease(Duty::Orphans, 0, GRACE).await.unwrap().unwrap();
    while !gateway.sweep(&mut lease).await.unwrap().is_round_over {}
    while gateway.collect_garbage().await.unwrap().is_some() {}
}

/// Metadata and, for each member, one record or two; a map of databases may be there as well.
async fn assert_nothing_else(backend: &dyn KvBackend, in_sidecar: bool) {
    let expected = 1 + MEMBERS * if in_sidecar { 1 } else { 2 };
    let found = records(backend).await;
    assert!((expected..=expected + 2).contains(&found), "{found} records, not {expected}");
}

#[tokio::test]
async fn a_large_sorted_set_goes_to_the_sidecar_and_back() {
    let site = Site::new();
    let (gateway, clock) = site.gateway_and_clock().await;
    let all = in_order(members(0..MEMBERS));
    add(&gateway, "z", &all).await.unwrap();
    for version in [0, 1, 0] {
        let mut unit = gateway.begin(Intent::Write).await.unwrap();
        let at_ms = unit.now_ms() + 100_000_000;
        assert!(keys::expire(&mut unit, &key("z"), at_ms, keys::Condition::default()).await.unwrap());
        unit.commit().await.unwrap();
        encode(&gateway, version).await.unwrap();
        assert_eq!(gateway.reconcile().await.unwrap(), Reconciled::default(), "the order was there at once");
        assert_eq!(read(&gateway, "z").await.unwrap(), all);
        clean(&gateway, &clock).await;
        assert_nothing_else(&*site.backend, version == 1).await;
        assert_eq!(site.redis.keys(false).len(), if version == 1 { 2 } else { 0 });
        let mut unit = gateway.begin(Intent::Read).await.unwrap();
        assert_eq!(keys::expires_at(&mut unit, &key("z")).await.unwrap(), Some(Some(at_ms)));
    }
}

/// A gateway ends at any point of the way, in either direction: the sorted set is in one version or in the other, and whole.
#[test]
fn a_crash_on_the_way_loses_nothing_and_leaves_nothing() {
    for version in [0, 1] {
        let (mut polls, mut halfway) = (0, 0);
        loop {
            let site = Site::new();
            let all = in_order(members(0..MEMBERS));
            let ended = in_a_process(async {
                let gateway = site.gateway().await;
                add(&gateway, "z", &all).await.unwrap();
                if version == 1 {
                    encode(&gateway, 0).await.unwrap();
                }
                crash_after(polls, encode(&gateway, version)).await
            });
            in_a_process(async {
                let (gateway, clock) = site.gateway_and_clock().await;
                assert_eq!(read(&gateway, "z").await.unwrap(), all);
                halfway += usize::from(ended.is_none() && records(&*site.backend).await > 2 * MEMBERS);
                clean(&gateway, &clock).await;
                assert_eq!(read(&gateway, "z").await.unwrap(), all);
                let mut unit = gateway.begin(Intent::Read).await.unwrap();
                let metadata = unit.load(&key("z")).await.unwrap().unwrap();
                let in_sidecar = unit.order(&key("z"), &metadata).unwrap().is_some();
                assert!(ended.is_none() || in_sidecar == (version == 1), "it was acknowledged");
                assert_nothing_else(&*site.backend, in_sidecar).await;
            });
            if ended.is_some() {
                break;
            }
            polls += 1;
        }
        assert!(version == 0 || halfway > 0, "no crash fell between two commits");
    }
}

#[tokio::test]
async fn a_sidecar_that_goes_on_the_way_harms_nobody() {
    let mut site = Site::new();
    let gateway = site.gateway().await;
    let all = in_order(members(0..MEMBERS));
    add(&gateway, "z", &all).await.unwrap();
    encode(&gateway, 0).await.unwrap();
    // It answers the first questions, and no more.
    let mut refused = 0;
    for answers in 1.. {
        let mut rewriting = Box::pin(encode(&gateway, 1));
        let early = crash_after(answers, &mut rewriting).await;
        site.redis.stop();
        let outcome = match early {
            Some(outcome) => outcome,
            None => rewriting.await,
        };
        if outcome.is_ok() {
            break;
        }
        assert!(matches!(outcome, Err(types::Error::Keyspace(Error::Sidecar(_)))), "{outcome:?}");
        assert_eq!(read(&gateway, "z").await.unwrap(), all, "it is still in the store");
        site.redis.restart();
        refused += 1;
    }
    assert!(refused > 1, "the sidecar was not gone before the end");
    site.redis.restart();
    assert_eq!(read(&gateway, "z").await.unwrap(), all);
}

#[tokio::test]
async fn what_takes_too_long_is_given_up() {
    let site = Site::new();
    let (gateway, clock) = site.gateway_and_clock().await;
    add(&gateway, "z", &members(0..10)).await.unwrap();
    let mut unit = gateway.begin(Intent::Write).await.unwrap();
    let metadata = unit.load(&key("z")).await.unwrap().unwrap();
    let elements = unit.collection(&key("z"), &metadata).unwrap();
    unit.put_record(elements.element(b"x"), Bytes::new());
    clock.advance_ms(GRACE.as_millis() as u64 / 2 + 1);
    let outcome = unit.stage(&elements).await;
    assert!(matches!(outcome, Err(Error::Store(StoreError::TooLarge(_)))), "{outcome:?}");
}

#[tokio::test]
async fn a_change_by_another_gateway_on_the_way_is_a_conflict() {
    let site = Site { backend: Site::shared_backend(), ..Site::new() };
    let gateways = [site.gateway().await, site.gateway().await];
    add(&gateways[0], "z", &members(0..MEMBERS)).await.unwrap();
    let mut unit = gateways[0].begin(Intent::Write).await.unwrap();
    keys::set_encode_version(&mut unit, &key("z"), 0).await.unwrap();
    add(&gateways[1], "z", &[(member(MEMBERS), 1e9)]).await.unwrap();
    assert_eq!(unit.commit().await, Err(Error::Store(StoreError::Conflict)));
    assert_eq!(read(&gateways[1], "z").await.unwrap().len(), MEMBERS + 1);
}

/// Two names with the same MD5, which somebody has to make on purpose: the sidecar would take them for one.
#[tokio::test]
async fn members_that_the_sidecar_cannot_tell_apart_stay_in_the_store() {
    let collision = [(0x00, 0x55), (0x02, 0xd5)].map(|(byte, other)| {
        let mut name = *b"\x4d\xc9\x68\xff\x0e\xe3\x5c\x20\x95\x72\xd4\x77\x7b\x72\x15\x87\
            \xd3\x6f\xa7\xb2\x1b\xdc\x56\xb7\x4a\x3d\xc0\x78\x3e\x7b\x95\x18\
            \xaf\xbf\xa2\x00\xa8\x28\x4b\xf3\x6e\x8e\x4b\x55\xb3\x5f\x42\x75\
            \x93\xd8\x49\x67\x6d\xa0\xd1\x55\x5d\x83\x60\xfb\x5f\x07\xfe\xa2";
        (name[35], name[55]) = (byte, other);
        Bytes::copy_from_slice(&name)
    });
    let site = Site::new();
    let gateway = site.gateway().await;
    add(&gateway, "z", &members(0..MEMBERS)).await.unwrap();
    encode(&gateway, 0).await.unwrap();
    add(&gateway, "z", &collision.map(|name| (name, 1.0))).await.unwrap();
    assert_eq!(encode(&gateway, 1).await, Err(types::Error::DigestTaken));
    assert_eq!(read(&gateway, "z").await.unwrap().len(), MEMBERS + 2);
}
