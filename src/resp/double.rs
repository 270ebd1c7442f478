//! Doubles as text, and text as doubles, as Redis 7.2 does both.

/// The text of `value` in replies and stored scores: the fewest digits that read back as the same double.
///
/// The layout is that of Redis 7.2 (`d2string`, and `fpconv_dtoa` below it): whole numbers up to 2^62 plainly; others
/// plainly while that takes few zeros or few leading digits, else as `1.5e+21`. Redis searches the digits by Grisu2,
/// which in about one of a thousand doubles finds a digit more than needed; ours then is the shorter text of the same
/// double.
pub fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    if value.fract() == 0.0 && value.abs() <= WHOLE_MAX {
        return itoa::Buffer::new().format(value as i64).to_owned();
    }
    lay_out(&format!("{value:e}"))
}

/// 2^62: whole numbers up to here are written as integers.
const WHOLE_MAX: f64 = 4_611_686_018_427_387_904.0;

/// Lays out `-d.ddde-x`, which Rust writes with the fewest digits, as Redis does.
fn lay_out(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let rest_len = i32::try_from(rest.len()).unwrap_or(i32::MAX);
    // How many zeros follow the last digit; negative: how many digits stand behind the point.
    let zeros = exponent - rest_len;

    let mut text = String::with_capacity(TEXT_BYTES_MAX);
    text.push_str(sign);
    if zeros >= 0 && exponent < rest_len + 8 {
        text.extend([first, rest]);
        text.extend((0..zeros).map(|_| '0'));
    } else if zeros < 0 && (zeros > -7 || exponent.abs() < 4) {
        if let Ok(before_point) = usize::try_from(exponent) {
            let (whole, fraction) = rest.split_at_checked(before_point).unwrap_or((rest, ""));
            text.extend([first, whole, ".", fraction]);
        } else {
            text.push_str("0.");
            text.extend((exponent..-1).map(|_| '0'));
            text.extend([first, rest]);
        }
    } else {
        text.extend([mantissa, if exponent < 0 { "e-" } else { "e+" }]);
        text.push_str(itoa::Buffer::new().format(exponent.unsigned_abs()));
    }
    text
}

/// A sign, 17 digits, a point, and `e-308`; or 17 digits and 7 zeros.
const TEXT_BYTES_MAX: usize = 25;

/// The double that `text` is, as Redis 7.2 reads scores and increments (`getDoubleFromObject`, thus C's `strtod`):
/// decimal or, after `0x`, hexadecimal digits with a point and an exponent (`e` or `p`), or `inf` or `infinity` in any
/// case, after an optional sign. Blanks, NaN, and values too large or too small for a double are refused.
pub fn parse_double(text: &[u8]) -> Option<f64> {
    parse(text).filter(|read| !read.is_out_of_range).map(|read| read.value)
}

/// The double that `text` is, as Redis reads the bounds of ranges of scores: with plain `strtod`, which in addition takes
/// blanks before the number, a number too large or too small for a double, nothing at all for 0, and whatever follows a
/// zero byte.
pub fn parse_bound(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let blanks = text.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    parse(text.get(blanks..)?).map(|read| read.value)
}

struct Read {
    value: f64,
    /// The value is infinite or zero only because no double is as large or as small.
    is_out_of_range: bool,
}

fn parse(text: &[u8]) -> Option<Read> {
    let (negative, magnitude) = match text {
        [b'-', magnitude @ ..] => (true, magnitude),
        [b'+', magnitude @ ..] => (false, magnitude),
        magnitude => (false, magnitude),
    };
    let read = match magnitude {
        [b'0', b'x' | b'X', digits @ ..] => parse_hexadecimal(digits)?,
        [b'0'..=b'9' | b'.', ..] => parse_decimal(magnitude)?,
        word if word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"infinity") => {
            Read { value: f64::INFINITY, is_out_of_range: false }
        }
        _ => return None,
    };
    Some(Read { value: if negative { -read.value } else { read.value }, ..read })
}

