//! Sizes, spans of time and secrets, as they are written in a configuration.

use std::{fmt, str::FromStr, time::Duration};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};

/// A number of bytes, written `100`, `64KiB` or `1MiB`.
///
/// `kb`, `mb` and `gb` are multiples of 1024 here, as they are in Redis' configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "Scalar", into = "String")]
pub struct Size(pub u64);

impl Size {
    /// The number of bytes, as far as this machine can count.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.trim().to_ascii_lowercase();
        // The crate takes powers of 1000 for `kb`; Redis' users do not.
        let binary = match lower.strip_suffix('b').filter(|rest| rest.ends_with(['k', 'm', 'g', 't'])) {
            Some(rest) => format!("{rest}ib"),
            None => lower,
        };
        let size: ByteSize = binary.parse().map_err(|_| format!("{text:?} is not a size such as \"64KiB\""))?;
        Ok(Self(size.as_u64()))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
        match units.into_iter().find(|(shift, _)| self.0 > 0 && self.0.trailing_zeros() >= *shift) {
            Some((shift, unit)) => write!(out, "{}{unit}", self.0 >> shift),
            None => write!(out, "{}", self.0),
        }
    }
}

/// A span of time, written `100ms`, `10s` or `1h 30m`; `0s` is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "Scalar", into = "String")]
pub struct Span(pub Duration);

impl Span {
    /// The span as a duration.
    pub fn as_duration(self) -> Duration {
        self.0
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let duration = humantime::parse_duration(text.trim());
        duration.map(Self).map_err(|_| format!("{text:?} is not a span of time such as \"100ms\" or \"10s\""))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(out)
    }
}

/// A text that must not be shown: it prints as stars, wherever it is printed.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Secret(String);

impl Secret {
    /// The text itself, for comparing.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.is_empty() { "(none)" } else { "***" })
    }
}

impl Serialize for Secret {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if self.is_empty() { "" } else { "***" })
    }
}

/// What a size or a span may be written as: a text, or for a size a bare number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Number(u64),
    Text(String),
}

impl TryFrom<Scalar> for Size {
    type Error = String;

    fn try_from(scalar: Scalar) -> Result<Self, String> {
        match scalar {
            Scalar::Number(bytes) => Ok(Self(bytes)),
            Scalar::Text(text) => text.parse(),
        }
    }
}

impl TryFrom<Scalar> for Span {
    type Error = String;

    fn try_from(scalar: Scalar) -> Result<Self, String> {
        match scalar {
            // A bare number could mean seconds or milliseconds: better to ask.
            Scalar::Number(number) => Err(format!("{number} needs a unit, such as \"{number}s\" or \"{number}ms\"")),
            Scalar::Text(text) => text.parse(),
        }
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_redis_users_write_them() {
        for (text, bytes) in [("0", 0), ("100", 100), ("64KiB", 65536), ("1gb", 1 << 30), ("512 mb", 512 << 20)] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "many", "-1", "1 parsec"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_and_spans_print_as_they_are_read() {
        for text in ["0", "100", "64KiB", "1536MiB", "1GiB"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        for text in ["0s", "100ms", "10s", "5m"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert!("10".parse::<Span>().is_err(), "a span without a unit");
    }

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::from("hunter2".to_owned());
        assert!(!format!("{secret:?}").contains("hunter2"));
        assert!(!toml::Value::try_from(&secret).unwrap().to_string().contains("hunter2"));
    }
}
