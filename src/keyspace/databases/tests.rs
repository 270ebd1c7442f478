//! Two gateways over one store.

use std::{sync::Arc, time::Instant};

use respgate_backend_api::{Capabilities, KvBackend};
use respgate_backend_memory::MemoryBackend;

use super::{COMMIT_MS, LEASE_MS};
use crate::{
    keyspace::{
        Error, Intent, Keyspace, Result, Scope, Unit,
        fixture::{START_MS, key, keyspace_with_random},
    },
    types::string,
};

struct Gateways {
    began_at: Instant,
    one: Keyspace,
    other: Keyspace,
}

impl Gateways {
    async fn new() -> Self {
        let began_at = Instant::now();
        let capabilities = Capabilities { shared: true, range_partitioned: true, ..MemoryBackend::CAPABILITIES };
        let store = MemoryBackend::new().with_capabilities(capabilities);
        let store = store.with_clock(Arc::new(move || time_ms(began_at)));
        let store: Arc<dyn KvBackend> = Arc::new(store);
        let one = keyspace_with_random(Arc::clone(&store), 1).await.0;
        let other = keyspace_with_random(store, 2).await.0;
        Self { began_at, one, other }
    }

    fn now_ms(&self) -> u64 {
        time_ms(self.began_at)
    }
}

/// The time of the store: it moves on, because whoever changes the map waits for that.
fn time_ms(began_at: Instant) -> u64 {
    START_MS + began_at.elapsed().as_millis() as u64
}

async fn set(keyspace: &Keyspace, value: &'static str) {
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    string::set(&mut unit, &key("key"), value.into(), None).unwrap();
    unit.commit().await.unwrap();
}

