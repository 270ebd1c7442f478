//! When keys expire.

use super::{Access, Args, Command, Context, Error, Flags, KeySpec, Result};
use crate::{
    resp::{Reply, integer::parse_integer},
    types::key::{self, Condition},
};

/// How EXPIRE and its three siblings read a time, and how EXPIRETIME and TTL and theirs write it.
#[derive(Clone, Copy)]
struct Form {
    /// The command's name, for errors.
    name: &'static str,
    /// Milliseconds in the unit of the argument or the reply.
    unit_ms: i64,
    /// Counted from now, not from the Unix epoch.
    from_now: bool,
}

const EXPIRE: Form = Form { name: "expire", unit_ms: 1_000, from_now: true };
const EXPIREAT: Form = Form { name: "expireat", unit_ms: 1_000, from_now: false };
const PEXPIRE: Form = Form { name: "pexpire", unit_ms: 1, from_now: true };
const PEXPIREAT: Form = Form { name: "pexpireat", unit_ms: 1, from_now: false };
const TTL: Form = Form { name: "ttl", unit_ms: 1_000, from_now: true };
const PTTL: Form = Form { name: "pttl", unit_ms: 1, from_now: true };
const EXPIRETIME: Form = Form { name: "expiretime", unit_ms: 1_000, from_now: false };
const PEXPIRETIME: Form = Form { name: "pexpiretime", unit_ms: 1, from_now: false };

/// `EXPIRE key seconds [NX | XX | GT | LT]`, and the same for EXPIREAT, PEXPIRE and PEXPIREAT.
async fn expire(context: &mut Context<'_>, mut args: Args<'_>, form: Form) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let time = args.next_value()?;
    let condition = parse_condition(args)?;
    let at_ms = parse_time(time, form, context.unit.now_ms())?;
    Ok(Reply::Int(key::expire(&mut context.unit, &key, at_ms, condition).await?.into()))
}

fn parse_condition(mut args: Args<'_>) -> Result<Condition> {
    let mut condition = Condition::default();
    while let Some(word) = args.peek() {
        if args.take("nx") {
            condition.if_none = true;
        } else if args.take("xx") {
            condition.if_some = true;
        } else if args.take("gt") {
            condition.if_later = true;
        } else if args.take("lt") {
            condition.if_earlier = true;
        } else {
            return Err(Error::unsupported_option(word));
        }
    }
    let Condition { if_none, if_some, if_later, if_earlier } = condition;
    if if_none && (if_some || if_later || if_earlier) {
        return Err(Error::text("ERR NX and XX, GT or LT options at the same time are not compatible"));
    }
    if if_later && if_earlier {
        return Err(Error::text("ERR GT and LT options at the same time are not compatible"));
    }
    Ok(condition)
}

/// A time as milliseconds since the Unix epoch. It may lie in the past, and before the epoch.
fn parse_time(text: &[u8], form: Form, now_ms: i64) -> Result<i64> {
    let time = parse_integer(text).ok_or(Error::NOT_INTEGER)?;
    let from_ms = if form.from_now { now_ms } else { 0 };
    let at_ms = time.checked_mul(form.unit_ms).and_then(|time_ms| time_ms.checked_add(from_ms));
    at_ms.ok_or_else(|| Error::invalid_expire(form.name))
}

/// `TTL key`, and the same for PTTL, EXPIRETIME and PEXPIRETIME: -2 if there is no such key, -1 if it lives for ever.
async fn expiry(context: &mut Context<'_>, mut args: Args<'_>, form: Form) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let expires_at_ms = key::expires_at(&mut context.unit, &key).await?;
    Ok(Reply::Int(match expires_at_ms {
        None => -2,
        Some(None) => -1,
        Some(Some(at_ms)) => {
            let from_ms = if form.from_now { context.unit.now_ms() } else { 0 };
            rounded(at_ms.saturating_sub(from_ms).max(0), form.unit_ms)
        }
    }))
}

/// `time_ms` in units of `unit_ms`, halves rounded up.
fn rounded(time_ms: i64, unit_ms: i64) -> i64 {
    time_ms.saturating_add(unit_ms / 2) / unit_ms
}

