use super::DecodeError;

const RECORD: &str = "zset member";

const SIGN: u64 = 1 << 63;

/// A score as 8 bytes whose order is the order of scores: IEEE-754 bits, inverted if negative, otherwise with the sign
/// bit set. Negative zero becomes zero. NaN has no place in the order: commands refuse it.
pub fn encode_score(score: f64) -> [u8; 8] {
    let bits = without_negative_zero(score).to_bits();
    let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
    ordered.to_be_bytes()
}

/// The score that [`encode_score`] made these bytes of.
pub fn decode_score(ordered: [u8; 8]) -> f64 {
    let ordered = u64::from_be_bytes(ordered);
    f64::from_bits(if ordered & SIGN == 0 { !ordered } else { ordered & !SIGN })
}

/// The value of a member's element record in a sorted set: its score as IEEE-754 bits. Negative zero becomes zero.
pub fn encode_member_score(score: f64) -> [u8; 8] {
    without_negative_zero(score).to_bits().to_be_bytes()
}

/// The score that [`encode_member_score`] made this value of.
pub fn decode_member_score(value: &[u8]) -> Result<f64, DecodeError> {
    let too_short = DecodeError::TooShort { record: RECORD, bytes: value.len() };
    let (bits, rest) = value.split_first_chunk().ok_or(too_short)?;
    if !rest.is_empty() {
        return Err(DecodeError::TooLong { record: RECORD, bytes: rest.len() });
    }
    Ok(f64::from_bits(u64::from_be_bytes(*bits)))
}

/// Adding zero turns -0.0 into 0.0 and leaves every other number as it is.
fn without_negative_zero(score: f64) -> f64 {
    score + 0.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn golden_bytes() {
        let scores = [
            (f64::NEG_INFINITY, 0x000f_ffff_ffff_ffff_u64),
            (-1.5, 0x4007_ffff_ffff_ffff),
            (-5e-324, 0x7fff_ffff_ffff_fffe),
            (-0.0, 0x8000_0000_0000_0000),
            (0.0, 0x8000_0000_0000_0000),
            (5e-324, 0x8000_0000_0000_0001),
            (3.25, 0xc00a_0000_0000_0000),
            (f64::INFINITY, 0xfff0_0000_0000_0000),
        ];
        for (score, ordered) in scores {
            assert_eq!(encode_score(score), ordered.to_be_bytes(), "{score}");
        }
    }

    #[test]
    fn golden_bytes_of_a_member() {
        assert_eq!(encode_member_score(-1.5), *b"\xbf\xf8\0\0\0\0\0\0");
        assert_eq!(encode_member_score(-0.0), [0; 8]);
        assert_eq!(decode_member_score(b"\xbf\xf8\0\0\0\0\0\0"), Ok(-1.5));
        assert_eq!(decode_member_score(&[0; 7]), Err(DecodeError::TooShort { record: RECORD, bytes: 7 }));
        assert_eq!(decode_member_score(&[0; 9]), Err(DecodeError::TooLong { record: RECORD, bytes: 1 }));
    }

    #[test]
    fn negative_zero_becomes_zero() {
        assert!(decode_score(encode_score(-0.0)).is_sign_positive());
        assert!(decode_member_score(&encode_member_score(-0.0)).unwrap().is_sign_positive());
    }

    proptest! {
        #[test]
        fn a_score_comes_back_bit_for_bit(bits: u64) {
            let score = f64::from_bits(bits);
            prop_assume!(!score.is_nan() && bits != SIGN);
            prop_assert_eq!(decode_score(encode_score(score)).to_bits(), bits);
            prop_assert_eq!(decode_member_score(&encode_member_score(score)).unwrap().to_bits(), bits);
        }

        #[test]
        fn bytes_are_ordered_as_scores(a: u64, b: u64) {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(encode_score(a).cmp(&encode_score(b)), a.partial_cmp(&b).unwrap());
        }
    }
}
