use std::fmt;

use num_bigint::BigUint;

/// The bits of a significand.
const SIGNIFICAND_BITS: u32 = 64;

/// The weight of the last bit of the smallest number.
const EXPONENT_MIN: i32 = -16_445;

/// The weight of the last bit of the greatest number.
const EXPONENT_MAX: i32 = 16_384 - 64;

/// Decimal numbers from 10 to this power on are infinite, whatever their digits; those below 10 to minus this power
/// are zero.
const POWER_OF_TEN_MAX: i64 = 4_990;

/// How many digits are shown after the point.
const DECIMALS: u32 = 17;

/// A floating-point number as INCRBYFLOAT and HINCRBYFLOAT count: the C type `long double` on x86-64, an x87 extended
/// number with a significand of 64 bits and an exponent of 15.
///
/// Rust has no such type, and no decimal or binary type at hand rounds as it does, so the little that is needed is
/// done here in integers: reading (`strtold`), one addition, and writing (`%.17Lf`). Each is rounded once, to the
/// nearest number, and of two to the even one. Redis on other processors, whose `long double` differs, may show other
/// digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongDouble {
    /// `significand * 2^exponent`.
    Finite {
        /// True for numbers below zero, and for one of the two zeros.
        negative: bool,
        /// Its highest bit is set, unless the number is zero or as near to it as the exponent allows.
        significand: u64,
        /// The weight of the significand's lowest bit.
        exponent: i32,
    },
    /// Infinity of either sign: one cannot count on from there.
    Infinite,
}

impl LongDouble {
    /// Zero.
    pub const ZERO: Self = Self::Finite { negative: false, significand: 0, exponent: EXPONENT_MIN };

    /// No number is read from a longer text.
    pub const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;

    /// The number that all of `text` spells: decimal or, after `0x`, hexadecimal, with an exponent if need be, or
    /// infinity. `None` if it spells none, or one that is too great or too small to be told from infinity or zero.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.len() <= Self::TEXT_BYTES_MAX)?;
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        if ["inf", "infinity"].iter().any(|name| text.eq_ignore_ascii_case(name)) {
            return Some(Self::Infinite);
        }
        match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(text) => parse_hexadecimal(negative, text),
            None => parse_decimal(negative, text),
        }
    }

    /// The sum, unless it is infinite or no number.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let (
            Self::Finite { negative, significand, exponent },
            Self::Finite { negative: other_negative, significand: other_significand, exponent: other_exponent },
        ) = (self, other)
        else {
            return None;
        };
        let (great, small) = {
            let one = Aligned::new(negative, significand, exponent);
            let other = Aligned::new(other_negative, other_significand, other_exponent);
            if one.is_above(&other) { (one, other) } else { (other, one) }
        };
        let (addend, is_inexact) = small.shifted_to(great.exponent);
        let sum = if great.negative == small.negative {
            great.significand + addend
        } else {
            // What was shifted out is taken away too: it makes the difference a little less than this many units.
            great.significand - addend - u128::from(is_inexact)
        };
        let negative = great.negative && (sum != 0 || small.negative);
        round(negative, sum, great.exponent, is_inexact)
    }
}

/// The nearest number to `units * 2^exponent`, or to a little more if `is_inexact`; `None` if it is infinite.
fn round(negative: bool, units: u128, exponent: i32, is_inexact: bool) -> Option<LongDouble> {
    if units == 0 {
        return Some(LongDouble::Finite { negative, significand: 0, exponent: EXPONENT_MIN });
    }
    let bits = u128::BITS - units.leading_zeros();
    let too_many = bits.cast_signed() - SIGNIFICAND_BITS.cast_signed();
    let dropped = too_many.max(EXPONENT_MIN - exponent);
    let rounded = match u32::try_from(dropped) {
        Ok(dropped) => shift_right_to_even(units, dropped, is_inexact),
        Err(_) => units << dropped.unsigned_abs(),
    };
    // Rounding up may have carried into one bit more, and that bit is then the only one.
    let carried = rounded >> SIGNIFICAND_BITS != 0;
    let significand = u64::try_from(if carried { rounded >> 1 } else { rounded }).ok()?;
    let exponent = exponent + dropped + i32::from(carried);
    (exponent <= EXPONENT_MAX).then_some(LongDouble::Finite { negative, significand, exponent })
}

/// `units / 2^by`, to the nearest integer, and of two to the even one; `is_inexact` says that `units` is a little more.
fn shift_right_to_even(units: u128, by: u32, is_inexact: bool) -> u128 {
    if by == 0 {
        return units;
    }
    let quotient = units.checked_shr(by).unwrap_or(0);
    let half = 1_u128.checked_shl(by - 1).unwrap_or(0);
    let rest = units - quotient.checked_shl(by).unwrap_or(0);
    let is_above = half != 0 && (rest > half || (rest == half && (is_inexact || quotient & 1 == 1)));
    quotient + u128::from(is_above)
}

/// A number whose significand has its highest bit at place 126 of 128, so that a sum has room.
struct Aligned {
    negative: bool,
    significand: u128,
    exponent: i32,
}

