use bytes::{Buf, BufMut, Bytes};

use super::{DecodeError, Garbage};

const RECORD: &str = "metadata";

/// Encode-version, type, key-version and expiry.
const FIXED_BYTES: usize = 1 + 1 + 8 + 8;

/// Where the expiry stands.
const EXPIRY_AT: usize = 1 + 1 + 8;

/// The bit of the encode-version byte that says that the key has been renamed.
const RENAMED: u8 = 0x80;

/// The bit of the encode-version byte that says that there is a stamp.
const STAMPED: u8 = 0x40;

const NO_EXPIRY: i64 = -1;

/// The head and the tail of a list before its first element: the middle of the positions.
pub const LIST_START: u64 = u64::MAX >> 1;

/// The types that a key can have. The numbers are stored and never change; a new type takes the next free one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Type {
    /// A string of bytes.
    String = 1,
    /// A map from fields to values.
    Hash = 2,
    /// Members ordered by scores.
    Zset = 3,
    /// A sequence of elements.
    List = 4,
    /// Members without order.
    Set = 5,
}

impl Type {
    /// The name that TYPE answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Hash => "hash",
            Self::Zset => "zset",
            Self::List => "list",
            Self::Set => "set",
        }
    }

    /// The type of a stored number.
    pub(super) fn from_number(number: u8) -> Result<Self, DecodeError> {
        [Self::String, Self::Hash, Self::Zset, Self::List, Self::Set]
            .into_iter()
            .find(|&kind| kind as u8 == number)
            .ok_or(DecodeError::UnknownType(number))
    }
}

/// What a type keeps in the metadata record beyond the fields that all types have.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A string in one record: the value itself.
    String(Bytes),
    /// A string in chunks, which are element records. Chunks that are absent are zeros.
    Chunks {
        /// The length of the string.
        bytes: u64,
        /// The length of every chunk but the last; never 0.
        chunk_bytes: u32,
    },
    /// A hash; `count` is the number of fields, `None` in encode-version 1, which keeps none.
    Hash {
        /// How many fields there are.
        count: Option<u32>,
    },
    /// A set; `count` is the number of members, `None` in encode-version 1, which keeps none.
    Set {
        /// How many members there are.
        count: Option<u32>,
    },
    /// A sorted set.
    Zset {
        /// How many members there are.
        count: u32,
        /// Where the order of the members is kept.
        order: ZsetOrder,
    },
    /// A list, whose elements lie at the positions from `head` up to but without `tail`.
    List {
        /// How many elements there are.
        count: u32,
        /// The position of the first element.
        head: u64,
        /// The position after the last element.
        tail: u64,
    },
}

/// Where the order of a sorted set's members is kept.
#[derive(Clone, Debug, PartialEq)]
pub enum ZsetOrder {
    /// In the score index, between these bounds: encode-version 0.
    Index(ZsetBounds),
    /// In the sidecar, which must have it in this revision: encode-version 1. Every unit that changes members gives the
    /// sorted set a new revision, which is above the one before and not 0.
    Sidecar(u64),
}

/// The part of the score index of a sorted set that may hold anything. Members that are taken from an end leave deleted
/// records behind, which a scan that began at the very end would have to walk over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ZsetBounds {
    /// No member's ordered score and name are below this.
    pub low: Bytes,
    /// Every member's ordered score and name are below this; empty if there is no such bound.
    pub high: Bytes,
}

impl ZsetBounds {
    /// The longest bound that is kept: the score, and a name of usual length.
    pub const BYTES_MAX: usize = 8 + 64;
}

/// The value of a key's metadata record: the record that says whether a key exists, what it is, and when it expires.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// Sets the elements of this key apart from those of an earlier key with the same name.
    pub version: u64,
    /// When the key expires, in milliseconds since the Unix epoch; not negative. `None` if it does not.
    pub expires_at_ms: Option<i64>,
    /// What the type adds.
    pub body: Body,
    /// The user key under which the elements lie, if it is another than this one: RENAME leaves them where they are.
    pub origin: Option<Bytes>,
}

impl Metadata {
    /// True if `record` is the value of a string's metadata that holds all of the string: nothing else belongs to it.
    pub fn is_whole(record: &[u8]) -> bool {
        matches!(record, [version, kind, ..] if version & !(RENAMED | STAMPED) == 0 && *kind == Type::String as u8)
    }

    /// When the string expires whose record this is, without decoding the record; `None` if it does not, or if the record
    /// is not the [whole](Self::is_whole) of a string.
    pub fn expiry_of_whole(record: &[u8]) -> Option<i64> {
        let expires_at_ms = i64::from_be_bytes(*record.get(EXPIRY_AT..)?.first_chunk()?);
        (Self::is_whole(record) && expires_at_ms != NO_EXPIRY).then_some(expires_at_ms)
    }

