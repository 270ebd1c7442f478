//! CLIENT: what the gateway knows of its clients, and what they want it to know.

use std::{fmt::Write, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    Args, Command, Context, Error, Flags, ReplyMode, Result, Run,
    connection::{DEFAULT_USER, valid_name},
    help::help,
};
use crate::{
    client::{Client, Paused},
    resp::{Protocol, Reply, integer::parse_integer},
};

/// `CLIENT ID`
async fn id(context: &mut Context<'_>) -> Result<Reply> {
    Ok(Reply::count(context.session.client.id))
}

/// `CLIENT INFO`
async fn info(context: &mut Context<'_>) -> Result<Reply> {
    Ok(text(describe(&context.session.client)))
}

/// `CLIENT LIST [TYPE NORMAL|MASTER|REPLICA|PUBSUB] [ID client-id [client-id ...]]`
async fn list(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let clients = &context.gateway.clients;
    let shown = if args.is_empty() {
        clients.all()
    } else if args.len() == 2 && args.take("TYPE") {
        if is_normal(args.next_value()?)? { clients.all() } else { Vec::new() }
    } else if args.len() > 1 && args.take("ID") {
        let mut shown = Vec::new();
        for id in args.rest() {
            let id = parse_integer(id).ok_or(Error::text("ERR Invalid client ID"))?;
            shown.extend(u64::try_from(id).ok().and_then(|id| clients.with_id(id)));
        }
        shown
    } else {
        return Err(Error::SYNTAX);
    };
    Ok(text(shown.iter().map(|client| describe(client)).collect()))
}

fn text(lines: String) -> Reply {
    Reply::Verbatim("txt", lines.into())
}

/// True if clients of this type exist here: there are no replicas, masters and subscribers.
fn is_normal(kind: &Bytes) -> Result<bool> {
    match kind.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(true),
        b"master" | b"replica" | b"slave" | b"pubsub" => Ok(false),
        _ => Err(Error::user(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(kind)))),
    }
}

fn client_id(text: &[u8]) -> Result<u64> {
    let id = parse_integer(text).and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
    id.ok_or(Error::text("ERR client-id should be greater than 0"))
}

/// A line of CLIENT LIST, in the order and with the fields of Redis.
fn describe(client: &Client) -> String {
    let identity = client.identity();
    let mut line = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        line,
        "id={} addr={} laddr={} fd=-1 name={} age={} idle={} flags={} db={} sub=0 psub=0 ssub=0 multi={} watch={} \
         qbuf={} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={} oll=0 omem=0 tot-mem={} events=r cmd={} \
         user=default redir=-1 resp={} lib-name={} lib-ver={}",
        client.id,
        client.address,
        client.local_address,
        String::from_utf8_lossy(&identity.name),
        client.connected_at.elapsed().as_secs(),
        identity.last_active.elapsed().as_secs(),
        flags(&identity),
        identity.db,
        identity.queued.map_or(-1, |count| i64::try_from(count).unwrap_or(i64::MAX)),
        identity.watched,
        identity.input_bytes,
        identity.output_bytes,
        identity.input_bytes + identity.output_bytes,
        if identity.last_command.is_empty() { "NULL" } else { identity.last_command },
        if identity.protocol == Protocol::Resp3 { 3 } else { 2 },
        String::from_utf8_lossy(&identity.library_name),
        String::from_utf8_lossy(&identity.library_version),
    );
    line
}

fn flags(identity: &crate::client::Identity) -> String {
    let flags = [(identity.queued.is_some(), 'x'), (identity.no_evict, 'e'), (identity.no_touch, 'T')];
    let shown: String = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).collect();
    if shown.is_empty() { "N".to_owned() } else { shown }
}

/// Which clients CLIENT KILL is about.
#[derive(Default)]
struct Filter {
    id: Option<u64>,
    address: Option<Bytes>,
    local_address: Option<Bytes>,
    /// False if the type or the user is one that no client here has.
    matches_nobody: bool,
}

impl Filter {
    fn matches(&self, client: &Client) -> bool {
        let same = |wanted: &Option<Bytes>, address: &str| wanted.as_ref().is_none_or(|wanted| wanted == address);
        !self.matches_nobody
            && self.id.is_none_or(|id| id == client.id)
            && same(&self.address, &client.address)
            && same(&self.local_address, &client.local_address)
    }
}

