//! What a client says about its connection.

use std::sync::Arc;

use bytes::Bytes;
use subtle::ConstantTimeEq;

use super::{Args, Command, Context, Error, Flags, Gateway, Result, generic::next_db};
use crate::{
    resp::{Protocol, Reply, integer::parse_integer},
    version::REDIS_VERSION,
};

impl Error {
    const WRONG_PASSWORD: Self = Self::text("WRONGPASS invalid username-password pair or user is disabled.");
    const NO_PASSWORD_CONFIGURED: Self = Self::text(
        "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
         configuration is correct?",
    );
    const HELLO_NEEDS_AUTH: Self = Self::text(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> \
         <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
    );
}

/// The only user there is; its password is `requirepass`.
pub(super) const DEFAULT_USER: &[u8] = b"default";

/// `AUTH [username] password`
async fn auth(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    match args.rest() {
        [_] if !context.gateway.needs_password() => return Err(Error::NO_PASSWORD_CONFIGURED),
        [password] => check_password(context.gateway, DEFAULT_USER, password)?,
        [user, password] => check_password(context.gateway, user, password)?,
        _ => return Err(Error::SYNTAX),
    }
    context.session.authenticated = true;
    Ok(Reply::OK)
}

/// The default user has a password, or any will do.
fn check_password(gateway: &Gateway, user: &[u8], password: &[u8]) -> Result<()> {
    let settings = gateway.settings();
    let expected = &settings.server.requirepass;
    let matches = expected.is_empty() || bool::from(expected.reveal().as_bytes().ct_eq(password));
    if user == DEFAULT_USER && matches { Ok(()) } else { Err(Error::WRONG_PASSWORD) }
}

/// `HELLO [protover [AUTH username password] [SETNAME clientname]]`
async fn hello(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let protocol = match args.peek() {
        None => context.session.protocol,
        Some(version) => {
            let version =
                parse_integer(version).ok_or(Error::text("ERR Protocol version is not an integer or out of range"))?;
            args.next_value()?;
            match version {
                2 => Protocol::Resp2,
                3 => Protocol::Resp3,
                _ => return Err(Error::text("NOPROTO unsupported protocol version")),
            }
        }
    };
    let mut authenticated = context.session.authenticated;
    let mut name = None;
    while let Some(option) = args.peek() {
        if args.len() >= 3 && args.take("AUTH") {
            check_password(context.gateway, args.next_value()?, args.next_value()?)?;
            authenticated = true;
        } else if args.len() >= 2 && args.take("SETNAME") {
            name = Some(valid_name(args.next_value()?)?);
        } else {
            let option = String::from_utf8_lossy(option);
            return Err(Error::user(format!("ERR Syntax error in HELLO option '{option}'")));
        }
    }
    if !authenticated {
        return Err(Error::HELLO_NEEDS_AUTH);
    }
    let session = &mut *context.session;
    session.authenticated = true;
    session.protocol = protocol;
    if let Some(name) = name {
        session.client.update(|identity| identity.name = name);
    }
    let number = if protocol == Protocol::Resp3 { 3 } else { 2 };
    let facts = [
        ("server", Reply::bulk("redis")),
        ("version", Reply::bulk(REDIS_VERSION)),
        ("proto", Reply::Int(number)),
        ("id", Reply::count(session.client.id)),
        ("mode", Reply::bulk("standalone")),
        ("role", Reply::bulk("master")),
        ("modules", Reply::Array(Vec::new())),
    ];
    Ok(Reply::Map(facts.into_iter().map(|(name, fact)| (Reply::bulk(name), fact)).collect()))
}

/// A name that can be shown in CLIENT LIST: nothing but visible ASCII.
pub(super) fn valid_name(name: &Bytes) -> Result<Bytes> {
    if name.iter().all(u8::is_ascii_graphic) {
        Ok(Bytes::copy_from_slice(name))
    } else {
        Err(Error::text("ERR Client names cannot contain spaces, newlines or special characters."))
    }
}

/// `PING [message]`
async fn ping(args: Args<'_>) -> Result<Reply> {
    match args.rest() {
        [] => Ok(Reply::status("PONG")),
        [message] => Ok(Reply::Bulk(message.clone())),
        _ => Err(Error::wrong_arity("ping")),
    }
}

/// `ECHO message`
async fn echo(mut args: Args<'_>) -> Result<Reply> {
    Ok(Reply::Bulk(args.next_value()?.clone()))
}

/// `QUIT`
async fn quit(context: &mut Context<'_>) -> Result<Reply> {
    context.session.closing = true;
    Ok(Reply::OK)
}

/// `RESET`
async fn reset(context: &mut Context<'_>) -> Result<Reply> {
    let client = Arc::clone(&context.session.client);
    client.update(|identity| {
        identity.name = Bytes::new();
        identity.no_evict = false;
        identity.no_touch = false;
    });
    context.session.reset(context.gateway);
    Ok(Reply::status("RESET"))
}

/// `SELECT index`
async fn select(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    context.session.db = next_db(context, &mut args)?;
    Ok(Reply::OK)
}

const ANYTIME: Flags = Flags::LOADING.union(Flags::STALE).union(Flags::FAST);
const CHANGES: Flags = ANYTIME.union(Flags::NOSCRIPT).union(Flags::ALONE);
const EARLY: Flags = CHANGES.union(Flags::NO_AUTH).union(Flags::ALLOW_BUSY);

pub(super) const COMMANDS: &[Command] = &[
    Command::new("auth", -2, EARLY, |context, args| Box::pin(auth(context, args))).doc(
        "1.0.0",
        "O(N) where N is the number of passwords defined for the user",
        "Authenticates the connection.",
    ),
    Command::new("echo", 2, ANYTIME, |_, args| Box::pin(echo(args))).doc("1.0.0", "O(1)", "Returns the given string."),
    Command::new("hello", -1, EARLY, |context, args| Box::pin(hello(context, args))).doc(
        "6.0.0",
        "O(1)",
        "Handshakes with the Redis server.",
    ),
    Command::new("ping", -1, Flags::FAST, |_, args| Box::pin(ping(args))).doc(
        "1.0.0",
        "O(1)",
        "Returns the server's liveliness response.",
    ),
    Command::new("quit", -1, EARLY.union(Flags::NOT_QUEUED), |context, _| Box::pin(quit(context))).doc(
        "1.0.0",
        "O(1)",
        "Closes the connection.",
    ),
    Command::new("reset", 1, EARLY.union(Flags::NOT_QUEUED), |context, _| Box::pin(reset(context))).doc(
        "6.2.0",
        "O(1)",
        "Resets the connection.",
    ),
    Command::new("select", 2, ANYTIME.union(Flags::ALONE), |context, args| Box::pin(select(context, args))).doc(
        "1.0.0",
        "O(1)",
        "Changes the selected database.",
    ),
];
