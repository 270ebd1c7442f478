//! MULTI, EXEC, DISCARD, WATCH and UNWATCH.

use super::{Access, Args, Command, Context, Error, Flags, KeySpec, Result, Run, Transaction, session::Watched};
use crate::resp::Reply;

/// The replies to commands that are queued, or that EXEC refuses.
impl Error {
    /// EXEC after a command that could not be queued.
    pub const EXEC_ABORTED: Self = Self::text("EXECABORT Transaction discarded because of previous errors.");
    /// EXEC without MULTI.
    pub const EXEC_WITHOUT_MULTI: Self = Self::text("ERR EXEC without MULTI");

    /// EXEC that is itself refused because of `cause`.
    pub fn exec_aborted(cause: &Self) -> Self {
        let cause = cause.clone().into_reply();
        let text = if let Reply::Error(text) = &cause { text.trim_start_matches("ERR ") } else { "" };
        Self::user(format!("EXECABORT Transaction discarded because of: {text}"))
    }
}

/// `MULTI`
async fn multi(context: &mut Context<'_>) -> Result<Reply> {
    if context.session.transaction.is_some() {
        return Err(Error::text("ERR MULTI calls can not be nested"));
    }
    context.session.transaction = Some(Transaction::default());
    Ok(Reply::OK)
}

/// `DISCARD`
async fn discard(context: &mut Context<'_>) -> Result<Reply> {
    if context.session.transaction.take().is_none() {
        return Err(Error::text("ERR DISCARD without MULTI"));
    }
    context.session.watched.clear();
    Ok(Reply::OK)
}

/// `WATCH key [key ...]`
async fn watch(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    if context.session.transaction.is_some() {
        return Err(Error::text("ERR WATCH inside MULTI is not allowed"));
    }
    for key in context.keys(args.rest()) {
        if context.session.watched.iter().any(|watched| *watched.key() == key) {
            continue;
        }
        // Watched before it is read: a change between the two is then seen by one or the other.
        let watch = context.gateway.keyspace.watches().watch(key.clone());
        let mut unit = context.gateway.keyspace.begin(crate::keyspace::Intent::Read).await?;
        let seen = unit.state(&key).await?;
        context.session.watched.push(Watched::new(watch, seen));
    }
    Ok(Reply::OK)
}

/// `UNWATCH`
async fn unwatch(context: &mut Context<'_>) -> Result<Reply> {
    context.session.watched.clear();
    Ok(Reply::OK)
}

const AT_ONCE: Flags = Flags::NOSCRIPT
    .union(Flags::LOADING)
    .union(Flags::STALE)
    .union(Flags::FAST)
    .union(Flags::ALLOW_BUSY)
    .union(Flags::ALONE)
    .union(Flags::NOT_QUEUED);

pub(super) const COMMANDS: &[Command] = &[
    Command::new("discard", 1, AT_ONCE, |context, _| Box::pin(discard(context))).doc(
        "2.0.0",
        "O(N), when N is the number of queued commands",
        "Discards a transaction.",
    ),
    Command::with(
        "exec",
        1,
        Flags::NOSCRIPT
            .union(Flags::LOADING)
            .union(Flags::STALE)
            .union(Flags::SKIP_SLOWLOG)
            .union(Flags::ALONE)
            .union(Flags::NOT_QUEUED),
        Run::Transaction,
    )
    .doc("1.2.0", "Depends on commands in the transaction", "Executes all commands in a transaction."),
    Command::new("multi", 1, AT_ONCE, |context, _| Box::pin(multi(context))).doc(
        "1.2.0",
        "O(1)",
        "Starts a transaction.",
    ),
    Command::new(
        "unwatch",
        1,
        Flags::NOSCRIPT
            .union(Flags::LOADING)
            .union(Flags::STALE)
            .union(Flags::FAST)
            .union(Flags::ALLOW_BUSY)
            .union(Flags::ALONE),
        |context, _| Box::pin(unwatch(context)),
    )
    .doc("2.2.0", "O(1)", "Forgets about watched keys of a transaction."),
    Command::new("watch", -2, AT_ONCE, |context, args| Box::pin(watch(context, args)))
        .keys(&[KeySpec::from(1, Access::RO)])
        .doc("2.2.0", "O(1) for every key.", "Monitors changes to keys to determine the execution of a transaction."),
];
