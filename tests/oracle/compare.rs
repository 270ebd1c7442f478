//! Which replies count as equal: the one table of documented differences from Redis 7.0, the oracle.

use super::grammar::Args;
use crate::support::Value;

/// How the replies of a command are compared. Errors are always compared word by word.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule {
    /// The same frame.
    Exact,
    /// The same elements, in any order.
    Unordered,
    /// The same pairs, in any order: a map, or a flat array of keys and values.
    UnorderedPairs,
    /// The same kind of frame; collections of the same length.
    Shape,
    /// The same kind of frame.
    Kind,
    /// As `Kind`; but a gateway refuses a cursor that nobody gave out, where Redis goes on from anywhere.
    Cursor,
    /// The same frame; but 7.2 refuses with this text what 7.0 accepts.
    Refused(&'static str),
    /// Integers no further apart than this; other replies exactly.
    Near(u64),
    /// Numbers are compared by value, however they are printed.
    Numbers,
}

/// Command, rule, reason. A row for a container's subcommand stands before the container's own.
const RULES: &[(&str, Rule, &str)] = &[
    ("TTL", Rule::Near(60), "time passes between the two"),
    ("PTTL", Rule::Near(60_000), "time passes between the two"),
    ("EXPIRETIME", Rule::Near(60), "time passes between the two"),
    ("PEXPIRETIME", Rule::Near(60_000), "time passes between the two"),
    ("TIME", Rule::Shape, "time passes between the two"),
    ("KEYS", Rule::Unordered, "no order is promised"),
    ("SCAN", Rule::Cursor, "no order is promised; whole iterations are compared as sets"),
    ("HSCAN", Rule::Cursor, "as SCAN"),
    ("SSCAN", Rule::Cursor, "as SCAN"),
    ("ZSCAN", Rule::Cursor, "as SCAN"),
    ("HGETALL", Rule::UnorderedPairs, "no order is promised"),
    ("HKEYS", Rule::Unordered, "no order is promised"),
    ("HVALS", Rule::Unordered, "no order is promised"),
    ("SMEMBERS", Rule::Unordered, "no order is promised"),
    ("SINTER", Rule::Unordered, "no order is promised"),
    ("SUNION", Rule::Unordered, "no order is promised"),
    ("SDIFF", Rule::Unordered, "no order is promised"),
    ("SPOP", Rule::Unordered, "a whole set in any order"),
    ("RANDOMKEY", Rule::Kind, "random"),
    ("HRANDFIELD", Rule::Shape, "random"),
    ("SRANDMEMBER", Rule::Shape, "random"),
    ("ZRANDMEMBER", Rule::Shape, "random"),
    ("DUMP", Rule::Kind, "7.2 writes a newer version of the format"),
    ("OBJECT ENCODING", Rule::Kind, "7.2 knows other encodings, and 7.0 remembers how a string came to be"),
    ("OBJECT IDLETIME", Rule::Kind, "not kept"),
    ("OBJECT REFCOUNT", Rule::Kind, "Redis shares small integers"),
    ("OBJECT HELP", Rule::Kind, "text"),
    ("MEMORY USAGE", Rule::Kind, "another layout"),
    ("MEMORY", Rule::Kind, "text"),
    ("CLIENT ID", Rule::Kind, "counts the server's connections"),
    ("CLIENT INFO", Rule::Kind, "describes the connection"),
    ("CLIENT LIST", Rule::Kind, "describes the connections"),
    ("HELLO", Rule::Shape, "version and id"),
    ("COMMAND GETKEYS", Rule::Exact, "derived from the arguments"),
    ("COMMAND", Rule::Kind, "7.2 has more commands, tips and flags"),
    ("CONFIG GET", Rule::Kind, "other settings"),
    ("CONFIG HELP", Rule::Kind, "text"),
    ("INFO", Rule::Kind, "describes the server"),
    ("LOLWUT", Rule::Kind, "art"),
    (
        "LPOS",
        Rule::Refused("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"),
        "7.0 takes the least integer for a rank, which has no opposite",
    ),
    ("ZADD", Rule::Numbers, "7.2 prints the shortest form of a score, 7.0 seventeen digits"),
    ("ZDIFF", Rule::Numbers, "as ZADD"),
    ("ZINCRBY", Rule::Numbers, "as ZADD"),
    ("ZINTER", Rule::Numbers, "as ZADD"),
    ("ZMPOP", Rule::Numbers, "as ZADD"),
    ("ZMSCORE", Rule::Numbers, "as ZADD"),
    ("ZPOPMAX", Rule::Numbers, "as ZADD"),
    ("ZPOPMIN", Rule::Numbers, "as ZADD"),
    ("ZRANGE", Rule::Numbers, "as ZADD"),
    ("ZRANGEBYSCORE", Rule::Numbers, "as ZADD"),
    ("ZREVRANGE", Rule::Numbers, "as ZADD"),
    ("ZREVRANGEBYSCORE", Rule::Numbers, "as ZADD"),
    ("ZSCORE", Rule::Numbers, "as ZADD"),
    ("ZUNION", Rule::Numbers, "as ZADD"),
];

