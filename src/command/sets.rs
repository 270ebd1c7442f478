//! Sets.

use bytes::Bytes;

use super::{
    Access, Args, Command, Context, ElementSpec, Error, Flags, KeySpec, Result,
    sample::next_sample,
    scan::{self, ScanOptions},
    stream::Part,
};
use crate::{
    encoding::Type,
    keyspace::Key,
    resp::Reply,
    types::{Sample, set},
};

/// `SADD key member [member ...]`
async fn sadd(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(Reply::count(set::add(&mut context.unit, &key, args.rest()).await?))
}

/// `SREM key member [member ...]`
async fn srem(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(Reply::count(set::remove(&mut context.unit, &key, args.rest()).await?))
}

/// `SCARD key`
async fn scard(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(Reply::count(set::len(&mut context.unit, &key).await?))
}

/// `SISMEMBER key member`
async fn sismember(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let found = set::contains(&mut context.unit, &key, args.rest()).await?;
    Ok(Reply::Int(found.into_iter().map(i64::from).sum()))
}

/// `SMISMEMBER key member [member ...]`
async fn smismember(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let found = set::contains(&mut context.unit, &key, args.rest()).await?;
    Ok(Reply::Array(found.into_iter().map(|found| Reply::Int(i64::from(found))).collect()))
}

/// `SMEMBERS key`
async fn smembers(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    if context.stream(&key, Part::Members).await? {
        return Ok(Reply::None);
    }
    Ok(members(set::all(&mut context.unit, &key).await?.unwrap_or_default()))
}

/// `SMOVE source destination member`
async fn smove(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (from, to) = (context.key(args.next_value()?), context.key(args.next_value()?));
    let moved = set::move_member(&mut context.unit, &from, &to, args.next_value()?).await?;
    Ok(Reply::Int(i64::from(moved)))
}

/// `SPOP key [count]`
async fn spop(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    if args.is_empty() {
        let popped = set::pop(&mut context.unit, &key, 1).await?;
        return Ok(popped.into_iter().flatten().next().into());
    }
    if args.len() > 1 {
        return Err(Error::SYNTAX);
    }
    let count = args.next_integer().ok().and_then(|count| usize::try_from(count).ok()).ok_or(Error::NOT_POSITIVE)?;
    let popped = set::pop(&mut context.unit, &key, count).await?.unwrap_or_default();
    Ok(Reply::Set(popped.into_iter().map(Reply::Bulk).collect()))
}

/// `SRANDMEMBER key [count]`
async fn srandmember(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    if args.is_empty() {
        let chosen = set::sample(&mut context.unit, &key, Sample::Distinct(1)).await?;
        return Ok(chosen.into_iter().flatten().next().into());
    }
    if args.len() > 1 {
        return Err(Error::SYNTAX);
    }
    let sample = next_sample(&mut args)?;
    Ok(Reply::bulks(set::sample(&mut context.unit, &key, sample).await?.unwrap_or_default()))
}

/// `SSCAN key cursor [MATCH pattern] [COUNT count]`
async fn sscan(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let cursor = scan::parse_cursor(args.next_value()?)?;
    if !set::exists(&mut context.unit, &key).await? {
        return scan::reply(context, None, Vec::new()).await;
    }
    let options = ScanOptions::parse(args, false)?;
    let position = scan::position(context, cursor).await?;
    let (members, next) = set::page(&mut context.unit, &key, position.as_ref(), options.count).await?;
    let found = members.into_iter().filter(|member| options.selects(member)).map(Reply::Bulk).collect();
    scan::reply(context, next, found).await
}

/// What SINTER, SUNION and SDIFF, and their STORE forms, make of several sets.
#[derive(Clone, Copy)]
enum Algebra {
    Intersection,
    Union,
    Difference,
}

