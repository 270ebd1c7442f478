use proptest::prelude::*;

use super::*;

const VERSION: u64 = 0x0102_0304_0506_0708;

fn metadata(body: Body) -> Metadata {
    Metadata { version: VERSION, expires_at_ms: None, body, origin: None }
}

fn assert_golden(metadata: &Metadata, golden: &'static [u8]) {
    assert_eq!(metadata.encode(), golden, "{metadata:?}");
    assert_eq!(Metadata::decode(&Bytes::from_static(golden)).as_ref(), Ok(metadata));
}

#[test]
fn golden_bytes_of_each_type_and_encode_version() {
    let cases: [(Body, &[u8]); 12] = [
        (
            Body::String(Bytes::from_static(b"a\0\xff")),
            b"\x00\x01\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xffa\0\xff",
        ),
        (Body::String(Bytes::new()), b"\x00\x01\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff"),
        (
            Body::Chunks { bytes: 0x1_0000_0001, chunk_bytes: 0x4000 },
            b"\x01\x01\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff\
              \x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x40\x00",
        ),
        (
            Body::Hash { count: Some(258) },
            b"\x00\x02\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x01\x02",
        ),
        (Body::Hash { count: None }, b"\x01\x02\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff"),
        (
            Body::Zset { count: 1, order: ZsetOrder::Index(ZsetBounds::default()) },
            b"\x00\x03\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x01",
        ),
        (
            Body::Zset {
                count: 1,
                order: ZsetOrder::Index(ZsetBounds {
                    low: Bytes::from_static(b"\x80\0\0\0\0\0\0\0a"),
                    high: Bytes::new(),
                }),
            },
            b"\x00\x03\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x01\
              \x09\x80\0\0\0\0\0\0\0a\x00",
        ),
        (
            Body::Zset { count: 2, order: ZsetOrder::Sidecar(VERSION + 1) },
            b"\x01\x03\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x02\
              \x01\x02\x03\x04\x05\x06\x07\x09",
        ),
        (
            Body::List { count: 2, head: LIST_START - 1, tail: LIST_START + 1 },
            b"\x00\x04\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x02\
              \x7f\xff\xff\xff\xff\xff\xff\xfe\x80\x00\x00\x00\x00\x00\x00\x00",
        ),
        (
            Body::Set { count: Some(u32::MAX) },
            b"\x00\x05\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ),
        (Body::Set { count: None }, b"\x01\x05\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff"),
        (
            Body::List { count: 0, head: LIST_START, tail: LIST_START },
            b"\x00\x04\x01\x02\x03\x04\x05\x06\x07\x08\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\
              \x7f\xff\xff\xff\xff\xff\xff\xff\x7f\xff\xff\xff\xff\xff\xff\xff",
        ),
    ];
    for (body, golden) in cases {
        assert_golden(&metadata(body), golden);
    }
}

#[test]
fn golden_bytes_with_expiry_and_origin() {
    let mut metadata = metadata(Body::Hash { count: Some(1) });
    metadata.expires_at_ms = Some(1_700_000_000_000);
    assert_golden(
        &metadata,
        b"\x00\x02\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x01\x8b\xcf\xe5\x68\x00\x00\x00\x00\x01",
    );
    metadata.origin = Some(Bytes::from_static(b"old"));
    assert_golden(
        &metadata,
        b"\x80\x02\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x01\x8b\xcf\xe5\x68\x00\x00\x00\x00\x03old\
          \x00\x00\x00\x01",
    );
    metadata.origin = Some(Bytes::new());
    metadata.body = Body::Set { count: None };
    assert_golden(
        &metadata,
        b"\x81\x05\x01\x02\x03\x04\x05\x06\x07\x08\x00\x00\x01\x8b\xcf\xe5\x68\x00\x00\x00\x00\x00",
    );
}

#[test]
fn a_string_shares_the_memory_of_its_record() {
    let record = metadata(Body::String(Bytes::from_static(b"value"))).encode();
    let Ok(Metadata { body: Body::String(value), .. }) = Metadata::decode(&record) else { panic!() };
    assert_eq!(value.as_ptr(), record[FIXED_BYTES..].as_ptr());
}

#[test]
fn type_numbers_are_fixed() {
    let types = [Type::String, Type::Hash, Type::Zset, Type::List, Type::Set];
    assert_eq!(types.map(|kind| kind as u8), [1, 2, 3, 4, 5]);
    assert_eq!(types.map(Type::name), ["string", "hash", "zset", "list", "set"]);
}

#[test]
fn records_that_cannot_be_read_say_what_was_found() {
    let with = |first, second, extra: &[u8]| {
        let record = [&[first, second], &[0; FIXED_BYTES - 2][..], extra].concat();
        Metadata::decode(&record.into()).unwrap_err().to_string()
    };
    assert_eq!(Metadata::decode(&Bytes::new()).unwrap_err().to_string(), "metadata record of 0 bytes is too short");
    assert_eq!(with(0, 0, b""), "unknown type 0");
    assert_eq!(with(0, 6, b""), "unknown type 6");
    assert_eq!(with(2, 1, b""), "unknown encode-version 2 of type string");
    assert_eq!(with(1, 4, b""), "unknown encode-version 1 of type list");
    assert_eq!(with(0x82, 2, b"\0\0\0\0"), "unknown encode-version 2 of type hash");
    assert_eq!(with(0, 2, b"\0\0\0"), "metadata record of 21 bytes is too short");
    assert_eq!(with(0, 2, b"\0\0\0\0\0"), "metadata record has 1 bytes too many");
    assert_eq!(with(1, 5, b"\0"), "metadata record has 1 bytes too many");
    assert_eq!(with(0, 3, &[0; 6]), "metadata record has an impossible pair of bounds");
    assert_eq!(with(1, 3, &[0; 11]), "metadata record of 29 bytes is too short");
    assert_eq!(with(1, 3, &[0; 13]), "metadata record has 1 bytes too many");
    assert_eq!(with(0, 4, &[0; 19]), "metadata record of 37 bytes is too short");
    assert_eq!(with(1, 1, &[0; 11]), "metadata record of 29 bytes is too short");
    assert_eq!(with(1, 1, &[0; 12]), "metadata record has an impossible chunk size");
    assert_eq!(with(0x80, 2, b"\0\0\0"), "metadata record of 21 bytes is too short");
    assert_eq!(with(0x80, 2, b"\xff\xff\xff\xff"), "metadata record of 22 bytes is too short");
    assert_eq!(with(0x80, 2, b"\0\0\0\x01k\0\0\0"), "metadata record of 26 bytes is too short");
}

#[test]
fn a_key_expires_after_its_time_not_at_it() {
    let mut metadata = metadata(Body::Set { count: Some(1) });
    assert!(!metadata.is_expired(i64::MAX));
    metadata.expires_at_ms = Some(1000);
    assert!(!metadata.is_expired(1000));
    assert!(metadata.is_expired(1001));
}

#[test]
fn all_but_plain_strings_leave_garbage() {
    assert_eq!(metadata(Body::String(Bytes::new())).garbage(), None);
    let garbage = |body| metadata(body).garbage().unwrap();
    let chunks = garbage(Body::Chunks { bytes: 1, chunk_bytes: 1 });
    assert_eq!(chunks, Garbage { kind: Type::String, encode_version: 1, elements: 1 });
    assert_eq!(
        garbage(Body::Zset { count: 1, order: ZsetOrder::Sidecar(1) }),
        Garbage { kind: Type::Zset, encode_version: 1, elements: 1 }
    );
    assert_eq!(
        garbage(Body::Zset { count: 1, order: ZsetOrder::Index(ZsetBounds::default()) }),
        Garbage { kind: Type::Zset, encode_version: 0, elements: 1 }
    );
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
}

fn bodies() -> impl Strategy<Value = Body> {
    prop_oneof![
        bytes().prop_map(Body::String),
        (any::<u64>(), 1..=u32::MAX).prop_map(|(bytes, chunk_bytes)| Body::Chunks { bytes, chunk_bytes }),
        any::<Option<u32>>().prop_map(|count| Body::Hash { count }),
        any::<Option<u32>>().prop_map(|count| Body::Set { count }),
        any::<(u32, [u8; 9], [u8; 8])>().prop_map(|(count, low, high)| {
            let bounds = ZsetBounds { low: Bytes::copy_from_slice(&low), high: Bytes::copy_from_slice(&high) };
            Body::Zset { count, order: ZsetOrder::Index(bounds) }
        }),
        any::<(u32, u64)>().prop_map(|(count, revision)| Body::Zset { count, order: ZsetOrder::Sidecar(revision) }),
        any::<(u32, u64, u64)>().prop_map(|(count, head, tail)| Body::List { count, head, tail }),
    ]
}

proptest! {
    #[test]
    fn metadata_comes_back(
        version: u64,
        expires_at_ms in prop::option::of(0..=i64::MAX),
        body in bodies(),
        origin in prop::option::of(bytes()),
    ) {
        let metadata = Metadata { version, expires_at_ms, body, origin };
        let expires = metadata.expires_at_ms.filter(|_| Metadata::is_whole(&metadata.encode()));
        prop_assert_eq!(Metadata::expiry_of_whole(&metadata.encode()), expires);
        prop_assert_eq!(Metadata::decode(&metadata.encode()), Ok(metadata));
    }

    #[test]
    fn any_bytes_are_refused_or_say_the_same_again(
        first in prop::sample::select(&[0u8, 1, 2, 0x80, 0x81, 0x82, 0xff][..]),
        kind in 0..8u8,
        rest in prop::collection::vec(prop_oneof![Just(0u8), any::<u8>()], 0..60),
    ) {
        let record = Bytes::from([&[first, kind], &rest[..]].concat());
        if let Ok(metadata) = Metadata::decode(&record) {
            prop_assert_eq!(metadata.encode(), record);
        }
    }
}

#[test]
fn a_stamp_changes_the_record_and_not_what_it_says() {
    for origin in [None, Some(Bytes::from("old"))] {
        let metadata = Metadata { origin, ..metadata(Body::Hash { count: Some(1) }) };
        let record = metadata.encode();
        let first = Metadata::stamp(&record, 1).unwrap();
        let second = Metadata::stamp(&first, 0x0102_0304_0506_0708).unwrap();
        assert_eq!(second.len(), record.len() + 8);
        assert_eq!(second[..18], [&[record[0] | 0x40], &record[1..18]].concat());
        assert_eq!(second[18..26], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(second[26..], record[18..]);
        for stamped in [first, second] {
            assert_eq!(Metadata::decode(&stamped), Ok(metadata.clone()));
        }
    }
    let string = metadata(Body::String("a".into())).encode();
    assert!(Metadata::is_whole(&Metadata::stamp(&string, 1).unwrap()));
    assert!(Metadata::stamp(&string.slice(..17), 1).is_err());
    assert!(Metadata::decode(&Metadata::stamp(&string, 1).unwrap().slice(..20)).is_err());
}
