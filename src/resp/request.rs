//! Requests out of a connection's bytes.
//!
//! A request is an array of bulk strings, `*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`, or an inline line, `GET k\r\n`. What counts
//! as malformed, and when, is Redis 7.2's (`processMultibulkBuffer`, `processInlineBuffer`), down to its indulgences:
//! the byte after a header's `\r` and the two bytes after an argument are skipped unseen, and counts below one are no
//! request. Where Redis' verdict depends on how the bytes were cut (a line beyond the limit passes if its end arrives
//! in the same read; a zero byte hides the rest of the buffer from it), ours does not.

use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};

use super::inline;
use super::integer::parse_integer;

/// A request as it was sent: the command's name and its arguments, at least one in all.
///
/// Arguments of an array are slices of the connection's read buffer: nothing is copied, but each keeps that whole
/// buffer in memory. Whoever keeps one beyond the request (a cache, a subscription, a watched key) copies its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The name first.
    pub args: Vec<Bytes>,
    /// How many bytes it took on the wire.
    pub bytes: usize,
}

/// How large the parts of a request may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Arguments in a request, with its name.
    pub args_max: usize,
    /// Bytes of one argument (Redis' `proto-max-bulk-len`).
    pub bulk_bytes_max: usize,
    /// Bytes of an inline request or of a header, without the line's end.
    pub inline_bytes_max: usize,
}

/// Redis' limits: 2^31-1 arguments of 512 MiB, and lines of 64 KiB.
impl Default for Limits {
    fn default() -> Limits {
        Limits { args_max: 0x7fff_ffff, bulk_bytes_max: 512 << 20, inline_bytes_max: 64 << 10 }
    }
}

/// Why a connection's bytes are no request. The caller replies `-ERR` with this text and closes the connection: there
/// is no telling where the next request would begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProtocolError {
    /// No end of line within the limit.
    #[error("Protocol error: too big inline request")]
    InlineTooBig,
    /// An inline request with a quote left open, or closed in the middle of an argument.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// A count of arguments that does not end within the limit.
    #[error("Protocol error: too big mbulk count string")]
    CountTooBig,
    /// A count of arguments that is no integer, or more than the limit.
    #[error("Protocol error: invalid multibulk length")]
    InvalidCount,
    /// More arguments than a client may send before it has authenticated.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedCount,
    /// Something else where an argument should begin. A byte beyond ASCII is shown as U+FFFD, as errors are text.
    #[error("Protocol error: expected '$', got '{}'", if .0.is_ascii() { char::from(*.0) } else { char::REPLACEMENT_CHARACTER })]
    ExpectedBulk(u8),
    /// An argument's length that does not end within the limit.
    #[error("Protocol error: too big bulk count string")]
    LengthTooBig,
    /// An argument's length that is no integer, negative, or more than the limit.
    #[error("Protocol error: invalid bulk length")]
    InvalidLength,
    /// A longer argument than a client may send before it has authenticated.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedLength,
}

/// Finds the requests in one connection's read buffer.
///
/// It remembers how far it has come, so a request costs time linear in its bytes however they are cut up: a header's
/// bytes are looked at once, an argument's never. It does not recurse. Besides the buffer itself it holds 16 bytes for
/// each argument of the request in progress.
#[derive(Debug)]
pub struct Scanner {
    limits: Limits,
    authenticated: bool,
    /// Where in the buffer the next header or argument begins; what stands before it belongs to the request in progress.
    position: usize,
    /// How many bytes from `position` on are known not to end the line.
    searched: usize,
    /// Where in the buffer the arguments found so far are.
    args: Vec<Range<usize>>,
    /// How many arguments are still to come; 0 between requests.
    args_missing: usize,
    /// The length of the argument whose bytes come next, if its header has been read.
    arg_bytes: Option<usize>,
    /// How many bytes that argument lacked when the buffer was last looked at.
    bytes_missing: usize,
    #[cfg(test)]
    bytes_examined: usize,
}