impl Algebra {
    async fn of(self, context: &mut Context<'_>, keys: &[Key]) -> Result<Vec<Bytes>> {
        let unit = &mut context.unit;
        Ok(match self {
            Self::Intersection => set::intersection(unit, keys).await?,
            Self::Union => set::union(unit, keys).await?,
            Self::Difference => set::difference(unit, keys).await?,
        })
    }

    /// `SINTER key [key ...]` and its like.
    async fn show(self, context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
        let keys = context.keys(args.rest());
        Ok(members(self.of(context, &keys).await?))
    }

    /// `SINTERSTORE destination key [key ...]` and its like.
    async fn store(self, context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
        let destination = context.key(args.next_value()?);
        let keys = context.keys(args.rest());
        let members = self.of(context, &keys).await?;
        Ok(Reply::count(set::replace(&mut context.unit, &destination, members).await?))
    }
}

/// `SINTERCARD numkeys key [key ...] [LIMIT limit]`
async fn sintercard(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let count = args.next_integer().ok().and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0);
    let count = count.ok_or(Error::text("ERR numkeys should be greater than 0"))?;
    if count > args.len() {
        return Err(Error::text("ERR Number of keys can't be greater than number of args"));
    }
    let mut keys = Vec::with_capacity(count);
    for _ in 0..count {
        keys.push(context.key(args.next_value()?));
    }
    let mut limit = 0;
    while !args.is_empty() {
        if !args.take("LIMIT") || args.is_empty() {
            return Err(Error::SYNTAX);
        }
        let given = args.next_integer().ok().and_then(|limit| usize::try_from(limit).ok());
        limit = given.ok_or(Error::text("ERR LIMIT can't be negative"))?;
    }
    let members = set::intersection(&mut context.unit, &keys).await?.len();
    Ok(Reply::count(if limit == 0 { members } else { members.min(limit) }))
}

fn members(members: Vec<Bytes>) -> Reply {
    Reply::Set(members.into_iter().map(Reply::Bulk).collect())
}

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = Flags::READONLY.union(Flags::FAST);
const WRITE_FAST: Flags = Flags::WRITE.union(Flags::FAST);
const GROW: Flags = Flags::WRITE.union(Flags::DENYOOM);

const READS: &[KeySpec] = &[KeySpec::at(1, Access::RO.union(Access::ACCESS))];
const READS_ALL: &[KeySpec] = &[KeySpec::from(1, Access::RO.union(Access::ACCESS))];
const TESTS: &[KeySpec] = &[KeySpec::at(1, Access::RO)];
const STORES: &[KeySpec] =
    &[KeySpec::at(1, Access::OW.union(Access::UPDATE)), KeySpec::from(2, Access::RO.union(Access::ACCESS))];

