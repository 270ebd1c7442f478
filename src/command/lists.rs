//! Lists.

use super::{Access, Args, Command, Context, Error, Flags, KeySpec, Result};
use crate::{
    resp::Reply,
    types::list::{self, End, Place, Search},
};

/// `LPUSH key element [element ...]`, and RPUSH.
async fn push(context: &mut Context<'_>, mut args: Args<'_>, end: End) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(Reply::count(list::push(&mut context.unit, &key, end, args.rest()).await?))
}

/// `LPUSHX key element [element ...]`, and RPUSHX.
async fn push_if_exists(context: &mut Context<'_>, mut args: Args<'_>, end: End) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    if list::len(&mut context.unit, &key).await? == 0 {
        return Ok(Reply::Int(0));
    }
    Ok(Reply::count(list::push(&mut context.unit, &key, end, args.rest()).await?))
}

/// `LPOP key [count]`, and RPOP.
async fn pop(context: &mut Context<'_>, mut args: Args<'_>, end: End, name: &str) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    if args.is_empty() {
        let popped = list::pop(&mut context.unit, &key, end, 1).await?;
        return Ok(popped.into_iter().flatten().next().into());
    }
    if args.len() > 1 {
        return Err(Error::wrong_arity(name));
    }
    let count = args.next_integer().ok().and_then(|count| u64::try_from(count).ok()).ok_or(Error::NOT_POSITIVE)?;
    Ok(list::pop(&mut context.unit, &key, end, count).await?.map_or(Reply::NullArray, Reply::bulks))
}

/// `LLEN key`
async fn llen(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(Reply::count(list::len(&mut context.unit, &key).await?))
}

/// `LINDEX key index`
async fn lindex(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let index = args.next_integer();
    // A key that is missing or of another type is told before an index that is none.
    if list::len(&mut context.unit, &key).await? == 0 {
        return Ok(Reply::Null);
    }
    Ok(list::get(&mut context.unit, &key, index?).await?.into())
}

/// `LSET key index element`
async fn lset(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let index = args.next_integer();
    if list::len(&mut context.unit, &key).await? == 0 {
        return Err(Error::NO_SUCH_KEY);
    }
    list::set(&mut context.unit, &key, index?, args.next_value()?).await?;
    Ok(Reply::OK)
}

/// `LRANGE key start stop`
async fn lrange(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let (start, stop) = (args.next_integer()?, args.next_integer()?);
    Ok(Reply::bulks(list::range(&mut context.unit, &key, start, stop).await?))
}

/// `LTRIM key start stop`
async fn ltrim(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let (start, stop) = (args.next_integer()?, args.next_integer()?);
    list::trim(&mut context.unit, &key, start, stop).await?;
    Ok(Reply::OK)
}

/// `LREM key count element`
async fn lrem(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let count = args.next_integer()?;
    Ok(Reply::count(list::remove(&mut context.unit, &key, count, args.next_value()?).await?))
}

/// `LINSERT key BEFORE|AFTER pivot element`
async fn linsert(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let place = if args.take("BEFORE") {
        Place::Before
    } else if args.take("AFTER") {
        Place::After
    } else {
        return Err(Error::SYNTAX);
    };
    let (pivot, element) = (args.next_value()?, args.next_value()?);
    Ok(match list::insert(&mut context.unit, &key, place, pivot, element).await? {
        None => Reply::Int(0),
        Some(None) => Reply::Int(-1),
        Some(Some(len)) => Reply::count(len),
    })
}

/// `LPOS key element [RANK rank] [COUNT num-matches] [MAXLEN len]`
async fn lpos(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    const ZERO_RANK: Error = Error::text(
        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start \
         from the end of the list",
    );

    let key = context.key(args.next_value()?);
    let wanted = args.next_value()?;
    let mut search = Search { rank: 1, count: 1, compared_max: 0 };
    let mut is_counted = false;
    while !args.is_empty() {
        if args.len() < 2 {
            return Err(Error::SYNTAX);
        }
        if args.take("RANK") {
            search.rank = match args.next_integer()? {
                0 => return Err(ZERO_RANK),
                i64::MIN => {
                    return Err(Error::text(
                        "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
                    ));
                }
                rank => rank,
            };
        } else if args.take("COUNT") {
            let count = args.next_integer().ok().and_then(|count| u64::try_from(count).ok());
            search.count = count.ok_or(Error::text("ERR COUNT can't be negative"))?;
            is_counted = true;
        } else if args.take("MAXLEN") {
            let most = args.next_integer().ok().and_then(|most| u64::try_from(most).ok());
            search.compared_max = most.ok_or(Error::text("ERR MAXLEN can't be negative"))?;
        } else {
            return Err(Error::SYNTAX);
        }
    }
    let found = list::find(&mut context.unit, &key, wanted, search).await?;
    if is_counted {
        return Ok(Reply::Array(found.into_iter().map(Reply::count).collect()));
    }
    Ok(found.first().map_or(Reply::Null, |index| Reply::count(*index)))
}