/// Before it has authenticated, a client may send this many arguments…
const UNAUTHENTICATED_ARGS_MAX: usize = 10;
/// …of this many bytes.
const UNAUTHENTICATED_BULK_BYTES_MAX: usize = 16_384;
/// Room made for arguments that were only announced.
const ARGS_RESERVED_MAX: usize = 1024;
/// Room kept for the next request's arguments, so that an idle connection holds little.
const ARGS_KEPT_MAX: usize = 64;
/// What [`Scanner::wanted`] says at most, so that memory grows with what arrives, not with what was announced.
const WANTED_BYTES_MAX: usize = 256 << 10;

impl Scanner {
    /// A scanner at the start of a connection that has not authenticated.
    pub fn new(limits: Limits) -> Scanner {
        Scanner {
            limits,
            authenticated: false,
            position: 0,
            searched: 0,
            args: Vec::new(),
            args_missing: 0,
            arg_bytes: None,
            bytes_missing: 0,
            #[cfg(test)]
            bytes_examined: 0,
        }
    }

    /// Says whether the client has authenticated, or need not: until then, its requests may have 10 arguments of
    /// 16,384 bytes. This holds from the next header on, so an `AUTH` must be answered before more is scanned.
    pub fn set_authenticated(&mut self, authenticated: bool) {
        self.authenticated = authenticated;
    }

