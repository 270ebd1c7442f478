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
