//! Patterns as KEYS, SCAN, PSUBSCRIBE, CONFIG GET and their like take them.

/// True if all of `text` matches `pattern`.
///
/// `*` is any bytes, `?` any one byte, `[…]` one of a class, `\x` the byte `x` itself; any other byte is itself. A class
/// lists bytes, ranges such as `a-z` (either way round) and escaped bytes; `^` at its start turns it round. As in Redis
/// a class that is not closed ends with the pattern, the end of a range may be `]`, and a pattern of stars alone does
/// not match the empty text.
///
/// At most proportional to the product of both lengths, whatever the pattern: each star only ever needs to try again
/// from the last one.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut pattern, mut rest) = (pattern, text);
    // The pattern after the last star, and the text from which it was tried last.
    let mut retry: Option<(&[u8], &[u8])> = None;
    while let Some((&byte, after_byte)) = rest.split_first() {
        if let Some(after_star) = pattern.strip_prefix(b"*") {
            pattern = after_star;
            if pattern.is_empty() {
                return true;
            }
            retry = Some((pattern, rest));
            continue;
        }
        if let Some(after_item) = match_one(pattern, byte) {
            (pattern, rest) = (after_item, after_byte);
            continue;
        }
        // The star takes one byte more.
        let Some((after_star, [_, tried @ ..])) = retry else { return false };
        (pattern, rest) = (after_star, tried);
        retry = Some((after_star, tried));
    }
    !text.is_empty() && pattern.iter().all(|&byte| byte == b'*') || pattern.is_empty()
}

/// True if KEYS or SCAN with `pattern` would give `name`: as [`matches()`], but `*` selects the empty name too.
pub fn selects(pattern: &[u8], name: &[u8]) -> bool {
    pattern == b"*" || matches(pattern, name)
}

/// Matches one byte with the first item of `pattern`, which does not begin with a star. The pattern after the item.
fn match_one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (matched, rest) = match pattern {
        [] => return None,
        [b'?', rest @ ..] => (true, rest),
        [b'[', class @ ..] => match_class(class, byte),
        [b'\\', escaped, rest @ ..] => (*escaped == byte, rest),
        [literal, rest @ ..] => (*literal == byte, rest),
    };
    matched.then_some(rest)
}

/// Whether `byte` is in the class that `class` begins with, and the pattern after the class.
fn match_class(class: &[u8], byte: u8) -> (bool, &[u8]) {
    let (negated, mut class) = match class {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, class),
    };
    let mut found = false;
    loop {
        class = match class {
            [] => return (found != negated, class),
            [b'\\', escaped, rest @ ..] => {
                found |= *escaped == byte;
                rest
            }
            [b']', rest @ ..] => return (found != negated, rest),
            [first, b'-', last, rest @ ..] => {
                found |= (*first.min(last)..=*first.max(last)).contains(&byte);
                rest
            }
            [literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(pattern: &str, matching: &[&str], others: &[&str]) {
        for text in matching {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} should match {text:?}");
        }
        for text in others {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} should not match {text:?}");
        }
    }

    #[test]
    fn stars_match_any_bytes() {
        check("*", &["a", "ab*c"], &[""]);
        check("a*", &["a", "ab"], &["", "ba"]);
        check("*a", &["a", "ba", "aa"], &["ab"]);
        check("a**b*c", &["abc", "axxbyyc", "abbcbc"], &["ab", "acb"]);
        check("", &[""], &["a"]);
    }

    #[test]
    fn question_marks_match_one_byte() {
        check("h?llo", &["hello", "h?llo"], &["hllo", "heello"]);
        check("?", &["a"], &["", "ab"]);
    }

    #[test]
    fn classes_match_one_of_their_bytes() {
        check("h[ae]llo", &["hallo", "hello"], &["hillo", "hllo", "haello"]);
        check("[^e]", &["a", "^"], &["e", ""]);
        check("[b-d]", &["b", "c", "d"], &["a", "e", "-"]);
        check("[d-b]x", &["cx"], &["ax"]);
        check(r"[\]a]", &["]", "a"], &[r"\"]);
        check(r"[\a-c]", &["a", "-", "c"], &["b"]);
        check("[]a", &[], &["]a", "a"]);
        check("[^]a", &["xa"], &["a"]);
    }

    #[test]
    fn unfinished_patterns_match_as_in_redis() {
        check("[ab", &["a", "b"], &["c", "[ab"]);
        check("[^ab", &["c"], &["a"]);
        check("[", &[], &["[", "a"]);
        check("[a-]", &["a", "]", "^"], &["-", "b"]);
        check(r"a\", &[r"a\"], &["a"]);
        check(r"\*", &["*"], &["a"]);
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "a*".repeat(1000) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(10_000).as_bytes()));
    }

    /// The definition of a match, at exponential cost.
    fn matches_plainly(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|taken| matches_plainly(rest, &text[taken..])),
            (_, []) => false,
            (_, [byte, rest @ ..]) => match_one(pattern, *byte).is_some_and(|pattern| matches_plainly(pattern, rest)),
        }
    }

    proptest! {
        #[test]
        fn retrying_from_the_last_star_is_enough(pattern in r"[ab*?\[\]^\\-]{0,10}", text in "[ab^-]{1,10}") {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(pattern, text), matches_plainly(pattern, text));
        }
    }
}
