use std::{fmt, str::FromStr};

use bytes::Bytes;

use super::words::Hex;
use crate::keyspace::{GroupPosition, KeyWalk};

/// From where a task goes on: the kind of records, a number of the database or the range, and bytes of a key.
///
/// As text: `keys:0:666f6f`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// Among the keys.
    Keys(KeyWalk),
    /// Among the garbage records.
    Garbage(GroupPosition),
    /// Among the elements that may be orphaned.
    Orphans(GroupPosition),
    /// Among the cursors.
    Cursors,
    /// Among the records of one key: after so many of them.
    Records(u32),
}

/// A text that is not a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a position looks like keys:0:666f6f; give one that the command printed")]
pub struct BadPosition;

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut write = |name, number: u32, bytes: Option<&Bytes>| {
            write!(f, "{name}:{number}")?;
            bytes.map_or(Ok(()), |bytes| write!(f, ":{}", Hex(bytes)))
        };
        match self {
            Self::Keys(walk) => write("keys", walk.db.into(), walk.after.as_ref()),
            Self::Garbage(at) => write("garbage", at.range, at.from.as_ref()),
            Self::Orphans(at) => write("orphans", at.range, at.from.as_ref()),
            Self::Cursors => write("cursors", 0, None),
            Self::Records(after) => write("records", *after, None),
        }
    }
}

impl FromStr for Position {
    type Err = BadPosition;

    fn from_str(text: &str) -> Result<Self, BadPosition> {
        let mut parts = text.splitn(3, ':');
        let (Some(name), Some(number)) = (parts.next(), parts.next()) else { return Err(BadPosition) };
        let number: u32 = number.parse().map_err(|_| BadPosition)?;
        let bytes = parts.next().map(|hex| Hex::parse(hex).ok_or(BadPosition)).transpose()?;
        let group = |from| GroupPosition { range: number, from };
        match (name, bytes) {
            ("keys", after) => {
                let db = number.try_into().map_err(|_| BadPosition)?;
                Ok(Self::Keys(KeyWalk { db, after, last_db: None }))
            }
            ("garbage", from) => Ok(Self::Garbage(group(from))),
            ("orphans", from) => Ok(Self::Orphans(group(from))),
            ("cursors", None) if number == 0 => Ok(Self::Cursors),
            ("records", None) => Ok(Self::Records(number)),
            _ => Err(BadPosition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        let group = |range, from: Option<&'static [u8]>| GroupPosition { range, from: from.map(Bytes::from_static) };
        let keys = |db, after: Option<&'static str>| KeyWalk { db, after: after.map(Bytes::from), last_db: None };
        let positions = [
            (Position::Keys(keys(0, None)), "keys:0"),
            (Position::Keys(keys(3, Some(""))), "keys:3:"),
            (Position::Keys(keys(127, Some("foo"))), "keys:127:666f6f"),
            (Position::Garbage(group(70_000, Some(b"\0\xff"))), "garbage:70000:00ff"),
            (Position::Orphans(group(1, None)), "orphans:1"),
            (Position::Cursors, "cursors:0"),
            (Position::Records(12), "records:12"),
        ];
        for (position, text) in positions {
            assert_eq!(position.to_string(), text);
            assert_eq!(text.parse(), Ok(position));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "keys", "keys:", "keys:256", "keys:0:6", "keys:0:xy", "keys:0:é", "cursors:1", "pages:0"] {
            assert_eq!(text.parse::<Position>(), Err(BadPosition), "{text}");
        }
    }
}
