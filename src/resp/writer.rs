//! Replies as bytes.
//!
//! A RESP2 client gets what Redis gives it for RESP3's kinds: a map as a flat array of keys and values, a set and a
//! push as arrays, a double, a big number and a verbatim string as bulk strings, a boolean as 1 or 0.
//!
//! redis-protocol encodes the rare leaves. The common ones are written here, because its encoder zeroes the room first
//! and takes two to three times as long: 45 ns for a bulk string of 100 bytes (here 15), 42 ns for an integer (12),
//! 22 ns for a status (14), 12 ns for a null (5). Aggregates are ours too: its maps and sets lose the order.

use std::borrow::Cow;
use std::slice::{self, Iter};

use bytes::BytesMut;
use redis_protocol::resp3::encode::complete::extend_encode_borrowed;
use redis_protocol::resp3::types::BorrowedFrame;

use super::double::format_double;
use super::reply::{Protocol, Reply};

/// Appends `reply` to `out`. Linear in its size, and without recursion.
pub fn write(reply: &Reply, protocol: Protocol, out: &mut BytesMut) {
    let mut open = Vec::new();
    open.extend(write_head(reply, protocol, out));
    while let Some((protocol, innermost)) = open.last_mut() {
        let protocol = *protocol;
        match innermost.next() {
            Some(child) => open.extend(write_head(child, protocol, out)),
            None => _ = open.pop(),
        }
    }
}

/// Begins an array of `len` replies, which the caller writes next.
pub fn write_array_header(len: usize, out: &mut BytesMut) {
    write_length(b'*', len, out);
}

/// Begins a map of `len` pairs; the caller writes each key and its value next.
pub fn write_map_header(len: usize, protocol: Protocol, out: &mut BytesMut) {
    match protocol {
        Protocol::Resp2 => write_length(b'*', len.saturating_mul(2), out),
        Protocol::Resp3 => write_length(b'%', len, out),
    }
}

/// Begins a set of `len` replies, which the caller writes next.
pub fn write_set_header(len: usize, protocol: Protocol, out: &mut BytesMut) {
    match protocol {
        Protocol::Resp2 => write_length(b'*', len, out),
        Protocol::Resp3 => write_length(b'~', len, out),
    }
}

/// Begins a push of `len` replies, which the caller writes next.
pub fn write_push_header(len: usize, protocol: Protocol, out: &mut BytesMut) {
    match protocol {
        Protocol::Resp2 => write_length(b'*', len, out),
        Protocol::Resp3 => write_length(b'>', len, out),
    }
}

/// Appends a bulk string, for callers that stream an aggregate's items without building replies.
pub fn write_bulk(data: &[u8], out: &mut BytesMut) {
    out.reserve(data.len() + BULK_FRAME_BYTES_MAX);
    write_length(b'$', data.len(), out);
    out.extend_from_slice(data);
    out.extend_from_slice(CRLF);
}

const CRLF: &[u8] = b"\r\n";

/// A type byte and a line's end.
const LINE_FRAME_BYTES: usize = 3;

/// A type byte, 20 digits and two line ends.
const BULK_FRAME_BYTES_MAX: usize = 25;

/// Writes a leaf whole, or an aggregate's header; gives the aggregate's children and their protocol.
fn write_head<'a>(reply: &'a Reply, protocol: Protocol, out: &mut BytesMut) -> Option<(Protocol, Children<'a>)> {
    let children = match reply {
        Reply::Array(items) => {
            write_array_header(items.len(), out);
            Children::Items(items.iter())
        }
        Reply::Set(items) => {
            write_set_header(items.len(), protocol, out);
            Children::Items(items.iter())
        }
        Reply::Push(items) => {
            write_push_header(items.len(), protocol, out);
            Children::Items(items.iter())
        }
        Reply::Map(pairs) => {
            write_map_header(pairs.len(), protocol, out);
            Children::Pairs { pairs: pairs.iter(), value: None }
        }
        Reply::In(protocol, reply) => return Some((*protocol, Children::Items(slice::from_ref(&**reply).iter()))),
        leaf => {
            match protocol {
                Protocol::Resp2 => write_leaf_resp2(leaf, out),
                Protocol::Resp3 => write_leaf_resp3(leaf, out),
            }
            return None;
        }
    };
    Some((protocol, children))
}

/// Writes the kinds that RESP2 words differently, and leaves the others to [`write_shared_leaf`].
fn write_leaf_resp2(leaf: &Reply, out: &mut BytesMut) {
    match leaf {
        Reply::Null => out.extend_from_slice(b"$-1\r\n"),
        Reply::NullArray => out.extend_from_slice(b"*-1\r\n"),
        Reply::Double(value) => write_bulk(format_double(*value).as_bytes(), out),
        Reply::Bool(value) => write_number(b':', i64::from(*value), out),
        Reply::BigNumber(digits) => write_bulk(digits.as_bytes(), out),
        Reply::Verbatim(_, text) => write_bulk(text, out),
        shared => write_shared_leaf(shared, out),
    }
}

