use bytes::Bytes;

/// Decompresses LZF, the format of Marc Lehmann's liblzf, to exactly `length` bytes; `None` if it does not come to that.
///
/// A control byte below 32 announces that many bytes plus one to copy from the input. Any other has a length in its top
/// three bits (7: the next byte is added to it) and a distance in the other five and one more byte: so many bytes plus
/// two are repeated from so far back plus one. Memory grows with what comes out, not with what `length` claims.
pub(super) fn decompress(compressed: &[u8], length: usize) -> Option<Bytes> {
    let mut out = Vec::new();
    let mut input = compressed;
    while let Some((&control, rest)) = input.split_first() {
        input = if control < 32 {
            let (literal, rest) = rest.split_at_checked(usize::from(control) + 1)?;
            out.extend_from_slice(literal);
            rest
        } else {
            repeat(&mut out, control, rest)?
        };
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then(|| out.into())
}

/// Repeats earlier output as `control` and the bytes after it say; returns the rest of the input.
fn repeat<'a>(out: &mut Vec<u8>, control: u8, input: &'a [u8]) -> Option<&'a [u8]> {
    let mut count = usize::from(control >> 5) + 2;
    let (&first, mut input) = input.split_first()?;
    let mut low = first;
    if control >> 5 == 7 {
        count += usize::from(first);
        (low, input) = input.split_first().map(|(&low, rest)| (low, rest))?;
    }
    let distance = (usize::from(control & 0x1f) << 8 | usize::from(low)) + 1;
    let from = out.len().checked_sub(distance)?;
    // What is repeated may overlap what it makes, so byte by byte.
    for at in from..from + count {
        out.push(*out.get(at)?);
    }
    Some(input)
}