fn parse_decimal(text: &[u8]) -> Option<Read> {
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let mut mantissa = text.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    Some(in_range(value, mantissa.all(|byte| matches!(byte, b'0' | b'.'))))
}

/// Reads `h.hhhp-dd`, point and exponent optional.
fn parse_hexadecimal(text: &[u8]) -> Option<Read> {
    let mut parts = text.splitn(2, |byte| matches!(byte, b'p' | b'P'));
    let (mantissa, exponent) = (parts.next()?, parts.next());
    let mut parts = mantissa.splitn(2, |byte| *byte == b'.');
    let (whole, fraction) = (parts.next()?, parts.next().unwrap_or_default());
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut scale = exponent.map_or(Some(0), parse_exponent)?;
    let mut significant: u64 = 0;
    for (digits, behind_point) in [(whole, false), (fraction, true)] {
        for byte in digits {
            let digit = char::from(*byte).to_digit(16)?;
            if significant < 1 << 59 {
                significant = significant << 4 | u64::from(digit);
                scale -= if behind_point { 4 } else { 0 };
            } else {
                // Beyond a double's precision it only matters for rounding whether anything follows.
                significant |= u64::from(digit != 0);
                scale += if behind_point { 0 } else { 4 };
            }
        }
    }
    let value = scale_by_power_of_two(significant as f64, scale);
    Some(in_range(value, significant == 0))
}

/// A sign, and decimal digits; stops counting where no double reaches any more.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0, |value: i64, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        Some((value * 10 + sign * i64::from(digit)).clamp(-EXPONENT_MAX, EXPONENT_MAX))
    })
}

/// More than the exponent of a number of 2^32 hexadecimal digits.
const EXPONENT_MAX: i64 = 1 << 40;

/// `value` × 2^`scale`.
fn scale_by_power_of_two(mut value: f64, mut scale: i64) -> f64 {
    while scale != 0 && value != 0.0 && value.is_finite() {
        let step = scale.clamp(-1000, 1000);
        value *= 2_f64.powi(i32::try_from(step).unwrap_or(0));
        scale -= step;
    }
    value
}

