use bytes::{Buf, BufMut, Bytes};
use respgate_backend_api::{Direction, KeyRange, Write};

use super::{Intent, Result, Unit, cache::RecordCache};
use crate::encoding::KeyCodec;

/// Stands before the name of a page. No record has a tag like this, neither at its beginning nor behind a slot prefix.
const TAG: &[u8; 10] = b"p#p#p#p#p#";

/// Of more records than this, the store reads the next ones about as fast as it finds the first.
const RECORDS_MAX: usize = 256;

const BYTES_MAX: usize = 64 * 1024;

/// A scan within one collection, whose result may be kept in the cache as a *page*.
///
/// A page is an entry like that of a record, in the same memory. But it stands under the stamp of its collection, by
/// which is meant all records that share a tag, an owner and a version. A commit marks, beside the stamps of the records
/// that it writes, those of their [collections](changed_collections): so no page outlives a change of any record that it
/// holds, or that it would hold if it were read now. Everything else that is said of entries of the cache is true of pages.
///
/// What is deleted without a commit belongs to dead versions, for which nobody asks.
pub(super) struct Scan<'r> {
    /// What all records of the collection begin with.
    collection: &'r [u8],
    name: Vec<u8>,
}

impl<'r> Scan<'r> {
    /// The scan of `range`; `None` unless all of that belongs to one collection.
    fn within(codec: &KeyCodec, range: &'r KeyRange, direction: Direction, limit: usize) -> Option<Self> {
        let collection = codec.collection_of(&range.start)?;
        let is_within = range.end.starts_with(collection) || range.end <= KeyRange::prefix(collection.to_vec()).end;
        is_within.then(|| Self { collection, name: name(range, direction, limit) })
    }

    /// The records that the scan finds, if the cache knows them.
    fn recall(&self, cache: &RecordCache) -> Option<Vec<(Bytes, Bytes)>> {
        decode(cache.get_under(self.collection, &self.name)??)
    }

    /// Keeps what a snapshot says that the scan finds, unless it is long. `seen` is the epoch as noted before the snapshot
    /// was opened.
    fn keep(&self, cache: &RecordCache, found: &[(Bytes, Bytes)], seen: u64) {
        if found.len() > RECORDS_MAX {
            return;
        }
        let bytes: usize = found.iter().map(|(record, value)| record.len() + value.len()).sum();
        if bytes <= BYTES_MAX {
            cache.fill_under(self.collection, &self.name, &Some(encode(found, bytes)), seen);
        }
    }
}

impl Unit<'_> {
    /// At most `limit` records of `range`, own writes included. Fewer mean that there are no more.
    pub async fn scan(&mut self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<(Bytes, Bytes)>> {
        let cache = self.keyspace().cache.as_ref().filter(|_| self.overlay.own(range).next().is_none());
        let known = cache.and_then(|cache| Some((cache, Scan::within(self.codec(), range, direction, limit)?)));
        if let Some((cache, scan)) = &known
            && let Some(found) = scan.recall(cache)
            && self.is_of_its_moment()
        {
            return Ok(found);
        }
        let snapshot = self.snapshot().await?;
        let found = self.overlay.scan(&*snapshot, self.intent, range, direction, limit).await?;
        // Who writes is about to change what it has read.
        if let Some((cache, scan)) = known.filter(|_| self.intent == Intent::Read) {
            scan.keep(cache, &found, self.epoch);
        }
        Ok(found)
    }
}

/// What all records of each collection begin with that `writes`, in ascending order, change.
pub(super) fn changed_collections<'w>(codec: &KeyCodec, writes: &'w [Write]) -> impl Iterator<Item = &'w [u8]> {
    let mut last: Option<&[u8]> = None;
    writes.iter().filter_map(move |(record, _)| {
        if last.is_some_and(|last| record.starts_with(last)) {
            return None;
        }
        last = codec.collection_of(record);
        last
    })
}

/// What a scan is called in the cache.
fn name(range: &KeyRange, direction: Direction, limit: usize) -> Vec<u8> {
    let numbers = [limit, range.start.len()];
    let bytes = TAG.len() + 1 + size_of_val(&numbers) + range.start.len() + range.end.len();
    let mut name = Vec::with_capacity(bytes);
    name.extend_from_slice(TAG);
    name.push(u8::from(direction == Direction::Backward));
    numbers.iter().for_each(|number| name.extend_from_slice(&number.to_be_bytes()));
    name.extend_from_slice(&range.start);
    name.extend_from_slice(&range.end);
    name
}

/// One value of all records: how many they are, and of each its key and its value, both behind their lengths.
fn encode(records: &[(Bytes, Bytes)], bytes: usize) -> Bytes {
    let mut page = Vec::with_capacity(bytes + (1 + records.len() * 2) * size_of::<u32>());
    // No number here is above the limits of a page.
    page.put_u32(records.len() as u32);
    for part in records.iter().flat_map(|(record, value)| [record, value]) {
        page.put_u32(part.len() as u32);
        page.extend_from_slice(part);
    }
    page.into()
}

