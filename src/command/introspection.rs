//! COMMAND: what the table knows of each command.

use bytes::Bytes;

use super::{
    Access, Args, Begin, Command, Context, Entry, Error, Find, Flags, Group, Handler, KeySpec, Result, Run, Table,
    docs, glob, help::help, key_spec::keys_of,
};
use crate::resp::Reply;

/// `COMMAND`
async fn command() -> Result<Reply> {
    Ok(Reply::Array(top_level().map(describe).collect()))
}

/// `COMMAND COUNT`
async fn count() -> Result<Reply> {
    Ok(Reply::count(top_level().count()))
}

/// `COMMAND INFO [command-name [command-name ...]]`
async fn info(args: Args<'_>) -> Result<Reply> {
    if args.is_empty() {
        return command().await;
    }
    let shown = args.rest().iter().map(|name| find(name).map_or(Reply::Null, describe));
    Ok(Reply::Array(shown.collect()))
}

/// `COMMAND LIST [FILTERBY MODULE module-name | ACLCAT category | PATTERN pattern]`
async fn list(mut args: Args<'_>) -> Result<Reply> {
    let names = |matches: &dyn Fn(&Entry) -> bool| {
        Reply::bulks(top_level().filter(|entry| matches(entry)).map(|entry| entry.command.name))
    };
    if args.is_empty() {
        return Ok(names(&|_| true));
    }
    if args.len() != 3 || !args.take("FILTERBY") {
        return Err(Error::SYNTAX);
    }
    if args.take("MODULE") {
        return Ok(Reply::Array(Vec::new()));
    }
    if args.take("ACLCAT") {
        let category = format!("@{}", String::from_utf8_lossy(args.next_value()?).to_ascii_lowercase());
        return Ok(names(&|entry| categories(entry).contains(&category.as_str())));
    }
    if args.take("PATTERN") {
        let pattern = args.next_value()?.to_ascii_lowercase();
        return Ok(names(&|entry| glob::matches(&pattern, entry.command.name.as_bytes())));
    }
    Err(Error::SYNTAX)
}

/// `COMMAND GETKEYS command [arg [arg ...]]`
async fn getkeys(args: Args<'_>) -> Result<Reply> {
    let keys = keys_in(args.rest())?;
    Ok(Reply::bulks(keys.into_iter().map(|(key, _)| key)))
}

/// `COMMAND GETKEYSANDFLAGS command [arg [arg ...]]`
async fn getkeysandflags(args: Args<'_>) -> Result<Reply> {
    let keys = keys_in(args.rest())?;
    let shown = keys.into_iter().map(|(key, access)| Reply::Array(vec![Reply::Bulk(key), names_of_access(access)]));
    Ok(Reply::Array(shown.collect()))
}

fn keys_in(args: &[Bytes]) -> Result<Vec<(Bytes, Access)>> {
    const INVALID: Error = Error::text("ERR Invalid command specified");

    let (name, rest) = args.split_first().ok_or(INVALID)?;
    let mut entry = Table::get().command(name).ok_or(INVALID)?;
    if matches!(entry.command.run, Run::Subcommands(_)) {
        entry = rest.first().and_then(|name| Table::get().subcommand(entry.command, name)).ok_or(INVALID)?;
    }
    let keys = keys_of(entry.command, args)?;
    Ok(keys.into_iter().filter_map(|(at, access)| Some((args.get(at)?.clone(), access))).collect())
}

/// All commands, without subcommands.
pub(super) fn top_level() -> impl Iterator<Item = &'static Entry> {
    Table::get().entries().iter().filter(|entry| !entry.name.contains('|'))
}

/// The command with this name, which is `container|subcommand` for a subcommand.
pub(super) fn find(name: &[u8]) -> Option<&'static Entry> {
    let mut words = name.splitn(2, |byte| *byte == b'|');
    let entry = Table::get().command(words.next()?)?;
    match words.next() {
        Some(subcommand) => Table::get().subcommand(entry.command, subcommand),
        None => Some(entry),
    }
}

