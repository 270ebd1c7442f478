use respgate_backend_api::{Direction, KeyRange};

use super::{IfExists, make_room};
use crate::{
    encoding::{Body, Metadata, ZsetOrder},
    keyspace::{Key, Unit},
    types::Result,
};

/// How many records are read at a time.
const PAGE: usize = 256;

/// Gives `to` a copy of the value of `from`, and its expiry. O(N) in the elements, all of which are part of the unit.
/// False if there is no key `from`, or a key `to` that is to be kept. The two must differ.
pub async fn copy(unit: &mut Unit<'_>, from: &Key, to: &Key, if_exists: IfExists) -> Result<bool> {
    let Some(metadata) = unit.load(from).await? else { return Ok(false) };
    if !make_room(unit, to, if_exists).await? {
        return Ok(false);
    }
    copy_value(unit, from, &metadata, to).await?;
    Ok(true)
}

/// Moves `from` to database `db`. False if there is no such key, or one with its name in that database.
///
/// O(1) for a string in one record, else O(N): elements lie in the database of their key, so that emptying either of
/// the two does not touch the other.
pub async fn move_to(unit: &mut Unit<'_>, from: &Key, db: u8) -> Result<bool> {
    let to = Key { db, name: from.name.clone() };
    let Some(metadata) = unit.load(from).await? else { return Ok(false) };
    if !make_room(unit, &to, IfExists::Keep).await? {
        return Ok(false);
    }
    copy_value(unit, from, &metadata, &to).await?;
    unit.remove(from, &metadata)?;
    Ok(true)
}

/// Writes the value of `from` under a version of its own to `to`, where there is nothing.
async fn copy_value(unit: &mut Unit<'_>, from: &Key, metadata: &Metadata, to: &Key) -> Result<()> {
    let mut copied = Metadata { version: unit.new_version(), origin: None, ..metadata.clone() };
    if let Body::Zset { order: ZsetOrder::Sidecar(revision), .. } = &mut copied.body {
        *revision = unit.create_order(to, copied.version)?;
    }
    if let Some(kind) = metadata.garbage() {
        let source = unit.collection(from, metadata)?.ranges(kind);
        let target = unit.collection(to, &copied)?.ranges(kind);
        for (source, target) in source.into_iter().zip(target) {
            copy_records(unit, source, &target.start).await?;
        }
    }
    Ok(unit.save(to, &copied)?)
}

/// Writes every record of `range` again, with `head` in place of what all of the range begin with.
async fn copy_records(unit: &mut Unit<'_>, mut range: KeyRange, head: &[u8]) -> Result<()> {
    let head_bytes = range.start.len();
    loop {
        let page = unit.scan(&range, Direction::Forward, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        range = range.after(last);
        let is_last = page.len() < PAGE;
        for (record, value) in page {
            let suffix = record.get(head_bytes..).unwrap_or_default();
            unit.put_record([head, suffix].concat().into(), value);
        }
        if is_last {
            return Ok(());
        }
    }
}
