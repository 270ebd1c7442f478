use respgate_backend_api::Direction;

use crate::{
    keyspace::{Key, Unit},
    types::Result,
};

/// How many records are read at a time.
const PAGE: usize = 1_000;

/// The bytes of all records of `key`, keys and values; `None` if it does not exist. O(N) in the records.
pub async fn stored_bytes(unit: &mut Unit<'_>, key: &Key) -> Result<Option<usize>> {
    let Some(metadata) = unit.load(key).await? else { return Ok(None) };
    let record = unit.codec().metadata(unit.physical(key.db)?, &key.name);
    let mut bytes = record.len() + metadata.encode().len();
    let Some(kind) = metadata.garbage() else { return Ok(Some(bytes)) };
    for mut range in unit.collection(key, &metadata)?.ranges(kind) {
        loop {
            let page = unit.scan(&range, Direction::Forward, PAGE).await?;
            bytes += page.iter().map(|(record, value)| record.len() + value.len()).sum::<usize>();
            match page.last() {
                Some((last, _)) if page.len() == PAGE => range = range.after(last),
                _ => break,
            }
        }
    }
    Ok(Some(bytes))
}
