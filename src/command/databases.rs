//! Commands about whole databases.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use respgate_backend_api::Direction;

use super::{Args, Command, Context, Error, Flags, Result};
use crate::{
    encoding::Metadata,
    resp::{Reply, integer::parse_integer},
};

/// Records that are counted between two chances for other connections.
const PAGE_RECORDS: usize = 1_000;

/// `DBSIZE`
///
/// Counts the keys that are alive, one by one: O(n).
async fn dbsize(context: &mut Context<'_>) -> Result<Reply> {
    Ok(Reply::count(count(context, context.session.db).await?.keys))
}

/// What a database holds.
#[derive(Clone, Copy, Default)]
pub(super) struct Census {
    /// Keys that are alive.
    pub(super) keys: u64,
    /// Those of them that will expire.
    pub(super) expiring: u64,
}

/// The last census of each physical database, for INFO, which monitoring asks for again and again.
#[derive(Default)]
pub struct Censuses(Mutex<HashMap<u8, Taken>>);

#[derive(Clone, Copy)]
struct Taken {
    at: Instant,
    took: Duration,
    census: Census,
}

impl Taken {
    /// True while taking another census would spend more than a fiftieth of all time on it. Small databases are counted
    /// afresh each time.
    fn is_recent(&self) -> bool {
        const CHEAP: Duration = Duration::from_millis(20);
        const PART: u32 = 50;

        self.took > CHEAP && self.at.elapsed() < self.took.saturating_mul(PART)
    }
}

/// As [`count`], but for a large database perhaps as it was some time ago.
pub(super) async fn recent_count(context: &mut Context<'_>, db: u8) -> Result<Census> {
    let physical = context.unit.physical(db)?;
    let taken = context.gateway.censuses.0.lock().get(&physical).copied();
    if let Some(taken) = taken.filter(Taken::is_recent) {
        return Ok(taken.census);
    }
    let began = Instant::now();
    let census = count(context, db).await?;
    let taken = Taken { at: Instant::now(), took: began.elapsed(), census };
    context.gateway.censuses.0.lock().insert(physical, taken);
    Ok(census)
}

/// Counts the keys of a database that are alive.
pub(super) async fn count(context: &mut Context<'_>, db: u8) -> Result<Census> {
    let unit = &mut context.unit;
    let mut range = unit.metadata_range(db)?;
    let mut census = Census::default();
    loop {
        let page = unit.scan(&range, Direction::Forward, PAGE_RECORDS).await?;
        for (_, record) in &page {
            let metadata = Metadata::decode(record).map_err(crate::keyspace::Error::from)?;
            if !metadata.is_expired(unit.now_ms()) {
                census.keys += 1;
                census.expiring += u64::from(metadata.expires_at_ms.is_some());
            }
        }
        match page.last() {
            Some((last, _)) if page.len() == PAGE_RECORDS => range = range.after(last),
            _ => return Ok(census),
        }
        tokio::task::yield_now().await;
    }
}

/// `FLUSHDB [ASYNC|SYNC]`
async fn flushdb(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    check_flush(args)?;
    let db = context.session.db;
    context.unit.flush_database(db).await?;
    Ok(Reply::OK)
}

/// `FLUSHALL [ASYNC|SYNC]`
async fn flushall(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    check_flush(args)?;
    for db in 0..context.gateway.settings().server.databases {
        context.unit.flush_database(db).await?;
    }
    Ok(Reply::OK)
}

/// The data is out of reach at once either way, and deleted in the background.
fn check_flush(mut args: Args<'_>) -> Result<()> {
    if args.is_empty() || ((args.take("SYNC") || args.take("ASYNC")) && args.is_empty()) {
        Ok(())
    } else {
        Err(Error::SYNTAX)
    }
}

/// `SWAPDB index1 index2`
async fn swapdb(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let mut index = |error| {
        let index = parse_integer(args.next_value()?).filter(|index| i32::try_from(*index).is_ok());
        index.ok_or(Error::text(error))
    };
    let first = index("ERR invalid first DB index")?;
    let second = index("ERR invalid second DB index")?;
    let database = |index| u8::try_from(index).map_err(|_| Error::DB_OUT_OF_RANGE);
    let (first, second) = (database(first)?, database(second)?);
    context.unit.swap_databases(first, second)?;
    Ok(Reply::OK)
}

const EVERYTHING: Flags = Flags::WRITE.union(Flags::EVERYTHING).union(Flags::ALONE).union(Flags::DANGEROUS);

const KEYSPACE: &[&str] = &["@keyspace"];

pub(super) const COMMANDS: &[Command] = &[
    Command::new("dbsize", 1, Flags::READONLY.union(Flags::FAST).union(Flags::ALONE), |context, _| {
        Box::pin(dbsize(context))
    })
    .categories(KEYSPACE)
    .doc(
        "1.0.0",
        "O(N) where N is the number of keys in the database",
        "Returns the number of keys in the database.",
    ),
    Command::new("flushall", -1, EVERYTHING, |context, args| Box::pin(flushall(context, args)))
        .categories(KEYSPACE)
        .doc(
            "1.0.0",
            "O(N) where N is the total number of keys in all databases",
            "Removes all keys from all databases.",
        ),
    Command::new("flushdb", -1, EVERYTHING, |context, args| Box::pin(flushdb(context, args))).categories(KEYSPACE).doc(
        "1.0.0",
        "O(N) where N is the number of keys in the selected database",
        "Remove all keys from the current database.",
    ),
    Command::new("swapdb", 3, EVERYTHING.union(Flags::FAST), |context, args| Box::pin(swapdb(context, args)))
        .categories(KEYSPACE)
        .doc(
            "4.0.0",
            "O(N) where N is the count of clients watching or blocking on keys from both databases.",
            "Swaps two Redis databases.",
        ),
];
