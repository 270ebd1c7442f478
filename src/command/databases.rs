//! Commands about whole databases.

use super::{Args, Command, Context, Error, Flags, Result};
use crate::resp::{Reply, integer::parse_integer};

/// `DBSIZE`
async fn dbsize(context: &mut Context<'_>) -> Result<Reply> {
    Ok(Reply::count(context.unit.census(context.session.db).await?.keys))
}

/// `FLUSHDB [ASYNC|SYNC]`
async fn flushdb(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    check_flush(args)?;
    context.unit.flush_databases([context.session.db]).await?;
    Ok(Reply::OK)
}

/// `FLUSHALL [ASYNC|SYNC]`
async fn flushall(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    check_flush(args)?;
    context.unit.flush_databases(0..context.gateway.settings().server.databases).await?;
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