    /// Takes the next request out of `buffer`, which must be the same one every time, and only ever be added to.
    /// `None`: it is not complete. After an error the scanner is of no further use.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Request>, ProtocolError> {
        while self.args_missing == 0 {
            let scanned = match buffer.first() {
                None => return Ok(None),
                Some(b'*') => self.scan_count(buffer)?,
                Some(_) => self.scan_inline(buffer)?,
            };
            match scanned {
                Start::Incomplete => return Ok(None),
                Start::Inline(request) => return Ok(Some(request)),
                Start::Empty | Start::Array => {}
            }
        }
        while self.args_missing > 0 {
            if !self.scan_arg(buffer)? {
                return Ok(None);
            }
        }
        Ok(Some(self.take(buffer)))
    }

    /// How many bytes the request in progress needs at least, as far as its headers tell, up to 256 KiB: the room to
    /// make before reading on. 0: nothing is known.
    pub fn wanted(&self) -> usize {
        self.bytes_missing.min(WANTED_BYTES_MAX)
    }

    /// Reads `*count\r\n`.
    fn scan_count(&mut self, buffer: &mut BytesMut) -> Result<Start, ProtocolError> {
        let Some(header) = self.header(buffer, ProtocolError::CountTooBig)? else { return Ok(Start::Incomplete) };
        let count = header.get(1..).and_then(parse_integer).ok_or(ProtocolError::InvalidCount)?;
        let count = usize::try_from(count).unwrap_or(0);
        if count > self.limits.args_max {
            return Err(ProtocolError::InvalidCount);
        }
        if count > UNAUTHENTICATED_ARGS_MAX && !self.authenticated {
            return Err(ProtocolError::UnauthenticatedCount);
        }
        if count == 0 {
            buffer.advance(std::mem::take(&mut self.position));
            return Ok(Start::Empty);
        }
        self.args.reserve(count.min(ARGS_RESERVED_MAX));
        self.args_missing = count;
        Ok(Start::Array)
    }

    /// Reads `$length\r\n` and as many bytes and a line's end; false if they have not all arrived.
    fn scan_arg(&mut self, buffer: &BytesMut) -> Result<bool, ProtocolError> {
        let length = match self.arg_bytes {
            Some(length) => length,
            None => {
                let Some(length) = self.scan_length(buffer)? else { return Ok(false) };
                *self.arg_bytes.insert(length)
            }
        };
        let start = self.position;
        let end = start.saturating_add(length);
        let next = end.saturating_add(2);
        self.bytes_missing = next.saturating_sub(buffer.len());
        if self.bytes_missing > 0 {
            return Ok(false);
        }
        self.args.push(start..end);
        self.args_missing -= 1;
        self.arg_bytes = None;
        self.position = next;
        Ok(true)
    }

    /// Reads `$length\r\n`.
    fn scan_length(&mut self, buffer: &BytesMut) -> Result<Option<usize>, ProtocolError> {
        let Some(header) = self.header(buffer, ProtocolError::LengthTooBig)? else { return Ok(None) };
        let digits = match header {
            [b'$', digits @ ..] => digits,
            [other, ..] => return Err(ProtocolError::ExpectedBulk(*other)),
            [] => return Err(ProtocolError::ExpectedBulk(b'\r')),
        };
        let length = parse_integer(digits).and_then(|length| usize::try_from(length).ok());
        let length = length.filter(|length| *length <= self.limits.bulk_bytes_max);
        let length = length.ok_or(ProtocolError::InvalidLength)?;
        if length > UNAUTHENTICATED_BULK_BYTES_MAX && !self.authenticated {
            return Err(ProtocolError::UnauthenticatedLength);
        }
        Ok(Some(length))
    }

    /// Reads a line that is no array.
    fn scan_inline(&mut self, buffer: &mut BytesMut) -> Result<Start, ProtocolError> {
        let Some(length) = self.find(b'\n', buffer, ProtocolError::InlineTooBig)? else {
            return Ok(Start::Incomplete);
        };
        self.searched = 0;
        let line = buffer.split_to(length);
        buffer.advance(1);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let args = inline::split(line).ok_or(ProtocolError::UnbalancedQuotes)?;
        if args.is_empty() {
            return Ok(Start::Empty);
        }
        Ok(Start::Inline(Request { args, bytes: length + 1 }))
    }

    /// The header at `position` without its end; moves behind it.
    fn header<'b>(&mut self, buffer: &'b [u8], too_big: ProtocolError) -> Result<Option<&'b [u8]>, ProtocolError> {
        let Some(length) = self.find(b'\r', buffer, too_big)? else { return Ok(None) };
        let end = self.position + length;
        if buffer.len() < end + 2 {
            return Ok(None);
        }
        let header = buffer.get(self.position..end);
        self.position = end + 2;
        self.searched = 0;
        Ok(header)
    }

    /// How far from `position` the line's `end` is; goes on where it left off.
    fn find(&mut self, end: u8, buffer: &[u8], too_big: ProtocolError) -> Result<Option<usize>, ProtocolError> {
        let line_max = self.limits.inline_bytes_max.saturating_add(1);
        let unseen = buffer.get(self.position + self.searched..).unwrap_or_default();
        let unseen = unseen.get(..line_max - self.searched).unwrap_or(unseen);
        let found = unseen.iter().position(|byte| *byte == end);
        let seen = found.unwrap_or(unseen.len());
        self.searched += seen;
        #[cfg(test)]
        {
            self.bytes_examined += seen + usize::from(found.is_some());
        }
        match found {
            Some(_) => Ok(Some(self.searched)),
            None if self.searched == line_max => Err(too_big),
            None => Ok(None),
        }
    }

    /// Takes the request that is now complete out of the buffer.
    fn take(&mut self, buffer: &mut BytesMut) -> Request {
        let frame = buffer.split_to(std::mem::take(&mut self.position)).freeze();
        let args = self.args.drain(..).map(|range| frame.slice(range)).collect();
        self.args.shrink_to(ARGS_KEPT_MAX);
        Request { args, bytes: frame.len() }
    }
}

/// What stands at the beginning of the buffer.
enum Start {
    Incomplete,
    /// A blank line, or a count below one.
    Empty,
    /// An array whose arguments come next.
    Array,
    Inline(Request),
}

#[cfg(test)]
mod tests;