/// The entries of the subcommands of a command.
pub(super) fn subcommands(entry: &'static Entry) -> impl Iterator<Item = &'static Entry> {
    let rows = entry.command.subcommands().iter();
    rows.filter_map(|row| Table::get().subcommand(entry.command, row.name.as_bytes()))
}

/// A command as COMMAND INFO shows it.
fn describe(entry: &'static Entry) -> Reply {
    let command = entry.command;
    let (first, last, step) = positions(command.keys);
    Reply::Array(vec![
        Reply::bulk(entry.name.as_str()),
        Reply::Int(i64::from(command.arity)),
        Reply::Set(flag_names(command.flags).map(Reply::status).collect()),
        Reply::Int(first),
        Reply::Int(last),
        Reply::Int(step),
        Reply::Set(categories(entry).into_iter().map(Reply::status).collect()),
        Reply::Array(Vec::new()),
        Reply::Array(command.keys.iter().map(describe_keys).collect()),
        Reply::Array(subcommands(entry).map(describe).collect()),
    ])
}

/// The first key, the last key and the step, for those who know no key specifications: ranges that follow one another
/// count as one.
fn positions(specs: &[KeySpec]) -> (i64, i64, i64) {
    let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let mut found: Option<(i64, i64, i64)> = None;
    for spec in specs {
        let (Begin::Index(begin), Find::Range { last, step }) = (spec.begin, spec.find) else { continue };
        let begin = signed(begin);
        let last = if last < 0 { i64::from(last) } else { begin + i64::from(last) };
        found = match found {
            None => Some((begin, last, signed(step))),
            Some((first, before, step)) if before == begin - 1 => Some((first, last, step)),
            Some(found) => Some(found),
        };
    }
    found.unwrap_or_default()
}

fn describe_keys(spec: &KeySpec) -> Reply {
    let number = |number: usize| Reply::count(number);
    let (begin, begin_spec) = match spec.begin {
        Begin::Index(index) => ("index", vec![("index", number(index))]),
        Begin::Keyword(word, from) => ("keyword", vec![("keyword", Reply::bulk(word)), ("startfrom", number(from))]),
        Begin::Unknown(_) => ("unknown", Vec::new()),
    };
    let (find, find_spec) = match spec.find {
        Find::Range { last, step } => (
            "range",
            vec![("lastkey", Reply::Int(i64::from(last))), ("keystep", number(step)), ("limit", Reply::Int(0))],
        ),
        Find::Counted => {
            ("keynum", vec![("keynumidx", Reply::Int(0)), ("firstkey", Reply::Int(1)), ("keystep", Reply::Int(1))])
        }
        Find::Unknown => ("unknown", Vec::new()),
    };
    map(vec![
        ("flags", names_of_access(spec.access)),
        ("begin_search", map(vec![("type", Reply::bulk(begin)), ("spec", map(begin_spec))])),
        ("find_keys", map(vec![("type", Reply::bulk(find)), ("spec", map(find_spec))])),
    ])
}

fn map(pairs: Vec<(&'static str, Reply)>) -> Reply {
    Reply::Map(pairs.into_iter().map(|(name, value)| (Reply::bulk(name), value)).collect())
}

fn names_of_access(access: Access) -> Reply {
    const NAMES: &[(Access, &str)] = &[
        (Access::RO, "RO"),
        (Access::RW, "RW"),
        (Access::OW, "OW"),
        (Access::RM, "RM"),
        (Access::ACCESS, "access"),
        (Access::UPDATE, "update"),
        (Access::INSERT, "insert"),
        (Access::DELETE, "delete"),
        (Access::INCOMPLETE, "incomplete"),
        (Access::VARIABLE_FLAGS, "variable_flags"),
    ];
    let names = NAMES.iter().filter(|(flag, _)| access.contains(*flag));
    Reply::Set(names.map(|(_, name)| Reply::status(*name)).collect())
}

fn flag_names(flags: Flags) -> impl Iterator<Item = &'static str> {
    const NAMES: &[(Flags, &str)] = &[
        (Flags::WRITE, "write"),
        (Flags::READONLY, "readonly"),
        (Flags::DENYOOM, "denyoom"),
        (Flags::ADMIN, "admin"),
        (Flags::PUBSUB, "pubsub"),
        (Flags::NOSCRIPT, "noscript"),
        (Flags::BLOCKING, "blocking"),
        (Flags::LOADING, "loading"),
        (Flags::STALE, "stale"),
        (Flags::SKIP_MONITOR, "skip_monitor"),
        (Flags::SKIP_SLOWLOG, "skip_slowlog"),
        (Flags::FAST, "fast"),
        (Flags::NO_AUTH, "no_auth"),
        (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (Flags::NO_MULTI, "no_multi"),
        (Flags::MOVABLE_KEYS, "movablekeys"),
        (Flags::ALLOW_BUSY, "allow_busy"),
    ];
    NAMES.iter().filter(move |(flag, _)| flags.contains(*flag)).map(|(_, name)| *name)
}

/// The ACL categories: those of the row or of its group, and those that follow from the flags.
fn categories(entry: &Entry) -> Vec<&'static str> {
    let flags = entry.command.flags;
    let is_container = matches!(entry.command.run, Run::Subcommands(_));
    let of_row = entry.command.categories;
    let of_group = if of_row.is_empty() && !is_container { category_of_group(entry.group) } else { None };
    let speed = if flags.contains(Flags::FAST) { "@fast" } else { "@slow" };
    let of_flags = [
        (flags.contains(Flags::READONLY), "@read"),
        (flags.contains(Flags::WRITE), "@write"),
        (flags.contains(Flags::PUBSUB), "@pubsub"),
        (flags.contains(Flags::ADMIN), "@admin"),
        (true, speed),
        (flags.contains(Flags::BLOCKING), "@blocking"),
        (flags.intersects(Flags::ADMIN.union(Flags::DANGEROUS)), "@dangerous"),
    ];
    let of_flags = of_flags.into_iter().filter(|(has, _)| *has).map(|(_, name)| name);
    of_row.iter().copied().chain(of_group).chain(of_flags).collect()
}

fn category_of_group(group: Group) -> Option<&'static str> {
    match group {
        Group::Generic => Some("@keyspace"),
        Group::String => Some("@string"),
        Group::Hash => Some("@hash"),
        Group::List => Some("@list"),
        Group::Set => Some("@set"),
        Group::SortedSet => Some("@sortedset"),
        Group::Transactions => Some("@transaction"),
        Group::Connection => Some("@connection"),
        Group::Server => None,
    }
}