/// The records of a page, which share its memory.
fn decode(mut page: Bytes) -> Option<Vec<(Bytes, Bytes)>> {
    let count = page.try_get_u32().ok()? as usize;
    let mut records = Vec::with_capacity(count);
    for _ in 0..count {
        records.push((decode_part(&mut page)?, decode_part(&mut page)?));
    }
    Some(records)
}

fn decode_part(page: &mut Bytes) -> Option<Bytes> {
    let bytes = page.try_get_u32().ok()? as usize;
    (bytes <= page.len()).then(|| page.split_to(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyspace::{Encodings, fixture::keyspace};

    fn codec() -> KeyCodec {
        KeyCodec::new("test", false).unwrap()
    }

    fn records(count: usize, value_bytes: usize) -> Vec<(Bytes, Bytes)> {
        let record = |number: usize| codec().element(0, b"key", 1, &number.to_be_bytes());
        (0..count).map(|number| (record(number), vec![0; value_bytes].into())).collect()
    }

    fn is_kept(range: &KeyRange, found: &[(Bytes, Bytes)]) -> bool {
        let (cache, codec) = (RecordCache::new(16 << 20), codec());
        let Some(scan) = Scan::within(&codec, range, Direction::Forward, 1_000) else { return false };
        scan.keep(&cache, found, cache.epoch());
        let other = Scan::within(&codec, range, Direction::Backward, 1_000).unwrap();
        assert_eq!(other.recall(&cache), None);
        scan.recall(&cache).is_some_and(|recalled| recalled == found)
    }

    #[test]
    fn only_short_scans_within_one_collection_are_kept() {
        let elements = codec().elements(0, b"key", 1);
        for found in [records(0, 0), records(1, 0), records(RECORDS_MAX, 0), records(1, BYTES_MAX / 2)] {
            assert!(is_kept(&elements, &found));
        }
        assert!(!is_kept(&elements, &records(RECORDS_MAX + 1, 0)));
        assert!(!is_kept(&elements, &records(1, BYTES_MAX)));
        assert!(is_kept(&elements.after(&codec().element(0, b"key", 1, b"x")), &records(1, 0)));
        let beyond = KeyRange::new(elements.start.clone(), codec().elements(0, b"key", 2).end);
        assert!(!is_kept(&beyond, &records(1, 0)));
        assert!(!is_kept(&codec().metadata_range(0), &[]));
    }

    #[tokio::test]
    async fn a_scan_sees_what_was_committed_and_what_its_own_unit_writes() {
        let (keyspace, _) = keyspace(Encodings::default()).await;
        let (range, all) = (codec().elements(0, b"key", 1), records(3, 10));
        let write = |unit: &mut Unit<'_>, number: usize| unit.put_record(all[number].0.clone(), all[number].1.clone());
        for number in 0..all.len() {
            for intent in [Intent::Read, Intent::Read, Intent::Write] {
                let mut unit = keyspace.begin(intent).await.unwrap();
                assert_eq!(unit.scan(&range, Direction::Forward, 10).await.unwrap(), all[..number]);
                if intent == Intent::Write {
                    write(&mut unit, number);
                    assert_eq!(unit.scan(&range, Direction::Forward, 10).await.unwrap(), all[..=number]);
                    unit.commit().await.unwrap();
                }
            }
        }
        let mut old = keyspace.begin(Intent::Read).await.unwrap();
        old.snapshot().await.unwrap();
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        unit.delete_record(all[0].0.clone());
        unit.commit().await.unwrap();
        for _ in 0..2 {
            let mut unit = keyspace.begin(Intent::Read).await.unwrap();
            assert_eq!(unit.scan(&range, Direction::Forward, 10).await.unwrap(), all[1..]);
        }
        assert_eq!(old.scan(&range, Direction::Forward, 10).await.unwrap(), all);
    }

    #[test]
    fn each_changed_collection_is_named_once() {
        let codec = codec();
        let mut writes: Vec<Write> = [b"key1", b"key2"]
            .into_iter()
            .flat_map(|key| [codec.element(0, key, 1, b"a"), codec.element(0, key, 1, b"b"), codec.metadata(0, key)])
            .chain([codec.score(0, b"key2", 1, 1.0, b"a"), codec.element(0, b"key1", 2, b"a")])
            .map(|record| (record, None))
            .collect();
        writes.sort();
        let changed: Vec<&[u8]> = changed_collections(&codec, &writes).collect();
        let starts = [
            codec.scores(0, b"key2", 1).start,
            codec.elements(0, b"key1", 1).start,
            codec.elements(0, b"key1", 2).start,
            codec.elements(0, b"key2", 1).start,
        ];
        assert_eq!(changed, starts);
    }

    #[test]
    fn pages_take_no_more_memory_than_the_cache_has() {
        let (cache, codec) = (RecordCache::new(8 << 20), codec());
        let found = records(100, 100);
        for version in 0..5_000 {
            let range = codec.elements(0, b"key", version);
            let scan = Scan::within(&codec, &range, Direction::Forward, 1_000).unwrap();
            scan.keep(&cache, &found, cache.epoch());
        }
        let weight = cache.weight();
        assert!(weight <= 8 << 20 && weight > 4 << 20, "{weight}");
    }
}
