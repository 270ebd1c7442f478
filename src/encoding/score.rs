use bytes::Bytes;

/// The value of a score-index record whose score is negative zero.
const NEGATIVE_ZERO: &[u8] = &[1];

const SIGN: u64 = 1 << 63;

/// A score as 8 bytes whose order is the order of scores: IEEE-754 bits, inverted if negative, otherwise with the sign
/// bit set. Negative zero is ordered as zero. NaN has no place in the order: commands refuse it.
pub fn encode_score(score: f64) -> [u8; 8] {
    // Adding zero turns -0.0 into 0.0 and leaves every other number as it is.
    let bits = (score + 0.0).to_bits();
    let ordered = if bits & SIGN == 0 { bits | SIGN } else { !bits };
    ordered.to_be_bytes()
}

/// The score that [`encode_score`] made these bytes of; zero for negative zero.
pub fn decode_score(ordered: [u8; 8]) -> f64 {
    let ordered = u64::from_be_bytes(ordered);
    f64::from_bits(if ordered & SIGN == 0 { !ordered } else { ordered & !SIGN })
}

/// The value of a score-index record: empty, but one byte for negative zero, which its key cannot tell from zero and
/// which Redis prints as `-0`.
pub fn score_marker(score: f64) -> Bytes {
    let negative_zero = score == 0.0 && score.is_sign_negative();
    Bytes::from_static(if negative_zero { NEGATIVE_ZERO } else { &[] })
}

/// The score of a score-index record, from its key's bytes and its value.
pub(super) fn decode_marked_score(ordered: [u8; 8], marker: &[u8]) -> f64 {
    let score = decode_score(ordered);
    if marker == NEGATIVE_ZERO && score == 0.0 { -0.0 } else { score }
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
    fn negative_zero_survives_in_the_marker_only() {
        assert_eq!(score_marker(-0.0), &b"\x01"[..]);
        for score in [0.0, -1.0, 1.0, f64::NEG_INFINITY] {
            assert!(score_marker(score).is_empty(), "{score}");
        }
        assert!(decode_score(encode_score(-0.0)).is_sign_positive());
    }

    proptest! {
        #[test]
        fn a_score_comes_back_bit_for_bit(bits: u64) {
            let score = f64::from_bits(bits);
            prop_assume!(!score.is_nan());
            let back = decode_marked_score(encode_score(score), &score_marker(score));
            prop_assert_eq!(back.to_bits(), bits);
        }

        #[test]
        fn bytes_are_ordered_as_scores(a: u64, b: u64) {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(encode_score(a).cmp(&encode_score(b)), a.partial_cmp(&b).unwrap());
        }
    }
}