const HELP: &[&str] = &[
    "(no subcommand)",
    "    Return details about all Redis commands.",
    "COUNT",
    "    Return the total number of commands in this Redis server.",
    "LIST",
    "    Return a list of all commands in this Redis server.",
    "INFO [<command-name> ...]",
    "    Return details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "DOCS [<command-name> ...]",
    "    Return documentation details about multiple Redis commands.",
    "    If no command names are given, documentation details for all",
    "    commands are returned.",
    "GETKEYS <full-command>",
    "    Return the keys from a full Redis command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys and the access flags from a full Redis command.",
];

const ANYTIME: Flags = Flags::LOADING.union(Flags::STALE);

const CATEGORIES: &[&str] = &["@connection"];

const fn row(name: &'static str, arity: i32, handler: Handler) -> Command {
    Command::new(name, arity, ANYTIME, handler).categories(CATEGORIES)
}

const SUBCOMMANDS: &[Command] = &[
    row("count", 2, |_, _| Box::pin(count())).doc("2.8.13", "O(1)", "Returns a count of commands."),
    row("docs", -2, |_, args| Box::pin(docs::docs(args))).doc(
        "7.0.0",
        "O(N) where N is the number of commands to look up",
        "Returns documentary information about one, multiple or all commands.",
    ),
    row("getkeys", -4, |_, args| Box::pin(getkeys(args))).doc(
        "2.8.13",
        "O(N) where N is the number of arguments to the command",
        "Extracts the key names from an arbitrary command.",
    ),
    row("getkeysandflags", -4, |_, args| Box::pin(getkeysandflags(args))).doc(
        "7.0.0",
        "O(N) where N is the number of arguments to the command",
        "Extracts the key names and access flags for an arbitrary command.",
    ),
    row("help", 2, |_, _| Box::pin(async { Ok(help("COMMAND", HELP)) })).doc(
        "5.0.0",
        "O(1)",
        "Returns helpful text about the different subcommands.",
    ),
    row("info", -2, |_, args| Box::pin(info(args))).doc(
        "2.8.13",
        "O(N) where N is the number of commands to look up",
        "Returns information about one, multiple or all commands.",
    ),
    row("list", -2, |_, args| Box::pin(list(args))).doc(
        "7.0.0",
        "O(N) where N is the total number of Redis commands",
        "Returns a list of command names.",
    ),
];

/// COMMAND with no subcommand has an answer of its own, which a container's row cannot give.
async fn bare(_: &mut Context<'_>) -> Result<Reply> {
    command().await
}

pub(super) const COMMANDS: &[Command] = &[Command::with("command", -1, ANYTIME, Run::Subcommands(SUBCOMMANDS))
    .bare(|context, _| Box::pin(bare(context)))
    .categories(CATEGORIES)
    .doc(
        "2.8.13",
        "O(N) where N is the total number of Redis commands",
        "Returns detailed information about all commands.",
    )];
