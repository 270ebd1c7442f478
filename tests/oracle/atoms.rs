//! The kinds of argument that templates name: for each, what is common and what is at the edge.
//!
//! Keys are few, so that commands meet. Times are so far away, or so long past, that none comes while a test runs.

use rand::RngExt;
use rand::rngs::StdRng;

/// A kind of argument.
pub(crate) struct Atom {
    name: &'static str,
    common: &'static [&'static [u8]],
    edge: &'static [&'static [u8]],
    /// It says when something expires.
    pub(crate) is_time: bool,
}

impl Atom {
    const fn new(name: &'static str, common: &'static [&'static [u8]], edge: &'static [&'static [u8]]) -> Self {
        Self { name, common, edge, is_time: false }
    }

    const fn time(name: &'static str, common: &'static [&'static [u8]], edge: &'static [&'static [u8]]) -> Self {
        Self { name, common, edge, is_time: true }
    }

    /// An argument of this kind; one in eight is from the edge.
    pub(crate) fn pick(&self, rng: &mut StdRng) -> Vec<u8> {
        let from_edge = !self.edge.is_empty() && rng.random_ratio(1, 8);
        let list = if from_edge { self.edge } else { self.common };
        list[rng.random_range(0..list.len())].to_vec()
    }
}

/// The kind that templates call `name`.
pub(crate) fn named(name: &str) -> &'static Atom {
    ATOMS.iter().find(|atom| atom.name == name).unwrap_or_else(|| panic!("no kind of argument is called {name}"))
}

/// Every key that the generators use.
pub(crate) const KEYS: &[&[u8]] = &[
    b"s:1",
    b"s:2",
    b"s:3",
    b"h:1",
    b"h:2",
    b"l:1",
    b"l:2",
    b"set:1",
    b"set:2",
    b"set:3",
    b"z:1",
    b"z:2",
    b"z:3",
    b"{t}x",
    b"{t}y",
    b"",
    b"\x00\xff\r\n",
];

/// Sorted sets whose members all have one score.
pub(crate) const LEX_KEYS: &[&[u8]] = &[b"lex:1", b"lex:2"];

/// Keys of large strings.
pub(crate) const LARGE_KEYS: &[&[u8]] = &[b"large:1", b"large:2"];

/// The databases that the generators select.
pub(crate) const DATABASES: std::ops::Range<u32> = 0..3;

/// Anything, to put where it does not belong.
pub(crate) const WILD: Atom = Atom::new(
    "wild",
    &[
        b"",
        b"0",
        b"1",
        b"-1",
        b"abc",
        b"1.5",
        b"9223372036854775807",
        b"s:1",
        b"z:1",
        b"\xff\x00",
        b"NX",
        b"GET",
        b"*",
        b"nan",
    ],
    &[],
);

const LONG: &[u8] = &[b'x'; 5_000];
const LONG_MEMBER: &[u8] = b"a member that is longer than the fifteen bytes of an index";
const LONG_MEMBER_2: &[u8] = b"b: and so is this, but its digest sorts elsewhere";
const FIFTEEN_BYTES: &[u8] = b"fifteen bytes!!";

/// Made by Redis 7.0 with DUMP.
const PAYLOADS: &[&[u8]] = &[
    b"\x00\x03abc\n\x00\xd9\xac0=Ar\xa2\xe2",
    b"\x12\x01\x02\x0f\x0f\x00\x00\x00\x03\x00\x81x\x02\x81y\x02\x01\x01\xff\n\x00\xcf\x99\x0ee\xd4\x03\xbd\xb7",
    b"\x02\x02\x01b\x01a\n\x00u\xd9\x9d\x83^\xf8_e",
    b"\x0b\x0c\x02\x00\x00\x00\x02\x00\x00\x00\x01\x00\x02\x00\n\x00oy8\xb14\xeb .",
    b"\x10\x12\x12\x00\x00\x00\x04\x00\x81f\x02\x81v\x02\x81g\x02\x02\x01\xff\n\x00\x01\xa6NO\xc1\xd4\xe5C",
    b"\x11\x14\x14\x00\x00\x00\x04\x00\x81a\x02\x01\x01\x81b\x02\x832.5\x04\xff\n\x00\xd4Ln\xa4\xf6D\xd9\xd7",
];

/// Payloads of strings, and what is not a payload.
const STRING_PAYLOADS: &[&[u8]] = &[PAYLOADS[0]];
const BAD_PAYLOADS: &[&[u8]] =
    &[b"", b"abc", b"\x00\x03abc\n\x00\xd9\xac0=Ar\xa2\xe3", b"\x00\x03abc\xff\x00\xd9\xac0=Ar\xa2\xe2"];

const ATOMS: &[Atom] = &[
    Atom::new("key", KEYS, &[]),
    Atom::new("skey", &[b"s:1", b"s:2", b"s:3", b"{t}x"], KEYS),
    Atom::new("hkey", &[b"h:1", b"h:2"], KEYS),
    Atom::new("lkey", &[b"l:1", b"l:2"], KEYS),
    Atom::new("setkey", &[b"set:1", b"set:2", b"set:3"], KEYS),
    Atom::new("zkey", &[b"z:1", b"z:2", b"z:3"], KEYS),
    Atom::new("large-key", LARGE_KEYS, &[]),
    Atom::new(
        "large-value",
        &[&[b'y'; 65_536], &[b'z'; 65_535], &[b'w'; 70_000], &[b'v'; 10_000]],
        &[&[b'u'; 300_000]],
    ),
    Atom::new(
        "large-offset",
        &[b"0", b"65535", b"65536", b"65537", b"70000", b"-70000", b"131072", b"3", b"16384"],
        &[b"400000", b"-400000", b"-1", b"536870912"],
    ),
    Atom::new("lexkey", LEX_KEYS, &[]),
    Atom::new(
        "value",
        &[b"0", b"1", b"-7", b"42", b"abc", b"hello world", b"3.25", b""],
        &[
            b"9223372036854775807",
            b"-9223372036854775808",
            b"9223372036854775808",
            b"1.7e308",
            b" 1",
            b"007",
            b"\xff\r\n\x00\x01",
            LONG,
        ],
    ),
    Atom::new(
        "int",
        &[b"0", b"1", b"-1", b"2", b"10", b"-100"],
        &[
            b"9223372036854775807",
            b"-9223372036854775808",
            b"9223372036854775808",
            b"1.5",
            b"abc",
            b"",
            b" 1",
            b"1 ",
            b"01",
            b"+1",
            b"-0",
            b"1e3",
        ],
    ),
    Atom::new(
        "float",
        &[b"0", b"1.5", b"-1.5", b"10", b"0.1", b"-2.75", b"3.0e3", b"0.25"],
        &[
            b"inf",
            b"-inf",
            b"+inf",
            b"nan",
            b"1e400",
            b"abc",
            b"",
            b" 1",
            b"1 ",
            b"-0",
            b"1e-20",
            b"3.141592653589793",
            b"1e17",
            b"1e308",
            b"-1e308",
            b"5e-324",
            b"1.",
            b".5",
        ],
    ),
    Atom::new(
        "offset",
        &[b"0", b"1", b"3", b"10", b"200"],
        &[b"-1", b"536870912", b"9223372036854775807", b"abc", b"5000"],
    ),
    Atom::new(
        "index",
        &[b"0", b"1", b"2", b"-1", b"-2", b"5"],
        &[b"-100", b"100", b"9223372036854775807", b"-9223372036854775808", b"abc", b"", b"1.5"],
    ),
    // 7.0 takes the smallest number of all, 7.2 refuses it.
    Atom::new("rank", &[b"1", b"2", b"-1", b"-2"], &[b"0", b"9223372036854775807", b"abc", b""]),
    Atom::new("count", &[b"1", b"2", b"3", b"10"], &[b"0", b"-1", b"1000000", b"abc", b"9223372036854775807"]),
    Atom::new("all", &[b"1000000"], &[b"0", b"-1", b"abc"]),
    Atom::new("bit", &[b"0", b"1"], &[b"2", b"abc"]),
    Atom::time(
        "ttl",
        &[b"100000", b"200000", b"1000000"],
        &[
            b"0",
            b"-1",
            b"-100000",
            b"abc",
            b"",
            b"1.5",
            b"9223372036854775807",
            b"9223372036854775",
            b"-9223372036854775808",
        ],
    ),
    Atom::time("low-ttl", &[b"50000"], &[]),
    Atom::time(
        "ttl-ms",
        &[b"100000000", b"200000000", b"1000000000"],
        &[b"0", b"-1", b"abc", b"1.5", b"9223372036854775807", b"-9223372036854775808"],
    ),
    Atom::time(
        "at",
        &[b"4102444800", b"32503680000"],
        &[b"1", b"0", b"-1", b"abc", b"9223372036854775807", b"9223372036854775"],
    ),
    Atom::time("at-ms", &[b"4102444800000", b"32503680000000"], &[b"1", b"0", b"-1", b"abc", b"9223372036854775807"]),
    // Redis keeps a key that SET gives a time in the past until somebody looks, and counts it meanwhile.
    Atom::time("future", &[b"4102444800", b"32503680000"], &[b"0", b"-1", b"abc", b"9223372036854775807"]),
    Atom::time("future-ms", &[b"4102444800000", b"32503680000000"], &[b"0", b"-1", b"abc", b"9223372036854775807"]),
    Atom::new("db", &[b"0", b"0", b"0", b"1", b"2"], &[b"16", b"-1", b"abc", b"", b"99999999999"]),
    // Redis takes any number for a cursor, -1 too; a gateway refuses those that nobody gave out.
    Atom::new("cursor", &[b"0"], &[b"abc", b"1.5"]),
    Atom::new(
        "pattern",
        &[b"*", b"s*", b"s:?", b"[a-s]:1", b"*:[^1]", b"z:1"],
        &[b"", b"\\*", b"[", b"s:[1-", b"*\xff*", b"**", b"?", b"nothing", b"\\", b"[z-a]:1", b"{t}*"],
    ),
    Atom::new("by-pattern", &[b"s:*", b"h:*->f1"], &[]),
    Atom::new("get-pattern", &[b"s:*", b"h:*->f1", b"#"], &[b"*", b"", b"s:1", b"h:*->"]),
    Atom::new("type", &[b"string", b"hash", b"list", b"set", b"zset"], &[b"STRING", b"stream", b"nothing", b""]),
    Atom::new("payload", PAYLOADS, BAD_PAYLOADS),
    Atom::new("string-payload", STRING_PAYLOADS, BAD_PAYLOADS),
    Atom::new("client-name", &[b"worker", b"a-b_c"], &[b"", b"with space", b"new\nline", b"\xc3\xa9"]),
    Atom::new("bad-protocol", &[b"1", b"4"], &[b"abc", b""]),
    Atom::new("field", &[b"f1", b"f2", b"f3", b"f4"], &[b"", b"\xff\r\n\x00", LONG_MEMBER]),
    Atom::new(
        "member",
        &[b"a", b"b", b"c", b"d", b"1", b"2", LONG_MEMBER_2, FIFTEEN_BYTES],
        &[b"", b"\xff\r\n\x00", LONG_MEMBER, b"-1.5", b"fourteen bytes", b"\xff another long member\x00"],
    ),
    Atom::new("element", &[b"a", b"b", b"c", b"1", b"2"], &[b"", b"\xff\r\n\x00", LONG_MEMBER, LONG]),
    Atom::new(
        "score",
        &[b"0", b"1", b"2", b"-1", b"1.5", b"-2.75", b"10", b"1"],
        &[
            b"inf",
            b"-inf",
            b"nan",
            b"-0",
            b"1e-320",
            b"5e-324",
            b"1e308",
            b"0.1",
            b"3.141592653589793",
            b"12345678901234567",
            b"abc",
            b"",
            b"1e400",
        ],
    ),
    Atom::new(
        "score-bound",
        &[b"-inf", b"+inf", b"0", b"1", b"(1", b"2", b"(2", b"-1", b"10"],
        &[b"(inf", b"(", b"nan", b"abc", b"", b"(-inf", b"1e400"],
    ),
    Atom::new("lex-bound", &[b"-", b"+", b"[a", b"(a", b"[b", b"(c", b"[d"], &[b"", b"a", b"[", b"(", b"[\xff", b"--"]),
    Atom::new("weight", &[b"1", b"2", b"-1", b"0.5", b"0"], &[b"inf", b"-inf", b"nan", b"abc"]),
    Atom::new("numkeys", &[b"1", b"2"], &[b"0", b"-1", b"3", b"abc", b"9223372036854775807"]),
];
