use std::sync::Arc;

use bytes::Bytes;
use respgate_backend_api::{Direction, Error, KvBackend, Snapshot};
use tokio::task::{self, JoinHandle};

use crate::area::{Area, put, write_set};

/// Hundreds of tasks that write and read keys of their own at once each find what they wrote.
pub async fn many_tasks_do_not_disturb_each_other(store: &Arc<dyn KvBackend>) {
    let area = Area::new(&**store, "many tasks").await;
    let tasks = (0..200).map(|number| {
        let keys = ["m#", "s#", "k#"].map(|tag| area.tagged_key(tag, format!("{number:04}")));
        let store = Arc::clone(store);
        task::spawn(async move {
            for round in 0..5 {
                let value = Bytes::from(format!("{number} {round}"));
                let writes = write_set(keys.iter().map(|key| put(key, value.clone())), []);
                store.snapshot().await.unwrap().commit(writes).await.unwrap();
                let snapshot = store.snapshot().await.unwrap();
                assert_eq!(snapshot.get(&keys[0]).await.unwrap().as_ref(), Some(&value));
                assert_eq!(snapshot.multi_get(&keys).await.unwrap(), vec![Some(value); 3]);
            }
        })
    });
    join(tasks.collect()).await;
    let pairs = area.snapshot().await.scan(&area.range("k#"), Direction::Forward, 1_000).await.unwrap();
    assert_eq!(pairs.len(), 200);
}

/// Tasks that read a number, add one and commit with a guard, again after each conflict, lose no increment.
pub async fn guarded_increments_lose_none(store: &Arc<dyn KvBackend>) {
    const TASKS: u64 = 8;
    const INCREMENTS: u64 = 25;
    let area = Area::new(&**store, "increments").await;
    let key = area.key("counter");
    let tasks = (0..TASKS).map(|_| {
        let (store, key) = (Arc::clone(store), key.clone());
        task::spawn(async move {
            for _ in 0..INCREMENTS {
                while !increment(&*store, &key).await {
                    task::yield_now().await;
                }
            }
        })
    });
    join(tasks.collect()).await;
    assert_eq!(number(&*area.snapshot().await, &key).await, TASKS * INCREMENTS);
}

/// Increments by snapshots that lock their key and by ordinary ones, at the same time, are all counted, and a locking
/// snapshot that is dropped stands in nobody's way for long.
pub async fn locking_snapshots_lose_no_increments(store: &Arc<dyn KvBackend>) {
    const TASKS: u64 = 4;
    const INCREMENTS: u64 = 5;
    let area = Area::new(&**store, "locked increments").await;
    let key = area.key("counter");
    let tasks = (0..TASKS).map(|number| {
        let (store, key) = (Arc::clone(store), key.clone());
        task::spawn(async move {
            for _ in 0..INCREMENTS {
                let locks = number % 2 == 0;
                drop(store.locking_snapshot(std::slice::from_ref(&key)).await);
                while !(if locks { increment_locked(&*store, &key).await } else { increment(&*store, &key).await }) {
                    task::yield_now().await;
                }
            }
        })
    });
    join(tasks.collect()).await;
    assert_eq!(number(&*area.snapshot().await, &key).await, TASKS * INCREMENTS);
}

/// While tasks move amounts between accounts of two tags, each move one commit, every snapshot shows the same sum,
/// by single reads, many reads and scans.
pub async fn readers_never_see_half_a_commit(store: &Arc<dyn KvBackend>) {
    const SUM: u64 = 1_000;
    let area = Area::new(&**store, "moves").await;
    let accounts = [area.key("account"), area.tagged_key("s#", "account")];
    area.write([put(&accounts[0], SUM.to_string()), put(&accounts[1], "0")]).await;
    let ranges = [area.range("m#"), area.range("s#")];

    let movers = (0..4_u64).map(|_| {
        let (store, accounts) = (Arc::clone(store), accounts.clone());
        task::spawn(async move {
            for round in 0..25 {
                while !move_amount(&*store, &accounts, round % 7).await {
                    task::yield_now().await;
                }
            }
        })
    });
    let readers = (0..4).map(|_| {
        let (store, accounts, ranges) = (Arc::clone(store), accounts.clone(), ranges.clone());
        task::spawn(async move {
            for _ in 0..100 {
                let snapshot = store.snapshot().await.unwrap();
                let gets = number(&*snapshot, &accounts[0]).await + number(&*snapshot, &accounts[1]).await;
                let values = snapshot.multi_get(&accounts).await.unwrap();
                let multi_get: u64 = values.into_iter().flatten().map(|value| parse(&value)).sum();
                let mut scans = 0;
                for range in &ranges {
                    scans += parse(&snapshot.scan(range, Direction::Forward, 1).await.unwrap()[0].1);
                }
                assert_eq!((gets, multi_get, scans), (SUM, SUM, SUM));
                task::yield_now().await;
            }
        })
    });
    join(movers.chain(readers).collect()).await;
}

/// Adds one to the number at `key`; false if somebody else was quicker.
async fn increment(store: &dyn KvBackend, key: &Bytes) -> bool {
    let snapshot = store.snapshot().await.unwrap();
    let next = number(&*snapshot, key).await + 1;
    committed(&*snapshot, &[(key.clone(), next)]).await
}

/// As [`increment`], with the key locked; false also if others hold it.
async fn increment_locked(store: &dyn KvBackend, key: &Bytes) -> bool {
    match store.locking_snapshot(std::slice::from_ref(key)).await {
        Ok(snapshot) => {
            let next = number(&*snapshot, key).await + 1;
            committed(&*snapshot, &[(key.clone(), next)]).await
        }
        Err(Error::Conflict) => false,
        Err(error) => panic!("a locking snapshot failed: {error}"),
    }
}

/// Moves up to `amount` from the first account to the second, or all back once the first is poor.
async fn move_amount(store: &dyn KvBackend, accounts: &[Bytes; 2], amount: u64) -> bool {
    let snapshot = store.snapshot().await.unwrap();
    let [from, to] = [number(&*snapshot, &accounts[0]).await, number(&*snapshot, &accounts[1]).await];
    let [from, to] = if from < amount { [from + to, 0] } else { [from - amount, to + amount] };
    committed(&*snapshot, &[(accounts[0].clone(), from), (accounts[1].clone(), to)]).await
}

async fn committed(snapshot: &dyn Snapshot, numbers: &[(Bytes, u64)]) -> bool {
    let writes = numbers.iter().map(|(key, number)| put(key, number.to_string()));
    let guards = numbers.iter().map(|(key, _)| key.clone());
    match snapshot.commit(write_set(writes, guards)).await {
        Ok(()) => true,
        Err(Error::Conflict) => false,
        Err(error) => panic!("a commit failed: {error}"),
    }
}

async fn number(snapshot: &dyn Snapshot, key: &[u8]) -> u64 {
    snapshot.get(key).await.unwrap().map_or(0, |value| parse(&value))
}

fn parse(value: &[u8]) -> u64 {
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

async fn join(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.unwrap();
    }
}
