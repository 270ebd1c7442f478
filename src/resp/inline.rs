//! Inline requests: a line of words, for people with a terminal and for health checks.
//!
//! The rules are those of Redis' `sdssplitargs`. Words are separated by blanks. `"…"` may hold blanks and the escapes
//! `\n \r \t \b \a`, `\xHH` for any byte, and a backslash before any other character for itself. `'…'` may hold blanks
//! and one escape, `\'`. A closing quote ends its word, so a blank or the line's end must follow.

use bytes::Bytes;

/// The words of `line`; `None` if quotes do not match.
pub(super) fn split(line: &[u8]) -> Option<Vec<Bytes>> {
    let mut words = Vec::new();
    let mut rest = skip_blanks(line);
    while !rest.is_empty() {
        let mut word = Vec::new();
        rest = skip_blanks(take_word(rest, &mut word)?);
        words.push(Bytes::from(word));
    }
    Some(words)
}

/// The bytes that one quoted word stands for; `None` if `text` is not one word.
pub fn unquote(text: &[u8]) -> Option<Bytes> {
    let [word] = <[Bytes; 1]>::try_from(split(text)?).ok()?;
    Some(word)
}

/// What C's `isspace` takes for blank.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn skip_blanks(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_blank(*first)
    {
        text = rest;
    }
    text
}

/// Appends the word that `rest` begins with to `word`, and gives what follows it.
fn take_word<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [] | [b' ' | b'\t' | b'\r' | b'\n', ..] => return Some(rest),
            [b'"', quoted @ ..] => return take_double_quoted(quoted, word),
            [b'\'', quoted @ ..] => return take_single_quoted(quoted, word),
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn take_double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let byte;
        (byte, rest) = match rest {
            [] => return None,
            [b'"', after @ ..] => return end_of_word(after),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex_value(*high) << 4 | hex_value(*low), after)
            }
            [b'\\', escaped, after @ ..] => (unescape(*escaped), after),
            [byte, after @ ..] => (*byte, after),
        };
        word.push(byte);
    }
}

fn take_single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let byte;
        (byte, rest) = match rest {
            [] => return None,
            [b'\'', after @ ..] => return end_of_word(after),
            [b'\\', b'\'', after @ ..] => (b'\'', after),
            [byte, after @ ..] => (*byte, after),
        };
        word.push(byte);
    }
}

/// `rest`, if a word may end before it.
fn end_of_word(rest: &[u8]) -> Option<&[u8]> {
    rest.first().is_none_or(|byte| is_blank(*byte)).then_some(rest)
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        itself => itself,
    }
}

/// The value of a hexadecimal digit.
fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        letter => (letter | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_and_quotes() {
        let cases: [(&[u8], &[&[u8]]); 16] = [
            (b"", &[]),
            (b" \t\x0b\x0c ", &[]),
            (b"PING", &[b"PING"]),
            (b"  SET  k\tv  ", &[b"SET", b"k", b"v"]),
            (b"a\rb", &[b"a", b"b"]),
            (b"a\x0bb", &[b"a\x0bb"]),
            (b"\"\" ''", &[b"", b""]),
            (b"\"a b\" 'c d'", &[b"a b", b"c d"]),
            (b"foo\"bar baz\"", &[b"foobar baz"]),
            (b"\"\\x41\\xfF\\n\\r\\t\\b\\a\\q\\\\\\\"\"", &[b"A\xff\n\r\t\x08\x07q\\\""]),
            (b"\"\\xZZ\\x4\"", &[b"xZZx4"]),
            (b"'a\\'\\n\\ '", &[b"a'\\n\\ "]),
            (b"\"'\" '\"'", &[b"'", b"\""]),
            (b"\"a\"\x0cb", &[b"a", b"b"]),
            (b"a\0b \xff", &[b"a\0b", b"\xff"]),
            (b"a\\nb", &[b"a\\nb"]),
        ];
        for (line, words) in cases {
            assert_eq!(split(line).unwrap(), words, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn quotes_must_match_and_end_their_word() {
        let lines =
            ["\"", "'", "\"a", "'a", "a\"", "\"a\\\"", "'a\\'", "\"a\"b", "'a'b", "\"a\"\"b\"", "\"\\", "\"\\x4"];
        for line in lines {
            assert_eq!(split(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_quoted(words in prop::collection::vec(any::<Vec<u8>>(), 0..5)) {
            let quote = |word: &Vec<u8>| word.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
            let line: String = words.iter().map(|word| format!(" \"{}\"", quote(word))).collect();
            prop_assert_eq!(split(line.as_bytes()).unwrap(), words);
        }

        #[test]
        fn any_line_is_split_or_refused(line in any::<Vec<u8>>()) {
            let _ = split(&line);
        }
    }
}