async fn get(unit: &mut Unit<'_>) -> Option<String> {
    let value = string::get(unit, &key("key")).await.unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

async fn get_from(keyspace: &Keyspace) -> Option<String> {
    get(&mut keyspace.begin(Intent::Read).await.unwrap()).await
}

/// Runs a change as a gateway does: once more after each announcement.
async fn change(keyspace: &Keyspace, change: impl AsyncFn(&mut Unit<'_>) -> Result<()>) {
    loop {
        let latches = keyspace.latches().acquire(Scope::Everything).await;
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        match change(&mut unit).await {
            Ok(()) => return unit.commit().await.unwrap(),
            Err(Error::Unannounced { wait_ms }) => {
                drop(latches);
                keyspace.announce_change(wait_ms).await.unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_change_is_seen_by_the_other_gateway_at_once() {
    let gateways = Gateways::new().await;
    for _ in 0..2 {
        set(&gateways.one, "value").await;
        assert_eq!(get_from(&gateways.other).await.as_deref(), Some("value"));
        change(&gateways.one, async |unit| unit.swap_databases(0, 1)).await;
        assert_eq!(get_from(&gateways.other).await, None);
        change(&gateways.other, async |unit| unit.swap_databases(1, 0)).await;
        assert_eq!(get_from(&gateways.one).await.as_deref(), Some("value"));
        change(&gateways.other, async |unit| unit.flush_databases([0]).await).await;
        assert_eq!(get_from(&gateways.one).await, None);
    }
}

/// A map that was read just before the change was announced is used for a lease at most, and the change waits that long.
#[tokio::test]
async fn no_unit_goes_by_a_map_that_is_older_than_its_snapshot() {
    let gateways = Gateways::new().await;
    set(&gateways.one, "value").await;
    assert_eq!(get_from(&gateways.other).await.as_deref(), Some("value"));
    let read_at_ms = gateways.now_ms();
    change(&gateways.one, async |unit| unit.flush_databases([0]).await).await;
    assert!(gateways.now_ms() > read_at_ms + LEASE_MS);
    assert_eq!(get_from(&gateways.other).await, None);

    set(&gateways.one, "new").await;
    let read_at_ms = gateways.now_ms();
    change(&gateways.one, async |unit| unit.swap_databases(0, 1)).await;
    assert!(gateways.now_ms() > read_at_ms + LEASE_MS + COMMIT_MS);
}

/// A unit that began before a change sees what was there then, to its end.
#[tokio::test]
async fn a_unit_keeps_the_databases_of_its_snapshot() {
    let gateways = Gateways::new().await;
    set(&gateways.one, "value").await;
    let mut unit = gateways.other.begin(Intent::Read).await.unwrap();
    change(&gateways.one, async |unit| unit.flush_databases([0]).await).await;
    assert_eq!(get(&mut unit).await.as_deref(), Some("value"));
    assert_eq!(get_from(&gateways.other).await, None);
}

/// Emptying what is empty costs no announcement, and a write makes a database count as used for every gateway.
#[tokio::test]
async fn only_databases_in_use_are_flushed() {
    let gateways = Gateways::new().await;
    for gateway in [&gateways.one, &gateways.other] {
        let mut unit = gateway.begin(Intent::Write).await.unwrap();
        unit.flush_databases(0..2).await.unwrap();
        assert!(!unit.has_writes());
    }
    // From the next millisecond on, and for a lease, units of the other gateway go by the map that it has read.
    let read_at_ms = gateways.now_ms();
    while gateways.now_ms() == read_at_ms {
        tokio::task::yield_now().await;
    }
    set(&gateways.one, "value").await;
    let mut unit = gateways.other.begin(Intent::Write).await.unwrap();
    assert_eq!(unit.flush_databases([0]).await, Err(Error::Unannounced { wait_ms: LEASE_MS }));
    assert_eq!(unit.flush_databases([1]).await, Ok(()));
}

/// What a unit has written itself counts, and moves with its database.
#[tokio::test]
async fn own_writes_are_flushed_and_swapped() {
    let gateways = Gateways::new().await;
    let new = || "new".into();
    change(&gateways.one, async |unit| {
        string::set(unit, &key("key"), new(), None).unwrap();
        unit.swap_databases(0, 1)
    })
    .await;
    assert_eq!(get_from(&gateways.other).await, None);
    change(&gateways.other, async |unit| unit.flush_databases([1]).await).await;
    change(&gateways.one, async |unit| unit.swap_databases(0, 1)).await;
    assert_eq!(get_from(&gateways.other).await, None);
    change(&gateways.one, async |unit| {
        string::set(unit, &key("key"), new(), None).unwrap();
        unit.flush_databases([0]).await
    })
    .await;
    assert_eq!(get_from(&gateways.other).await, None);
}

/// A change that another gateway announced is not made before this one has waited as well.
#[tokio::test]
async fn an_announcement_of_another_gateway_is_waited_for_too() {
    let gateways = Gateways::new().await;
    set(&gateways.one, "value").await;
    gateways.one.announce_change(LEASE_MS).await.unwrap();
    let mut unit = gateways.other.begin(Intent::Write).await.unwrap();
    assert_eq!(unit.flush_databases([0]).await, Err(Error::Unannounced { wait_ms: LEASE_MS }));
    drop(unit);
    change(&gateways.other, async |unit| unit.flush_databases([0]).await).await;
    assert_eq!(get_from(&gateways.one).await, None);
}

#[tokio::test]
async fn a_flushed_database_is_deleted_and_its_number_is_free_again() {
    let gateways = Gateways::new().await;
    set(&gateways.one, "value").await;
    change(&gateways.one, async |unit| unit.flush_databases([0]).await).await;
    set(&gateways.other, "new").await;
    let retired = |keyspace: &Keyspace| keyspace.databases().current().retired().count();
    assert_eq!(retired(&gateways.other), 1);
    let (one, other) = tokio::join!(gateways.one.reclaim(), gateways.other.reclaim());
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(get_from(&gateways.one).await.as_deref(), Some("new"));
    set(&gateways.one, "newer").await;
    assert_eq!(retired(&gateways.one), 0);
    // The map, and the key.
    assert_eq!(crate::keyspace::fixture::records(&**gateways.one.backend()).await, 2);
}

/// Elements change without the metadata: the store still tells who watches from another gateway.
#[tokio::test]
async fn every_change_of_a_key_changes_its_state() {
    let gateways = Gateways::new().await;
    let mut states = std::collections::HashSet::new();
    for value in ["1", "2", "2"] {
        let mut unit = gateways.one.begin(Intent::Write).await.unwrap();
        let fields = [("field".into(), value.into())];
        crate::types::hash::set(&mut unit, &key("hash"), &fields).await.unwrap();
        unit.commit().await.unwrap();
        let mut unit = gateways.other.begin(Intent::Read).await.unwrap();
        assert!(states.insert(unit.state(&key("hash")).await.unwrap()));
    }
}
