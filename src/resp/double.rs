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
        #[expect(clippy::cast_possible_truncation, reason = "whole, and far within the range of i64")]
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
    let digits = mantissa.replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // How many zeros follow the last digit; negative: how many digits stand behind the point.
    let zeros = exponent + 1 - count;

    if zeros >= 0 && exponent.abs() < count + 7 {
        let zeros = usize::try_from(zeros).unwrap_or(0);
        return format!("{sign}{digits}{:0<zeros$}", "");
    }
    if zeros < 0 && (zeros > -7 || exponent.abs() < 4) {
        return match usize::try_from(exponent + 1) {
            Ok(whole @ 1..) => {
                let (whole, fraction) = digits.split_at_checked(whole).unwrap_or((&digits, ""));
                format!("{sign}{whole}.{fraction}")
            }
            _ => {
                let leading = usize::try_from(-exponent - 1).unwrap_or(0);
                format!("{sign}0.{:0<leading$}{digits}", "")
            }
        };
    }
    format!("{sign}{mantissa}e{exponent:+}")
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

    proptest! {
        #[test]
        fn text_reads_back_as_the_same_double(value in any::<f64>()) {
            prop_assert_eq!(format_double(value).parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
    }
}
