use std::{borrow::Cow, result};

use bytes::Bytes;
use respgate_backend_api as backend;

use crate::{keyspace, resp::Reply, types};

/// The result of a command.
pub type Result<T> = result::Result<T, Error>;

/// Why a command gives no ordinary reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The client asked for something that cannot be. The text is what it is told; the command wrote nothing.
    User(Cow<'static, str>),
    /// The store failed, and with it the whole unit.
    Store(backend::Error),
    /// The unit changes the map of databases, which must have been announced for so long.
    Unannounced {
        /// Milliseconds of the store's time.
        wait_ms: u64,
    },
}

impl Error {
    /// Arguments that do not follow the command's grammar.
    pub const SYNTAX: Self = Self::text("ERR syntax error");
    /// The key holds another type.
    pub const WRONG_TYPE: Self = Self::text("WRONGTYPE Operation against a key holding the wrong kind of value");
    /// A number was expected, among the arguments or in the value.
    pub const NOT_INTEGER: Self = Self::text("ERR value is not an integer or out of range");
    /// A floating-point number was expected, among the arguments or in the value.
    pub const NOT_FLOAT: Self = Self::text("ERR value is not a valid float");
    /// A number that must not be negative is.
    pub const NOT_POSITIVE: Self = Self::text("ERR value is out of range, must be positive");
    /// A position that does not exist.
    pub const INDEX_OUT_OF_RANGE: Self = Self::text("ERR index out of range");
    /// An increment would leave the range of 64 bits.
    pub const OVERFLOW: Self = Self::text("ERR increment or decrement would overflow");
    /// An increment would give NaN or infinity.
    pub const NOT_FINITE: Self = Self::text("ERR increment would produce NaN or Infinity");
    /// A score would be NaN.
    pub const NOT_A_NUMBER: Self = Self::text("ERR resulting score is not a number (NaN)");
    /// The key does not exist, where it must.
    pub const NO_SUCH_KEY: Self = Self::text("ERR no such key");
    /// A value would be longer than `proto-max-bulk-len`.
    pub const STRING_TOO_LONG: Self = Self::text("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    /// A position before the beginning of a string.
    pub const OFFSET_OUT_OF_RANGE: Self = Self::text("ERR offset is out of range");
    /// SELECT and its like with a number that no database has.
    pub const DB_OUT_OF_RANGE: Self = Self::text("ERR DB index is out of range");
    /// A command before AUTH.
    pub const NO_AUTH: Self = Self::text("NOAUTH Authentication required.");

    /// An error with a fixed text, its code included.
    pub const fn text(text: &'static str) -> Self {
        Self::User(Cow::Borrowed(text))
    }

    /// An error with this text, its code included.
    pub fn user(text: impl Into<Cow<'static, str>>) -> Self {
        Self::User(text.into())
    }

    /// A command that does not exist. Redis shows the first 128 bytes of the name and of the arguments.
    pub fn unknown_command(name: &[u8], args: &[Bytes]) -> Self {
        const SHOWN_BYTES_MAX: usize = 128;
        let (mut shown, mut shown_bytes) = (String::new(), 0);
        for arg in args {
            if shown_bytes >= SHOWN_BYTES_MAX {
                break;
            }
            let part = beginning(arg, SHOWN_BYTES_MAX - shown_bytes);
            shown_bytes += part.len() + "'' ".len();
            shown.push_str(&format!("'{}' ", String::from_utf8_lossy(part)));
        }
        let name = printable(name, SHOWN_BYTES_MAX);
        Self::user(format!("ERR unknown command '{name}', with args beginning with: {shown}"))
    }

    /// A subcommand that does not exist.
    pub fn unknown_subcommand(container: &str, name: &[u8]) -> Self {
        let name = printable(name, 128);
        let container = container.to_ascii_uppercase();
        Self::user(format!("ERR unknown subcommand '{name}'. Try {container} HELP."))
    }

    /// An option that does not exist, for commands that name it.
    pub fn unsupported_option(word: &[u8]) -> Self {
        Self::user(format!("ERR Unsupported option {}", printable(word, word.len())))
    }

    /// Too few or too many arguments for `name`, which is `container|subcommand` for a subcommand.
    pub fn wrong_arity(name: &str) -> Self {
        Self::user(format!("ERR wrong number of arguments for '{name}' command"))
    }

    /// An expiry that is not above zero or leaves the range of 64 bits.
    pub fn invalid_expire(name: &str) -> Self {
        Self::user(format!("ERR invalid expire time in '{name}' command"))
    }

    /// True if several commands that failed together may succeed one by one. Nothing has been written then.
    pub(super) fn may_split(&self) -> bool {
        matches!(self, Self::Store(backend::Error::Conflict | backend::Error::TooLarge(_) | backend::Error::Corrupt(_)))
    }

    /// What the client is told.
    pub fn into_reply(self) -> Reply {
        match self {
            Self::User(text) => Reply::Error(text),
            Self::Store(error) => Reply::error(store_text(&error)),
            Self::Unannounced { .. } => Reply::error(store_text(&backend::Error::Conflict)),
        }
    }
}

/// The beginning of what a client sent, as text for an error.
fn printable(bytes: &[u8], bytes_max: usize) -> Cow<'_, str> {
    String::from_utf8_lossy(beginning(bytes, bytes_max))
}

