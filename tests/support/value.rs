//! A reply as it came over the wire, kept so exactly that two replies are equal only if their frames are.

use std::fmt;
use std::io::{self, BufRead, Error, ErrorKind, Read};

/// One frame of RESP2 or RESP3. The nulls of both are three different values, and a double keeps its text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    /// `$-1`
    NilBulk,
    /// `*-1`
    NilArray,
    /// `_`
    Null,
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Set(Vec<Value>),
    Push(Vec<Value>),
    Double(String),
    Boolean(bool),
    BigNumber(String),
    /// The three letters of the format, and the text.
    Verbatim(String, Vec<u8>),
}

impl Value {
    pub(crate) fn ok() -> Self {
        Self::Simple("OK".into())
    }

    pub(crate) fn bulk(text: impl AsRef<[u8]>) -> Self {
        Self::Bulk(text.as_ref().to_vec())
    }

    pub(crate) fn error(text: &str) -> Self {
        Self::Error(text.into())
    }

    /// The bytes of a string of any kind; fails the test on anything else.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Simple(text) | Self::Double(text) | Self::BigNumber(text) => text.as_bytes(),
            Self::Bulk(bytes) | Self::Verbatim(_, bytes) => bytes,
            other => panic!("not a string: {other}"),
        }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    pub(crate) fn integer(&self) -> i64 {
        match self {
            Self::Integer(number) => *number,
            other => panic!("not an integer: {other}"),
        }
    }

    /// The elements of an array, a set or a push; fails the test on anything else.
    pub(crate) fn elements(&self) -> &[Value] {
        match self {
            Self::Array(values) | Self::Set(values) | Self::Push(values) => values,
            other => panic!("not an array: {other}"),
        }
    }

    /// Reads one frame.
    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let line = read_line(from)?;
        let (kind, text) = line.split_at_checked(1).ok_or_else(|| malformed(&line))?;
        Ok(match kind {
            "+" => Self::Simple(text.into()),
            "-" => Self::Error(text.into()),
            ":" => Self::Integer(number(text)?),
            "," => Self::Double(text.into()),
            "#" => Self::Boolean(text == "t"),
            "(" => Self::BigNumber(text.into()),
            "_" => Self::Null,
            "$" if text == "-1" => Self::NilBulk,
            "$" => Self::Bulk(read_bulk(from, text)?),
            "=" => read_verbatim(from, text)?,
            "*" if text == "-1" => Self::NilArray,
            "*" => Self::Array(read_many(from, text)?),
            "~" => Self::Set(read_many(from, text)?),
            ">" => Self::Push(read_many(from, text)?),
            "%" => Self::Map(read_pairs(from, text)?),
            _ => return Err(malformed(&line)),
        })
    }
}

fn malformed(line: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("malformed reply: {line:?}"))
}

fn number<T: std::str::FromStr>(text: &str) -> io::Result<T> {
    text.parse().map_err(|_| malformed(text))
}

fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let Some(text) = line.strip_suffix(b"\r\n") else { return Err(malformed(&String::from_utf8_lossy(&line))) };
    // Errors quote what the client sent, which need not be text.
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn read_bulk(from: &mut impl BufRead, length: &str) -> io::Result<Vec<u8>> {
    let length: usize = number(length)?;
    let mut bytes = Vec::new();
    from.take(length as u64 + 2).read_to_end(&mut bytes)?;
    if bytes.len() < length + 2 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    if bytes.split_off(length) != b"\r\n" {
        return Err(malformed("a bulk string longer than its length"));
    }
    Ok(bytes)
}

fn read_verbatim(from: &mut impl BufRead, length: &str) -> io::Result<Value> {
    let mut format = read_bulk(from, length)?;
    if format.get(3) != Some(&b':') {
        return Err(malformed("a verbatim string without a format"));
    }
    let text = format.split_off(4);
    format.truncate(3);
    Ok(Value::Verbatim(String::from_utf8_lossy(&format).into_owned(), text))
}

fn read_many(from: &mut impl BufRead, count: &str) -> io::Result<Vec<Value>> {
    let count: usize = number(count)?;
    (0..count).map(|_| Value::read(from)).collect()
}

fn read_pairs(from: &mut impl BufRead, count: &str) -> io::Result<Vec<(Value, Value)>> {
    let count: usize = number(count)?;
    (0..count).map(|_| Ok((Value::read(from)?, Value::read(from)?))).collect()
}

/// Bytes as a quoted string with escapes, cut when long.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    const SHOWN: usize = 120;
    let shown = bytes.get(..SHOWN).unwrap_or(bytes);
    let rest = bytes.len() - shown.len();
    let more = if rest > 0 { format!("… and {rest} bytes") } else { String::new() };
    format!("\"{}\"{more}", shown.escape_ascii())
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(text) => write!(f, "+{text}"),
            Self::Error(text) => write!(f, "-{text}"),
            Self::Integer(number) => write!(f, ":{number}"),
            Self::Bulk(bytes) => write!(f, "{}", quoted(bytes)),
            Self::NilBulk => write!(f, "nil bulk"),
            Self::NilArray => write!(f, "nil array"),
            Self::Null => write!(f, "null"),
            Self::Array(values) => write_many(f, "[", values, "]"),
            Self::Set(values) => write_many(f, "~[", values, "]"),
            Self::Push(values) => write_many(f, ">[", values, "]"),
            Self::Map(pairs) => {
                write!(f, "{{")?;
                for (key, value) in pairs {
                    write!(f, "{key}: {value}, ")?;
                }
                write!(f, "}}")
            }
            Self::Double(text) => write!(f, ",{text}"),
            Self::Boolean(truth) => write!(f, "{truth}"),
            Self::BigNumber(text) => write!(f, "({text}"),
            Self::Verbatim(format, text) => write!(f, "={format}:{}", quoted(text)),
        }
    }
}

fn write_many(f: &mut fmt::Formatter<'_>, open: &str, values: &[Value], close: &str) -> fmt::Result {
    write!(f, "{open}")?;
    for (at, value) in values.iter().enumerate() {
        write!(f, "{}{value}", if at == 0 { "" } else { ", " })?;
    }
    write!(f, "{close}")
}