/// `LMOVE source destination LEFT|RIGHT LEFT|RIGHT`
async fn lmove(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (from, to) = (context.key(args.next_value()?), context.key(args.next_value()?));
    let (from_end, to_end) = (next_end(&mut args)?, next_end(&mut args)?);
    Ok(list::move_element(&mut context.unit, (&from, from_end), (&to, to_end)).await?.into())
}

/// `RPOPLPUSH source destination`
async fn rpoplpush(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (from, to) = (context.key(args.next_value()?), context.key(args.next_value()?));
    Ok(list::move_element(&mut context.unit, (&from, End::Tail), (&to, End::Head)).await?.into())
}

fn next_end(args: &mut Args<'_>) -> Result<End> {
    if args.take("LEFT") {
        Ok(End::Head)
    } else if args.take("RIGHT") {
        Ok(End::Tail)
    } else {
        Err(Error::SYNTAX)
    }
}

/// `LMPOP numkeys key [key ...] LEFT|RIGHT [COUNT count]`
async fn lmpop(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    const BAD_COUNT: Error = Error::text("ERR count should be greater than 0");

    let positive = |args: &mut Args<'_>| args.next_integer().ok().and_then(|number| u64::try_from(number).ok());
    let numkeys = positive(&mut args).filter(|number| *number > 0);
    let numkeys = numkeys.ok_or(Error::text("ERR numkeys should be greater than 0"))?;
    let mut keys = Vec::new();
    for _ in 0..numkeys {
        keys.push(context.key(args.next_value()?));
    }
    let end = next_end(&mut args)?;
    let mut count = None;
    while !args.is_empty() {
        if count.is_some() || args.len() < 2 || !args.take("COUNT") {
            return Err(Error::SYNTAX);
        }
        count = Some(positive(&mut args).filter(|count| *count > 0).ok_or(BAD_COUNT)?);
    }
    for key in keys {
        if let Some(popped) = list::pop(&mut context.unit, &key, end, count.unwrap_or(1)).await? {
            return Ok(Reply::Array(vec![Reply::Bulk(key.name), Reply::bulks(popped)]));
        }
    }
    Ok(Reply::NullArray)
}

const READ: Flags = Flags::READONLY;
const GROW: Flags = Flags::WRITE.union(Flags::DENYOOM);
const GROW_FAST: Flags = GROW.union(Flags::FAST);
const WRITE_FAST: Flags = Flags::WRITE.union(Flags::FAST);

const READS: &[KeySpec] = &[KeySpec::at(1, Access::RO.union(Access::ACCESS))];
const INSERTS: &[KeySpec] = &[KeySpec::at(1, Access::RW.union(Access::INSERT))];
const DELETES: &[KeySpec] = &[KeySpec::at(1, Access::RW.union(Access::DELETE))];
const POPS: &[KeySpec] = &[KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::DELETE))];
const MOVES: &[KeySpec] = &[
    KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::DELETE)),
    KeySpec::at(2, Access::RW.union(Access::INSERT)),
];

