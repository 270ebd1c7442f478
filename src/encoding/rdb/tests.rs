use proptest::prelude::*;

use super::*;

fn hex(digits: &str) -> Vec<u8> {
    let byte = |digits| u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap();
    digits.as_bytes().chunks(2).map(byte).collect()
}

fn strings<const N: usize>(strings: [&'static str; N]) -> Vec<Bytes> {
    strings.map(Bytes::from).into()
}

fn string(value: impl Into<Bytes>) -> Value {
    Value::String(value.into())
}

fn list<const N: usize>(elements: [&'static str; N]) -> Value {
    Value::List(strings(elements))
}

fn set<const N: usize>(members: [&'static str; N]) -> Value {
    Value::Set(strings(members))
}

fn hash<const N: usize>(fields: [(&'static str, &'static str); N]) -> Value {
    Value::Hash(fields.map(|(field, value)| (field.into(), value.into())).into())
}

fn zset<const N: usize>(members: [(&'static str, f64); N]) -> Value {
    Value::Zset(members.map(|(member, score)| (member.into(), score)).into())
}

/// The integers at which the packed layouts change from one width to the next.
const INTEGERS: [&str; 26] = [
    "0",
    "1",
    "12",
    "13",
    "127",
    "-1",
    "-128",
    "128",
    "-129",
    "255",
    "32767",
    "-32768",
    "32768",
    "-32769",
    "8388607",
    "-8388608",
    "8388608",
    "2147483647",
    "-2147483648",
    "2147483648",
    "9223372036854775807",
    "-9223372036854775808",
    "4095",
    "4096",
    "-4096",
    "-4097",
];

#[test]
fn payloads_of_redis_7_0_are_read() {
    let payloads = [
        ("000576616c75650a0081f6c138c1aa9b6e", string("value")),
        ("00000a005d9b5c400f7fa2da", string("")),
        ("00c0800a009966326d2f0c5bd9", string("-128")),
        ("00c1ff7f0a00495a37da17f4d52b", string("32767")),
        ("00c2000000800a00c74f873e33558187", string("-2147483648")),
        ("000a323134373438333634380a00e7b129a34c1d76ee", string("2147483648")),
        ("00c3094064016161e057000161610a00e8a3b507b06df271", string("a".repeat(100))),
        ("00c3102908616263646566676861e015070168210a00aa8f651db0d028ac", string("abcdefgh".repeat(5) + "!")),
        (
            "120102c33540701f700000000a008161028001dfff027f01d00002f1ff7f03f200008004f3ffffff027f05f420214000048009e04\
             062e036000142ff0a006fa1c0dc79769f28",
            list(["a", "", "-1", "127", "-4096", "32767", "-8388608", "2147483647", "-9223372036854775808", B64]),
        ),
        ("0202c00701610a00f4aa358a55ed6408", set(["7", "a"])),
        ("0b0c0200000002000000fbff07000a0009fa15b6b26d1714", set(["-5", "7"])),
        ("0b100400000002000000fbffffff701101000a005c8cec7a27ad205e", set(["-5", "70000"])),
        ("0b180800000002000000fbffffffffffffff00863ba1010000000a007b60a7eb4ebf06f9", set(["-5", "7000000000"])),
        ("10121200000004008166028176020101c12c02ff0a005b00b30b9382e2f2", hash([("f", "v"), ("1", "300")])),
        ("0401016601760a00adf24356b1860efc", hash([("f", "v")])),
        (
            "0503016d0000000000000a40047a65726f0000000000000080036c6f77000000000000f0ff0a00b69808e5c07acfb8",
            zset([("m", 3.25), ("zero", -0.0), ("low", f64::NEG_INFINITY)]),
        ),
        (
            "1128280000000800836c6f7704842d696e6605847a65726f050001816d0284332e323505816e020701ff0a00f7d3a16518e10b42",
            zset([("low", f64::NEG_INFINITY), ("zero", 0.0), ("m", 3.25), ("n", 7.0)]),
        ),
    ];
    for (payload, value) in payloads {
        assert_eq!(restore(&hex(payload)), Ok(value), "{payload}");
    }
}

/// 64 bytes, which take the second width of string lengths.
const B64: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

#[test]
fn a_list_of_redis_7_0_with_a_large_element_is_read() {
    let payload = "1204020d0d0000000200816102816202ff020a0a0000000100816302ff02c3407a633607362300000100f02820060078\
        e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0\
        ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e00e000246adff02\
        0a0a0000000100816402ff0a000fa06ae0e5e01993";
    let large = Bytes::from(vec![b'x'; 9000]);
    let elements = vec!["a".into(), "b".into(), "c".into(), large, "d".into()];
    assert_eq!(restore(&hex(payload)), Ok(Value::List(elements)));
}

/// Built by hand; Redis 7.0 restores all but the last (set as listpack: Redis 7.2) to the same values.
#[test]
fn payloads_in_the_layouts_of_other_versions_are_read() {
    let payloads = [
        (
            "0a4075750000006a000000160000f102f202fd02fe0d03fe7f03feff03fe8003c0800004c07fff04c0ff0004c0ff7f04c0008004\
             f000800005f0ff7fff05f0ffff7f05f000008005d00000800006d0ffffff7f06d00000008006e000000080000000000ae0ffffff\
             ffffffff7f0ae00000000000000080ff0a00fb2c647c61ce5668",
            Value::List(strings(INTEGERS)[..22].to_vec()),
        ),
        (
            "120102407a7a0000001a00000101010c010d017f01dfff02df8002c08002df7f02c0ff02f1ff7f03f1008003f200800004f2ff7f\
             ff04f2ffff7f04f200008004f30000800005f3ffffff7f05f30000008005f4000000800000000009f4ffffffffffffff7f09f400\
             0000000000008009cfff02f1001003d00002f1ffef03ff0a00fbcae986d8e1b5b8",
            list(INTEGERS),
        ),
        (
            "0e0210100000000d000000020000016103f6ff0e0e0000000a000000010000fef9ff0a0020d51c2348e98b67",
            list(["a", "5", "-7"]),
        ),
        ("0e020b0b0000000a0000000000ff0e0e0000000a000000010000fef9ff0a0075ae730da3a709f3", list(["-7"])),
        (
            "1203020c0c00000002008161020501ff0105706c61696e020a0a0000000100d00002ff0a0052874f1fb4723c60",
            list(["a", "5", "plain", "-4096"]),
        ),
        ("0d171700000012000000040000016603017603f202c02c01ff0a00a77e31d0993253e4", hash([("f", "v"), ("1", "300")])),
        (
            "0c22220000001c000000060000016d03042d312e3506f202c02c0104016e0303696e66ff0a00bb8c874527edb073",
            zset([("m", -1.5), ("1", 300.0), ("n", f64::INFINITY)]),
        ),
        (
            "03040161ff0162013001630a332e32353030303030300164fe0a00d7c61fce85d8d880",
            zset([("a", f64::NEG_INFINITY), ("b", 0.0), ("c", 3.25), ("d", f64::INFINITY)]),
        ),
        ("09120201660103760000000167010377000000ff0a00990dfd74360b24d8", hash([("f", "v"), ("g", "w")])),
        ("140c0c00000002008161020501ff0b0098347b5d798dab9c", set(["a", "5"])),
    ];
    for (payload, value) in payloads {
        assert_eq!(restore(&hex(payload)), Ok(value), "{payload}");
    }
}

/// Each is what Redis 7.0 makes of the same value when it uses no compact layout.
#[test]
fn payloads_are_written_as_redis_7_0_writes_them() {
    let payloads = [
        (string("value"), "000576616c75650a0081f6c138c1aa9b6e"),
        (string(""), "00000a005d9b5c400f7fa2da"),
        (string("-128"), "00c0800a009966326d2f0c5bd9"),
        (string("32767"), "00c1ff7f0a00495a37da17f4d52b"),
        (string("-2147483648"), "00c2000000800a00c74f873e33558187"),
        (string("2147483648"), "000a323134373438333634380a00e7b129a34c1d76ee"),
        (set(["7", "a"]), "0202c00701610a00f4aa358a55ed6408"),
        (hash([("f", "v")]), "0401016601760a00adf24356b1860efc"),
        (
            zset([("m", 3.25), ("zero", -0.0), ("low", f64::NEG_INFINITY)]),
            "0503016d0000000000000a40047a65726f0000000000000080036c6f77000000000000f0ff0a00b69808e5c07acfb8",
        ),
    ];
    for (value, payload) in payloads {
        assert_eq!(dump(&value), hex(payload), "{value:?}");
    }
    // Redis 7.0 has no plain layout for lists any more. It restores this one.
    assert_eq!(dump(&list(["a"])), hex("010101610a00f5b052938dc0e462"));
}

#[test]
fn lengths_take_as_many_bytes_as_they_need() {
    let head = |bytes| dump(&Value::String(vec![b'x'; bytes].into()))[1..6].to_vec();
    assert_eq!(head(63), b"\x3fxxxx");
    assert_eq!(head(64), b"\x40\x40xxx");
    assert_eq!(head(16383), b"\x7f\xffxxx");
    assert_eq!(head(16384), b"\x80\x00\x00\x40\x00");
    for bytes in [63, 64, 16383, 16384] {
        let value = Value::String(vec![b'x'; bytes].into());
        assert_eq!(restore(&dump(&value)), Ok(value));
    }
}

#[test]
fn what_only_looks_like_an_integer_stays_as_it_is() {
    for text in ["+1", "01", "-0", " 1", "1 ", "1e3", "-", "2147483648", "-2147483649", "-00000000000"] {
        let value = string(text);
        assert_eq!(usize::from(dump(&value)[1]), text.len(), "{text}");
        assert_eq!(restore(&dump(&value)), Ok(value));
    }
}

#[test]
fn a_wrong_version_or_checksum_is_told_apart_from_a_bad_format() {
    let refused = Err(RestoreError::VersionOrChecksum);
    let good = dump(&string("a"));
    for bytes in 0..good.len() {
        assert_eq!(restore(&good[..bytes]), refused);
    }
    for at in 0..good.len() {
        let mut damaged = good.clone();
        damaged[at] ^= 0x10;
        assert_eq!(restore(&damaged), refused, "{at}");
    }
    assert_eq!(restore(&with_version(b"\0\x01a", 11)), Ok(string("a")));
    assert_eq!(restore(&with_version(b"\0\x01a", 1)), Ok(string("a")));
    assert_eq!(restore(&with_version(b"\0\x01a", 12)), refused);
}

fn with_version(body: &[u8], version: u8) -> Vec<u8> {
    let mut payload = [body, &[version, 0]].concat();
    let mut checksum = CRC64.checksum(&payload);
    for _ in 0..CHECKSUM_BYTES {
        payload.push(checksum as u8);
        checksum >>= 8;
    }
    payload
}

#[test]
fn values_that_no_key_can_have_are_refused() {
    let bodies: [(&str, &[u8]); 40] = [
        ("nothing", b""),
        ("unknown encoding", b"\x08\x00"),
        ("stream", b"\x0f\x00"),
        ("string cut short", b"\0\x05abcd"),
        ("length cut short", b"\0\x80\0\0"),
        ("length of 32 GiB", b"\0\x81\0\0\0\x08\0\0\0\0abc"),
        ("unknown form of length", b"\0\x82abc"),
        ("unknown form of string", b"\0\xc4abc"),
        ("integer cut short", b"\0\xc2abc"),
        ("compressed to too little", b"\0\xc3\x02\x05\x00a"),
        ("compressed to too much", b"\0\xc3\x02\x00\x00a"),
        ("compressed literal cut short", b"\0\xc3\x02\x05\x04a"),
        ("compressed repeat cut short", b"\0\xc3\x03\x05\x00a\x20"),
        ("compressed long repeat cut short", b"\0\xc3\x04\x05\x00a\xe0\x00"),
        ("compressed repeat from before the start", b"\0\xc3\x04\x05\x00a\x20\x05"),
        ("compressed to 1 TiB", b"\0\xc3\x02\x81\0\0\x01\0\0\0\0\0\x00a"),
        ("empty list", b"\x01\x00"),
        ("list without elements", b"\x01\x05\x01a"),
        ("list of four thousand million", b"\x01\x80\xff\xff\xff\xff\x01a"),
        ("count as an encoded string", b"\x01\xc0\x01\x01a"),
        ("quicklist without nodes", b"\x0e\x00"),
        ("quicklist of empty nodes", b"\x12\x01\x02\x07\x07\0\0\0\0\0\xff"),
        ("unknown kind of node", b"\x12\x01\x03\x07\x07\0\0\0\0\0\xff"),
        ("member twice", b"\x02\x02\x01a\x01a"),
        ("field twice", b"\x04\x02\x01a\x01b\x01a\x01c"),
        ("field without value", b"\x04\x01\x01a"),
        ("scored member twice", b"\x05\x02\x01a\0\0\0\0\0\0\0\0\x01a\0\0\0\0\0\0\0\0"),
        ("score NaN", b"\x05\x01\x01a\0\0\0\0\0\0\xf8\x7f"),
        ("score NaN as text", b"\x03\x01\x01a\xfd"),
        ("score of no characters", b"\x03\x01\x01a\x00"),
        ("listpack of odd length as a hash", b"\x10\x0a\x0a\0\0\0\x01\0\x81a\x02\xff"),
        ("listpack with a wrong length", b"\x10\x0a\x0b\0\0\0\x01\0\x81a\x02\xff"),
        ("listpack with a wrong count", b"\x12\x01\x02\x0a\x0a\0\0\0\x02\0\x81a\x02\xff"),
        ("listpack without an end", b"\x12\x01\x02\x09\x09\0\0\0\x01\0\x81a\x02"),
        ("listpack that goes on after its end", b"\x12\x01\x02\x0b\x0b\0\0\0\x01\0\x81a\x02\xff\xff"),
        ("listpack element of an unknown form", b"\x12\x01\x02\x09\x09\0\0\0\x01\0\xf5\x01\xff"),
        ("listpack score that is no number", b"\x11\x0d\x0d\0\0\0\x02\0\x81a\x02\x81x\x02\xff"),
        ("ziplist element of an unknown form", b"\x0a\x0d\x0d\0\0\0\x0a\0\0\0\x01\0\0\xff\xff"),
        ("intset of 3-byte integers", b"\x0b\x0b\x03\0\0\0\x01\0\0\0\x01\0\0"),
        ("intset with a wrong count", b"\x0b\x0a\x02\0\0\0\x02\0\0\0\x01\0"),
    ];
    for (name, body) in bodies {
        assert_eq!(restore(&with_version(body, 10)), Err(RestoreError::BadFormat), "{name}");
    }
    // The same forms are read when they are right.
    assert!(restore(&with_version(b"\x12\x01\x02\x0a\x0a\0\0\0\x01\0\x81a\x02\xff", 10)).is_ok());
    assert!(restore(&with_version(b"\0\xc3\x05\x05\x01aa\x20\x00", 10)).is_ok());
}

fn any_bytes() -> impl Strategy<Value = Bytes> {
    let integers = any::<i64>().prop_map(|integer| Bytes::from((integer >> (integer & 63)).to_string()));
    prop_oneof![prop::collection::vec(any::<u8>(), 0..80).prop_map(Bytes::from), integers]
}

fn values() -> impl Strategy<Value = Value> {
    let score = any::<f64>().prop_filter("not a number", |score| !score.is_nan());
    prop_oneof![
        any_bytes().prop_map(Value::String),
        prop::collection::vec(any_bytes(), 1..80).prop_map(Value::List),
        prop::collection::hash_set(any_bytes(), 1..80).prop_map(|set| Value::Set(set.into_iter().collect())),
        prop::collection::hash_map(any_bytes(), any_bytes(), 1..40)
            .prop_map(|hash| Value::Hash(hash.into_iter().collect())),
        prop::collection::hash_map(any_bytes(), score, 1..40).prop_map(|zset| Value::Zset(zset.into_iter().collect())),
    ]
}

proptest! {
    #[test]
    fn a_value_comes_back(value in values()) {
        prop_assert_eq!(restore(&dump(&value)), Ok(value));
    }

    #[test]
    fn any_bytes_under_a_right_checksum_are_read_or_refused(
        encoding in 0..22u8,
        body in prop::collection::vec(prop_oneof![0..16u8, any::<u8>()], 0..60),
    ) {
        let _ = restore(&with_version(&[&[encoding], &body[..]].concat(), 10));
    }

    #[test]
    fn a_damaged_value_under_a_right_checksum_is_read_or_refused(
        value in values(), at: prop::sample::Index, to: u8,
    ) {
        let mut body = dump(&value);
        body.truncate(body.len() - CHECKSUM_BYTES - 2);
        *at.get_mut(&mut body) = to;
        let _ = restore(&with_version(&body, 10));
    }
}
