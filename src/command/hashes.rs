//! Hashes.

use bytes::Bytes;

use super::{
    Access, Args, Command, Context, ElementSpec, Error, Flags, KeySpec, Result,
    sample::next_sample_with,
    scan::{self, ScanOptions},
    stream::Part,
};
use crate::{
    encoding::Type,
    resp::{Protocol, Reply, integer::parse_integer},
    types::{self, LongDouble, Sample, hash},
};

/// `HSET key field value [field value ...]`
async fn hset(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    let added = set_pairs(context, args, "hset").await?;
    Ok(Reply::count(added))
}

/// `HMSET key field value [field value ...]`
async fn hmset(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    set_pairs(context, args, "hmset").await?;
    Ok(Reply::OK)
}

async fn set_pairs(context: &mut Context<'_>, mut args: Args<'_>, name: &str) -> Result<usize> {
    let key = context.key(args.next_value()?);
    let (pairs, rest) = args.rest().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(Error::wrong_arity(name));
    }
    let pairs: Vec<_> = pairs.iter().map(|[field, value]| (field.clone(), value.clone())).collect();
    Ok(hash::set(&mut context.unit, &key, &pairs).await?)
}

/// `HSETNX key field value`
async fn hsetnx(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let (field, value) = (args.next_value()?, args.next_value()?);
    let was_set = hash::set_if_absent(&mut context.unit, &key, field, value).await?;
    Ok(Reply::Int(i64::from(was_set)))
}

/// `HGET key field`
async fn hget(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(hash::get(&mut context.unit, &key, args.next_value()?).await?.into())
}

/// `HMGET key field [field ...]`
async fn hmget(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let values = hash::get_many(&mut context.unit, &key, args.rest()).await?;
    Ok(Reply::Array(values.into_iter().map(Reply::from).collect()))
}

/// `HEXISTS key field`
async fn hexists(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let value = hash::get(&mut context.unit, &key, args.next_value()?).await?;
    Ok(Reply::Int(i64::from(value.is_some())))
}

/// `HSTRLEN key field`
async fn hstrlen(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let value = hash::get(&mut context.unit, &key, args.next_value()?).await?;
    Ok(Reply::count(value.map_or(0, |value| value.len())))
}

/// `HLEN key`
async fn hlen(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(Reply::count(hash::len(&mut context.unit, &key).await?))
}

/// `HDEL key field [field ...]`
async fn hdel(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(Reply::count(hash::delete(&mut context.unit, &key, args.rest()).await?))
}

/// `HGETALL key`
async fn hgetall(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    if context.stream(&key, Part::Pairs).await? {
        return Ok(Reply::None);
    }
    let pairs = hash::all(&mut context.unit, &key).await?;
    Ok(Reply::Map(pairs.into_iter().map(|(field, value)| (Reply::Bulk(field), Reply::Bulk(value))).collect()))
}

/// `HKEYS key`
async fn hkeys(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    if context.stream(&key, Part::Fields).await? {
        return Ok(Reply::None);
    }
    let pairs = hash::all(&mut context.unit, &key).await?;
    Ok(Reply::bulks(pairs.into_iter().map(|(field, _)| field)))
}

/// `HVALS key`
async fn hvals(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    if context.stream(&key, Part::Values).await? {
        return Ok(Reply::None);
    }
    let pairs = hash::all(&mut context.unit, &key).await?;
    Ok(Reply::bulks(pairs.into_iter().map(|(_, value)| value)))
}

/// `HINCRBY key field increment`
async fn hincrby(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let (field, increment) = (args.next_value()?, args.next_integer()?);
    let mut sum = 0;
    hash::update(&mut context.unit, &key, field, |value| {
        let value = value.map_or(Some(0), |value| parse_integer(value)).ok_or(types::Error::NotInteger)?;
        sum = value.checked_add(increment).ok_or(types::Error::Overflow)?;
        Ok(Bytes::from(sum.to_string()))
    })
    .await
    .map_err(|error| match error {
        types::Error::NotInteger => Error::text("ERR hash value is not an integer"),
        error => error.into(),
    })?;
    Ok(Reply::Int(sum))
}

