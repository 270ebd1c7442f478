use proptest::{prelude::*, sample::select};

use super::*;
use crate::encoding::index_of_member;

const VERSION: u64 = 0x0102_0304_0506_0708;

fn plain() -> KeyCodec {
    KeyCodec::new("ns", false).unwrap()
}

fn prefixed() -> KeyCodec {
    KeyCodec::new("ns", true).unwrap()
}

#[test]
fn golden_keys() {
    let codec = plain();
    assert_eq!(codec.metadata(3, b"foo"), &b"m#\x02ns\x03foo"[..]);
    assert_eq!(
        codec.element(3, b"foo", VERSION, b"field"),
        &b"s#\x02ns\x03\x00\x00\x00\x03foo\x01\x02\x03\x04\x05\x06\x07\x08field"[..]
    );
    assert_eq!(
        codec.score(3, b"foo", VERSION, 3.25, b"member"),
        &b"k#\x02ns\x03\x00\x00\x00\x03foo\x01\x02\x03\x04\x05\x06\x07\x08\xc0\x0a\x00\x00\x00\x00\x00\x00member"[..]
    );
    assert_eq!(
        codec.member_index(3, b"foo", VERSION, b"\x00member"),
        &b"i#\x02ns\x03\x00\x00\x00\x03foo\x01\x02\x03\x04\x05\x06\x07\x08\x00member"[..]
    );
    assert_eq!(
        codec.journal(3, b"foo", VERSION),
        &b"i#\x02ns\x03\x00\x00\x00\x03foo\x01\x02\x03\x04\x05\x06\x07\x08\x02"[..]
    );
    assert_eq!(
        codec.garbage(3, b"foo", VERSION),
        &b"g#\x02ns\x03\x00\x00\x00\x03foo\x01\x02\x03\x04\x05\x06\x07\x08"[..]
    );
    assert_eq!(
        codec.forwarding(3, b"foo", VERSION),
        &b"f#\x02ns\x03\x00\x00\x00\x03foo\x01\x02\x03\x04\x05\x06\x07\x08"[..]
    );
    assert_eq!(codec.databases(), &b"d#\x02ns"[..]);
    assert_eq!(codec.lease(1, 15), &b"w#\x02ns\x01\x0f"[..]);
    assert_eq!(codec.cursor(VERSION), &b"o#\x02ns\x01\x02\x03\x04\x05\x06\x07\x08"[..]);
}

#[test]
fn golden_keys_of_range_partitioned_stores() {
    const SLOT_OF_FOO: &[u8] = b"\xa3\x64\x70\xcf\x1f\x8e\x5a\xaf";
    let behind_slot = |record: Bytes| record.strip_prefix(SLOT_OF_FOO).map(Bytes::copy_from_slice);
    let (plain, prefixed) = (plain(), prefixed());
    assert_eq!(behind_slot(prefixed.metadata(3, b"foo")), Some(plain.metadata(3, b"foo")));
    assert_eq!(behind_slot(prefixed.element(3, b"foo", VERSION, b"f")), Some(plain.element(3, b"foo", VERSION, b"f")));
    assert_eq!(
        behind_slot(prefixed.score(3, b"foo", VERSION, -1.0, b"m")),
        Some(plain.score(3, b"foo", VERSION, -1.0, b"m"))
    );
    assert_eq!(
        behind_slot(prefixed.member_index(3, b"foo", VERSION, b"i")),
        Some(plain.member_index(3, b"foo", VERSION, b"i"))
    );
    assert_eq!(behind_slot(prefixed.garbage(3, b"foo", VERSION)), Some(plain.garbage(3, b"foo", VERSION)));
    assert_eq!(prefixed.databases(), plain.databases());
    assert_eq!(prefixed.cursor(VERSION), plain.cursor(VERSION));
    assert!(plain.cursors().contains(&plain.cursor(u64::MAX)));
    assert_eq!(prefixed.metadata_range_of_slot(3, 12182).start, [SLOT_OF_FOO, b"m#\x02ns\x03"].concat());
}

#[test]
fn a_key_is_built_with_one_allocation() {
    for codec in [plain(), prefixed()] {
        let record = codec.versioned(SCORE, 3, b"foo", VERSION, &[&[0; 8], b"member"]);
        assert_eq!(record.capacity(), record.len());
        let record = codec.begin(METADATA, 3, codec.slot_of(b"foo"), 0);
        assert_eq!(record.capacity(), record.len());
    }
}

#[test]
fn a_namespace_has_at_most_255_bytes() {
    let codec = KeyCodec::new(&"n".repeat(255), false).unwrap();
    assert!(codec.databases().starts_with(b"d#\xffn"));
    assert_eq!(KeyCodec::new(&"n".repeat(256), false).unwrap_err(), NamespaceTooLong(256));
    assert_eq!(KeyCodec::new("", false).unwrap().metadata(0, b""), &b"m#\x00\x00"[..]);
}