/// `CLIENT KILL addr` or
/// `CLIENT KILL [ID id] [TYPE type] [USER name] [ADDR addr] [LADDR laddr] [SKIPME YES|NO] ...`
async fn kill(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    if let [address] = args.rest() {
        let filter = Filter { address: Some(address.clone()), ..Filter::default() };
        let killed = kill_matching(context, &filter, false);
        return if killed > 0 { Ok(Reply::OK) } else { Err(Error::text("ERR No such client")) };
    }
    let (mut filter, mut skip_me) = (Filter::default(), true);
    while !args.is_empty() {
        if args.len() < 2 {
            return Err(Error::SYNTAX);
        }
        if args.take("ID") {
            filter.id = Some(client_id(args.next_value()?)?);
        } else if args.take("TYPE") {
            filter.matches_nobody |= !is_normal(args.next_value()?)?;
        } else if args.take("ADDR") {
            filter.address = Some(args.next_value()?.clone());
        } else if args.take("LADDR") {
            filter.local_address = Some(args.next_value()?.clone());
        } else if args.take("USER") {
            let user = args.next_value()?;
            if user != DEFAULT_USER {
                return Err(Error::user(format!("ERR No such user '{}'", String::from_utf8_lossy(user))));
            }
        } else if args.take("SKIPME") {
            skip_me = if args.take("YES") {
                true
            } else if args.take("NO") {
                false
            } else {
                return Err(Error::SYNTAX);
            };
        } else {
            return Err(Error::SYNTAX);
        }
    }
    Ok(Reply::count(kill_matching(context, &filter, skip_me)))
}

/// Kills; a client that kills itself gets its reply first.
fn kill_matching(context: &mut Context<'_>, filter: &Filter, skip_me: bool) -> usize {
    let mut killed = 0;
    for client in context.gateway.clients.all() {
        let is_me = Arc::ptr_eq(&client, &context.session.client);
        if !filter.matches(&client) || (is_me && skip_me) {
            continue;
        }
        if is_me {
            context.session.closing = true;
        } else {
            client.kill();
        }
        killed += 1;
    }
    killed
}

/// `CLIENT SETNAME connection-name`
async fn setname(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let name = valid_name(args.next_value()?)?;
    context.session.client.update(|identity| identity.name = name);
    Ok(Reply::OK)
}

/// `CLIENT GETNAME`
async fn getname(context: &mut Context<'_>) -> Result<Reply> {
    let name = context.session.client.identity().name;
    Ok(if name.is_empty() { Reply::Null } else { Reply::Bulk(name) })
}

/// `CLIENT SETINFO LIB-NAME libname | LIB-VER libver`
async fn setinfo(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let attribute = args.next_value()?;
    let attribute = attribute.to_ascii_lowercase();
    let is_name = match attribute.as_slice() {
        b"lib-name" => true,
        b"lib-ver" => false,
        other => {
            return Err(Error::user(format!("ERR Unrecognized option '{}'", String::from_utf8_lossy(other))));
        }
    };
    let attribute = String::from_utf8_lossy(&attribute);
    let value = valid_name(args.next_value()?)
        .map_err(|_| Error::user(format!("ERR {attribute} cannot contain spaces, newlines or special characters.")))?;
    context.session.client.update(|identity| {
        if is_name {
            identity.library_name = value;
        } else {
            identity.library_version = value;
        }
    });
    Ok(Reply::OK)
}

fn on_or_off(args: &mut Args<'_>) -> Result<bool> {
    if args.take("ON") {
        Ok(true)
    } else if args.take("OFF") {
        Ok(false)
    } else {
        Err(Error::SYNTAX)
    }
}

/// `CLIENT NO-EVICT ON|OFF`
async fn no_evict(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let on = on_or_off(&mut args)?;
    context.session.client.update(|identity| identity.no_evict = on);
    Ok(Reply::OK)
}

/// `CLIENT NO-TOUCH ON|OFF`
async fn no_touch(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let on = on_or_off(&mut args)?;
    context.session.client.update(|identity| identity.no_touch = on);
    Ok(Reply::OK)
}

/// `CLIENT REPLY ON|OFF|SKIP`
async fn reply(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let mode = &mut context.session.reply_mode;
    if args.take("ON") {
        *mode = ReplyMode::On;
        Ok(Reply::OK)
    } else if args.take("OFF") {
        *mode = ReplyMode::Off;
        Ok(Reply::None)
    } else if args.take("SKIP") {
        if *mode != ReplyMode::Off {
            *mode = ReplyMode::SkipNext;
        }
        Ok(Reply::None)
    } else {
        Err(Error::SYNTAX)
    }
}

/// `CLIENT PAUSE timeout [WRITE|ALL]`
async fn pause(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let timeout = parse_integer(args.next_value()?);
    let timeout = timeout.ok_or(Error::text("ERR timeout is not an integer or out of range"))?;
    let timeout_ms = u64::try_from(timeout).map_err(|_| Error::text("ERR timeout is negative"))?;
    let paused = if args.is_empty() || args.take("ALL") {
        Paused::All
    } else if args.take("WRITE") {
        Paused::Writes
    } else {
        return Err(Error::text("ERR CLIENT PAUSE mode must be WRITE or ALL"));
    };
    args.finish()?;
    // A timer cannot be set for the end of time; a year of pause is as good.
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    context.gateway.pause.begin(paused, Duration::from_millis(timeout_ms).min(YEAR));
    Ok(Reply::OK)
}

/// `CLIENT UNPAUSE`
async fn unpause(context: &mut Context<'_>) -> Result<Reply> {
    context.gateway.pause.end();
    Ok(Reply::OK)
}