impl Aligned {
    fn new(negative: bool, significand: u64, exponent: i32) -> Self {
        let places = (significand.leading_zeros() + 63).min(126);
        Self { negative, significand: u128::from(significand) << places, exponent: exponent - places.cast_signed() }
    }

    /// True if this number is further from zero.
    fn is_above(&self, other: &Self) -> bool {
        let weight = |number: &Self| (number.significand != 0, number.exponent, number.significand);
        weight(self) > weight(other)
    }

    /// The significand if its lowest bit is to weigh `2^exponent`, which is more than it does; true if bits are lost.
    fn shifted_to(&self, exponent: i32) -> (u128, bool) {
        if self.significand == 0 {
            return (0, false);
        }
        let by = (exponent - self.exponent).unsigned_abs();
        let shifted = self.significand.checked_shr(by).unwrap_or(0);
        (shifted, shifted.checked_shl(by).unwrap_or(0) != self.significand)
    }
}

fn parse_decimal(negative: bool, text: &str) -> Option<LongDouble> {
    let (digits, mut power) = split(text, &['e', 'E'], u8::is_ascii_digit)?;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return round(negative, 0, 0, false);
    }
    let leading = i64::try_from(digits.len()).ok()?.saturating_add(power);
    if !(-POWER_OF_TEN_MAX..=POWER_OF_TEN_MAX).contains(&leading) {
        return None;
    }
    // Zeros at the end would only make the division longer.
    let significant = digits.trim_end_matches('0');
    power += i64::try_from(digits.len() - significant.len()).ok()?;
    let units = BigUint::parse_bytes(significant.as_bytes(), 10)?;
    let scale = BigUint::from(10_u8).pow(u32::try_from(power.unsigned_abs()).ok()?);
    if power < 0 { nearest(negative, &units, &scale, 0) } else { nearest(negative, &(units * scale), &1_u8.into(), 0) }
}

fn parse_hexadecimal(negative: bool, text: &str) -> Option<LongDouble> {
    let (digits, power) = split(text, &['p', 'P'], u8::is_ascii_hexdigit)?;
    let units = BigUint::parse_bytes(digits.as_bytes(), 16)?;
    nearest(negative, &units, &1_u8.into(), power)
}

/// Takes a number apart: its digits without the point, and the power by which the last of them is to be scaled. In
/// hexadecimal, where the exponent counts bits, a digit behind the point is worth four.
fn split(text: &str, exponent_marks: &[char], is_digit: fn(&u8) -> bool) -> Option<(String, i64)> {
    let (mantissa, exponent) = match text.split_once(exponent_marks) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    if digits.is_empty() || !digits.as_bytes().iter().all(is_digit) {
        return None;
    }
    let weight = if is_digit(&b'a') { 4 } else { 1 };
    Some((digits, exponent.saturating_sub(i64::try_from(fraction.len()).ok()? * weight)))
}

/// An exponent, with a sign or without. One that no number needs is cut off.
fn parse_exponent(text: &str) -> Option<i64> {
    const LIMIT: i64 = 1_000_000;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(sign * digits.parse().unwrap_or(LIMIT).min(LIMIT))
}

/// The nearest number to `units / divisor * 2^exponent`; `None` if that is infinite, or zero although `units` is not.
fn nearest(negative: bool, units: &BigUint, divisor: &BigUint, exponent: i64) -> Option<LongDouble> {
    if units.bits() == 0 {
        return round(negative, 0, 0, false);
    }
    // A quotient of 66 or 67 bits, and whether there is a rest, decide how to round to 64.
    let shift = 66 + i64::try_from(divisor.bits()).ok()? - i64::try_from(units.bits()).ok()?;
    let by = shift.unsigned_abs();
    let (dividend, divisor) = if shift < 0 { (units.clone(), divisor << by) } else { (units << by, divisor.clone()) };
    let quotient = &dividend / &divisor;
    let is_inexact = &quotient * &divisor != dividend;
    let exponent = i32::try_from(exponent - shift).ok()?;
    let number = round(negative, u128::try_from(quotient).ok()?, exponent, is_inexact)?;
    (!matches!(number, LongDouble::Finite { significand: 0, .. })).then_some(number)
}

