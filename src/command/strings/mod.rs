//! Strings.

mod expiry;
mod lcs;

use bytes::Bytes;

use super::{Access, Args, Begin, Command, Context, Error, Find, Flags, KeySpec, Result};
use crate::{
    encoding::Type,
    keyspace::Key,
    resp::Reply,
    types::string::{self, Condition, Expiry, SetOptions},
};

use expiry::{ExpiryOptions, Unit};

/// `GET key`
async fn get(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(string::get(&mut context.unit, &key).await?.into())
}

/// `MGET key [key ...]`
async fn mget(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    let keys = context.keys(args.rest());
    let values = string::get_many(&mut context.unit, &keys).await?;
    Ok(Reply::Array(values.into_iter().map(Reply::from).collect()))
}

/// `GETDEL key`
async fn getdel(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(string::take(&mut context.unit, &key).await?.into())
}

/// `GETEX key [EX seconds | PX milliseconds | EXAT time | PXAT time | PERSIST]`
async fn getex(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let mut options = ExpiryOptions::default();
    while !args.is_empty() {
        options.take_or_persist(&mut args)?;
    }
    let Some(metadata) = context.unit.load_as(&key, Type::String).await? else { return Ok(Reply::Null) };
    // The time comes after the key: one that does not exist forgives a bad time.
    let expiry = options.expiry("getex", context.unit.now_ms())?.unwrap_or(Expiry::Unchanged);
    let value = string::value(&mut context.unit, &key, &metadata).await?;
    string::set_expiry(&mut context.unit, &key, metadata, expiry)?;
    Ok(Reply::Bulk(value))
}

/// `GETSET key value`
async fn getset(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let options = SetOptions { returns_old: true, ..SetOptions::default() };
    let outcome = string::set_with(&mut context.unit, &key, args.next_value()?.clone(), options).await?;
    Ok(outcome.old.into())
}

/// `SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT time | PXAT time | KEEPTTL]`
async fn set(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let value = args.next_value()?.clone();
    if args.is_empty() {
        string::set(&mut context.unit, &key, value, None)?;
        return Ok(Reply::OK);
    }
    let options = set_options(args, context.unit.now_ms())?;
    let outcome = string::set_with(&mut context.unit, &key, value, options).await?;
    if options.returns_old {
        return Ok(outcome.old.into());
    }
    Ok(if outcome.was_set { Reply::OK } else { Reply::Null })
}

fn set_options(mut args: Args<'_>, now_ms: i64) -> Result<SetOptions> {
    let mut expiry = ExpiryOptions::default();
    let mut condition = None;
    let mut returns_old = false;
    while !args.is_empty() {
        if condition != Some(Condition::Present) && args.take("nx") {
            condition = Some(Condition::Absent);
        } else if condition != Some(Condition::Absent) && args.take("xx") {
            condition = Some(Condition::Present);
        } else if args.take("get") {
            returns_old = true;
        } else {
            expiry.take_or_keep(&mut args)?;
        }
    }
    let expiry = expiry.expiry("set", now_ms)?.unwrap_or_default();
    Ok(SetOptions { condition, expiry, returns_old })
}

/// `SETEX key seconds value`
async fn setex(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    set_for(context, args, "setex", Unit::Seconds)
}

/// `PSETEX key milliseconds value`
async fn psetex(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    set_for(context, args, "psetex", Unit::Milliseconds)
}

fn set_for(context: &mut Context<'_>, mut args: Args<'_>, name: &str, unit: Unit) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let expires_at_ms = expiry::after(args.next_value()?, unit, name, context.unit.now_ms())?;
    string::set(&mut context.unit, &key, args.next_value()?.clone(), Some(expires_at_ms))?;
    Ok(Reply::OK)
}

/// `SETNX key value`
async fn setnx(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let options = SetOptions { condition: Some(Condition::Absent), ..SetOptions::default() };
    let outcome = string::set_with(&mut context.unit, &key, args.next_value()?.clone(), options).await?;
    Ok(Reply::Int(outcome.was_set.into()))
}

/// `MSET key value [key value ...]`
async fn mset(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    let (keys, values) = pairs(context, args, "mset")?;
    for (key, value) in keys.iter().zip(values) {
        string::set(&mut context.unit, key, value, None)?;
    }
    Ok(Reply::OK)
}

/// `MSETNX key value [key value ...]`
async fn msetnx(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    let (keys, values) = pairs(context, args, "msetnx")?;
    let was_set = string::set_all_if_absent(&mut context.unit, &keys, values).await?;
    Ok(Reply::Int(was_set.into()))
}

/// Keys and values by turns.
fn pairs(context: &Context<'_>, args: Args<'_>, name: &str) -> Result<(Vec<Key>, Vec<Bytes>)> {
    if !args.len().is_multiple_of(2) {
        return Err(Error::wrong_arity(name));
    }
    let keys = args.rest().iter().step_by(2).map(|name| context.key(name)).collect();
    Ok((keys, args.rest().iter().skip(1).step_by(2).cloned().collect()))
}