    /// The record's value: `u8` encode-version (0x80 set if renamed), `u8` type, `u64` key-version, `i64` expiry or -1,
    /// if renamed `u32` length and origin, then what the type adds.
    pub fn encode(&self) -> Bytes {
        let origin_bytes = self.origin.as_ref().map_or(0, |origin| 4 + origin.len());
        let mut record = Vec::with_capacity(FIXED_BYTES + origin_bytes + self.body.bytes());
        record.put_u8(self.encode_version() | if self.origin.is_some() { RENAMED } else { 0 });
        record.put_u8(self.kind() as u8);
        record.put_u64(self.version);
        record.put_i64(self.expires_at_ms.unwrap_or(NO_EXPIRY));
        if let Some(origin) = &self.origin {
            record.put_u32(origin.len() as u32);
            record.put_slice(origin);
        }
        self.body.put(&mut record);
        record.into()
    }

    /// Reads what [`Self::encode`] wrote. Strings and origins share the memory of `record`.
    pub fn decode(record: &Bytes) -> Result<Self, DecodeError> {
        let too_short = DecodeError::TooShort { record: RECORD, bytes: record.len() };
        if record.len() < FIXED_BYTES {
            return Err(too_short);
        }
        let mut rest = record.clone();
        let first = rest.get_u8();
        let kind = Type::from_number(rest.get_u8())?;
        let version = rest.get_u64();
        let expires_at_ms = Some(rest.get_i64()).filter(|&at| at != NO_EXPIRY);
        if first & STAMPED != 0 {
            rest.try_get_u64().map_err(|_| too_short)?;
        }
        let origin = if first & RENAMED == 0 { None } else { Some(take_origin(&mut rest).ok_or(too_short)?) };
        let body = Body::take(kind, first & !(RENAMED | STAMPED), rest, too_short)?;
        Ok(Self { version, expires_at_ms, body, origin })
    }

    /// The record with another stamp. It says nothing of the key, but that the key has changed: on a store that gateways
    /// share, WATCH would not see otherwise that another one has changed an element.
    pub fn stamp(record: &Bytes, stamp: u64) -> Result<Bytes, DecodeError> {
        let too_short = DecodeError::TooShort { record: RECORD, bytes: record.len() };
        let (fixed, rest) = record.split_at_checked(FIXED_BYTES).ok_or(too_short)?;
        let (first, fixed) = fixed.split_first().ok_or(too_short)?;
        let old_bytes = if first & STAMPED == 0 { 0 } else { size_of::<u64>() };
        let rest = rest.get(old_bytes..).ok_or(too_short)?;
        let mut stamped = Vec::with_capacity(FIXED_BYTES + size_of::<u64>() + rest.len());
        stamped.put_u8(first | STAMPED);
        stamped.put_slice(fixed);
        stamped.put_u64(stamp);
        stamped.put_slice(rest);
        Ok(stamped.into())
    }

    /// The type of the key.
    pub fn kind(&self) -> Type {
        match self.body {
            Body::String(_) | Body::Chunks { .. } => Type::String,
            Body::Hash { .. } => Type::Hash,
            Body::Set { .. } => Type::Set,
            Body::Zset { .. } => Type::Zset,
            Body::List { .. } => Type::List,
        }
    }

    /// Which of the type's encodings the key has; it never changes under a living key.
    pub fn encode_version(&self) -> u8 {
        match &self.body {
            Body::String(_) | Body::List { .. } => 0,
            Body::Chunks { .. } => 1,
            Body::Hash { count } | Body::Set { count } => u8::from(count.is_none()),
            Body::Zset { order, .. } => u8::from(matches!(order, ZsetOrder::Sidecar(_))),
        }
    }

    /// True if the key has expired: as in Redis, once its time has passed, not while it is there.
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expires_at_ms.is_some_and(|at| now_ms > at)
    }

    /// True if the key has records beside its metadata, which become garbage with it.
    pub fn has_elements(&self) -> bool {
        !matches!(self.body, Body::String(_))
    }

    /// What to leave for the collector when this key goes; `None` if its metadata is all there is.
    pub fn garbage(&self) -> Option<Garbage> {
        let (kind, encode_version) = (self.kind(), self.encode_version());
        self.has_elements().then(|| Garbage { kind, encode_version, elements: self.body.elements() })
    }
}

impl Body {
    /// How many elements there are; 0 in an encoding that does not count them.
    fn elements(&self) -> u64 {
        match *self {
            Self::String(_) => 0,
            Self::Chunks { bytes, chunk_bytes } => bytes.div_ceil(u64::from(chunk_bytes.max(1))),
            Self::Hash { count } | Self::Set { count } => count.map_or(0, u64::from),
            Self::Zset { count, .. } | Self::List { count, .. } => u64::from(count),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::String(value) => value.len(),
            Self::Chunks { .. } => 8 + 4,
            Self::Hash { count } | Self::Set { count } => count.map_or(0, |_| 4),
            Self::Zset { order: ZsetOrder::Index(bounds), .. } => 4 + 2 + bounds.low.len() + bounds.high.len(),
            Self::Zset { order: ZsetOrder::Sidecar(_), .. } => 4 + 8,
            Self::List { .. } => 4 + 8 + 8,
        }
    }

