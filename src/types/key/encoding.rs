use bytes::Bytes;
use respgate_backend_api::Direction;

use crate::{
    encoding::{Body, Metadata, Type},
    keyspace::{Key, Unit},
    resp::integer::parse_integer,
    types::{Result, zset},
};

/// The longest string that Redis keeps together with its header.
const EMBEDDED_BYTES_MAX: usize = 44;

/// The longest field, value or member of a hash, set or sorted set that Redis calls a `listpack`.
const PACKED_ELEMENT_BYTES_MAX: usize = 64;

/// The longest list, in bytes, that Redis calls a `listpack`, and what an element of it takes beside its bytes.
const PACKED_LIST_BYTES_MAX: usize = 8192;
const PACKED_LIST_ELEMENT_BYTES: usize = 2;

/// The name of the encoding that Redis 7.2 with its default settings would choose for the value of `key`, as OBJECT
/// ENCODING tells it.
///
/// Here values are laid out in other ways; clients and test suites ask all the same. Redis remembers that a collection
/// was large once, this does not. Reads as many elements as a compact collection may have, and one more.
pub async fn encoding(unit: &mut Unit<'_>, key: &Key) -> Result<Option<&'static str>> {
    let Some(metadata) = unit.load(key).await? else { return Ok(None) };
    let count = match &metadata.body {
        Body::String(value) => return Ok(Some(string_encoding(value))),
        Body::Chunks { .. } => return Ok(Some("raw")),
        Body::List { count, .. } => Some(*count),
        Body::Hash { count } | Body::Set { count } => *count,
        Body::Zset { count, .. } => Some(*count),
    };
    let packed_max = packed_count_max(metadata.kind());
    if count.is_some_and(|count| count as usize > packed_max) {
        return Ok(Some(collection_encoding(metadata.kind(), None)));
    }
    let elements = match metadata.kind() {
        Type::Zset => Elements::of_zset(unit, key, packed_max).await?,
        _ => Elements::read(unit, key, &metadata, packed_max).await?,
    };
    Ok(Some(collection_encoding(metadata.kind(), elements)))
}

/// What decides about the encoding of a small collection.
struct Elements {
    count: usize,
    /// The longest field, value or member.
    longest_bytes: usize,
    /// All values together.
    value_bytes: usize,
    all_integers: bool,
}

impl Elements {
    /// `None` if there are more than `count_max`.
    async fn read(unit: &mut Unit<'_>, key: &Key, metadata: &Metadata, count_max: usize) -> Result<Option<Self>> {
        let range = unit.collection(key, metadata)?.elements();
        let head_bytes = range.start.len();
        let records = unit.scan(&range, Direction::Forward, count_max + 1).await?;
        if records.len() > count_max {
            return Ok(None);
        }
        let suffix = |record: &Bytes| record.slice(head_bytes.min(record.len())..);
        Ok(Some(Self {
            count: records.len(),
            longest_bytes: records
                .iter()
                .map(|(record, value)| suffix(record).len().max(value.len()))
                .max()
                .unwrap_or(0),
            value_bytes: records.iter().map(|(_, value)| value.len()).sum(),
            all_integers: records.iter().all(|(record, _)| parse_integer(&suffix(record)).is_some()),
        }))
    }

    async fn of_zset(unit: &mut Unit<'_>, key: &Key, count_max: usize) -> Result<Option<Self>> {
        let (members, _) = zset::page(unit, key, None, count_max + 1).await?;
        let longest_bytes = members.iter().map(|(member, _)| member.len()).max().unwrap_or(0);
        let elements = Self { count: members.len(), longest_bytes, value_bytes: 0, all_integers: false };
        Ok((members.len() <= count_max).then_some(elements))
    }
}

fn string_encoding(value: &[u8]) -> &'static str {
    match value.len() {
        _ if parse_integer(value).is_some() => "int",
        0..=EMBEDDED_BYTES_MAX => "embstr",
        _ => "raw",
    }
}

/// The most elements that a compact collection may have: `hash-max-listpack-entries` and its like.
fn packed_count_max(kind: Type) -> usize {
    match kind {
        Type::Hash | Type::Set => 512,
        Type::List => PACKED_LIST_BYTES_MAX / PACKED_LIST_ELEMENT_BYTES,
        _ => 128,
    }
}

/// The encoding of a collection; `None` if it has too many elements to be compact.
fn collection_encoding(kind: Type, elements: Option<Elements>) -> &'static str {
    /// `set-max-listpack-entries`.
    const PACKED_SET_COUNT_MAX: usize = 128;

    let is_packed = elements.as_ref().is_some_and(|elements| match kind {
        Type::List => elements.value_bytes + elements.count * PACKED_LIST_ELEMENT_BYTES <= PACKED_LIST_BYTES_MAX,
        Type::Set => elements.count <= PACKED_SET_COUNT_MAX && elements.longest_bytes <= PACKED_ELEMENT_BYTES_MAX,
        _ => elements.longest_bytes <= PACKED_ELEMENT_BYTES_MAX,
    });
    match kind {
        Type::Set if elements.is_some_and(|elements| elements.all_integers) => "intset",
        _ if is_packed => "listpack",
        Type::Hash | Type::Set => "hashtable",
        Type::Zset => "skiplist",
        Type::List => "quicklist",
        Type::String => "raw",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(count: usize, longest_bytes: usize, all_integers: bool) -> Option<Elements> {
        Some(Elements { count, longest_bytes, value_bytes: count * longest_bytes, all_integers })
    }

    #[test]
    fn strings_are_numbers_or_short_or_long() {
        assert_eq!(string_encoding(b"-12"), "int");
        assert_eq!(string_encoding(b"012"), "embstr");
        assert_eq!(string_encoding(b"9223372036854775808"), "embstr");
        assert_eq!(string_encoding(&[b'a'; 44]), "embstr");
        assert_eq!(string_encoding(&[b'a'; 45]), "raw");
    }

    #[test]
    fn collections_are_compact_up_to_the_limits_of_redis() {
        assert_eq!(collection_encoding(Type::Hash, elements(512, 64, false)), "listpack");
        assert_eq!(collection_encoding(Type::Hash, elements(1, 65, false)), "hashtable");
        assert_eq!(collection_encoding(Type::Set, elements(512, 3, true)), "intset");
        assert_eq!(collection_encoding(Type::Set, elements(128, 64, false)), "listpack");
        assert_eq!(collection_encoding(Type::Set, elements(129, 1, false)), "hashtable");
        assert_eq!(collection_encoding(Type::Zset, None), "skiplist");
        assert_eq!(collection_encoding(Type::List, elements(81, 99, false)), "listpack");
        assert_eq!(collection_encoding(Type::List, elements(81, 100, false)), "quicklist");
    }
}