pub(super) const COMMANDS: &[Command] = &[
    Command::new("sadd", -3, GROW.union(Flags::FAST), |context, args| Box::pin(sadd(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::INSERT))])
        .elements(ElementSpec::all(Type::Set).to_count())
        .doc(
            "1.0.0",
            "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
            "Adds one or more members to a set. Creates the key if it doesn't exist.",
        ),
    Command::new("scard", 2, READ_FAST, |context, args| Box::pin(scard(context, args)))
        .keys(TESTS)
        .doc("1.0.0", "O(1)", "Returns the number of members in a set."),
    Command::new("sdiff", -2, READ, |context, args| Box::pin(Algebra::Difference.show(context, args)))
        .keys(READS_ALL)
        .doc(
            "1.0.0",
            "O(N) where N is the total number of elements in all given sets.",
            "Returns the difference of multiple sets.",
        ),
    Command::new("sdiffstore", -3, GROW, |context, args| Box::pin(Algebra::Difference.store(context, args)))
        .keys(STORES)
        .doc(
            "1.0.0",
            "O(N) where N is the total number of elements in all given sets.",
            "Stores the difference of multiple sets in a key.",
        ),
    Command::new("sinter", -2, READ, |context, args| Box::pin(Algebra::Intersection.show(context, args)))
        .keys(READS_ALL)
        .doc(
            "1.0.0",
            "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
            "Returns the intersect of multiple sets.",
        ),
    Command::new("sintercard", -3, READ.union(Flags::MOVABLE_KEYS), |context, args| {
        Box::pin(sintercard(context, args))
    })
    .keys(&[KeySpec::counted(1, Access::RO.union(Access::ACCESS))])
    .doc(
        "7.0.0",
        "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
        "Returns the number of members of the intersect of multiple sets.",
    ),
    Command::new("sinterstore", -3, GROW, |context, args| Box::pin(Algebra::Intersection.store(context, args)))
        .keys(&[
            KeySpec::at(1, Access::RW.union(Access::UPDATE)),
            KeySpec::from(2, Access::RO.union(Access::ACCESS)),
        ])
        .doc(
            "1.0.0",
            "O(N*M) worst case where N is the cardinality of the smallest set and M is the number of sets.",
            "Stores the intersect of multiple sets in a key.",
        ),
    Command::new("sismember", 3, READ_FAST, |context, args| Box::pin(sismember(context, args)))
        .keys(TESTS)
        .elements(ElementSpec::one(Type::Set))
        .doc("1.0.0", "O(1)", "Determines whether a member belongs to a set."),
    Command::new("smembers", 2, READ, |context, args| Box::pin(smembers(context, args)))
        .keys(READS)
        .doc("1.0.0", "O(N) where N is the set cardinality.", "Returns all members of a set."),
    Command::new("smismember", -3, READ_FAST, |context, args| Box::pin(smismember(context, args)))
        .keys(TESTS)
        .elements(ElementSpec::all(Type::Set))
        .doc(
            "6.2.0",
            "O(N) where N is the number of elements being checked for membership",
            "Determines whether multiple members belong to a set.",
        ),
    Command::new("smove", 4, WRITE_FAST, |context, args| Box::pin(smove(context, args)))
        .keys(&[
            KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::DELETE)),
            KeySpec::at(2, Access::RW.union(Access::INSERT)),
        ])
        .elements(ElementSpec::at(Type::Set, 3))
        .doc("1.0.0", "O(1)", "Moves a member from one set to another."),
    Command::new("spop", -2, WRITE_FAST, |context, args| Box::pin(spop(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::DELETE))])
        .doc(
            "1.0.0",
            "O(N) where N is the size of the set.",
            "Returns one or more random members from a set after removing them. Deletes the set if the last member was \
             popped.",
        ),
    Command::new("srandmember", -2, READ, |context, args| Box::pin(srandmember(context, args))).keys(READS).doc(
        "1.0.0",
        "O(N) where N is the size of the set.",
        "Returns one or more members of a set, chosen at random.",
    ),
    Command::new("srem", -3, WRITE_FAST, |context, args| Box::pin(srem(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::DELETE))])
        .elements(ElementSpec::all(Type::Set).to_count())
        .doc(
            "1.0.0",
            "O(N) where N is the number of members to be removed.",
            "Removes one or more members from a set. Deletes the set if the last member was removed.",
        ),
    Command::new("sscan", -3, READ, |context, args| Box::pin(sscan(context, args))).keys(READS).doc(
        "2.8.0",
        "O(1) for every call. O(N) for a complete iteration.",
        "Iterates over members of a set.",
    ),
    Command::new("sunion", -2, READ, |context, args| Box::pin(Algebra::Union.show(context, args)))
        .keys(READS_ALL)
        .doc(
            "1.0.0",
            "O(N) where N is the total number of elements in all given sets.",
            "Returns the union of multiple sets.",
        ),
    Command::new("sunionstore", -3, GROW, |context, args| Box::pin(Algebra::Union.store(context, args)))
        .keys(STORES)
        .doc(
            "1.0.0",
            "O(N) where N is the total number of elements in all given sets.",
            "Stores the union of multiple sets in a key.",
        ),
];