/// The number with 17 digits after the point, rounded to even, without zeros at the end.
impl fmt::Display for LongDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Finite { negative, significand, exponent } = *self else { return f.write_str("inf") };
        let digits = match u64::try_from(exponent) {
            Ok(exponent) => ((BigUint::from(significand) << exponent) * 10_u64.pow(DECIMALS)).to_string(),
            Err(_) => {
                let scaled = u128::from(significand) * 10_u128.pow(DECIMALS);
                shift_right_to_even(scaled, exponent.unsigned_abs(), false).to_string()
            }
        };
        let digits = format!("{digits:0>width$}", width = DECIMALS as usize + 1);
        let (whole, fraction) = digits.split_at_checked(digits.len() - DECIMALS as usize).unwrap_or((&digits, ""));
        let fraction = fraction.trim_end_matches('0');
        let sign = if negative && (whole != "0" || !fraction.is_empty()) { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(one: &str, other: &str) -> Option<String> {
        let parse = |text: &str| LongDouble::parse(text.as_bytes()).unwrap();
        parse(one).checked_add(parse(other)).map(|sum| sum.to_string())
    }

    #[test]
    fn sums_are_those_of_redis() {
        let cases = [
            ("0", "10.5", "10.5"),
            ("0.1", "0.2", "0.3"),
            ("10.50", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            (".5", "5.", "5.5"),
            ("-123.456", "0.001", "-123.455"),
            ("0.30000000000000004", "0", "0.30000000000000004"),
            ("0x1.8p3", "0", "12"),
            ("0XFFFFFFFFFFFFFFFFFF", "0", "4722366482869645213696"),
            // 17 digits behind the point are shown, the last one rounded.
            ("1", "1e-17", "1.00000000000000001"),
            ("1", "1e-18", "1"),
            ("5e-18", "0", "0"),
            ("1.5e-17", "0", "0.00000000000000002"),
            // A significand has 64 bits.
            ("9007199254740993", "0.5", "9007199254740993.5"),
            ("18446744073709551615", "1", "18446744073709551616"),
            ("18446744073709551616", "1", "18446744073709551616"),
            ("18446744073709551616", "3", "18446744073709551620"),
            ("1e19", "0.5", "10000000000000000000"),
            ("1e20", "1e-20", "100000000000000000000"),
            ("3", "-2.9999999999999999999", "0"),
            // Zero has no sign.
            ("-0.0", "0", "0"),
            ("-1", "1", "0"),
            ("-1e-30", "0", "0"),
            ("1e4932", "-1e4932", "0"),
        ];
        for (one, other, text) in cases {
            assert_eq!(sum(one, other).as_deref(), Some(text), "{one} + {other}");
            assert_eq!(sum(other, one).as_deref(), Some(text), "{other} + {one}");
        }
        assert_eq!(sum("1.1e4932", "1e4932"), None);
        assert_eq!(sum("-inf", "1"), None);
        assert_eq!(sum("inf", "-Infinity"), None);
    }

    #[test]
    fn the_last_bit_is_rounded_to_even() {
        // 2^64 has neighbours at a distance of 2: its odd successors lie half-way.
        assert_eq!(sum("18446744073709551617", "0"), sum("18446744073709551616", "0"));
        assert_eq!(sum("18446744073709551619", "0"), sum("18446744073709551620", "0"));
        assert_eq!(sum("18446744073709551617.0000000000000000001", "0"), sum("18446744073709551618", "0"));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            " ",
            " 1",
            "1 ",
            "+",
            "-",
            ".",
            "abc",
            "nan",
            "1.2.3",
            "1e",
            "1e+",
            "1e1.5",
            "--1",
            "1,5",
            "0x",
            "0xp1",
            "0x1g",
            "in",
            "infinite",
            "1\0",
            "1e400000",
            "1e4933",
            "1e-4951",
            "1e-999999999999999999999",
            "0x1p16384",
        ] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(LongDouble::parse(b"\xff"), None);
        assert_eq!(LongDouble::parse(&[b'1'; 5_120]), None);
    }

    #[test]
    fn numbers_may_be_as_great_and_as_small_as_the_exponent_allows() {
        for text in ["1.18e4932", "3.65e-4951", "0x1p16383", "0x1p-16445", "0e999999999999999999999"] {
            assert!(LongDouble::parse(text.as_bytes()).is_some(), "{text}");
        }
        assert_eq!(sum("1e4931", "0").map(|text| text.len()), Some(4_932));
        let long = [b"0.", &[b'0'; 5_000][..], b"1e5000"].concat();
        assert_eq!(LongDouble::parse(&long).unwrap().to_string(), "0.1");
    }

    proptest! {
        #[test]
        fn integers_are_exact(one in any::<i64>(), other in any::<i32>()) {
            let expected = i128::from(one) + i128::from(other);
            prop_assume!(i64::try_from(expected).is_ok());
            prop_assert_eq!(sum(&one.to_string(), &other.to_string()), Some(expected.to_string()));
        }

        #[test]
        fn what_is_written_reads_back_to_the_same_text(one in any::<i64>(), power in -17_i32..1_000) {
            let text = LongDouble::parse(format!("{one}e{power}").as_bytes()).unwrap().to_string();
            prop_assert_eq!(LongDouble::parse(text.as_bytes()).unwrap().to_string(), text);
        }

        #[test]
        fn no_text_is_too_strange(text in "[-+]?[0-9a-fx.]{0,40}([ep][-+]?[0-9]{1,7})?", other in "-?[0-9]{1,30}e-?[0-9]{1,4}") {
            if let (Some(one), Some(other)) = (LongDouble::parse(text.as_bytes()), LongDouble::parse(other.as_bytes())) {
                prop_assert_eq!(one.checked_add(other), other.checked_add(one));
            }
        }
    }
}