#[test]
fn garbage_lies_under_the_tags_of_its_type() {
    let codec = plain();
    let tags = |kind, encode_version| {
        let ranges = codec.garbage_ranges(3, b"foo", VERSION, Garbage { kind, encode_version, elements: 0 });
        ranges.iter().map(|range| String::from_utf8(range.start[..2].to_vec()).unwrap()).collect::<Vec<_>>()
    };
    for (kind, encode_version) in
        [(Type::String, 1), (Type::Hash, 0), (Type::Hash, 1), (Type::Set, 0), (Type::Set, 1), (Type::List, 0)]
    {
        assert_eq!(tags(kind, encode_version), ["s#"], "{kind:?} {encode_version}");
    }
    assert_eq!(tags(Type::Zset, 0), ["s#", "k#"]);
    assert_eq!(tags(Type::Zset, 1), ["i#"]);
    let ranges = codec.garbage_ranges(3, b"foo", VERSION, Garbage { kind: Type::Zset, encode_version: 0, elements: 0 });
    assert_eq!(ranges, [codec.elements(3, b"foo", VERSION), codec.scores(3, b"foo", VERSION)]);
}

#[test]
fn keys_of_other_records_are_not_decoded() {
    for codec in [plain(), prefixed()] {
        let element = codec.element(3, b"foo", VERSION, b"");
        assert_eq!(codec.decode_metadata_key(&element), None);
        assert_eq!(codec.decode_garbage_key(&element), None);
        assert_eq!(codec.score_and_member(b"foo", element.clone()), None, "no score");
        assert_eq!(codec.suffix(b"fooo", element), None);
        let other = KeyCodec::new("nso", codec.slot_prefix).unwrap();
        assert_eq!(codec.decode_metadata_key(&other.metadata(3, b"foo")), None);
        let garbage = codec.garbage(3, b"foo", VERSION);
        for end in 0..garbage.len() {
            assert_eq!(codec.decode_garbage_key(&garbage[..end]), None);
        }
        assert_eq!(codec.decode_garbage_key(&[&garbage[..], b"\0"].concat()), None);
    }
}

/// Namespaces, keys and suffixes that would run into one another if a length were missing.
fn ambiguous_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(select(&[0u8, 1, 2, b'a', b'b', 255][..]), 0..4)
}

fn finite_or_not() -> impl Strategy<Value = f64> {
    let special = select(&[0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324, -5e-324, 1e17][..]);
    prop_oneof![special, any::<f64>().prop_filter("not a number", |score| !score.is_nan())]
}

/// One version of one key somewhere, and one thing in it.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    namespace: &'static str,
    db: u8,
    key: Vec<u8>,
    version: u64,
}

fn places() -> impl Strategy<Value = Place> {
    let namespace = select(&["", "a", "b", "ab", "\0", "a\0", "\u{1}a"][..]);
    let version = select(&[0, 1, 255, 256, 0x6161_6161_6161_6161, u64::MAX][..]);
    (namespace, select(&[0u8, 1, b'a', 255][..]), ambiguous_bytes(), version)
        .prop_map(|(namespace, db, key, version)| Place { namespace, db, key, version })
}

impl Place {
    fn codec(&self, slot_prefix: bool) -> KeyCodec {
        KeyCodec::new(self.namespace, slot_prefix).unwrap()
    }

