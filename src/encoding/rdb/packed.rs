//! The four layouts that hold a small collection in one string. Each reads the elements in their order.

use bytes::{Buf, Bytes};

use super::{RestoreError, reader::take};

type Elements = Result<Vec<Bytes>, RestoreError>;

/// The last byte of a ziplist, a listpack and a zipmap.
const END: u8 = 0xff;

/// A count of elements that says only that there are too many for its two bytes.
const COUNT_UNKNOWN: u16 = u16::MAX;

/// A listpack (Redis 7.0 on):
///
/// ```text
/// | bytes (4) | count (2) | element, length of the element backwards (1..5) ... | 0xff |
/// ```
///
/// We never walk backwards, so the backward lengths are skipped.
pub(super) fn listpack(packed: Bytes) -> Elements {
    let mut rest = packed.clone();
    let bytes = rest.try_get_u32_le()?;
    let count = rest.try_get_u16_le()?;
    if bytes as usize != packed.len() {
        return Err(RestoreError::BadFormat);
    }
    let mut elements = Vec::new();
    loop {
        let before = rest.len();
        let first = rest.try_get_u8()?;
        if first == END {
            return finish(elements, count, &rest);
        }
        elements.push(listpack_element(first, &mut rest)?);
        let element_bytes = before - rest.len();
        take(&mut rest, backward_bytes(element_bytes))?;
    }
}

fn listpack_element(first: u8, rest: &mut Bytes) -> Result<Bytes, RestoreError> {
    let bytes = match first {
        0..0x80 => return Ok(decimal(first.into())),
        0x80..0xc0 => u64::from(first & 0x3f),
        0xc0..0xe0 => {
            let unsigned = u64::from(first & 0x1f) << 8 | u64::from(rest.try_get_u8()?);
            return Ok(decimal(sign_extended(unsigned, 13)));
        }
        0xe0..0xf0 => u64::from(first & 0x0f) << 8 | u64::from(rest.try_get_u8()?),
        0xf0 => rest.try_get_u32_le()?.into(),
        0xf1 => return integer(rest, 2),
        0xf2 => return integer(rest, 3),
        0xf3 => return integer(rest, 4),
        0xf4 => return integer(rest, 8),
        _ => return Err(RestoreError::BadFormat),
    };
    take(rest, bytes)
}

/// How many bytes the backward length of an element takes. The limits are those that Redis writes by: they are one less
/// than seven bits a byte would allow, but for the first.
fn backward_bytes(element_bytes: usize) -> u64 {
    match element_bytes {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// A ziplist (Redis 2.0 to 6.2):
///
/// ```text
/// | bytes (4) | offset of the last element (4) | count (2) | length of the element before (1, 5), element ... | 0xff |
/// ```
///
/// Offset and lengths serve walking backwards and are skipped.
pub(super) fn ziplist(packed: Bytes) -> Elements {
    let mut rest = packed.clone();
    let bytes = rest.try_get_u32_le()?;
    rest.try_get_u32_le()?;
    let count = rest.try_get_u16_le()?;
    if bytes as usize != packed.len() {
        return Err(RestoreError::BadFormat);
    }
    let mut elements = Vec::new();
    loop {
        match rest.try_get_u8()? {
            END => return finish(elements, count, &rest),
            254 => drop(take(&mut rest, 4)?),
            _ => {}
        }
        elements.push(ziplist_element(&mut rest)?);
    }
}

fn ziplist_element(rest: &mut Bytes) -> Result<Bytes, RestoreError> {
    let first = rest.try_get_u8()?;
    let bytes = match first {
        0..0x40 => first.into(),
        0x40..0x80 => u64::from(first & 0x3f) << 8 | u64::from(rest.try_get_u8()?),
        0x80..0xc0 => rest.try_get_u32()?.into(),
        0xc0 => return integer(rest, 2),
        0xd0 => return integer(rest, 4),
        0xe0 => return integer(rest, 8),
        0xf0 => return integer(rest, 3),
        0xfe => return integer(rest, 1),
        0xf1..=0xfd => return Ok(decimal(i64::from(first) - 0xf1)),
        _ => return Err(RestoreError::BadFormat),
    };
    take(rest, bytes)
}

/// An intset: distinct integers of 2, 4 or 8 bytes each.
///
/// ```text
/// | width (4) | count (4) | integer (width) ... |
/// ```
pub(super) fn intset(mut packed: Bytes) -> Elements {
    let width = packed.try_get_u32_le()? as usize;
    let count = packed.try_get_u32_le()? as usize;
    if !matches!(width, 2 | 4 | 8) || count.checked_mul(width) != Some(packed.len()) {
        return Err(RestoreError::BadFormat);
    }
    (0..count).map(|_| integer(&mut packed, width)).collect()
}

/// A zipmap (Redis 2.0 to 2.4), fields and values in turn:
///
/// ```text
/// | count (1) | field length (1, 5), field, value length (1, 5), slack (1), value, as many unused bytes ... | 0xff |
/// ```
///
/// The count stops at 254: then only walking tells.
pub(super) fn zipmap(mut packed: Bytes) -> Elements {
    let count = packed.try_get_u8()?;
    let mut elements = Vec::new();
    loop {
        let first = packed.try_get_u8()?;
        if first == END {
            let count = if count < 254 { u16::from(count) * 2 } else { COUNT_UNKNOWN };
            return finish(elements, count, &packed);
        }
        let field_bytes = zipmap_length(first, &mut packed)?;
        elements.push(take(&mut packed, field_bytes)?);
        let first = packed.try_get_u8()?;
        let value_bytes = zipmap_length(first, &mut packed)?;
        let slack_bytes = packed.try_get_u8()?;
        elements.push(take(&mut packed, value_bytes)?);
        take(&mut packed, slack_bytes.into())?;
    }
}

fn zipmap_length(first: u8, rest: &mut Bytes) -> Result<u64, RestoreError> {
    match first {
        END => Err(RestoreError::BadFormat),
        254 => Ok(rest.try_get_u32_le()?.into()),
        bytes => Ok(bytes.into()),
    }
}

/// The elements, if there are as many as the header says and nothing follows.
fn finish(elements: Vec<Bytes>, count: u16, rest: &Bytes) -> Elements {
    let counted = count == COUNT_UNKNOWN || usize::from(count) == elements.len();
    if counted && rest.is_empty() { Ok(elements) } else { Err(RestoreError::BadFormat) }
}

/// A signed integer of that many bytes, as Redis prints it.
fn integer(rest: &mut Bytes, bytes: usize) -> Result<Bytes, RestoreError> {
    // `try_get_int_le` of bytes 1.12 does not extend the sign.
    let unsigned = rest.try_get_uint_le(bytes)?;
    Ok(decimal(sign_extended(unsigned, 8 * bytes as u32)))
}

/// The lowest `bits` bits, at most 64 and at least one, as a signed number.
fn sign_extended(unsigned: u64, bits: u32) -> i64 {
    let above = u64::BITS - bits;
    (unsigned << above).cast_signed() >> above
}

fn decimal(integer: i64) -> Bytes {
    integer.to_string().into()
}
