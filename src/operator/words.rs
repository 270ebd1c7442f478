//! How bytes and times are told to people.

use std::{
    fmt::{self, Write},
    ops::AddAssign,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use bytesize::ByteSize;

use crate::keyspace::Key;

/// Bytes as redis-cli shows them: in double quotes, with escapes for what cannot be printed.
pub(super) struct Quoted<'a>(pub(super) &'a [u8]);

/// The same, cut after some bytes.
pub(super) struct Short<'a>(pub(super) &'a [u8]);

/// A key with its database.
pub(super) struct Named<'a>(pub(super) &'a Key);

/// Bytes as hexadecimal digits.
pub(super) struct Hex<'a>(pub(super) &'a [u8]);

/// Milliseconds since the Unix epoch, as date and time.
pub(super) struct Moment(pub(super) i64);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for &byte in self.0 {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(byte))?,
                b'\n' => f.write_str("\\n")?,
                b'\r' => f.write_str("\\r")?,
                b'\t' => f.write_str("\\t")?,
                0x07 => f.write_str("\\a")?,
                0x08 => f.write_str("\\b")?,
                b' '..=b'~' => f.write_char(byte.into())?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        f.write_char('"')
    }
}

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BYTES_MAX: usize = 64;

        match self.0.get(..BYTES_MAX) {
            Some(start) if self.0.len() > BYTES_MAX => write!(f, "{}… ({} bytes)", Quoted(start), self.0.len()),
            _ => Quoted(self.0).fmt(f),
        }
    }
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "db{} {}", self.0.db, Quoted(&self.0.name))
    }
}

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Hex<'_> {
    /// The bytes that these digits stand for.
    pub(super) fn parse(digits: &str) -> Option<Bytes> {
        let (pairs, rest) = digits.as_bytes().as_chunks();
        let value = |digit: u8| char::from(digit).to_digit(16);
        let byte = |&[high, low]: &[u8; 2]| u8::try_from(value(high)? << 4 | value(low)?).ok();
        if rest.is_empty() { pairs.iter().map(byte).collect() } else { None }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The last one that has a year of four digits.
        const MS_MAX: u64 = 253_402_300_799_999;

        match u64::try_from(self.0) {
            Ok(ms @ ..=MS_MAX) => humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).fmt(f),
            _ => write!(f, "{} ms", self.0),
        }
    }
}

/// A number of records, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) records: u64,
    /// Of keys and values.
    pub(super) bytes: u64,
    /// True if there are more than were counted.
    pub(super) is_least: bool,
}

impl AddAssign for Extent {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.is_least |= other.is_least;
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.is_least { " or more" } else { "" };
        write!(f, "{}{more} ({}{more})", count(self.records, "record", "records"), ByteSize(self.bytes))
    }
}

/// `singular` or `plural` with a number before it.
pub(super) fn count(number: u64, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_quoted_as_redis_cli_does() {
        assert_eq!(Quoted(b"a \"b\"\\\n\r\t\x07\x08\0\xff~").to_string(), r#""a \"b\"\\\n\r\t\a\b\x00\xff~""#);
        assert_eq!(Short(&[b'a'; 64]).to_string(), format!("\"{}\"", "a".repeat(64)));
        assert_eq!(Short(&[b'a'; 65]).to_string(), format!("\"{}\"… (65 bytes)", "a".repeat(64)));
    }

    #[test]
    fn moments_have_a_date_as_far_as_there_are_dates() {
        assert_eq!(Moment(1_700_000_000_123).to_string(), "2023-11-14T22:13:20.123Z");
        assert_eq!(Moment(253_402_300_799_999).to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Moment(i64::MAX).to_string(), "9223372036854775807 ms");
    }
}