pub(super) const COMMANDS: &[Command] = &[
    Command::new("lindex", 3, READ, |context, args| Box::pin(lindex(context, args))).keys(READS).doc(
        "1.0.0",
        "O(1)",
        "Returns an element from a list by its index.",
    ),
    Command::new("linsert", 5, GROW, |context, args| Box::pin(linsert(context, args))).keys(INSERTS).doc(
        "2.2.0",
        "O(N) where N is the number of elements to traverse before seeing the value pivot, or to move.",
        "Inserts an element before or after another element in a list.",
    ),
    Command::new("llen", 2, READ.union(Flags::FAST).union(Flags::BRIEF), |context, args| Box::pin(llen(context, args)))
        .keys(&[KeySpec::at(1, Access::RO)])
        .doc("1.0.0", "O(1)", "Returns the length of a list."),
    Command::new("lmove", 5, GROW, |context, args| Box::pin(lmove(context, args))).keys(MOVES).doc(
        "6.2.0",
        "O(1)",
        "Returns an element after popping it from one list and pushing it to another. Deletes the list if the last \
         element was moved.",
    ),
    Command::new("lmpop", -4, Flags::WRITE.union(Flags::MOVABLE_KEYS), |context, args| Box::pin(lmpop(context, args)))
        .keys(&[KeySpec::counted(1, Access::RW.union(Access::ACCESS).union(Access::DELETE))])
        .doc(
            "7.0.0",
            "O(N+M) where N is the number of provided keys and M is the number of elements returned.",
            "Returns multiple elements from a list after removing them. Deletes the list if the last element was popped.",
        ),
    Command::new("lpop", -2, WRITE_FAST, |context, args| Box::pin(pop(context, args, End::Head, "lpop"))).keys(POPS).doc(
        "1.0.0",
        "O(N) where N is the number of elements returned",
        "Returns the first elements in a list after removing it. Deletes the list if the last element was popped.",
    ),
    Command::new("lpos", -3, READ, |context, args| Box::pin(lpos(context, args))).keys(READS).doc(
        "6.0.6",
        "O(N) where N is the number of elements in the list, for the average case.",
        "Returns the index of matching elements in a list.",
    ),
    Command::new("lpush", -3, GROW_FAST, |context, args| Box::pin(push(context, args, End::Head))).keys(INSERTS).doc(
        "1.0.0",
        "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
        "Prepends one or more elements to a list. Creates the key if it doesn't exist.",
    ),
    Command::new("lpushx", -3, GROW_FAST, |context, args| Box::pin(push_if_exists(context, args, End::Head)))
        .keys(INSERTS)
        .doc(
            "2.2.0",
            "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
            "Prepends one or more elements to a list only when the list exists.",
        ),
    Command::new("lrange", 4, READ, |context, args| Box::pin(lrange(context, args))).keys(READS).doc(
        "1.0.0",
        "O(N) where N is the number of elements in the specified range.",
        "Returns a range of elements from a list.",
    ),
    Command::new("lrem", 4, Flags::WRITE, |context, args| Box::pin(lrem(context, args))).keys(DELETES).doc(
        "1.0.0",
        "O(N+M) where N is the length of the list and M is the number of elements removed.",
        "Removes elements from a list. Deletes the list if the last element was removed.",
    ),
    Command::new("lset", 4, GROW, |context, args| Box::pin(lset(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::UPDATE))])
        .doc("1.0.0", "O(1)", "Sets the value of an element in a list by its index."),
    Command::new("ltrim", 4, Flags::WRITE, |context, args| Box::pin(ltrim(context, args))).keys(DELETES).doc(
        "1.0.0",
        "O(N) where N is the number of elements to be removed by the operation.",
        "Removes elements from both ends a list. Deletes the list if all elements were trimmed.",
    ),
    Command::new("rpop", -2, WRITE_FAST, |context, args| Box::pin(pop(context, args, End::Tail, "rpop"))).keys(POPS).doc(
        "1.0.0",
        "O(N) where N is the number of elements returned",
        "Returns and removes the last elements of a list. Deletes the list if the last element was popped.",
    ),
    Command::new("rpoplpush", 3, GROW, |context, args| Box::pin(rpoplpush(context, args))).keys(MOVES).doc(
        "1.2.0",
        "O(1)",
        "Returns the last element of a list after removing and pushing it to another list. Deletes the list if the last \
         element was popped.",
    ),
    Command::new("rpush", -3, GROW_FAST, |context, args| Box::pin(push(context, args, End::Tail))).keys(INSERTS).doc(
        "1.0.0",
        "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
        "Appends one or more elements to a list. Creates the key if it doesn't exist.",
    ),
    Command::new("rpushx", -3, GROW_FAST, |context, args| Box::pin(push_if_exists(context, args, End::Tail)))
        .keys(INSERTS)
        .doc(
            "2.2.0",
            "O(1) for each element added, so O(N) to add N elements when the command is called with multiple arguments.",
            "Appends an element to a list only when the list exists.",
        ),
];
