use std::ops::Range;

use bytes::{Bytes, BytesMut};
use respgate_backend_api::{Direction, KeyRange};

use super::super::{Error, Result};
use crate::{
    encoding::{Body, DecodeError, Metadata},
    keyspace::{self, Collection, Key, Unit},
};

/// The length of the chunks of new strings. `FORMAT.md` says why.
const CHUNK_BYTES: u32 = 8 * 1024;

/// How many chunks are read at once.
const CHUNKS_PER_PAGE: usize = 512;

/// A string that is stored in chunks. Chunks that are absent, and what a chunk lacks at its end, are zeros.
pub(super) struct Chunks<'k> {
    records: Collection<'k>,
    bytes: u64,
    chunk_bytes: u32,
}

impl<'k> Chunks<'k> {
    /// The chunks of the string `key`, whose metadata is `metadata`.
    pub(super) fn open(unit: &Unit<'k>, key: &Key, metadata: &Metadata) -> Result<Self> {
        let Body::Chunks { bytes, chunk_bytes } = metadata.body else { return Err(keyspace::Error::WrongType.into()) };
        Ok(Self { records: unit.collection(key, metadata)?, bytes, chunk_bytes })
    }

    /// No chunks as yet, for the string `key`, which is to have the version of `metadata`.
    pub(super) fn create(unit: &Unit<'k>, key: &Key, metadata: &Metadata) -> Result<Self> {
        Ok(Self { records: unit.collection(key, metadata)?, bytes: 0, chunk_bytes: CHUNK_BYTES })
    }

    /// What the metadata has to say about these chunks.
    pub(super) fn body(&self) -> Body {
        Body::Chunks { bytes: self.bytes, chunk_bytes: self.chunk_bytes }
    }

    /// Writes the whole of a string that has no chunks as yet.
    pub(super) fn fill(mut self, unit: &mut Unit<'_>, value: &Bytes) -> Result<Body> {
        for piece in self.pieces(0, value) {
            unit.put_record(self.record(piece.number)?, piece.bytes);
        }
        self.bytes = value.len() as u64;
        Ok(self.body())
    }

    /// Writes `patch` at `offset`; the string grows if it ends before. Reads two chunks at most: the first and the
    /// last one, if they keep some of their bytes.
    pub(super) async fn write(&mut self, unit: &mut Unit<'_>, offset: u64, patch: &Bytes) -> Result<()> {
        for piece in self.pieces(offset, patch) {
            let record = self.record(piece.number)?;
            let chunk_start = self.start_of(piece.number);
            let chunk_end = self.bytes.min(self.start_of(piece.number + 1));
            let keeps_some = piece.start > 0 || chunk_start + (piece.bytes.len() as u64) < chunk_end;
            let chunk = if keeps_some {
                let old = unit.read(&record).await?.unwrap_or_default();
                patched(&old, piece.start, &piece.bytes)
            } else {
                piece.bytes
            };
            unit.put_record(record, chunk);
        }
        self.bytes = self.bytes.max(offset + patch.len() as u64);
        Ok(())
    }

    /// The whole string.
    pub(super) async fn read_all(&self, unit: &mut Unit<'_>) -> Result<Bytes> {
        self.read(unit, 0..self.bytes).await
    }

    /// The bytes of `range`, which lies within the string.
    pub(super) async fn read(&self, unit: &mut Unit<'_>, range: Range<u64>) -> Result<Bytes> {
        let bytes = usize::try_from(range.end.saturating_sub(range.start)).map_err(|_| Error::StringTooLong)?;
        if bytes == 0 {
            return Ok(Bytes::new());
        }
        let (first, last) = (self.number_at(range.start), self.number_at(range.end - 1));
        let mut value = BytesMut::zeroed(bytes);
        if first == last {
            let chunk = unit.read(&self.record(first)?).await?.unwrap_or_default();
            self.show(first, &chunk, range.start, &mut value);
            return Ok(value.freeze());
        }
        let mut rest = KeyRange::new(self.record(first)?, after(&self.record(last)?));
        loop {
            let page = unit.scan(&rest, Direction::Forward, CHUNKS_PER_PAGE).await?;
            for (record, chunk) in &page {
                self.show(self.number_of(record)?, chunk, range.start, &mut value);
            }
            match page.last() {
                Some((record, _)) if page.len() == CHUNKS_PER_PAGE => rest.start = after(record),
                _ => return Ok(value.freeze()),
            }
        }
    }

    /// Copies what `value`, which begins at byte `start` of the string, shows of a chunk.
    fn show(&self, number: u64, chunk: &[u8], start: u64, value: &mut [u8]) {
        let chunk_start = self.start_of(number);
        let distance = |from: u64, to: u64| usize::try_from(to.saturating_sub(from)).unwrap_or(usize::MAX);
        let shown = chunk.get(distance(chunk_start, start)..).unwrap_or_default();
        copy(value, distance(start, chunk_start), shown);
    }

    /// The parts of `patch` that fall into each chunk, if its first byte is at `offset`.
    fn pieces(&self, offset: u64, patch: &Bytes) -> impl Iterator<Item = Piece> + use<> {
        let chunk_bytes = u64::from(self.chunk_bytes);
        let (mut at, mut rest) = (offset, patch.clone());
        std::iter::from_fn(move || {
            let (number, start) = (at / chunk_bytes, (at % chunk_bytes) as usize);
            let bytes = rest.split_to(rest.len().min(chunk_bytes as usize - start));
            at += bytes.len() as u64;
            (!bytes.is_empty()).then_some(Piece { number, start, bytes })
        })
    }

    /// Which chunk holds the byte at `offset`.
    fn number_at(&self, offset: u64) -> u64 {
        offset / u64::from(self.chunk_bytes)
    }

    /// Where in the string a chunk begins.
    fn start_of(&self, number: u64) -> u64 {
        number * u64::from(self.chunk_bytes)
    }

    /// The record of a chunk. Its number is its suffix, so that chunks lie in order.
    fn record(&self, number: u64) -> Result<Bytes> {
        let number = u32::try_from(number).map_err(|_| Error::StringTooLong)?;
        Ok(self.records.element(&number.to_be_bytes()))
    }

    /// The number of the chunk in `record`.
    fn number_of(&self, record: &Bytes) -> Result<u64> {
        match (*self.records.suffix(record.clone())).try_into() {
            Ok(number) => Ok(u32::from_be_bytes(number).into()),
            Err(_) => Err(keyspace::Error::from(NO_CHUNK_NUMBER).into()),
        }
    }
}

const NO_CHUNK_NUMBER: DecodeError = DecodeError::Impossible { record: "element", field: "chunk number" };

/// What falls into one chunk.
struct Piece {
    number: u64,
    /// Where in the chunk the bytes go.
    start: usize,
    bytes: Bytes,
}

/// `old` with `patch` written at `start`; zeros fill what is between them.
pub(super) fn patched(old: &[u8], start: usize, patch: &[u8]) -> Bytes {
    let mut chunk = BytesMut::zeroed(old.len().max(start + patch.len()));
    copy(&mut chunk, 0, old);
    copy(&mut chunk, start, patch);
    chunk.freeze()
}

/// Copies `from` to `to`, from position `at` on, as far as there is room.
fn copy(to: &mut [u8], at: usize, from: &[u8]) {
    to.get_mut(at..).unwrap_or_default().iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// The first record key after `record`.
fn after(record: &[u8]) -> Bytes {
    [record, &[0]].concat().into()
}
