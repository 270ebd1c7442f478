use super::{
    Outcome, Task,
    fixture::{damage, filled, filled_by_slot, run, run_in_pieces},
};
use crate::{
    keyspace::{
        Intent, Key, Keyspace,
        fixture::{key, records},
    },
    types::{hash, key as keys},
};

const DRY: Task = Task::Gc { is_dry: true };
const GC: Task = Task::Gc { is_dry: false };

fn inspect(name: &'static str, limit: usize) -> Task {
    Task::Inspect { db: 0, key: name.into(), limit }
}

async fn leave_orphans(keyspace: &Keyspace) {
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    unit.put_record(unit.codec().element(0, b"gone", 1, b"f"), "v");
    unit.put_record(unit.codec().score(1, b"gone", 2, 0.0, b"m"), "");
    // Written by a SET that did not read, say; the record that leads nowhere goes with the elements.
    unit.put_record(unit.codec().forwarding(0, b"gone", 1), "string");
    unit.commit().await.unwrap();
}

#[tokio::test]
async fn a_dry_run_counts_what_can_be_collected() {
    for (keyspace, _) in [filled().await, filled_by_slot().await] {
        leave_orphans(&keyspace).await;
        let before = records(&**keyspace.backend()).await;
        let (outcome, lines) = run(&keyspace, DRY).await;
        assert_eq!(outcome, Outcome::Done);
        let kinds: Vec<_> = lines.iter().map(|line| line.split(" (").next().unwrap()).collect();
        assert_eq!(kinds, ["expired hash: 1, 3 records", "garbage hash: 1, 3 records", "orphaned: 2, 2 records"]);
        assert_eq!(records(&**keyspace.backend()).await, before);
    }
}

#[tokio::test]
async fn a_collection_leaves_living_keys_only() {
    for (keyspace, _) in [filled().await, filled_by_slot().await] {
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        unit.flush_databases([1]).await.unwrap();
        unit.commit().await.unwrap();
        leave_orphans(&keyspace).await;
        let (outcome, lines) = run(&keyspace, GC).await;
        assert_eq!(outcome, Outcome::Done);
        assert_eq!(lines, ["expired hash: 1", "garbage hash: 2", "orphaned: 2"]);
        assert_eq!(run(&keyspace, DRY).await.1, ["nothing to collect"]);

        let names = ["hash", "hash 1", "set", "set 1", "list", "zset", "string", "chunks", "renamed"].map(key);
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        assert_eq!(hash::all(&mut unit, &key("renamed")).await.unwrap().len(), 3);
        assert_eq!(keys::delete(&mut unit, &names).await.unwrap(), names.len());
        unit.commit().await.unwrap();
        run(&keyspace, GC).await;
        assert_eq!(records(&**keyspace.backend()).await, 0);
    }
}

#[tokio::test]
async fn flushed_databases_are_collected() {
    let (keyspace, _) = filled().await;
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    unit.flush_databases([0]).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(run(&keyspace, DRY).await.1, ["flushed databases: 1"]);
    assert_eq!(run(&keyspace, GC).await.1, ["flushed databases: 1"]);
    // The map of databases stays.
    assert_eq!(records(&**keyspace.backend()).await, 1);
}

#[tokio::test]
async fn a_collection_in_pieces_is_whole() {
    let (keyspace, _) = filled().await;
    leave_orphans(&keyspace).await;
    let (lines, runs) = run_in_pieces(&keyspace, GC).await;
    assert!(runs > 1);
    let lines: Vec<_> = lines.into_iter().filter(|line| line != "nothing to collect").collect();
    assert_eq!(lines, ["expired hash: 1", "garbage hash: 2", "orphaned: 2"]);
    assert_eq!(run(&keyspace, DRY).await.1, ["nothing to collect"]);
}

#[tokio::test]
async fn the_largest_keys_are_named() {
    for (keyspace, _) in [filled().await, filled_by_slot().await] {
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        let big = Key { db: 1, name: "b\0g".into() };
        let pairs: Vec<_> = (0..2_000).map(|i| (format!("{i}").into(), "v".into())).collect();
        hash::set(&mut unit, &big, &pairs).await.unwrap();
        unit.commit().await.unwrap();
        let (outcome, lines) = run(&keyspace, Task::Bigkeys { db: None, top: 1 }).await;
        assert_eq!(outcome, Outcome::Done);
        let hashes: Vec<_> = lines.iter().skip_while(|line| !line.starts_with("hash")).take(3).collect();
        assert!(hashes[0].starts_with("hash: 4 keys, 2007 elements (501 on average), "), "{lines:?}");
        assert_eq!(hashes[1], r#"  2000 elements: db1 "b\x00g""#);
        assert!(hashes[2].ends_with(r#"B: db1 "b\x00g""#), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("zset: 1 key, 3 elements (3 on average), ")), "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("string: 2 keys, ")), "{lines:?}");
        let (_, lines) = run(&keyspace, Task::Bigkeys { db: Some(1), top: 1 }).await;
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(run(&keyspace, Task::Bigkeys { db: Some(0), top: 0 }).await.1.len(), 5);
    }
}

#[tokio::test]
async fn a_key_is_shown_in_hex_and_in_words() {
    let (keyspace, _) = filled().await;
    let (outcome, lines) = run(&keyspace, inspect("zset", 20)).await;
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(lines[0], r#"db0 "zset""#);
    assert_eq!(lines[1], "  record   6d230474657374007a736574");
    let said = lines.join("\n");
    for words in [
        "type     zset, encode-version 0",
        ", of 2023-11-14T22:13:20.000Z",
        "expires  never",
        "count    3",
        "1) member \"a\": -1.5\n",
        "  value    bff8000000000000\n",
        "4) index: -1.5, \"a\"\n",
        "6) index: inf, \"c\"\n",
    ] {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
    let said = run(&keyspace, inspect("renamed", 1)).await.1.join("\n");
    assert!(said.contains("origin   \"old\": its elements lie under this name"), "{said}");
    assert!(said.ends_with("there is more; go on with --resume records:1"), "{said}");
    let said = run(&keyspace, inspect("chunks", 1)).await.1.join("\n");
    assert!(said.contains("string   100000 bytes, in chunks of 8192"), "{said}");
    assert!(said.contains("… (8192 bytes)\n"), "{said}");
    let said = run(&keyspace, inspect("list", 1)).await.1.join("\n");
    assert!(said.contains("1) position 9223372036854775804: \"c\""), "{said}");
    let said = run(&keyspace, inspect("expired", 0)).await.1.join("\n");
    assert!(said.contains("expires  2023-11-14T22:13:20.001Z: it has expired"), "{said}");
}

#[tokio::test]
async fn a_key_that_is_missing_or_damaged_is_told() {
    let (keyspace, _) = filled().await;
    let lines = run(&keyspace, inspect("nothing", 1)).await;
    assert_eq!(lines, (Outcome::Found, vec![r#"db0 "nothing": there is no such key"#.to_owned()]));
    damage(&keyspace, "hash", |unit, _, _| unit.put_record(unit.codec().metadata(0, b"hash"), "damage")).await;
    let (outcome, lines) = run(&keyspace, inspect("hash", 1)).await;
    assert_eq!(outcome, Outcome::Found);
    assert_eq!(lines[2..], ["  value    64616d616765", "  metadata record of 6 bytes is too short"]);
}