fn in_range(value: f64, is_zero: bool) -> Read {
    Read { value, is_out_of_range: !value.is_finite() || (value == 0.0 && !is_zero) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn doubles_are_laid_out_as_redis_does() {
        let cases = [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-3.0, "-3"),
            (0.1, "0.1"),
            (-1.5, "-1.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            // Whole numbers: plain up to 2^62, then plain while they end in seven zeros at most.
            (1e10, "10000000000"),
            (1e18, "1000000000000000000"),
            (4_611_686_018_427_387_904.0, "4611686018427387904"),
            (5e18, "5e+18"),
            (1e21, "1e+21"),
            (-1e21, "-1e+21"),
            (12_345_678_901_234_567_000.0, "12345678901234567000"),
            (1.234_567_890_123_45e22, "1.23456789012345e+22"),
            (1.234_567_890_123_45e21, "1234567890123450000000"),
            (1.797_693_134_862_315_7e308, "1.7976931348623157e+308"),
            // Fractions: plain with fewer than seven digits behind the point, or below 10,000 and from 0.001 on.
            (0.000_001, "0.000001"),
            (0.000_000_1, "1e-7"),
            (0.000_012, "0.000012"),
            (0.000_001_2, "1.2e-6"),
            (0.001_234_567_89, "0.00123456789"),
            (0.000_123_456_789, "1.23456789e-4"),
            (1_234.123_456_7, "1234.1234567"),
            (12_345.123_456, "12345.123456"),
            (12_345.123_456_7, "1.23451234567e+4"),
            (2.2e-308, "2.2e-308"),
            (5e-324, "5e-324"),
        ];
        for (value, text) in cases {
            assert_eq!(format_double(value), text);
        }
    }

    #[test]
    fn doubles_are_read_as_redis_does() {
        let cases = [
            ("0", 0.0),
            ("3", 3.0),
            ("+3", 3.0),
            ("-1.5", -1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e5", 1e5),
            ("1E+5", 1e5),
            ("1e-5", 1e-5),
            ("0e400", 0.0),
            ("0.000e-999", 0.0),
            ("1e-320", 1e-320),
            ("1.7976931348623157e308", f64::MAX),
            ("inf", f64::INFINITY),
            ("+Inf", f64::INFINITY),
            ("-INFINITY", f64::NEG_INFINITY),
            ("0x10", 16.0),
            ("0XfF", 255.0),
            ("-0x1p+3", -8.0),
            ("0x1P4", 16.0),
            ("0x.8", 0.5),
            ("0X1.8p1", 3.0),
            ("0x8.", 8.0),
            ("0x0p99999999999999999999", 0.0),
            ("0x1p-1074", 5e-324),
            ("0x1.fffffffffffffp1023", f64::MAX),
            // Half-way between two doubles, and a little more.
            ("0x20000000000001", 9_007_199_254_740_992.0),
            ("0x20000000000001.0000000000000000001", 9_007_199_254_740_994.0),
            ("0x200000000000010000000000000000000000000000", 2_f64.powi(165)),
            ("0x200000000000010000000000000000000000000001", 2_f64.powi(165) + 2_f64.powi(113)),
        ];
        for (text, value) in cases {
            assert_eq!(parse_double(text.as_bytes()), Some(value), "{text}");
        }
        assert!(parse_double(b"-0").unwrap().is_sign_negative());
    }

    #[test]
    fn what_is_no_double_is_refused() {
        let words = ["", "-", "+", ".", "+.", "e5", "1e", "1e+", "+-1", "--1", "1_0", "1d", "1f", "0b1", "1,5", "1\0"];
        let blanks = [" 1", "1 ", "\t1", "1\n", "1 2"];
        let not_numbers = ["nan", "-nan", "NaN", "nan(1)", "infi", "INFINITYx", "in"];
        let hexadecimal = ["0x", "0x.", "0x.p1", "0x1p", "0x1p+", "0x1.2.3", "0xg", "0x1p1p1", "x1", "0x-1", "0x1pf"];
        let out_of_range = ["1e400", "-1e400", "1e-400", "0x1p2000", "0x1p-1080", "0x1p99999999999999999999"];
        for text in [&words[..], &blanks, &not_numbers, &hexadecimal, &out_of_range].concat() {
            assert_eq!(parse_double(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse_double(b"1\xff"), None);
    }

    #[test]
    fn bounds_are_read_more_freely() {
        let cases = [
            ("", 0.0),
            ("1.5", 1.5),
            (" \t1", 1.0),
            ("-inf", f64::NEG_INFINITY),
            ("1e400", f64::INFINITY),
            ("-1e400", f64::NEG_INFINITY),
            ("1e-400", 0.0),
            ("7\0x", 7.0),
        ];
        for (text, value) in cases {
            assert_eq!(parse_bound(text.as_bytes()), Some(value), "{text:?}");
        }
        for text in [" ", "1 ", "nan", "x", "(1", "-"] {
            assert_eq!(parse_bound(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn text_reads_back_as_the_same_double(value in any::<f64>()) {
            let read = parse_double(format_double(value).as_bytes());
            prop_assert_eq!(read.map(f64::to_bits), Some(value.to_bits()));
        }

        #[test]
        fn hexadecimal_agrees_with_decimal(value in any::<u64>(), scale in -60..60_i32) {
            let read = parse_double(format!("0x{value:x}p{scale}").as_bytes());
            prop_assert_eq!(read, Some(value as f64 * 2_f64.powi(scale)));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9a-fxp.]{0,40}") {
            let _ = parse_double(text.as_bytes());
        }
    }
}
