//! OBJECT: how Redis would keep a value.

use super::{Access, Args, Command, Context, Error, Flags, KeySpec, Result, Run};
use crate::{resp::Reply, types::key};

/// `OBJECT ENCODING key`
async fn encoding(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let encoding = key::encoding(&mut context.unit, &key).await?;
    Ok(encoding.map_or(Reply::Null, Reply::bulk))
}

/// `OBJECT FREQ key`: nobody counts accesses, so this fails as in a Redis without an LFU policy.
async fn freq(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    match constant(context, args, 0).await? {
        Reply::Null => Ok(Reply::Null),
        _ => Err(Error::text(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
             switching between policies at runtime LRU and LFU data will take some time to adjust.",
        )),
    }
}

/// What is the same for every key that exists: IDLETIME, as nobody keeps the time of the last access, and REFCOUNT.
async fn constant(context: &mut Context<'_>, mut args: Args<'_>, answer: i64) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let exists = context.unit.load(&key).await?.is_some();
    Ok(if exists { Reply::Int(answer) } else { Reply::Null })
}

/// `OBJECT HELP`
fn help() -> Reply {
    const LINES: &[&str] = &[
        "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "ENCODING <key>",
        "    Return the kind of internal representation used in order to store the value",
        "    associated with a <key>.",
        "FREQ <key>",
        "    Return the access frequency index of the <key>. The returned integer is",
        "    proportional to the logarithm of the recent access frequency of the key.",
        "IDLETIME <key>",
        "    Return the idle time of the <key>, that is the approximated number of",
        "    seconds elapsed since the last access to the key.",
        "REFCOUNT <key>",
        "    Return the number of references of the value associated with the specified",
        "    <key>.",
        "HELP",
        "    Prints this help.",
    ];
    Reply::Array(LINES.iter().copied().map(Reply::status).collect())
}

const KEY: &[KeySpec] = &[KeySpec::at(2, Access::RO)];

const SUBCOMMANDS: &[Command] =
    &[
        Command::new("encoding", 3, Flags::READONLY, |context, args| Box::pin(encoding(context, args))).keys(KEY).doc(
            "2.2.3",
            "O(1)",
            "Returns the internal encoding of a Redis object.",
        ),
        Command::new("freq", 3, Flags::READONLY, |context, args| Box::pin(freq(context, args))).keys(KEY).doc(
            "4.0.0",
            "O(1)",
            "Returns the logarithmic access frequency counter of a Redis object.",
        ),
        Command::new("help", 2, Flags::LOADING.union(Flags::STALE), |_, _| Box::pin(async { Ok(help()) })).doc(
            "6.2.0",
            "O(1)",
            "Returns helpful text about the different subcommands.",
        ),
        Command::new("idletime", 3, Flags::READONLY, |context, args| Box::pin(constant(context, args, 0)))
            .keys(KEY)
            .doc("2.2.3", "O(1)", "Returns the time since the last access to a Redis object."),
        Command::new("refcount", 3, Flags::READONLY, |context, args| Box::pin(constant(context, args, 1)))
            .keys(KEY)
            .doc("2.2.3", "O(1)", "Returns the reference count of a value of a key."),
    ];

pub(super) const COMMANDS: &[Command] = &[Command::with("object", -2, Flags::empty(), Run::Subcommands(SUBCOMMANDS))
    .doc("2.2.3", "Depends on subcommand.", "A container for object introspection commands.")];
