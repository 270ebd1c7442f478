use bytes::Bytes;

use crate::{
    encoding::{Body, Metadata, ZsetBounds, ZsetOrder, encode_member_score},
    keyspace::{
        Collection, Intent, Keyspace, Unit,
        fixture::{key, records},
    },
    operator::{
        Outcome, Task,
        fixture::{damage, filled, filled_by_slot, run, run_in_pieces},
    },
    types::{hash, list, string, zset},
};

const VERIFY: Task = Task::Verify { repairs: false };
const REPAIR: Task = Task::Verify { repairs: true };

type Change = fn(&mut Unit<'_>, &Collection<'_>, Metadata);

/// What is done to the records of which key, and what the check says of it.
const DAMAGE: &[(&str, Change, &[&str])] = &[
    (
        "hash",
        |unit, records, _| unit.delete_record(records.element(b"a")),
        &[r#"db0 "hash" (hash): its count is 3, but there are 2 elements"#],
    ),
    (
        "set",
        |unit, records, _| unit.put_record(records.element(b"\0"), Bytes::new()),
        &[r#"db0 "set" (set): its count is 3, but there are 4 elements"#],
    ),
    ("hash 1", |unit, records, _| unit.delete_record(records.element(b"f")), &[r#"db0 "hash 1" (hash): it is empty"#]),
    (
        "set",
        |unit, records, _| {
            [b"a", b"b", b"c"].into_iter().for_each(|member| unit.delete_record(records.element(member)))
        },
        &[r#"db0 "set" (set): it is empty"#],
    ),
    (
        "zset",
        |unit, records, _| unit.delete_record(records.score(-1.5, b"a")),
        &[r#"db0 "zset" (zset): member "a" is not in the index at -1.5"#],
    ),
    (
        "zset",
        |unit, records, _| unit.put_record(records.element(b"a"), encode_member_score(2.0).to_vec()),
        &[
            r#"db0 "zset" (zset): member "a" is not in the index at 2"#,
            r#"db0 "zset" (zset): the index has member "a" at -1.5 instead of 2"#,
        ],
    ),
    (
        "zset",
        |unit, records, _| unit.delete_record(records.element(b"b")),
        &[
            r#"db0 "zset" (zset): the index has "b" at 0, which is no member"#,
            r#"db0 "zset" (zset): its count is 3, but there are 2 elements"#,
        ],
    ),
    (
        "zset",
        |unit, _, metadata| {
            let low = [&[0xff; 8][..], b"a"].concat().into();
            let body = Body::Zset { count: 3, order: ZsetOrder::Index(ZsetBounds { low, high: Bytes::new() }) };
            unit.save(&key("zset"), &Metadata { body, ..metadata }).unwrap();
        },
        &[
            r#"db0 "zset" (zset): member "a" is outside of the bounds"#,
            r#"db0 "zset" (zset): member "b" is outside of the bounds"#,
            r#"db0 "zset" (zset): member "c" is outside of the bounds"#,
        ],
    ),
    (
        "list",
        |unit, records, _| unit.delete_record(records.element(&0x7fff_ffff_ffff_fffe_u64.to_be_bytes())),
        &[
            r#"db0 "list" (list): nothing is at 9223372036854775806 to 9223372036854775807"#,
            r#"db0 "list" (list): its count is 6, but there are 5 elements"#,
        ],
    ),
    (
        "list",
        |unit, records, _| unit.put_record(records.element(&[0; 8]), "stray"),
        &[r#"db0 "list" (list): an element is at 0, outside of 9223372036854775804 to 9223372036854775810"#],
    ),
    (
        "list",
        |unit, _, metadata| {
            let Body::List { count, head, tail } = metadata.body else { panic!("not a list") };
            let body = Body::List { count, head, tail: tail + 2 };
            unit.save(&key("list"), &Metadata { body, ..metadata }).unwrap();
        },
        &[r#"db0 "list" (list): nothing is at 9223372036854775810 to 9223372036854775812"#],
    ),
    (
        "chunks",
        |unit, records, _| unit.put_record(records.element(&12_u32.to_be_bytes()), vec![b'x'; 8_192]),
        &[r#"db0 "chunks" (string): chunk 12 has 8192 bytes, where 1696 belong"#],
    ),
    (
        "chunks",
        |unit, records, _| unit.put_record(records.element(&13_u32.to_be_bytes()), "x"),
        &[r#"db0 "chunks" (string): chunk 13 lies beyond the end"#],
    ),
    (
        "chunks",
        |unit, records, _| unit.put_record(records.element(&3_u32.to_be_bytes()), ""),
        &[r#"db0 "chunks" (string): chunk 3 is empty"#],
    ),
    (
        "string",
        |unit, _, _| unit.put_record(unit.codec().element(1, b"lost \"key\"", 1 << 63, b"field"), "value"),
        &[r#"db1 "lost \"key\"": 1 record (40 B) of version 8000000000000000, which no key has"#],
    ),
    (
        "zset",
        |unit, _, _| unit.delete_record(unit.codec().metadata(0, b"zset")),
        &["db0 \"zset\": 3 records", "db0 \"zset\": 3 records"],
    ),
];

/// What is named and left alone.
const UNREADABLE: &[(&str, Change, &str)] = &[
    (
        "hash",
        |unit, _, _| unit.put_record(unit.codec().metadata(0, b"hash"), "damage"),
        r#"db0 "hash": metadata record of 6 bytes is too short"#,
    ),
    (
        "zset",
        |unit, records, _| unit.put_record(records.element(b"a"), "1"),
        r#"db0 "zset" (zset): member "a": zset member record of 1 bytes is too short"#,
    ),
    (
        "zset",
        |unit, records, _| unit.put_record(records.element(b"a"), encode_member_score(f64::NAN).to_vec()),
        r#"db0 "zset" (zset): the score of member "a" is no number"#,
    ),
    (
        "chunks",
        |unit, records, _| unit.put_record(records.element(b"\0\0"), "x"),
        r#"db0 "chunks" (string): an element has "\x00\x00" for a chunk number"#,
    ),
    (
        "list",
        |unit, _, metadata| {
            let body = Body::List { count: 1, head: 2, tail: 1 };
            unit.save(&key("list"), &Metadata { body, ..metadata }).unwrap();
        },
        r#"db0 "list" (list): its tail, 1, is before its head, 2"#,
    ),
    (
        "string",
        |unit, _, _| unit.put_record(unit.codec().garbage(0, b"x", 1), "\x01"),
        r#"db0 "x": unknown format 1 of a garbage record"#,
    ),
    (
        "string",
        |unit, _, _| unit.put_record(unit.codec().cursor(1), ""),
        "record \"o#\\x04test\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x01\": cursor record of 0 bytes is too short",
    ),
];

fn findings(lines: &[String]) -> &[String] {
    lines.split_last().unwrap().1
}

#[tokio::test]
async fn what_fits_together_is_clean() {
    for (keyspace, _) in [filled().await, filled_by_slot().await] {
        let (outcome, lines) = run(&keyspace, VERIFY).await;
        assert_eq!((outcome, findings(&lines)), (Outcome::Done, &[][..]));
        assert!(lines[0].starts_with("10 keys and "), "{lines:?}");
        assert!(lines[0].ends_with(" records checked: 0 findings"), "{lines:?}");
    }
}

#[tokio::test]
async fn damage_is_found_and_mended() {
    for (number, (name, change, expected)) in DAMAGE.iter().enumerate() {
        let (keyspace, _) = filled().await;
        damage(&keyspace, name, change).await;
        for mends in [false, true] {
            let (outcome, lines) = run(&keyspace, Task::Verify { repairs: mends }).await;
            assert_eq!(outcome, if mends { Outcome::Done } else { Outcome::Found }, "case {number}: {lines:?}");
            assert_eq!(findings(&lines).len(), expected.len(), "case {number}: {lines:?}");
            for (line, expected) in lines.iter().zip(*expected) {
                assert!(line.starts_with(expected), "case {number}: {line}");
                assert_eq!(line.ends_with("; mended"), mends, "case {number}: {line}");
            }
        }
        let (outcome, lines) = run(&keyspace, VERIFY).await;
        assert_eq!((outcome, findings(&lines)), (Outcome::Done, &[][..]), "case {number}");
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_named_and_left_alone() {
    for (number, (name, change, expected)) in UNREADABLE.iter().enumerate() {
        let (keyspace, _) = filled().await;
        damage(&keyspace, name, change).await;
        let before = records(&**keyspace.backend()).await;
        let (outcome, lines) = run(&keyspace, REPAIR).await;
        assert_eq!(outcome, Outcome::Found, "case {number}: {lines:?}");
        let named = lines.iter().find(|line| line.contains(expected)).is_some_and(|line| !line.ends_with("mended"));
        assert!(named, "case {number}: {lines:?}");
        assert_eq!(records(&**keyspace.backend()).await, before, "case {number}");
    }
}

/// Without the record that leads to the key, its elements look like orphans. It is mended before they are looked at.
#[tokio::test]
async fn a_renamed_key_that_nothing_leads_to_keeps_its_elements() {
    let (keyspace, _) = filled().await;
    damage(&keyspace, "renamed", |unit, _, metadata| {
        unit.delete_record(unit.codec().forwarding(0, b"old", metadata.version));
    })
    .await;
    let line = r#"db0 "renamed" (hash): nothing leads to it from "old", which it was renamed from; mended"#;
    assert_eq!(findings(&run(&keyspace, REPAIR).await.1), [line]);
    assert_eq!(run(&keyspace, VERIFY).await.0, Outcome::Done);
    let mut unit = keyspace.begin(Intent::Read).await.unwrap();
    assert_eq!(hash::all(&mut unit, &key("renamed")).await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_mended_key_has_what_was_left_of_it() {
    let (keyspace, _) = filled().await;
    let hole = 0x7fff_ffff_ffff_fffe_u64;
    damage(&keyspace, "list", |unit, records, _| {
        unit.delete_record(records.element(&hole.to_be_bytes()));
        unit.delete_record(records.element(&(hole + 2).to_be_bytes()));
    })
    .await;
    damage(&keyspace, "zset", |unit, records, _| unit.delete_record(records.score(-1.5, b"a"))).await;
    damage(&keyspace, "hash", |unit, records, _| unit.delete_record(records.element(b"b"))).await;
    damage(&keyspace, "chunks", |unit, records, _| {
        unit.put_record(records.element(&12_u32.to_be_bytes()), vec![b'y'; 8_192]);
    })
    .await;
    assert_eq!(run(&keyspace, REPAIR).await.0, Outcome::Done);

    let mut unit = keyspace.begin(Intent::Read).await.unwrap();
    assert_eq!(list::range(&mut unit, &key("list"), 0, -1).await.unwrap(), ["c", "b", "a", "c"].map(Bytes::from));
    assert_eq!(list::len(&mut unit, &key("list")).await.unwrap(), 4);
    let from = respgate_backend_api::Direction::Forward;
    assert_eq!(zset::rank(&mut unit, &key("zset"), &"a".into(), from).await.unwrap(), Some((0, -1.5)));
    assert_eq!(hash::len(&mut unit, &key("hash")).await.unwrap(), 2);
    let mut string = vec![b'x'; 98_304];
    string.resize(100_000, b'y');
    assert_eq!(string::get(&mut unit, &key("chunks")).await.unwrap().unwrap(), string);
}

/// Long enough for several pages, within a key and of keys and groups.
async fn fill_pages(keyspace: &Keyspace) {
    let mut unit = keyspace.begin(Intent::Write).await.unwrap();
    let elements: Vec<Bytes> = (0..3_000).map(|i| format!("{i}").into()).collect();
    list::push(&mut unit, &key("long list"), list::End::Tail, &elements).await.unwrap();
    for number in 0..300 {
        let name = crate::keyspace::Key { db: 1, name: format!("key {number}").into() };
        hash::set(&mut unit, &name, &[("f".into(), "v".into())]).await.unwrap();
        unit.put_record(unit.codec().element(0, &name.name, 1, b"f"), "orphan");
    }
    unit.commit().await.unwrap();
}

#[tokio::test]
async fn lists_are_mended_across_pages() {
    let (keyspace, _) = filled().await;
    fill_pages(&keyspace).await;
    damage(&keyspace, "long list", |unit, records, metadata| {
        let Body::List { head, .. } = metadata.body else { panic!("not a list") };
        for hole in [0, 5, 6, 1_500] {
            unit.delete_record(records.element(&(head + hole).to_be_bytes()));
        }
    })
    .await;
    run(&keyspace, REPAIR).await;
    assert_eq!(run(&keyspace, VERIFY).await.0, Outcome::Done);
    let mut unit = keyspace.begin(Intent::Read).await.unwrap();
    let left = list::range(&mut unit, &key("long list"), 0, -1).await.unwrap();
    let expected = (0..3_000).filter(|number| ![0, 5, 6, 1_500].contains(number)).map(|number| number.to_string());
    assert!(left.into_iter().eq(expected.map(Bytes::from)));
}

#[tokio::test]
async fn what_was_stopped_goes_on_where_it_was() {
    let (keyspace, _) = filled().await;
    fill_pages(&keyspace).await;
    damage(&keyspace, "set", |unit, records, _| unit.delete_record(records.element(b"a"))).await;
    // A key of several pages is checked at once or not at all, so there is none here.
    damage(&keyspace, "long list", |unit, _, metadata| unit.remove(&key("long list"), &metadata).unwrap()).await;
    let (_, lines) = run(&keyspace, VERIFY).await;
    let (in_pieces, runs) = run_in_pieces(&keyspace, VERIFY).await;
    assert!(runs > 5, "{runs}");
    assert_eq!(findings(&lines).len(), 301);
    let in_pieces: Vec<_> = in_pieces.into_iter().filter(|line| !line.contains(" checked: ")).collect();
    assert_eq!(in_pieces, findings(&lines));
}