/// `PERSIST key`
async fn persist(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(Reply::Int(key::persist(&mut context.unit, &key).await?.into()))
}

const CHANGES: Flags = Flags::WRITE.union(Flags::FAST).union(Flags::BRIEF);
const TELLS: Flags = Flags::READONLY.union(Flags::FAST).union(Flags::BRIEF);
const CHANGED: &[KeySpec] = &[KeySpec::at(1, Access::RW.union(Access::UPDATE))];
const TOLD: &[KeySpec] = &[KeySpec::at(1, Access::RO.union(Access::ACCESS))];

pub(super) const COMMANDS: &[Command] =
    &[
        Command::new("expire", -3, CHANGES, |context, args| Box::pin(expire(context, args, EXPIRE))).keys(CHANGED).doc(
            "1.0.0",
            "O(1)",
            "Sets the expiration time of a key in seconds.",
        ),
        Command::new("expireat", -3, CHANGES, |context, args| Box::pin(expire(context, args, EXPIREAT)))
            .keys(CHANGED)
            .doc("1.2.0", "O(1)", "Sets the expiration time of a key to a Unix timestamp."),
        Command::new("expiretime", 2, TELLS, |context, args| Box::pin(expiry(context, args, EXPIRETIME)))
            .keys(TOLD)
            .doc("7.0.0", "O(1)", "Returns the expiration time of a key as a Unix timestamp."),
        Command::new("persist", 2, CHANGES, |context, args| Box::pin(persist(context, args))).keys(CHANGED).doc(
            "2.2.0",
            "O(1)",
            "Removes the expiration time of a key.",
        ),
        Command::new("pexpire", -3, CHANGES, |context, args| Box::pin(expire(context, args, PEXPIRE)))
            .keys(CHANGED)
            .doc("2.6.0", "O(1)", "Sets the expiration time of a key in milliseconds."),
        Command::new("pexpireat", -3, CHANGES, |context, args| Box::pin(expire(context, args, PEXPIREAT)))
            .keys(CHANGED)
            .doc("2.6.0", "O(1)", "Sets the expiration time of a key to a Unix milliseconds timestamp."),
        Command::new("pexpiretime", 2, TELLS, |context, args| Box::pin(expiry(context, args, PEXPIRETIME)))
            .keys(TOLD)
            .doc("7.0.0", "O(1)", "Returns the expiration time of a key as a Unix milliseconds timestamp."),
        Command::new("pttl", 2, TELLS.union(Flags::TIMED), |context, args| Box::pin(expiry(context, args, PTTL)))
            .keys(TOLD)
            .doc("2.6.0", "O(1)", "Returns the expiration time in milliseconds of a key."),
        Command::new("ttl", 2, TELLS.union(Flags::TIMED), |context, args| Box::pin(expiry(context, args, TTL)))
            .keys(TOLD)
            .doc("1.0.0", "O(1)", "Returns the expiration time in seconds of a key."),
    ];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_leave_the_range_are_refused() {
        assert_eq!(parse_time(b"10", EXPIRE, 5), Ok(10_005));
        assert_eq!(parse_time(b"-10", PEXPIRE, 5), Ok(-5));
        assert_eq!(parse_time(b"10", EXPIREAT, 5), Ok(10_000));
        assert_eq!(parse_time(b"-9223372036854775808", PEXPIREAT, 5), Ok(i64::MIN));
        assert_eq!(parse_time(b"9223372036854776", EXPIREAT, 5), Err(Error::invalid_expire("expireat")));
        assert_eq!(parse_time(b"-9223372036854776", EXPIRE, 5), Err(Error::invalid_expire("expire")));
        assert_eq!(parse_time(b"9223372036854775803", PEXPIRE, 5), Err(Error::invalid_expire("pexpire")));
        assert_eq!(parse_time(b"1.5", EXPIRE, 5), Err(Error::NOT_INTEGER));
    }

    #[test]
    fn seconds_are_rounded() {
        assert_eq!((rounded(499, 1_000), rounded(500, 1_000), rounded(1_499, 1_000)), (0, 1, 1));
        assert_eq!(rounded(7, 1), 7);
    }
}
