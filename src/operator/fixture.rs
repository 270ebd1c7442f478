use std::sync::Arc;

use bytes::Bytes;
use respgate_backend_api::{Capabilities, KvBackend};
use respgate_backend_memory::MemoryBackend;
use tokio_util::sync::CancellationToken;

use super::{Outcome, Position, Task};
use crate::{
    encoding::Metadata,
    keyspace::{
        Collection, Encodings, Intent, Keyspace, ManualClock, Unit,
        fixture::{key, keyspace_over},
    },
    types::{
        hash,
        key::{self as keys, IfExists},
        list, set, string, zset,
    },
};

/// A store filled with keys of every type and encoding: living, renamed, expired and dead ones.
pub(super) async fn filled() -> (Keyspace, Arc<ManualClock>) {
    filled_over(MemoryBackend::new()).await
}

/// The same on a range-partitioned store, where each walk looks into every slot.
pub(super) async fn filled_by_slot() -> (Keyspace, Arc<ManualClock>) {
    let by_slot = Capabilities { range_partitioned: true, ..MemoryBackend::CAPABILITIES };
    filled_over(MemoryBackend::new().with_capabilities(by_slot)).await
}

async fn filled_over(backend: MemoryBackend) -> (Keyspace, Arc<ManualClock>) {
    let backend: Arc<dyn KvBackend> = Arc::new(backend);
    let uncounted = Encodings { counted_hashes: false, counted_sets: false, ..Encodings::default() };
    let (keyspace, _) = keyspace_over(Arc::clone(&backend), uncounted).await;
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    hash::set(&mut unit, &key("hash 1"), &[("f".into(), "v".into())]).await.unwrap();
    set::add(&mut unit, &key("set 1"), &["a".into(), "b".into()]).await.unwrap();
    unit.commit().await.unwrap();
    drop(keyspace);

    let (keyspace, clock) = keyspace_over(backend, Encodings::default()).await;
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    fill(&mut unit).await;
    unit.commit().await.unwrap();
    clock.advance_ms(2);
    (keyspace, clock)
}

async fn fill(unit: &mut Unit<'_>) {
    let abc = || ["a", "b", "c"].map(Bytes::from);
    for name in ["hash", "dead", "old", "expired"] {
        hash::set(unit, &key(name), &abc().map(|field| (field, "value".into()))).await.unwrap();
    }
    keys::rename(unit, &key("old"), &key("renamed"), IfExists::Replace).await.unwrap();
    keys::delete(unit, &[key("dead")]).await.unwrap();
    let expiring = unit.load(&key("expired")).await.unwrap().unwrap();
    let expires_at_ms = Some(unit.now_ms() + 1);
    unit.save(&key("expired"), &Metadata { expires_at_ms, ..expiring }).unwrap();
    set::add(unit, &key("set"), &abc()).await.unwrap();
    list::push(unit, &key("list"), list::End::Head, &abc()).await.unwrap();
    list::push(unit, &key("list"), list::End::Tail, &abc()).await.unwrap();
    let scores = [-1.5, 0.0, f64::INFINITY];
    let members: Vec<_> = abc().into_iter().zip(scores).collect();
    zset::add(unit, &key("zset"), &members, zset::AddOptions::default()).await.unwrap();
    string::set(unit, &key("string"), "value".into(), None).unwrap();
    string::set(unit, &key("chunks"), vec![b'x'; 100_000].into(), None).unwrap();
}

/// Changes records of a key behind its back.
pub(super) async fn damage(
    keyspace: &Keyspace,
    name: &'static str,
    change: impl FnOnce(&mut Unit<'_>, &Collection<'_>, Metadata),
) {
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    let metadata = unit.load(&key(name)).await.unwrap().unwrap();
    let records = unit.collection(&key(name), &metadata).unwrap();
    change(&mut unit, &records, metadata);
    unit.commit().await.unwrap();
}

/// Runs a task to its end. Gives what it said.
pub(super) async fn run(keyspace: &Keyspace, task: Task) -> (Outcome, Vec<String>) {
    run_from(keyspace, &task, None, CancellationToken::new()).await
}

/// Runs a task that is to stop as soon as it can, over and over, until it is done. Gives what it said in all those runs,
/// without the lines about stops, and how many there were.
pub(super) async fn run_in_pieces(keyspace: &Keyspace, task: Task) -> (Vec<String>, usize) {
    let stop = CancellationToken::new();
    stop.cancel();
    let (mut said, mut position, mut runs) = (Vec::new(), None, 1);
    loop {
        let (outcome, mut lines) = run_from(keyspace, &task, position, stop.clone()).await;
        if outcome != Outcome::Stopped {
            said.extend(lines);
            return (said, runs);
        }
        let last = lines.pop().unwrap();
        position = Some(last.strip_prefix("stopped; go on with --resume ").unwrap().parse().unwrap());
        said.extend(lines);
        runs += 1;
    }
}

async fn run_from(
    keyspace: &Keyspace,
    task: &Task,
    from: Option<Position>,
    stop: CancellationToken,
) -> (Outcome, Vec<String>) {
    let mut said = Vec::new();
    let outcome = super::run(task, from, keyspace, &mut said, stop).await.unwrap();
    (outcome, String::from_utf8(said).unwrap().lines().map(str::to_owned).collect())
}
