use bytes::{Buf, Bytes};

use super::{RestoreError, lzf};

/// The most bytes that the compressed strings of one payload may come to: as many as the longest string of Redis. A
/// small payload could otherwise claim a lot of memory.
const INFLATED_BYTES_MAX: usize = 512 << 20;

/// Reads a payload from its beginning; never past its end. What it returns shares the memory of the payload.
pub(super) struct Reader {
    rest: Bytes,
    /// How many bytes compressed strings may still come to.
    inflatable: usize,
}

/// What the first bytes of a string or a count say.
enum Length {
    /// How many bytes or elements follow.
    Plain(u64),
    /// In which other way a string is written.
    Encoded(u8),
}

impl Reader {
    pub(super) fn new(payload: Bytes) -> Self {
        Self { rest: payload, inflatable: INFLATED_BYTES_MAX }
    }

    pub(super) fn byte(&mut self) -> Result<u8, RestoreError> {
        Ok(self.rest.try_get_u8()?)
    }

    /// A count of elements. No more than there are bytes left, since every element takes at least one: what is
    /// allocated for them is bounded by what was sent.
    pub(super) fn count(&mut self) -> Result<usize, RestoreError> {
        let Length::Plain(count) = self.length()? else { return Err(RestoreError::BadFormat) };
        usize::try_from(count).ok().filter(|&count| count <= self.rest.len()).ok_or(RestoreError::BadFormat)
    }

    /// A string in any of its encodings.
    pub(super) fn string(&mut self) -> Result<Bytes, RestoreError> {
        match self.length()? {
            Length::Plain(bytes) => self.take(bytes),
            Length::Encoded(0) => Ok(self.rest.try_get_i8()?.to_string().into()),
            Length::Encoded(1) => Ok(self.rest.try_get_i16_le()?.to_string().into()),
            Length::Encoded(2) => Ok(self.rest.try_get_i32_le()?.to_string().into()),
            Length::Encoded(3) => self.compressed_string(),
            Length::Encoded(_) => Err(RestoreError::BadFormat),
        }
    }

    /// A score as eight bytes.
    pub(super) fn double(&mut self) -> Result<f64, RestoreError> {
        Ok(self.rest.try_get_f64_le()?)
    }

    /// A score as text behind its length; three lengths stand for what is no finite number.
    pub(super) fn text_double(&mut self) -> Result<f64, RestoreError> {
        match self.byte()? {
            255 => Ok(f64::NEG_INFINITY),
            254 => Ok(f64::INFINITY),
            253 => Ok(f64::NAN),
            bytes => parse_double(&self.take(bytes.into())?),
        }
    }

    fn length(&mut self) -> Result<Length, RestoreError> {
        let first = self.byte()?;
        let low = first & 0x3f;
        match first >> 6 {
            0 => Ok(Length::Plain(low.into())),
            1 => Ok(Length::Plain(u64::from(low) << 8 | u64::from(self.byte()?))),
            2 if first == 0x80 => Ok(Length::Plain(self.rest.try_get_u32()?.into())),
            2 if first == 0x81 => Ok(Length::Plain(self.rest.try_get_u64()?)),
            2 => Err(RestoreError::BadFormat),
            _ => Ok(Length::Encoded(low)),
        }
    }

    fn compressed_string(&mut self) -> Result<Bytes, RestoreError> {
        let (Length::Plain(compressed), Length::Plain(inflated)) = (self.length()?, self.length()?) else {
            return Err(RestoreError::BadFormat);
        };
        let inflated = usize::try_from(inflated).map_err(|_| RestoreError::BadFormat)?;
        self.inflatable = self.inflatable.checked_sub(inflated).ok_or(RestoreError::BadFormat)?;
        lzf::decompress(&self.take(compressed)?, inflated).ok_or(RestoreError::BadFormat)
    }

    fn take(&mut self, bytes: u64) -> Result<Bytes, RestoreError> {
        take(&mut self.rest, bytes)
    }
}

/// The next `bytes` bytes.
pub(super) fn take(rest: &mut Bytes, bytes: u64) -> Result<Bytes, RestoreError> {
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= rest.len() => Ok(rest.split_to(bytes)),
        _ => Err(RestoreError::BadFormat),
    }
}

/// A score as text.
pub(super) fn parse_double(text: &[u8]) -> Result<f64, RestoreError> {
    str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(RestoreError::BadFormat)
}