    /// A record of each tag.
    fn records(&self, slot_prefix: bool, suffix: &[u8], score: f64) -> [Bytes; 6] {
        let (codec, db, key, version) = (self.codec(slot_prefix), self.db, &self.key, self.version);
        [
            codec.metadata(db, key),
            codec.element(db, key, version, suffix),
            codec.score(db, key, version, score, suffix),
            codec.member_index(db, key, version, &index_of_member(suffix)),
            codec.garbage(db, key, version),
            codec.forwarding(db, key, version),
        ]
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_range_holds_exactly_its_own_records(
        mine in places(), others in places(), slot_prefix: bool, suffix in ambiguous_bytes(), score in finite_or_not(),
    ) {
        let codec = mine.codec(slot_prefix);
        let ranges = [
            codec.elements(mine.db, &mine.key, mine.version),
            codec.scores(mine.db, &mine.key, mine.version),
            codec.member_indexes(mine.db, &mine.key, mine.version),
        ];
        for (other, same) in [(&mine, true), (&others, mine == others)] {
            let records = other.records(slot_prefix, &suffix, score);
            for (i, range) in ranges.iter().enumerate() {
                for (j, record) in records.iter().enumerate() {
                    prop_assert_eq!(range.contains(record), same && i + 1 == j, "{:?} {:?}", range, record);
                }
            }
        }
    }

    #[test]
    fn a_database_holds_exactly_its_own_records(
        mine in places(), others in places(), slot_prefix: bool, suffix in ambiguous_bytes(),
    ) {
        let codec = mine.codec(slot_prefix);
        let slot = slot(&mine.key);
        let ranges = if slot_prefix {
            codec.database_ranges_of_slot(mine.db, slot)
        } else {
            codec.database_ranges(mine.db)
        };
        for other in [&mine, &others] {
            let own = (mine.namespace, mine.db) == (other.namespace, other.db)
                && (!slot_prefix || slot == super::slot(&other.key));
            for (i, record) in other.records(slot_prefix, &suffix, 1.0).iter().enumerate() {
                for (j, range) in ranges.iter().enumerate() {
                    prop_assert_eq!(range.contains(record), own && i == j, "{:?} {:?}", range, record);
                }
            }
        }
        let (metadata, garbage) = if slot_prefix {
            (codec.metadata_range_of_slot(mine.db, slot), codec.garbage_range_of_slot(mine.db, slot))
        } else {
            (codec.metadata_range(mine.db), codec.garbage_range(mine.db))
        };
        prop_assert_eq!(ranges.first(), Some(&metadata));
        prop_assert_eq!(ranges.get(4), Some(&garbage));
        prop_assert!(!ranges.iter().any(|range| range.contains(&codec.databases())));
    }

    #[test]
    fn different_places_never_share_a_record(
        mine in places(), others in places(), slot_prefix: bool, a in ambiguous_bytes(), b in ambiguous_bytes(),
    ) {
        let own = mine.records(slot_prefix, &a, 0.0);
        let foreign = others.records(slot_prefix, &b, 0.0);
        let same_key = (mine.namespace, mine.db, &mine.key) == (others.namespace, others.db, &others.key);
        for (i, own) in own.iter().enumerate() {
            for (j, foreign) in foreign.iter().enumerate() {
                let same = match i {
                    0 => same_key,
                    // Garbage and forwarding have no suffix.
                    4 | 5 => mine == others,
                    _ => mine == others && a == b,
                };
                prop_assert_eq!(own == foreign, same && i == j, "{:?} {:?}", own, foreign);
            }
        }
    }

    #[test]
    fn keys_come_back(
        place in places(), slot_prefix: bool, suffix in ambiguous_bytes(), score in finite_or_not(),
    ) {
        let codec = place.codec(slot_prefix);
        let Place { db, key, version, .. } = &place;
        let [metadata, element, scored, member, garbage, _] = place.records(slot_prefix, &suffix, score);
        prop_assert_eq!(codec.decode_metadata_key(&metadata), Some((*db, &key[..])));
        prop_assert_eq!(codec.decode_garbage_key(&garbage), Some(Owner { db: *db, key, version: *version }));
        prop_assert_eq!(codec.suffix(key, element), Some(Bytes::from(suffix.clone())));
        prop_assert_eq!(codec.suffix(key, member), Some(index_of_member(&suffix)));
        prop_assert_eq!(codec.elements(*db, key, *version).start.len(), codec.suffix_at(key));
        let (found, found_member) = codec.score_and_member(key, scored).unwrap();
            prop_assert_eq!(found, score);
        prop_assert_eq!(found_member, Bytes::from(suffix));
    }

    #[test]
    fn the_score_index_is_ordered_by_score_then_member(
        place in places(), a in (finite_or_not(), ambiguous_bytes()), b in (finite_or_not(), ambiguous_bytes()),
    ) {
        let codec = place.codec(false);
        let record = |(score, member): &(f64, Vec<u8>)| codec.score(place.db, &place.key, place.version, *score, member);
        let expected = a.0.partial_cmp(&b.0).unwrap().then_with(|| a.1.cmp(&b.1));
        prop_assert_eq!(record(&a).cmp(&record(&b)), expected);
    }

    #[test]
    fn elements_are_ordered_by_suffix(place in places(), a in ambiguous_bytes(), b in ambiguous_bytes()) {
        let codec = place.codec(false);
        let record = |suffix: &[u8]| codec.element(place.db, &place.key, place.version, suffix);
        prop_assert_eq!(record(&a).cmp(&record(&b)), a.cmp(&b));
    }

    #[test]
    fn a_range_of_scores_holds_exactly_the_scores_within(
        place in places(), score in finite_or_not(), member in ambiguous_bytes(),
        min in bounds(), max in bounds(),
    ) {
        let codec = place.codec(true);
        let Place { db, key, version, .. } = &place;
        let range = codec.scores_between(*db, key, *version, min, max);
        let above = match min {
            Bound::Included(min) => min <= score,
            Bound::Excluded(min) => min < score,
            Bound::Unbounded => true,
        };
        let below = match max {
            Bound::Included(max) => score <= max,
            Bound::Excluded(max) => score < max,
            Bound::Unbounded => true,
        };
        prop_assert_eq!(range.contains(&codec.score(*db, key, *version, score, &member)), above && below);
    }
}

fn bounds() -> impl Strategy<Value = Bound<f64>> {
    prop_oneof![
        finite_or_not().prop_map(Bound::Included),
        finite_or_not().prop_map(Bound::Excluded),
        Just(Bound::Unbounded),
    ]
}
