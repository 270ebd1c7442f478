//! Text as integers, as Redis reads them.

/// The integer that `text` is, if it is one just as Redis would write it: decimal digits, perhaps after a minus sign, no
/// plus sign, no blanks, no leading zeros, no `-0`, within 64 bits (Redis' `string2ll`).
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'0'] => return Some(0),
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    if !matches!(digits, [b'1'..=b'9', ..]) {
        return None;
    }
    digits.iter().try_fold(0_i64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(sign * digit)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_canonical_integers_are_read() {
        for text in ["", "-", "+1", "01", "-01", "-0", "00", " 1", "1 ", "1.0", "1e3", "0x1", "--1", "1\0", "a"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
        for text in ["9223372036854775808", "-9223372036854775809", "99999999999999999999999"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse_integer(b"9223372036854775807"), Some(i64::MAX));
        assert_eq!(parse_integer(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_integer(b"0"), Some(0));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(value in any::<i64>()) {
            prop_assert_eq!(parse_integer(value.to_string().as_bytes()), Some(value));
        }
    }
}