/// `HINCRBYFLOAT key field increment`
async fn hincrbyfloat(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let field = args.next_value()?;
    let increment = LongDouble::parse(args.next_value()?).ok_or(Error::NOT_FLOAT)?;
    if increment.checked_add(LongDouble::ZERO).is_none() {
        return Err(Error::text("ERR value is NaN or Infinity"));
    }
    let sum = hash::update(&mut context.unit, &key, field, |value| {
        let value = value.map_or(Some(LongDouble::ZERO), |value| LongDouble::parse(value));
        let sum = value.ok_or(types::Error::NotFloat)?.checked_add(increment).ok_or(types::Error::NotFinite)?;
        Ok(Bytes::from(sum.to_string()))
    })
    .await
    .map_err(|error| match error {
        types::Error::NotFloat => Error::text("ERR hash value is not a float"),
        error => error.into(),
    })?;
    Ok(Reply::Bulk(sum))
}

/// `HRANDFIELD key [count [WITHVALUES]]`
async fn hrandfield(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    if args.is_empty() {
        let chosen = hash::sample(&mut context.unit, &key, Sample::Distinct(1)).await?;
        return Ok(chosen.into_iter().flatten().next().map_or(Reply::Null, |(field, _)| Reply::Bulk(field)));
    }
    let (sample, with_values) = next_sample_with(&mut args, "WITHVALUES")?;
    let chosen = hash::sample(&mut context.unit, &key, sample).await?.unwrap_or_default();
    if !with_values {
        return Ok(Reply::bulks(chosen.into_iter().map(|(field, _)| field)));
    }
    Ok(Reply::Array(match context.session.protocol {
        Protocol::Resp2 => {
            chosen.into_iter().flat_map(|(field, value)| [Reply::Bulk(field), Reply::Bulk(value)]).collect()
        }
        Protocol::Resp3 => chosen.into_iter().map(|(field, value)| Reply::bulks([field, value])).collect(),
    }))
}

