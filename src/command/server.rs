//! What operators and tools ask of a server.

use std::time::Duration;

use super::{Access, Args, Command, Context, Error, Flags, KeySpec, Result, Run, help::help};
use crate::{
    resp::{Reply, double::parse_double, integer::parse_integer},
    version::{REDIS_VERSION, RESPGATE_VERSION},
};

/// `TIME`
async fn time(context: &mut Context<'_>) -> Result<Reply> {
    let now_us = context.gateway.keyspace.clock().now_us();
    Ok(Reply::bulks([(now_us / 1_000_000).to_string(), (now_us % 1_000_000).to_string()]))
}

/// `SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]`
async fn shutdown(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (mut abort, mut others) = (false, false);
    while !args.is_empty() {
        if args.take("ABORT") {
            abort = true;
        } else if ["NOSAVE", "SAVE", "NOW", "FORCE"].iter().any(|word| args.take(word)) {
            others = true;
        } else {
            return Err(Error::SYNTAX);
        }
    }
    if abort && others {
        return Err(Error::SYNTAX);
    }
    if abort {
        return Err(Error::text("ERR No shutdown in progress."));
    }
    tracing::info!(client = context.session.client.id, "SHUTDOWN received, shutting down");
    context.session.closing = true;
    context.gateway.shutdown.cancel();
    Ok(Reply::None)
}

/// `ROLE`
async fn role() -> Result<Reply> {
    Ok(Reply::Array(vec![Reply::bulk("master"), Reply::Int(0), Reply::Array(Vec::new())]))
}

/// `WAIT numreplicas timeout`
async fn wait(mut args: Args<'_>) -> Result<Reply> {
    args.next_integer()?;
    let timeout = parse_integer(args.next_value()?);
    match timeout.ok_or(Error::text("ERR timeout is not an integer or out of range"))? {
        timeout if timeout < 0 => Err(Error::text("ERR timeout is negative")),
        // There are no replicas: the store has every write before it is acknowledged.
        _ => Ok(Reply::Int(0)),
    }
}

/// `LASTSAVE`
async fn lastsave(context: &mut Context<'_>) -> Result<Reply> {
    Ok(Reply::count(context.gateway.keyspace.clock().now_ms() / 1_000))
}

/// `LOLWUT [VERSION version]`
async fn lolwut() -> Result<Reply> {
    let art = ["  client   client   client", "     \\       |       /", "      [=== respgate ===]", "             |"];
    let store = "        ( the  store )";
    let text = format!("{}\n{store}\n\nRedis ver. {REDIS_VERSION} (Respgate {RESPGATE_VERSION})\n", art.join("\n"));
    Ok(Reply::Verbatim("txt", text.into()))
}

/// `DEBUG SLEEP seconds`
async fn debug_sleep(mut args: Args<'_>) -> Result<Reply> {
    let seconds = parse_double(args.next_value()?).filter(|seconds| seconds.is_finite()).unwrap_or(0.0);
    tokio::time::sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default()).await;
    Ok(Reply::OK)
}

async fn ok() -> Result<Reply> {
    Ok(Reply::OK)
}

/// `MEMORY USAGE key [SAMPLES count]`
async fn memory_usage(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    while !args.is_empty() {
        if !args.take("SAMPLES") {
            return Err(Error::SYNTAX);
        }
        if args.next_integer()? < 0 {
            return Err(Error::SYNTAX);
        }
    }
    match crate::types::key::stored_bytes(&mut context.unit, &key).await? {
        Some(bytes) => Ok(Reply::count(bytes)),
        None => Ok(Reply::Null),
    }
}

/// `MEMORY DOCTOR`
async fn memory_doctor() -> Result<Reply> {
    let text = "Data is kept in the store, so the memory of this gateway is its caches and its clients' buffers. \
                INFO memory tells how large they are.\n";
    Ok(Reply::Verbatim("txt", text.into()))
}