    fn put(&self, record: &mut Vec<u8>) {
        match self {
            Self::String(value) => record.put_slice(value),
            Self::Chunks { bytes, chunk_bytes } => {
                record.put_u64(*bytes);
                record.put_u32(*chunk_bytes);
            }
            Self::Hash { count } | Self::Set { count } => {
                if let Some(count) = count {
                    record.put_u32(*count);
                }
            }
            Self::Zset { count, order } => {
                record.put_u32(*count);
                match order {
                    ZsetOrder::Index(bounds) if *bounds == ZsetBounds::default() => {}
                    ZsetOrder::Index(bounds) => {
                        for bound in [&bounds.low, &bounds.high] {
                            record.put_u8(bound.len() as u8);
                            record.put_slice(bound);
                        }
                    }
                    ZsetOrder::Sidecar(revision) => record.put_u64(*revision),
                }
            }
            Self::List { count, head, tail } => {
                record.put_u32(*count);
                record.put_u64(*head);
                record.put_u64(*tail);
            }
        }
    }

    fn take(kind: Type, encode_version: u8, mut extra: Bytes, too_short: DecodeError) -> Result<Self, DecodeError> {
        let body = match (kind, encode_version) {
            (Type::String, 0) => return Ok(Self::String(extra)),
            (Type::String, 1) => take_chunks(&mut extra)?,
            (Type::Hash, 0 | 1) => take_count(encode_version, &mut extra).map(|count| Self::Hash { count }),
            (Type::Set, 0 | 1) => take_count(encode_version, &mut extra).map(|count| Self::Set { count }),
            (Type::Zset, 0) => take_zset(&mut extra)?,
            (Type::Zset, 1) => take_sidecar_zset(&mut extra),
            (Type::List, 0) => take_list(&mut extra),
            (kind, encode_version) => return Err(DecodeError::UnknownEncodeVersion { kind, encode_version }),
        };
        let body = body.ok_or(too_short)?;
        if extra.has_remaining() {
            return Err(DecodeError::TooLong { record: RECORD, bytes: extra.len() });
        }
        Ok(body)
    }
}

fn take_origin(rest: &mut Bytes) -> Option<Bytes> {
    let bytes = rest.try_get_u32().ok()? as usize;
    (bytes <= rest.len()).then(|| rest.split_to(bytes))
}

/// The count of encode-version 0; `Some(None)` for encode-version 1, which keeps none.
fn take_count(encode_version: u8, extra: &mut Bytes) -> Option<Option<u32>> {
    if encode_version == 0 { extra.try_get_u32().ok().map(Some) } else { Some(None) }
}

fn take_chunks(extra: &mut Bytes) -> Result<Option<Body>, DecodeError> {
    let (Ok(bytes), Ok(chunk_bytes)) = (extra.try_get_u64(), extra.try_get_u32()) else { return Ok(None) };
    if chunk_bytes == 0 {
        return Err(DecodeError::Impossible { record: RECORD, field: "chunk size" });
    }
    Ok(Some(Body::Chunks { bytes, chunk_bytes }))
}

fn take_zset(extra: &mut Bytes) -> Result<Option<Body>, DecodeError> {
    let Ok(count) = extra.try_get_u32() else { return Ok(None) };
    let mut bounds = ZsetBounds::default();
    if extra.has_remaining() {
        let (Some(low), Some(high)) = (take_bound(extra), take_bound(extra)) else { return Ok(None) };
        if low.is_empty() && high.is_empty() {
            return Err(DecodeError::Impossible { record: RECORD, field: "pair of bounds" });
        }
        bounds = ZsetBounds { low, high };
    }
    Ok(Some(Body::Zset { count, order: ZsetOrder::Index(bounds) }))
}

fn take_sidecar_zset(extra: &mut Bytes) -> Option<Body> {
    let count = extra.try_get_u32().ok()?;
    Some(Body::Zset { count, order: ZsetOrder::Sidecar(extra.try_get_u64().ok()?) })
}

fn take_bound(extra: &mut Bytes) -> Option<Bytes> {
    let bytes = usize::from(extra.try_get_u8().ok()?);
    (bytes <= extra.len()).then(|| extra.split_to(bytes))
}

fn take_list(extra: &mut Bytes) -> Option<Body> {
    let count = extra.try_get_u32().ok()?;
    let head = extra.try_get_u64().ok()?;
    let tail = extra.try_get_u64().ok()?;
    Some(Body::List { count, head, tail })
}

#[cfg(test)]
mod tests;
