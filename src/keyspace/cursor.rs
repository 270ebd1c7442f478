use bytes::Bytes;
use md5::{Digest, Md5};
use respgate_backend_api::{Direction, KeyRange};

use super::{Intent, Keyspace, Result, Unit};
use crate::encoding::Cursor;

/// The longest position that is kept in the number itself.
const INLINE_BYTES_MAX: usize = 7;

/// Where an inline cursor keeps the length of its position, and one more, so that no cursor is zero.
const LENGTH_SHIFT: u32 = 56;

/// The bit that says that the position is in a record. The bit above it is never set: some clients read cursors as
/// signed numbers.
const STORED: u64 = 1 << 62;

/// How long a cursor can be used at least after it was last given out.
const LIFETIME_MS: i64 = 24 * 60 * 60 * 1_000;

/// A record is written again if it is older than this when its cursor is given out again.
const REFRESH_MS: i64 = 60 * 60 * 1_000;

/// How many records one unit of the sweep looks at.
const SWEEP_PAGE: usize = 256;

/// What SCAN and its like are given and give back: a number that stands for a position, which is a string of bytes.
///
/// A gateway keeps nothing between two calls, so the number must tell all. Positions of up to 7 bytes are in the number.
/// For a longer one the number is a hash, and a record of the store says what it stands for: on every gateway, after
/// a restart too, for at least a day. 0 is the start, and the end.
impl Unit<'_> {
    /// The cursor for `position`; 0 if it is `None`, the end. May write a record, also in a unit that else only reads.
    pub async fn cursor_of(&mut self, position: Option<&[u8]>) -> Result<u64> {
        let Some(position) = position else { return Ok(0) };
        if let Some(cursor) = inline(position) {
            return Ok(cursor);
        }
        let mut cursor = hashed(position);
        loop {
            let record = self.codec().cursor(cursor);
            match self.read(&record).await?.map(|value| Cursor::decode(&value)).transpose()? {
                // Another position with the same hash: take the next number.
                Some(other) if other.position != position => cursor = STORED | cursor.wrapping_add(1) & (STORED - 1),
                Some(known) if self.now_ms() - known.written_at_ms < REFRESH_MS => return Ok(cursor),
                _ => {
                    let value = Cursor { written_at_ms: self.now_ms(), position: Bytes::copy_from_slice(position) };
                    self.put_record(record, value.encode());
                    return Ok(cursor);
                }
            }
        }
    }

    /// The position that `cursor`, which is not 0, stands for; `None` if nobody gave it out, or too long ago.
    pub async fn position_of(&mut self, cursor: u64) -> Result<Option<Bytes>> {
        if cursor & STORED == 0 {
            return Ok(position_inline(cursor));
        }
        let record = self.codec().cursor(cursor);
        let Some(value) = self.read(&record).await? else { return Ok(None) };
        Ok(Some(Cursor::decode(&value)?.position))
    }
}