const DEBUG_HELP: &[&str] = &[
    "JMAP",
    "    Does nothing.",
    "QUICKLIST-PACKED-THRESHOLD <size>",
    "    Does nothing.",
    "SET-ACTIVE-EXPIRE (0|1)",
    "    Does nothing: expired keys are never seen, whether or not they have been collected.",
    "SLEEP <seconds>",
    "    Lets this connection wait for <seconds>. Other connections go on.",
];

const MEMORY_HELP: &[&str] = &[
    "DOCTOR",
    "    Return memory problems reports.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return the bytes of the records that <key> is stored in.",
];

const TOOL: Flags = Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE);
const PLAIN: Flags = Flags::LOADING.union(Flags::STALE);

const DEBUG: &[Command] = &[
    Command::new("help", 2, TOOL, |_, _| Box::pin(async { Ok(help("DEBUG", DEBUG_HELP)) })),
    Command::new("jmap", -2, TOOL, |_, _| Box::pin(ok())),
    Command::new("quicklist-packed-threshold", 3, TOOL, |_, _| Box::pin(ok())),
    Command::new("set-active-expire", 3, TOOL, |_, _| Box::pin(ok())),
    Command::new("sleep", 3, TOOL.union(Flags::ALONE), |_, args| Box::pin(debug_sleep(args))),
];

const MEMORY: &[Command] = &[
    Command::new("doctor", 2, Flags::empty(), |_, _| Box::pin(memory_doctor())).doc(
        "4.0.0",
        "O(1)",
        "Outputs a memory problems report.",
    ),
    Command::new("help", 2, PLAIN, |_, _| Box::pin(async { Ok(help("MEMORY", MEMORY_HELP)) })).doc(
        "4.0.0",
        "O(1)",
        "Returns helpful text about the different subcommands.",
    ),
    Command::new("usage", -3, Flags::READONLY, |context, args| Box::pin(memory_usage(context, args)))
        .keys(&[KeySpec::at(2, Access::RO)])
        .doc("4.0.0", "O(N) where N is the number of records of the key.", "Estimates the memory usage of a key."),
];

const OPERATORS: &[&str] = &["@admin", "@dangerous"];

pub(super) const COMMANDS: &[Command] = &[
    Command::with("debug", -2, TOOL, Run::Subcommands(DEBUG)).doc(
        "1.0.0",
        "Depends on subcommand.",
        "A container for debugging commands.",
    ),
    Command::new("lastsave", 1, PLAIN.union(Flags::FAST), |context, _| Box::pin(lastsave(context))).categories(OPERATORS).doc(
        "1.0.0",
        "O(1)",
        "Returns the Unix timestamp of the last successful save to disk.",
    ),
    Command::new("lolwut", -1, Flags::READONLY.union(Flags::FAST), |_, _| Box::pin(lolwut())).doc(
        "5.0.0",
        "O(1)",
        "Displays computer art and the Redis version",
    ),
    Command::with("memory", -2, Flags::empty(), Run::Subcommands(MEMORY)).doc(
        "4.0.0",
        "Depends on subcommand.",
        "A container for memory diagnostics commands.",
    ),
    Command::new("role", 1, PLAIN.union(Flags::FAST).union(Flags::NOSCRIPT), |_, _| Box::pin(role())).categories(OPERATORS).doc(
        "2.8.12",
        "O(1)",
        "Returns the replication role.",
    ),
    Command::new(
        "shutdown",
        -1,
        TOOL.union(Flags::ALLOW_BUSY).union(Flags::NO_MULTI).union(Flags::ALONE),
        |context, args| Box::pin(shutdown(context, args)),
    )
    .doc("1.0.0", "O(1): every write is in the store already.", "Stops the gateway."),
    Command::new("time", 1, PLAIN.union(Flags::FAST), |context, _| Box::pin(time(context))).doc(
        "2.6.0",
        "O(1)",
        "Returns the server time.",
    ),
    Command::new("wait", 3, Flags::NOSCRIPT, |_, args| Box::pin(wait(args))).categories(&["@connection"]).doc(
        "3.0.0",
        "O(1)",
        "Blocks until the asynchronous replication of all preceding write commands sent by the connection is completed.",
    ),
];