/// `APPEND key value`
async fn append(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let bytes_max = string_bytes_max(context);
    Ok(integer(string::append(&mut context.unit, &key, args.next_value()?, bytes_max).await?))
}

/// `SETRANGE key offset value`
async fn setrange(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let offset = u64::try_from(args.next_integer()?).map_err(|_| Error::OFFSET_OUT_OF_RANGE)?;
    let bytes_max = string_bytes_max(context);
    Ok(integer(string::overwrite(&mut context.unit, &key, offset, args.next_value()?, bytes_max).await?))
}

/// `GETRANGE key start end`, and `SUBSTR`, which is an older name of it.
async fn getrange(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let (start, end) = (args.next_integer()?, args.next_integer()?);
    Ok(Reply::Bulk(string::range(&mut context.unit, &key, start, end).await?))
}

/// `STRLEN key`
async fn strlen(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let metadata = context.unit.load_as(&key, Type::String).await?;
    Ok(integer(metadata.map_or(Ok(0), |metadata| string::length(&metadata))?))
}

/// `INCR key`
async fn incr(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.next_value()?;
    increment(context, key, 1).await
}

/// `DECR key`
async fn decr(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.next_value()?;
    increment(context, key, -1).await
}

/// `INCRBY key increment`
async fn incrby(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.next_value()?;
    increment(context, key, args.next_integer()?).await
}

/// `DECRBY key decrement`
async fn decrby(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = args.next_value()?;
    let by = args.next_integer()?.checked_neg().ok_or(Error::text("ERR decrement would overflow"))?;
    increment(context, key, by).await
}

async fn increment(context: &mut Context<'_>, key: &Bytes, by: i64) -> Result<Reply> {
    let key = context.key(key);
    Ok(Reply::Int(string::increment(&mut context.unit, &key, by).await?))
}

/// `INCRBYFLOAT key increment`
async fn incrbyfloat(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(Reply::Bulk(string::increment_float(&mut context.unit, &key, args.next_value()?).await?))
}

/// How long a string may become, in bytes.
fn string_bytes_max(context: &Context<'_>) -> u64 {
    context.gateway.settings().server.bulk_bytes_max.0
}

