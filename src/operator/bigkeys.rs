//! `respgate bigkeys`: which keys are the largest, by elements and by bytes.

use std::collections::BTreeMap;

use bytesize::ByteSize;

use super::{
    Error, Outcome, Position, Result,
    job::Job,
    words::{Named, count},
};
use crate::{
    encoding::{Metadata, Type},
    keyspace::{Intent, Key, KeyWalk, Unit},
};

/// The largest keys that were seen, the largest first.
struct Largest {
    keys_max: usize,
    keys: Vec<(u64, Key)>,
}

impl Largest {
    fn add(&mut self, size: u64, key: &Key) {
        let place = self.keys.partition_point(|(other, _)| *other >= size);
        if place < self.keys_max {
            self.keys.insert(place, (size, key.clone()));
            self.keys.truncate(self.keys_max);
        }
    }
}

/// What was seen of one type.
struct Summary {
    keys: u64,
    elements: u64,
    bytes: u64,
    by_elements: Largest,
    by_bytes: Largest,
}

impl Summary {
    fn new(keys_max: usize) -> Self {
        let largest = || Largest { keys_max, keys: Vec::new() };
        Self { keys: 0, elements: 0, bytes: 0, by_elements: largest(), by_bytes: largest() }
    }
}

/// Reads every record of the living keys, of all databases or of one, and names the `top` largest of each type.
pub(super) async fn run(job: &mut Job<'_>, from: Option<Position>, db: Option<u8>, top: usize) -> Result<Outcome> {
    let walk = match from {
        None => KeyWalk { db: db.unwrap_or_default(), ..KeyWalk::default() },
        Some(Position::Keys(walk)) => walk,
        Some(other) => return Err(Error::OtherPosition(other)),
    };
    let mut summaries = BTreeMap::new();
    let ended = walk_keys(job, KeyWalk { last_db: db, ..walk }, top, &mut summaries).await;
    // What was seen before a stop is told as well.
    for (kind, summary) in &summaries {
        report(job, kind, summary)?;
    }
    if summaries.is_empty() {
        job.say("no keys")?;
    }
    ended.map(|()| Outcome::Done)
}

async fn walk_keys(
    job: &mut Job<'_>,
    mut walk: KeyWalk,
    top: usize,
    summaries: &mut BTreeMap<&'static str, Summary>,
) -> Result<()> {
    job.reach(Position::Keys(walk.clone()));
    loop {
        let mut unit = job.keyspace.begin(Intent::Read).await?;
        let Some((page, next)) = walk.next(&mut unit).await? else { return Ok(()) };
        job.saw(page.keys.len());
        let mut sizes = Vec::with_capacity(page.keys.len());
        for (name, metadata) in page.keys {
            // Of a record that cannot be read, `verify` tells.
            let Some(metadata) = metadata.ok().filter(|metadata| !metadata.is_expired(unit.now_ms())) else { continue };
            let key = Key { db: page.db, name };
            let (elements, bytes) = size(job, &mut unit, &key, &metadata).await?;
            sizes.push((metadata.kind().name(), key, elements, bytes));
        }
        // Only now: a page that is stopped is seen again.
        for (kind, key, elements, bytes) in sizes {
            let summary = summaries.entry(kind).or_insert_with(|| Summary::new(top));
            summary.keys += 1;
            summary.elements += elements.unwrap_or_default();
            summary.bytes += bytes;
            summary.by_bytes.add(bytes, &key);
            if let Some(elements) = elements {
                summary.by_elements.add(elements, &key);
            }
        }
        walk = next;
        job.reach(Position::Keys(walk.clone()));
        job.check_stop()?;
    }
}

/// How many elements a key has, unless it is a string, and the bytes of all its records.
async fn size(job: &mut Job<'_>, unit: &mut Unit<'_>, key: &Key, metadata: &Metadata) -> Result<(Option<u64>, u64)> {
    let record = unit.codec().metadata(unit.physical(key.db)?, &key.name);
    let mut bytes = (record.len() + metadata.encode().len()) as u64;
    let mut elements = None;
    let Some(kind) = metadata.garbage() else { return Ok((elements, bytes)) };
    for range in unit.collection(key, metadata)?.ranges(kind) {
        let (mut pages, mut records) = (unit.pages(range).await?, 0);
        while let Some(page) = job.next_page(&mut pages).await? {
            records += page.len() as u64;
            bytes += page.iter().map(|(record, value)| record.len() + value.len()).sum::<usize>() as u64;
        }
        if metadata.kind() != Type::String {
            // The other range of a sorted set holds the same members.
            elements.get_or_insert(records);
        }
    }
    Ok((elements, bytes))
}

fn report(job: &mut Job<'_>, kind: &str, summary: &Summary) -> Result<()> {
    let Summary { keys, elements, bytes, by_elements, by_bytes } = summary;
    let mean = |sum: u64| sum / (*keys).max(1);
    let size = format!("{} ({} on average)", ByteSize(*bytes), ByteSize(mean(*bytes)));
    let keys = count(*keys, "key", "keys");
    if by_elements.keys.is_empty() {
        job.say(format_args!("{kind}: {keys}, {size}"))?;
    } else {
        let elements = format!("{} ({} on average)", count(*elements, "element", "elements"), mean(*elements));
        job.say(format_args!("{kind}: {keys}, {elements}, {size}"))?;
    }
    for (size, key) in &by_elements.keys {
        job.say(format_args!("  {}: {}", count(*size, "element", "elements"), Named(key)))?;
    }
    for (size, key) in &by_bytes.keys {
        job.say(format_args!("  {}: {}", ByteSize(*size), Named(key)))?;
    }
    Ok(())
}