impl Keyspace {
    /// Deletes the records of cursors that have had their time, a page in each unit.
    pub async fn sweep_cursors(&self) -> Result<()> {
        let mut range = self.codec.cursors();
        while let Some(rest) = self.sweep_cursor_page(&range).await? {
            range = rest;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Sweeps the first page of `range` and gives the rest of it, if there is any.
    async fn sweep_cursor_page(&self, range: &KeyRange) -> Result<Option<KeyRange>> {
        let mut unit = self.begin(Intent::Write).await?;
        let page = unit.scan(range, Direction::Forward, SWEEP_PAGE).await?;
        let rest = page.last().filter(|_| page.len() == SWEEP_PAGE).map(|(last, _)| range.after(last));
        for (record, value) in page {
            if unit.now_ms() - Cursor::decode(&value)?.written_at_ms > LIFETIME_MS {
                // Another gateway may be giving the cursor out again at this moment.
                unit.guard(record.clone());
                unit.delete_record(record);
            }
        }
        unit.commit().await?;
        Ok(rest)
    }
}

fn inline(position: &[u8]) -> Option<u64> {
    if position.len() > INLINE_BYTES_MAX {
        return None;
    }
    let bytes = position.iter().fold(0, |bytes, &byte| bytes << 8 | u64::from(byte));
    Some((position.len() as u64 + 1) << LENGTH_SHIFT | bytes)
}

fn position_inline(cursor: u64) -> Option<Bytes> {
    let length = usize::try_from(cursor >> LENGTH_SHIFT).ok()?.checked_sub(1)?;
    let bytes = (cursor & ((1 << LENGTH_SHIFT) - 1)).to_be_bytes();
    let position = bytes.get(bytes.len().checked_sub(length)?..)?;
    // A number with more bytes than its length says is none of ours.
    (inline(position) == Some(cursor)).then(|| Bytes::copy_from_slice(position))
}

fn hashed(position: &[u8]) -> u64 {
    let digest: [u8; 16] = Md5::digest(position).into();
    let number = digest.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte));
    STORED | number & (STORED - 1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use respgate_backend_memory::MemoryBackend;

    use super::*;
    use crate::keyspace::{
        Encodings,
        fixture::{keyspace, keyspace_over},
    };

    const LONG: &[u8] = b"user:1000";

    async fn give_out(keyspace: &Keyspace, position: &[u8]) -> u64 {
        let mut unit = keyspace.begin(Intent::Read).await.unwrap();
        let cursor = unit.cursor_of(Some(position)).await.unwrap();
        unit.commit().await.unwrap();
        cursor
    }

    async fn look_up(keyspace: &Keyspace, cursor: u64) -> Option<Bytes> {
        keyspace.begin(Intent::Read).await.unwrap().position_of(cursor).await.unwrap()
    }

    async fn records(keyspace: &Keyspace) -> usize {
        let snapshot = keyspace.backend().snapshot().await.unwrap();
        snapshot.scan(&keyspace.codec().cursors(), Direction::Forward, 1_000).await.unwrap().len()
    }

    #[tokio::test]
    async fn a_cursor_is_understood_by_every_gateway() {
        let store = Arc::new(MemoryBackend::new());
        let (first, _) = keyspace_over(Arc::<MemoryBackend>::clone(&store), Encodings::default()).await;
        let (second, _) = keyspace_over(store, Encodings::default()).await;
        let cursor = give_out(&first, LONG).await;
        assert!(i64::try_from(cursor).is_ok(), "some clients read cursors as signed numbers");
        assert_eq!(look_up(&second, cursor).await.as_deref(), Some(LONG));
        assert_eq!(give_out(&second, LONG).await, cursor);
    }

    #[tokio::test]
    async fn the_end_is_zero_and_nothing_else_is() {
        let (keyspace, _) = keyspace(Encodings::default()).await;
        let mut unit = keyspace.begin(Intent::Read).await.unwrap();
        assert_eq!(unit.cursor_of(None).await.unwrap(), 0);
        assert_ne!(unit.cursor_of(Some(b"")).await.unwrap(), 0);
        assert_ne!(unit.cursor_of(Some(&[0; INLINE_BYTES_MAX])).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_cursor_that_nobody_gave_out_is_unknown() {
        let (keyspace, _) = keyspace(Encodings::default()).await;
        for cursor in [1, 255, STORED, STORED | 5, hashed(LONG), u64::MAX, 1 << LENGTH_SHIFT | 1] {
            assert_eq!(look_up(&keyspace, cursor).await, None, "{cursor:x}");
        }
    }

    #[tokio::test]
    async fn positions_with_the_same_hash_get_different_cursors() {
        let (keyspace, _) = keyspace(Encodings::default()).await;
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        let squatter = Cursor { written_at_ms: unit.now_ms(), position: Bytes::from_static(b"another") };
        unit.put_record(keyspace.codec().cursor(hashed(LONG)), squatter.encode());
        unit.commit().await.unwrap();
        let cursor = give_out(&keyspace, LONG).await;
        assert_ne!(cursor, hashed(LONG));
        assert_eq!(look_up(&keyspace, cursor).await.as_deref(), Some(LONG));
        assert_eq!(look_up(&keyspace, hashed(LONG)).await.as_deref(), Some(&b"another"[..]));
    }

    #[tokio::test]
    async fn cursors_are_swept_when_they_have_not_been_given_out_for_a_day() {
        let (keyspace, clock) = keyspace(Encodings::default()).await;
        let old: Vec<_> = (0..2 * SWEEP_PAGE).map(|i| format!("position {i}")).collect();
        for position in &old {
            give_out(&keyspace, position.as_bytes()).await;
        }
        let cursor = give_out(&keyspace, LONG).await;
        clock.advance_ms(LIFETIME_MS as u64);
        keyspace.sweep_cursors().await.unwrap();
        assert_eq!(records(&keyspace).await, old.len() + 1);
        give_out(&keyspace, LONG).await;
        clock.advance_ms(1);
        keyspace.sweep_cursors().await.unwrap();
        assert_eq!(records(&keyspace).await, 1);
        assert_eq!(look_up(&keyspace, cursor).await.as_deref(), Some(LONG));
    }

    proptest! {
        #[test]
        fn short_positions_are_kept_in_the_cursor(position in proptest::collection::vec(any::<u8>(), 0..=7)) {
            let cursor = inline(&position).unwrap();
            prop_assert_eq!(position_inline(cursor), Some(Bytes::from(position)));
        }
    }
}