/// Writes the kinds that only RESP3 has, and leaves the others to [`write_shared_leaf`].
fn write_leaf_resp3(leaf: &Reply, out: &mut BytesMut) {
    match leaf {
        Reply::Null | Reply::NullArray => out.extend_from_slice(b"_\r\n"),
        Reply::Double(value) => write_line(b',', &format_double(*value), out),
        Reply::Bool(value) => write_frame(&BorrowedFrame::Boolean { data: *value, attributes: None }, out),
        Reply::BigNumber(digits) => {
            write_frame(&BorrowedFrame::BigNumber { data: digits.as_bytes(), attributes: None }, out);
        }
        Reply::Verbatim(format, text) => {
            write_length(b'=', format.len() + 1 + text.len(), out);
            out.extend_from_slice(format.as_bytes());
            out.extend_from_slice(b":");
            out.extend_from_slice(text);
            out.extend_from_slice(CRLF);
        }
        shared => write_shared_leaf(shared, out),
    }
}

/// Writes the kinds that look the same in both protocols.
fn write_shared_leaf(leaf: &Reply, out: &mut BytesMut) {
    match leaf {
        Reply::Bulk(data) => write_bulk(data, out),
        Reply::Int(value) => write_number(b':', *value, out),
        Reply::Status(text) => write_line(b'+', &on_one_line(text), out),
        Reply::Error(text) => {
            write_frame(&BorrowedFrame::SimpleError { data: &on_one_line(text), attributes: None }, out);
        }
        _ => {}
    }
}

/// A line break inside a status or an error would end it, and the rest would be taken for the next reply.
fn on_one_line(text: &str) -> Cow<'_, str> {
    const BREAKS: [char; 2] = ['\r', '\n'];
    if !text.contains(BREAKS) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.trim_matches(BREAKS).replace(BREAKS, " "))
}

fn write_line(kind: u8, text: &str, out: &mut BytesMut) {
    out.reserve(text.len() + LINE_FRAME_BYTES);
    out.extend_from_slice(&[kind]);
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(CRLF);
}

fn write_number(kind: u8, value: i64, out: &mut BytesMut) {
    write_line(kind, itoa::Buffer::new().format(value), out);
}

fn write_length(kind: u8, len: usize, out: &mut BytesMut) {
    write_line(kind, itoa::Buffer::new().format(len), out);
}

#[expect(clippy::expect_used, reason = "the encoder fails only for want of room, and makes the room first")]
fn write_frame(frame: &BorrowedFrame<'_>, out: &mut BytesMut) {
    extend_encode_borrowed(out, frame, false).expect("room for the frame was made");
}

/// The children of an aggregate that are still to be written.
enum Children<'a> {
    Items(Iter<'a, Reply>),
    Pairs { pairs: Iter<'a, (Reply, Reply)>, value: Option<&'a Reply> },
}

impl<'a> Iterator for Children<'a> {
    type Item = &'a Reply;

