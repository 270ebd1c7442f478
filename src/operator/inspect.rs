//! `respgate inspect`: the records of one key, in hex and in words.

use std::fmt;

use bytes::Bytes;

use super::{
    Error, Outcome, Position, Result,
    job::Job,
    words::{Hex, Moment, Named, Short},
};
use crate::{
    encoding::{Body, KeyVersions, Metadata, ZsetBounds, ZsetOrder, decode_member, decode_member_score},
    keyspace::{Collection, Intent, Key, Unit},
};

/// Shows the metadata of a key, and `limit` of its records from a position on.
pub(super) async fn run(
    job: &mut Job<'_>,
    from: Option<Position>,
    db: u8,
    name: &Bytes,
    limit: usize,
) -> Result<Outcome> {
    let skipped = match from {
        None => 0,
        Some(Position::Records(after)) => after,
        Some(other) => return Err(Error::OtherPosition(other)),
    };
    let key = Key { db, name: name.clone() };
    let mut unit = job.keyspace.begin(Intent::Read).await?;
    let record = unit.codec().metadata(unit.physical(db)?, name);
    let Some(value) = unit.peek(&record).await? else {
        job.say(format_args!("{}: there is no such key", Named(&key)))?;
        return Ok(Outcome::Found);
    };
    job.say(Named(&key))?;
    say_record(job, &record, &value)?;
    let metadata = match Metadata::decode(&value) {
        Ok(metadata) => metadata,
        Err(error) => {
            job.say(format_args!("  {error}"))?;
            return Ok(Outcome::Found);
        }
    };
    say_metadata(job, &metadata, unit.now_ms())?;
    say_records(job, &mut unit, &key, &metadata, skipped, limit).await
}

fn say_record(job: &mut Job<'_>, record: &Bytes, value: &Bytes) -> Result<()> {
    job.say(format_args!("  record   {}", Beginning(record)))?;
    job.say(format_args!("  value    {}", Beginning(value)))
}

fn say_metadata(job: &mut Job<'_>, metadata: &Metadata, now_ms: i64) -> Result<()> {
    let (kind, encode_version) = (metadata.kind().name(), metadata.encode_version());
    job.say(format_args!("  type     {kind}, encode-version {encode_version}"))?;
    let created = Moment(KeyVersions::time_ms(metadata.version));
    job.say(format_args!("  version  {:016x}, of {created}", metadata.version))?;
    match metadata.expires_at_ms {
        None => job.say("  expires  never")?,
        Some(at) if metadata.is_expired(now_ms) => {
            job.say(format_args!("  expires  {}: it has expired", Moment(at)))?
        }
        Some(at) => job.say(format_args!("  expires  {}", Moment(at)))?,
    }
    if let Some(origin) = &metadata.origin {
        job.say(format_args!("  origin   {}: its elements lie under this name", Short(origin)))?;
    }
    match &metadata.body {
        Body::String(value) => job.say(format_args!("  string   {}", Short(value))),
        Body::Chunks { bytes, chunk_bytes } => {
            job.say(format_args!("  string   {bytes} bytes, in chunks of {chunk_bytes}"))
        }
        Body::List { count, head, tail } => job.say(format_args!("  count    {count}, from {head} to {tail}")),
        Body::Zset { count, order: ZsetOrder::Sidecar(revision) } => {
            job.say(format_args!("  count    {count}, in order in the sidecar at revision {revision}"))
        }
        Body::Zset { count, order: ZsetOrder::Index(bounds) } if *bounds != ZsetBounds::default() => {
            let (low, high) = (Beginning(&bounds.low), Beginning(&bounds.high));
            job.say(format_args!("  count    {count}, in the index from {low} to {high}"))
        }
        Body::Zset { count, .. } => job.say(format_args!("  count    {count}")),
        Body::Hash { count } | Body::Set { count } => match count {
            Some(count) => job.say(format_args!("  count    {count}")),
            None => job.say("  count    not kept"),
        },
    }
}

async fn say_records(
    job: &mut Job<'_>,
    unit: &mut Unit<'_>,
    key: &Key,
    metadata: &Metadata,
    skipped: u32,
    limit: usize,
) -> Result<Outcome> {
    let elements = unit.collection(key, metadata)?;
    let ranges = metadata.garbage().map(|kind| elements.ranges(kind)).unwrap_or_default();
    let mut number = 0;
    for range in ranges {
        let mut pages = unit.pages(range).await?;
        while let Some(page) = job.next_page(&mut pages).await? {
            for (record, value) in page {
                number += 1;
                if number <= skipped {
                    continue;
                }
                let position = Position::Records(number - 1);
                if number as usize > limit.saturating_add(skipped as usize) {
                    job.say(format_args!("there is more; go on with --resume {position}"))?;
                    return Ok(Outcome::Done);
                }
                job.say(format_args!("{number}) {}", describe(&elements, metadata, &record, &value)))?;
                say_record(job, &record, &value)?;
                job.reach(Position::Records(number));
            }
        }
    }
    Ok(Outcome::Done)
}

/// What a record means.
fn describe(elements: &Collection<'_>, metadata: &Metadata, record: &Bytes, value: &Bytes) -> String {
    let suffix = elements.suffix(record.clone());
    let is_score = elements.scores().contains(record);
    match &metadata.body {
        Body::String(_) => String::new(),
        Body::Chunks { .. } => match <[u8; 4]>::try_from(&*suffix) {
            Ok(number) => format!("chunk {}: {}", u32::from_be_bytes(number), Short(value)),
            Err(_) => format!("an impossible chunk number: {}", Short(&suffix)),
        },
        Body::Hash { .. } => format!("{}: {}", Short(&suffix), Short(value)),
        Body::Set { .. } => Short(&suffix).to_string(),
        Body::Zset { .. } if is_score => {
            let (member, score) = elements.scored(record.clone());
            format!("index: {score}, {}", Short(&member))
        }
        Body::Zset { order: ZsetOrder::Sidecar(_), .. } => match decode_member(value) {
            Ok((member, score)) => format!("index {} of member {}: {score}", Short(&suffix), Short(&member)),
            Err(error) => format!("index {}: {error}", Short(&suffix)),
        },
        Body::Zset { .. } => match decode_member_score(value) {
            Ok(score) => format!("member {}: {score}", Short(&suffix)),
            Err(error) => format!("member {}: {error}", Short(&suffix)),
        },
        Body::List { .. } => match <[u8; 8]>::try_from(&*suffix) {
            Ok(position) => format!("position {}: {}", u64::from_be_bytes(position), Short(value)),
            Err(_) => format!("an impossible position: {}", Short(&suffix)),
        },
    }
}

/// Bytes in hex; of many only the first ones.
struct Beginning<'a>(&'a [u8]);

impl fmt::Display for Beginning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BYTES_MAX: usize = 64;

        match self.0.get(..BYTES_MAX) {
            Some(start) if self.0.len() > BYTES_MAX => write!(f, "{}… ({} bytes)", Hex(start), self.0.len()),
            _ => Hex(self.0).fmt(f),
        }
    }
}