/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`
async fn hscan(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let cursor = scan::parse_cursor(args.next_value()?)?;
    if !hash::exists(&mut context.unit, &key).await? {
        return scan::reply(context, None, Vec::new()).await;
    }
    let (options, no_values) = match args.rest().split_last() {
        Some((last, _)) if last.eq_ignore_ascii_case(b"NOVALUES") => (args.without_last(), true),
        _ => (args, false),
    };
    let options = ScanOptions::parse(options, false)?;
    let position = scan::position(context, cursor).await?;
    let (pairs, next) = hash::page(&mut context.unit, &key, position.as_ref(), options.count).await?;
    let selected = pairs.into_iter().filter(|(field, _)| options.selects(field));
    let found = match no_values {
        true => selected.map(|(field, _)| Reply::Bulk(field)).collect(),
        false => selected.flat_map(|(field, value)| [Reply::Bulk(field), Reply::Bulk(value)]).collect(),
    };
    scan::reply(context, next, found).await
}

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = Flags::READONLY.union(Flags::FAST);
const WRITE_FAST: Flags = Flags::WRITE.union(Flags::FAST);
const GROW_FAST: Flags = WRITE_FAST.union(Flags::DENYOOM);

const READS: &[KeySpec] = &[KeySpec::at(1, Access::RO.union(Access::ACCESS))];
const COUNTS: &[KeySpec] = &[KeySpec::at(1, Access::RO)];
const UPDATES: &[KeySpec] = &[KeySpec::at(1, Access::RW.union(Access::UPDATE))];

pub(super) const COMMANDS: &[Command] = &[
    Command::new("hdel", -3, WRITE_FAST, |context, args| Box::pin(hdel(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::DELETE))])
        .elements(ElementSpec::all(Type::Hash).to_count())
        .doc(
            "2.0.0",
            "O(N) where N is the number of fields to be removed.",
            "Deletes one or more fields and their values from a hash. Deletes the hash if no fields remain.",
        ),
    Command::new("hexists", 3, READ_FAST, |context, args| Box::pin(hexists(context, args)))
        .keys(COUNTS)
        .elements(ElementSpec::one(Type::Hash))
        .doc("2.0.0", "O(1)", "Determines whether a field exists in a hash."),
    Command::new("hget", 3, READ_FAST, |context, args| Box::pin(hget(context, args)))
        .keys(READS)
        .elements(ElementSpec::one(Type::Hash))
        .doc("2.0.0", "O(1)", "Returns the value of a field in a hash."),
    Command::new("hgetall", 2, READ, |context, args| Box::pin(hgetall(context, args)))
        .keys(READS)
        .doc("2.0.0", "O(N) where N is the size of the hash.", "Returns all fields and values in a hash."),
    Command::new("hincrby", 4, GROW_FAST, |context, args| Box::pin(hincrby(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::UPDATE))])
        .elements(ElementSpec::one(Type::Hash))
        .doc(
            "2.0.0",
            "O(1)",
            "Increments the integer value of a field in a hash by a number. Uses 0 as initial value if the field doesn't \
             exist.",
        ),
    Command::new("hincrbyfloat", 4, GROW_FAST, |context, args| Box::pin(hincrbyfloat(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::UPDATE))])
        .elements(ElementSpec::one(Type::Hash))
        .doc(
            "2.6.0",
            "O(1)",
            "Increments the floating point value of a field by a number. Uses 0 as initial value if the field doesn't \
             exist.",
        ),
    Command::new("hkeys", 2, READ, |context, args| Box::pin(hkeys(context, args)))
        .keys(READS)
        .doc("2.0.0", "O(N) where N is the size of the hash.", "Returns all fields in a hash."),
    Command::new("hlen", 2, READ_FAST, |context, args| Box::pin(hlen(context, args)))
        .keys(COUNTS)
        .doc("2.0.0", "O(1)", "Returns the number of fields in a hash."),
    Command::new("hmget", -3, READ_FAST, |context, args| Box::pin(hmget(context, args)))
        .keys(READS)
        .elements(ElementSpec::all(Type::Hash))
        .doc(
            "2.0.0",
            "O(N) where N is the number of fields being requested.",
            "Returns the values of all fields in a hash.",
        ),
    Command::new("hmset", -4, GROW_FAST, |context, args| Box::pin(hmset(context, args)))
        .keys(UPDATES)
        .elements(ElementSpec::fields(Type::Hash).to_count())
        .doc("2.0.0", "O(N) where N is the number of fields being set.", "Sets the values of multiple fields."),
    Command::new("hrandfield", -2, READ, |context, args| Box::pin(hrandfield(context, args)))
        .keys(READS)
        .doc("6.2.0", "O(N) where N is the size of the hash.", "Returns one or more random fields from a hash."),
    Command::new("hscan", -3, READ, |context, args| Box::pin(hscan(context, args))).keys(READS).doc(
        "2.8.0",
        "O(1) for every call. O(N) for a complete iteration.",
        "Iterates over fields and values of a hash.",
    ),
    Command::new("hset", -4, GROW_FAST, |context, args| Box::pin(hset(context, args)))
        .keys(UPDATES)
        .elements(ElementSpec::fields(Type::Hash).to_count())
        .doc(
            "2.0.0",
            "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command is called with \
             multiple field/value pairs.",
            "Creates or modifies the value of a field in a hash.",
        ),
    Command::new("hsetnx", 4, GROW_FAST, |context, args| Box::pin(hsetnx(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::INSERT))])
        .elements(ElementSpec::one(Type::Hash))
        .doc("2.0.0", "O(1)", "Sets the value of a field in a hash only when the field doesn't exist."),
    Command::new("hstrlen", 3, READ_FAST, |context, args| Box::pin(hstrlen(context, args)))
        .keys(COUNTS)
        .elements(ElementSpec::one(Type::Hash))
        .doc("3.2.0", "O(1)", "Returns the length of the value of a field."),
    Command::new("hvals", 2, READ, |context, args| Box::pin(hvals(context, args)))
        .keys(READS)
        .doc("2.0.0", "O(N) where N is the size of the hash.", "Returns all values in a hash."),
];