    fn next(&mut self) -> Option<&'a Reply> {
        match self {
            Children::Items(items) => items.next(),
            Children::Pairs { pairs, value } => value.take().or_else(|| {
                let (key, its_value) = pairs.next()?;
                *value = Some(its_value);
                Some(key)
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use redis_protocol::resp2::decode::decode as decode_resp2;
    use redis_protocol::resp3::decode::complete::decode as decode_resp3;

    use super::*;

    fn written(reply: &Reply, protocol: Protocol) -> String {
        let mut out = BytesMut::new();
        write(reply, protocol, &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn every_kind_in_both_protocols() {
        let pair = || vec![(Reply::bulk("b"), Reply::Int(1)), (Reply::bulk("a"), Reply::Null)];
        let cases = [
            (Reply::OK, "+OK\r\n", "+OK\r\n"),
            (Reply::error("ERR no"), "-ERR no\r\n", "-ERR no\r\n"),
            (Reply::Int(i64::MIN), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"),
            (Reply::Int(0), ":0\r\n", ":0\r\n"),
            (Reply::bulk("hello"), "$5\r\nhello\r\n", "$5\r\nhello\r\n"),
            (Reply::bulk(""), "$0\r\n\r\n", "$0\r\n\r\n"),
            (Reply::Null, "$-1\r\n", "_\r\n"),
            (Reply::NullArray, "*-1\r\n", "_\r\n"),
            (Reply::Double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n"),
            (Reply::Double(f64::NEG_INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n"),
            (Reply::Bool(true), ":1\r\n", "#t\r\n"),
            (Reply::Bool(false), ":0\r\n", "#f\r\n"),
            (
                Reply::BigNumber("12345678901234567890".into()),
                "$20\r\n12345678901234567890\r\n",
                "(12345678901234567890\r\n",
            ),
            (Reply::Verbatim("txt", Bytes::from_static(b"hi")), "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n"),
            (Reply::bulks(["a", "b"]), "*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
            (Reply::Array(vec![]), "*0\r\n", "*0\r\n"),
            (
                Reply::Map(pair()),
                "*4\r\n$1\r\nb\r\n:1\r\n$1\r\na\r\n$-1\r\n",
                "%2\r\n$1\r\nb\r\n:1\r\n$1\r\na\r\n_\r\n",
            ),
            (Reply::Set(vec![Reply::Int(7)]), "*1\r\n:7\r\n", "~1\r\n:7\r\n"),
            (Reply::Push(vec![Reply::Int(7)]), "*1\r\n:7\r\n", ">1\r\n:7\r\n"),
            (Reply::None, "", ""),
        ];
        for (reply, resp2, resp3) in cases {
            assert_eq!(written(&reply, Protocol::Resp2), resp2, "{reply:?} in RESP2");
            assert_eq!(written(&reply, Protocol::Resp3), resp3, "{reply:?} in RESP3");
        }
    }

    #[test]
    fn a_reply_may_be_in_another_protocol_than_those_around_it() {
        let map = || Reply::Map(vec![(Reply::bulk("k"), Reply::Null)]);
        let within = |protocol, reply| Reply::In(protocol, Box::new(reply));
        let reply = Reply::Array(vec![
            within(Protocol::Resp3, within(Protocol::Resp2, map())),
            within(Protocol::Resp3, map()),
            map(),
        ]);
        let (old, new) = ("*2\r\n$1\r\nk\r\n$-1\r\n", "%1\r\n$1\r\nk\r\n_\r\n");
        assert_eq!(written(&reply, Protocol::Resp2), format!("*3\r\n{old}{new}{old}"));
    }

    #[test]
    fn a_line_break_cannot_forge_a_second_reply() {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            assert_eq!(written(&Reply::error("ERR a\r\n+OK\nb"), protocol), "-ERR a  +OK b\r\n");
            assert_eq!(written(&Reply::error("ERR a\r\n"), protocol), "-ERR a\r\n");
            assert_eq!(written(&Reply::status("a\r\n+OK"), protocol), "+a  +OK\r\n");
        }
    }

    #[test]
    fn nesting_keeps_order_and_closes_every_level() {
        let inner =
            Reply::Map(vec![(Reply::bulk("k"), Reply::bulks(["x", "y"])), (Reply::Int(2), Reply::Array(vec![]))]);
        let reply = Reply::Array(vec![Reply::Int(1), inner, Reply::Int(3)]);
        let items = "$1\r\nk\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n:2\r\n*0\r\n";
        assert_eq!(written(&reply, Protocol::Resp2), format!("*3\r\n:1\r\n*4\r\n{items}:3\r\n"));
        assert_eq!(written(&reply, Protocol::Resp3), format!("*3\r\n:1\r\n%2\r\n{items}:3\r\n"));
    }

    #[test]
    fn deep_nesting_is_written_without_recursion() {
        const DEPTH: usize = 2_000;
        let reply = (0..DEPTH).fold(Reply::Int(1), |inner, _| Reply::Array(vec![inner]));
        assert_eq!(written(&reply, Protocol::Resp2), format!("{}:1\r\n", "*1\r\n".repeat(DEPTH)));
    }

    #[test]
    fn a_streamed_aggregate_equals_a_whole_one() {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let whole = Reply::Map(vec![(Reply::bulk("k"), Reply::Set(vec![Reply::bulk("v")]))]);
            let mut streamed = BytesMut::new();
            write_map_header(1, protocol, &mut streamed);
            write_bulk(b"k", &mut streamed);
            write_set_header(1, protocol, &mut streamed);
            write_bulk(b"v", &mut streamed);
            assert_eq!(written(&whole, protocol).as_bytes(), streamed);
        }
    }

    /// Replies of every kind, nested.
    fn any_reply() -> impl Strategy<Value = Reply> {
        let leaf = prop_oneof![
            any::<i64>().prop_map(Reply::Int),
            any::<Vec<u8>>().prop_map(Reply::bulk),
            "[ -~]{0,20}".prop_map(Reply::status),
            "[ -~]{1,20}".prop_map(Reply::error),
            any::<f64>().prop_map(Reply::Double),
            any::<bool>().prop_map(Reply::Bool),
            any::<u128>().prop_map(|number| Reply::BigNumber(number.to_string())),
            any::<Vec<u8>>().prop_map(|text| Reply::Verbatim("txt", text.into())),
            Just(Reply::Null),
            Just(Reply::NullArray),
        ];
        // The decoder takes only leaves for keys.
        let key = any::<Vec<u8>>().prop_map(Reply::bulk);
        leaf.prop_recursive(4, 64, 8, move |inner| {
            let items = prop::collection::vec(inner.clone(), 0..8);
            prop_oneof![
                items.prop_map(Reply::Array),
                prop::collection::vec((key.clone(), inner), 0..8).prop_map(Reply::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_independent_decoder_reads_all_that_was_written(reply in any_reply()) {
            let mut out = BytesMut::new();
            write(&reply, Protocol::Resp2, &mut out);
            prop_assert_eq!(decode_resp2(&out).unwrap().map(|(_, used)| used), Some(out.len()));
            out.clear();
            write(&reply, Protocol::Resp3, &mut out);
            prop_assert_eq!(decode_resp3(&out).unwrap().map(|(_, used)| used), Some(out.len()));
        }
    }
}
