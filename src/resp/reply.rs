//! What a command answers.

use std::borrow::Cow;

use bytes::Bytes;

/// The version of the protocol that a connection has agreed on; RESP2 until it says `HELLO 3`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// What every client speaks: strings, errors, integers, arrays and nulls.
    #[default]
    Resp2,
    /// Adds maps, sets, doubles, booleans, big numbers, verbatim strings and pushes.
    Resp3,
}

/// One reply, in RESP3's terms. [`writer`](super::writer) says how each looks to a RESP2 client.
///
/// Comparing, cloning and dropping recurse, so whoever builds a reply from a client's data (a script's nested
/// tables) bounds its depth.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A short line such as `OK`. Line breaks inside become spaces.
    Status(Cow<'static, str>),
    /// The whole text with its code, such as `ERR syntax error`. Line breaks inside become spaces.
    Error(Cow<'static, str>),
    /// A signed integer.
    Int(i64),
    /// Bytes of any value.
    Bulk(Bytes),
    /// No value. RESP2 knows two nulls: this is the null string.
    Null,
    /// No value where RESP2 clients expect an array: `EXEC` after a touched `WATCH`, a blocking pop that timed out.
    NullArray,
    /// A floating point number, written by [`format_double`](super::double::format_double).
    Double(f64),
    /// True or false; 1 or 0 in RESP2.
    Bool(bool),
    /// An integer of any size, as decimal digits.
    BigNumber(String),
    /// Text for people, with the three letters that name its format: `txt` or `mkd`.
    Verbatim(&'static str, Bytes),
    /// Replies in order.
    Array(Vec<Reply>),
    /// Pairs of key and value, in the order given.
    Map(Vec<(Reply, Reply)>),
    /// Replies whose order means nothing.
    Set(Vec<Reply>),
    /// Data that is no answer to a request: messages of channels, invalidations.
    Push(Vec<Reply>),
    /// A reply in this protocol, whatever those around it are in: `EXEC` has both kinds where `HELLO` is among its commands.
    In(Protocol, Box<Reply>),
    /// Nothing is sent: the reply under `CLIENT REPLY OFF`, or one that was streamed already. Only ever a whole
    /// reply, never part of an aggregate.
    None,
}

impl Reply {
    /// The commonest reply.
    pub const OK: Reply = Reply::Status(Cow::Borrowed("OK"));

    /// A status line.
    pub fn status(text: impl Into<Cow<'static, str>>) -> Reply {
        Reply::Status(text.into())
    }

    /// An error; `text` begins with its code.
    pub fn error(text: impl Into<Cow<'static, str>>) -> Reply {
        Reply::Error(text.into())
    }

    /// A string of bytes.
    pub fn bulk(bytes: impl Into<Bytes>) -> Reply {
        Reply::Bulk(bytes.into())
    }

    /// A number of things.
    pub fn count(count: impl TryInto<i64>) -> Reply {
        Reply::Int(count.try_into().unwrap_or(i64::MAX))
    }

    /// An array of strings of bytes.
    pub fn bulks<B: Into<Bytes>>(items: impl IntoIterator<Item = B>) -> Reply {
        Reply::Array(items.into_iter().map(Reply::bulk).collect())
    }

    /// About the bytes that the reply takes on the wire and in memory, for those who must bound it.
    pub fn bytes(&self) -> usize {
        /// A type byte, a length and two line ends.
        const FRAME_BYTES: usize = 16;

        FRAME_BYTES
            + match self {
                Reply::Status(text) | Reply::Error(text) => text.len(),
                Reply::Bulk(bytes) | Reply::Verbatim(_, bytes) => bytes.len(),
                Reply::BigNumber(digits) => digits.len(),
                Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => items.iter().map(Reply::bytes).sum(),
                Reply::Map(pairs) => pairs.iter().map(|(key, value)| key.bytes() + value.bytes()).sum(),
                Reply::In(_, reply) => reply.bytes(),
                Reply::Int(_) | Reply::Double(_) | Reply::Bool(_) | Reply::Null | Reply::NullArray | Reply::None => 0,
            }
    }

    /// Whether this is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }
}

impl From<i64> for Reply {
    fn from(value: i64) -> Reply {
        Reply::Int(value)
    }
}

/// `None` is the null string.
impl From<Option<Bytes>> for Reply {
    fn from(value: Option<Bytes>) -> Reply {
        value.map_or(Reply::Null, Reply::Bulk)
    }
}

impl From<Vec<Reply>> for Reply {
    fn from(items: Vec<Reply>) -> Reply {
        Reply::Array(items)
    }
}