fn integer(length: u64) -> Reply {
    Reply::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = READ.union(Flags::FAST);
const WRITE: Flags = Flags::WRITE.union(Flags::DENYOOM);
const WRITE_FAST: Flags = WRITE.union(Flags::FAST);
const WRITE_BLIND: Flags = WRITE.union(Flags::BLIND);
const READ_BRIEF: Flags = READ_FAST.union(Flags::BRIEF);
const WRITE_BRIEF: Flags = WRITE_FAST.union(Flags::BRIEF);
const SET_BRIEF: Flags = WRITE_BLIND.union(Flags::BRIEF);

const READS: Access = Access::RO.union(Access::ACCESS);
const UPDATES: Access = Access::RW.union(Access::ACCESS).union(Access::UPDATE);
const OVERWRITES: Access = Access::OW.union(Access::UPDATE);
const INSERTS: Access = Access::OW.union(Access::INSERT);

pub(super) const COMMANDS: &[Command] = &[
    Command::new("append", 3, WRITE_FAST, |context, args| Box::pin(append(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::INSERT))])
        .doc(
            "2.0.0",
            "O(1)",
            "Appends a string to the value of a key. Creates the key if it doesn't exist.",
        ),
    Command::new("decr", 2, WRITE_BRIEF, |context, args| Box::pin(decr(context, args)))
        .keys(&[KeySpec::at(1, UPDATES)])
        .doc(
            "1.0.0",
            "O(1)",
            "Decrements the integer value of a key by one. Uses 0 as initial value if the key doesn't exist.",
        ),
    Command::new("decrby", 3, WRITE_BRIEF, |context, args| Box::pin(decrby(context, args)))
        .keys(&[KeySpec::at(1, UPDATES)])
        .doc(
            "1.0.0",
            "O(1)",
            "Decrements a number from the integer value of a key. Uses 0 as initial value if the key doesn't exist.",
        ),
    Command::new("get", 2, READ_BRIEF, |context, args| Box::pin(get(context, args)))
        .keys(&[KeySpec::at(1, READS)])
        .doc("1.0.0", "O(1)", "Returns the string value of a key."),
    Command::new("getdel", 2, Flags::WRITE.union(Flags::FAST), |context, args| Box::pin(getdel(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::DELETE))])
        .doc("6.2.0", "O(1)", "Returns the string value of a key after deleting the key."),
    Command::new("getex", -2, Flags::WRITE.union(Flags::FAST), |context, args| Box::pin(getex(context, args)))
        .keys(&[KeySpec::at(1, UPDATES)])
        .doc("6.2.0", "O(1)", "Returns the string value of a key after setting its expiration time."),
    Command::new("getrange", 4, READ, |context, args| Box::pin(getrange(context, args)))
        .keys(&[KeySpec::at(1, READS)])
        .doc(
            "2.4.0",
            "O(N) where N is the length of the returned string.",
            "Returns a substring of the string stored at a key.",
        ),
    Command::new("getset", 3, WRITE_FAST, |context, args| Box::pin(getset(context, args)))
        .keys(&[KeySpec::at(1, UPDATES)])
        .doc("1.0.0", "O(1)", "Returns the previous string value of a key after setting it to a new value."),
    Command::new("incr", 2, WRITE_BRIEF, |context, args| Box::pin(incr(context, args)))
        .keys(&[KeySpec::at(1, UPDATES)])
        .doc(
            "1.0.0",
            "O(1)",
            "Increments the integer value of a key by one. Uses 0 as initial value if the key doesn't exist.",
        ),
    Command::new("incrby", 3, WRITE_BRIEF, |context, args| Box::pin(incrby(context, args)))
        .keys(&[KeySpec::at(1, UPDATES)])
        .doc(
            "1.0.0",
            "O(1)",
            "Increments the integer value of a key by a number. Uses 0 as initial value if the key doesn't exist.",
        ),
    Command::new("incrbyfloat", 3, WRITE_BRIEF, |context, args| Box::pin(incrbyfloat(context, args)))
        .keys(&[KeySpec::at(1, UPDATES)])
        .doc(
            "2.6.0",
            "O(1)",
            "Increment the floating point value of a key by a number. Uses 0 as initial value if the key doesn't exist.",
        ),
    Command::new("lcs", -3, READ, |context, args| Box::pin(lcs::lcs(context, args)))
        .keys(&[KeySpec {
            begin: Begin::Index(1),
            find: Find::Range { last: 1, step: 1 },
            access: READS,
        }])
        .doc(
            "7.0.0",
            "O(N*M) where N and M are the lengths of s1 and s2, respectively",
            "Finds the longest common substring.",
        ),
    Command::new("mget", -2, READ_FAST, |context, args| Box::pin(mget(context, args)))
        .keys(&[KeySpec::from(1, READS)])
        .doc(
            "1.0.0",
            "O(N) where N is the number of keys to retrieve.",
            "Atomically returns the string values of one or more keys.",
        ),
    Command::new("mset", -3, SET_BRIEF, |context, args| Box::pin(mset(context, args)))
        .keys(&[KeySpec::every(1, 2, OVERWRITES)])
        .doc(
            "1.0.1",
            "O(N) where N is the number of keys to set.",
            "Atomically creates or modifies the string values of one or more keys.",
        ),
    Command::new("msetnx", -3, WRITE, |context, args| Box::pin(msetnx(context, args)))
        .keys(&[KeySpec::every(1, 2, INSERTS)])
        .doc(
            "1.0.1",
            "O(N) where N is the number of keys to set.",
            "Atomically modifies the string values of one or more keys only when all keys don't exist.",
        ),
    Command::new("psetex", 4, SET_BRIEF, |context, args| Box::pin(psetex(context, args)))
        .keys(&[KeySpec::at(1, OVERWRITES)])
        .doc(
            "2.6.0",
            "O(1)",
            "Sets both string value and expiration time in milliseconds of a key. The key is created if it doesn't exist.",
        ),
    Command::new("set", -3, SET_BRIEF, |context, args| Box::pin(set(context, args)))
        .keys(&[KeySpec::at(1, UPDATES.union(Access::VARIABLE_FLAGS))])
        .doc(
            "1.0.0",
            "O(1)",
            "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.",
        ),
    Command::new("setex", 4, SET_BRIEF, |context, args| Box::pin(setex(context, args)))
        .keys(&[KeySpec::at(1, OVERWRITES)])
        .doc(
            "2.0.0",
            "O(1)",
            "Sets the string value and expiration time of a key. Creates the key if it doesn't exist.",
        ),
    Command::new("setnx", 3, WRITE_BRIEF, |context, args| Box::pin(setnx(context, args)))
        .keys(&[KeySpec::at(1, INSERTS)])
        .doc("1.0.0", "O(1)", "Set the string value of a key only when the key doesn't exist."),
    Command::new("setrange", 4, WRITE, |context, args| Box::pin(setrange(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::UPDATE))])
        .doc(
            "2.2.0",
            "O(1), not counting the time taken to write the new string in place.",
            "Overwrites a part of a string value with another by an offset. Creates the key if it doesn't exist.",
        ),
    Command::new("strlen", 2, READ_BRIEF, |context, args| Box::pin(strlen(context, args)))
        .keys(&[KeySpec::at(1, Access::RO)])
        .doc("2.2.0", "O(1)", "Returns the length of a string value."),
    Command::new("substr", 4, READ, |context, args| Box::pin(getrange(context, args)))
        .keys(&[KeySpec::at(1, READS)])
        .doc(
            "1.0.0",
            "O(N) where N is the length of the returned string.",
            "Returns a substring from a string value.",
        ),
];