/// At most the first `bytes_max` bytes. As in Redis, whose errors are C strings, it ends before a zero byte.
fn beginning(bytes: &[u8], bytes_max: usize) -> &[u8] {
    bytes.get(..bytes_max).unwrap_or(bytes).split(|&byte| byte == 0).next().unwrap_or_default()
}

/// What a client is told when the store fails. The code says what it can do: TRYAGAIN, LOADING (try later), MISCONF (an
/// operator must act) or ERR.
fn store_text(error: &backend::Error) -> String {
    match error {
        backend::Error::Conflict => "TRYAGAIN the key is being changed by too many clients at once".to_owned(),
        backend::Error::ReadOnly(cause) => format!("MISCONF the store takes no writes: {cause}"),
        backend::Error::NotReady(cause) => format!("LOADING Respgate is waiting for its store: {cause}"),
        other => format!("ERR {other}"),
    }
}

impl From<keyspace::Error> for Error {
    fn from(error: keyspace::Error) -> Self {
        match error {
            keyspace::Error::WrongType => Self::WRONG_TYPE,
            keyspace::Error::NoSuchDatabase => Self::DB_OUT_OF_RANGE,
            // The command fails, and its neighbours go on.
            keyspace::Error::Sidecar(cause) => Self::user(format!("ERR sidecar unavailable: {cause}")),
            keyspace::Error::Unannounced { wait_ms } => Self::Unannounced { wait_ms },
            keyspace::Error::Store(error) => Self::Store(error),
        }
    }
}

impl From<types::Error> for Error {
    fn from(error: types::Error) -> Self {
        match error {
            types::Error::NotInteger => Self::NOT_INTEGER,
            types::Error::NotFloat => Self::NOT_FLOAT,
            types::Error::Overflow => Self::OVERFLOW,
            types::Error::NotFinite => Self::NOT_FINITE,
            types::Error::NotANumber => Self::NOT_A_NUMBER,
            types::Error::StringTooLong => Self::STRING_TOO_LONG,
            types::Error::IndexOutOfRange => Self::INDEX_OUT_OF_RANGE,
            types::Error::NoSuchKey => Self::NO_SUCH_KEY,
            types::Error::NoSuchEncodeVersion => Self::text("ERR a key of this type has no such encode-version"),
            types::Error::DigestTaken => Self::text("ERR another member of the sorted set has the same MD5"),
            types::Error::Keyspace(error) => error.into(),
        }
    }
}

impl From<backend::Error> for Error {
    fn from(error: backend::Error) -> Self {
        Self::Store(error)
    }
}