/// `CLIENT UNBLOCK client-id [TIMEOUT|ERROR]`
async fn unblock(mut args: Args<'_>) -> Result<Reply> {
    let id = args.next_value()?;
    if args.len() > 1 {
        let text = "ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT HELP.";
        return Err(Error::text(text));
    }
    if !args.is_empty() && !args.take("TIMEOUT") && !args.take("ERROR") {
        return Err(Error::text("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
    }
    parse_integer(id).ok_or(Error::NOT_INTEGER)?;
    // No command of this gateway blocks.
    Ok(Reply::Int(0))
}

const HELP: &[&str] = &[
    "GETNAME",
    "    Return the name of the current connection.",
    "ID",
    "    Return the ID of the current connection.",
    "INFO",
    "    Return information about the current client connection.",
    "KILL <ip:port>",
    "    Kill connection made from <ip:port>.",
    "KILL <option> <value> [<option> <value> [...]]",
    "    Kill connections. Options are ADDR, LADDR, TYPE, USER, SKIPME and ID.",
    "LIST [TYPE <type>] [ID <id> [<id> ...]]",
    "    Return information about client connections.",
    "NO-EVICT (ON|OFF)",
    "    Protect current client connection from eviction.",
    "NO-TOUCH (ON|OFF)",
    "    Will not touch LRU/LFU stats when this mode is on.",
    "PAUSE <timeout> [WRITE|ALL]",
    "    Suspend all, or just write, clients for <timeout> milliseconds.",
    "REPLY (ON|OFF|SKIP)",
    "    Control the replies sent to the current connection.",
    "SETINFO (LIB-NAME|LIB-VER) <value>",
    "    Tell what library the current connection is made by.",
    "SETNAME <name>",
    "    Assign the name <name> to the current connection.",
    "UNBLOCK <clientid> [TIMEOUT|ERROR]",
    "    Unblock the specified blocked client.",
    "UNPAUSE",
    "    Stop the current client pause, resuming traffic.",
];

const ANYTIME: Flags = Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::ALONE);
const ADMIN: Flags = ANYTIME.union(Flags::ADMIN);

const SUBCOMMANDS: &[Command] = &[
    Command::new("getname", 2, ANYTIME, |context, _| Box::pin(getname(context))).doc(
        "2.6.9",
        "O(1)",
        "Returns the name of the connection.",
    ),
    Command::new("help", 2, Flags::LOADING.union(Flags::STALE), |_, _| Box::pin(async { Ok(help("CLIENT", HELP)) }))
        .doc("5.0.0", "O(1)", "Returns helpful text about the different subcommands."),
    Command::new("id", 2, ANYTIME, |context, _| Box::pin(id(context))).doc(
        "5.0.0",
        "O(1)",
        "Returns the unique client ID of the connection.",
    ),
    Command::new("info", 2, ANYTIME, |context, _| Box::pin(info(context))).doc(
        "6.2.0",
        "O(1)",
        "Returns information about the connection.",
    ),
    Command::new("kill", -3, ADMIN, |context, args| Box::pin(kill(context, args))).doc(
        "2.4.0",
        "O(N) where N is the number of client connections",
        "Terminates open connections.",
    ),
    Command::new("list", -2, ADMIN, |context, args| Box::pin(list(context, args))).doc(
        "2.4.0",
        "O(N) where N is the number of client connections",
        "Lists open connections.",
    ),
    Command::new("no-evict", 3, ADMIN, |context, args| Box::pin(no_evict(context, args))).doc(
        "7.0.0",
        "O(1)",
        "Sets the client eviction mode of the connection.",
    ),
    Command::new("no-touch", 3, ANYTIME, |context, args| Box::pin(no_touch(context, args))).doc(
        "7.2.0",
        "O(1)",
        "Controls whether commands sent by the client affect the LRU/LFU of accessed keys.",
    ),
    Command::new("pause", -3, ADMIN, |context, args| Box::pin(pause(context, args))).doc(
        "3.0.0",
        "O(1)",
        "Suspends commands processing.",
    ),
    Command::new("reply", 3, ANYTIME, |context, args| Box::pin(reply(context, args))).doc(
        "3.2.0",
        "O(1)",
        "Instructs the server whether to reply to commands.",
    ),
    Command::new("setinfo", 4, ANYTIME, |context, args| Box::pin(setinfo(context, args))).doc(
        "7.2.0",
        "O(1)",
        "Sets information specific to the client or connection.",
    ),
    Command::new("setname", 3, ANYTIME, |context, args| Box::pin(setname(context, args))).doc(
        "2.6.9",
        "O(1)",
        "Sets the connection name.",
    ),
    Command::new("unblock", -3, ADMIN, |_, args| Box::pin(unblock(args))).doc(
        "5.0.0",
        "O(log N) where N is the number of client connections",
        "Unblocks a client blocked by a blocking command from a different connection.",
    ),
    Command::new("unpause", 2, ADMIN, |context, _| Box::pin(unpause(context))).doc(
        "6.2.0",
        "O(N) Where N is the number of paused clients",
        "Resumes processing commands from paused clients.",
    ),
];

pub(super) const COMMANDS: &[Command] = &[Command::with("client", -2, Flags::empty(), Run::Subcommands(SUBCOMMANDS))
    .doc("2.4.0", "Depends on subcommand.", "A container for client connection commands.")];