/// How the gateway keeps collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EncodeVersion {
    /// Everything in encode-version 0.
    V0,
    /// Hashes and sets without a count: some writes do not know how many elements are new.
    Uncounted,
    /// Sorted sets with their order in a sidecar, which no reply shows.
    Sidecar,
}

/// Commands that reply with the number of their arguments under [`EncodeVersion::Uncounted`].
const UNCOUNTED: &[&str] = &["HSET", "HDEL", "SADD", "SREM"];

impl EncodeVersion {
    /// The settings that choose it.
    pub(crate) fn env(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::V0 => &[],
            Self::Uncounted => &[("RESPGATE_ENCODING__HASH", "1"), ("RESPGATE_ENCODING__SET", "1")],
            Self::Sidecar => &[("RESPGATE_ENCODING__ZSET", "1")],
        }
    }

    /// The rule for a command.
    pub(crate) fn rule(self, args: &Args) -> Rule {
        let is_uncounted = || UNCOUNTED.iter().any(|name| args[0].eq_ignore_ascii_case(name.as_bytes()));
        if self == Self::Uncounted && is_uncounted() { Rule::Kind } else { Rule::of(args) }
    }
}

impl Rule {
    /// The rule for a command where nothing is uncounted.
    fn of(args: &Args) -> Self {
        let word =
            |at: usize| args.get(at).map(|arg| String::from_utf8_lossy(arg).to_ascii_uppercase()).unwrap_or_default();
        let (name, with_sub) = (word(0), format!("{} {}", word(0), word(1)));
        let row = RULES.iter().find(|(row, ..)| *row == name || *row == with_sub);
        row.map_or(Self::Exact, |(_, rule, _)| *rule)
    }

    /// True if the reply counts as equal to what the oracle says.
    pub(crate) fn accepts(self, ours: &Value, oracle: &Value) -> bool {
        if ours == oracle {
            return true;
        }
        if matches!((self, ours), (Self::Refused(refusal), Value::Error(text)) if text == refusal) {
            return true;
        }
        if matches!((self, ours), (Self::Cursor, Value::Error(text)) if text == "ERR invalid cursor") {
            return true;
        }
        if matches!(ours, Value::Error(_)) || matches!(oracle, Value::Error(_)) {
            return false;
        }
        match self {
            Self::Exact | Self::Refused(_) => false,
            Self::Unordered => same_kind(ours, oracle) && elements_sorted(ours) == elements_sorted(oracle),
            Self::UnorderedPairs => same_kind(ours, oracle) && pairs_sorted(ours) == pairs_sorted(oracle),
            Self::Shape => same_kind(ours, oracle) && length(ours) == length(oracle),
            Self::Kind | Self::Cursor => same_kind(ours, oracle),
            Self::Near(apart) => {
                matches!((ours, oracle), (Value::Integer(a), Value::Integer(b)) if a.abs_diff(*b) <= apart)
            }
            Self::Numbers => same_numbers(ours, oracle),
        }
    }
}

/// Compares two replies of EXEC, each of the queued commands by its own rule.
pub(crate) fn transaction_accepts(rules: &[Rule], ours: &Value, oracle: &Value) -> bool {
    match (ours, oracle) {
        (Value::Array(a), Value::Array(b)) if a.len() == rules.len() && b.len() == rules.len() => {
            rules.iter().zip(a.iter().zip(b)).all(|(rule, (a, b))| rule.accepts(a, b))
        }
        _ => ours == oracle,
    }
}

fn same_kind(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

fn length(value: &Value) -> usize {
    match value {
        Value::Array(values) | Value::Set(values) | Value::Push(values) => values.len(),
        Value::Map(pairs) => pairs.len(),
        _ => 1,
    }
}

fn elements_sorted(value: &Value) -> Vec<&Value> {
    let (Value::Array(values) | Value::Set(values)) = value else { return vec![value] };
    let mut sorted: Vec<&Value> = values.iter().collect();
    sorted.sort();
    sorted
}

/// The pairs of a map, or of an array of alternating keys and values.
pub(crate) fn pairs_sorted(value: &Value) -> Vec<(&Value, &Value)> {
    let mut pairs: Vec<_> = match value {
        Value::Map(pairs) => pairs.iter().map(|(key, value)| (key, value)).collect(),
        Value::Array(values) => values.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect(),
        other => vec![(other, other)],
    };
    pairs.sort();
    pairs
}

fn same_numbers(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_numbers(a, b)),
        (Value::Double(_), Value::Double(_)) | (Value::Bulk(_), Value::Bulk(_)) => {
            a == b || matches!((as_number(a), as_number(b)), (Some(a), Some(b)) if a == b)
        }
        _ => a == b,
    }
}

fn as_number(value: &Value) -> Option<f64> {
    std::str::from_utf8(value.bytes()).ok()?.parse().ok()
}
