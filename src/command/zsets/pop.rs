//! ZPOPMIN, ZPOPMAX and ZMPOP.

use respgate_backend_api::Direction;

use super::{Args, Context, Error, Result, pairs, reply_members};
use crate::{resp::Reply, types::zset};

/// `ZPOPMIN key [count]` and `ZPOPMAX`
pub(super) async fn zpop(context: &mut Context<'_>, mut args: Args<'_>, end: Direction) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    if args.len() > 1 {
        return Err(Error::SYNTAX);
    }
    let count = match args.peek() {
        Some(_) => Some(positive(&mut args).ok_or(Error::NOT_POSITIVE)?),
        None => None,
    };
    let popped = zset::pop(&mut context.unit, &key, end, count.unwrap_or(1)).await?.unwrap_or_default();
    if count.is_some() {
        return Ok(reply_members(context, popped, true));
    }
    let flat = popped.into_iter().flat_map(|(member, score)| [Reply::Bulk(member), Reply::Double(score)]);
    Ok(Reply::Array(flat.collect()))
}

/// `ZMPOP numkeys key [key ...] MIN | MAX [COUNT count]`
pub(super) async fn zmpop(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    const BAD_COUNT: Error = Error::text("ERR count should be greater than 0");

    let numkeys = positive(&mut args).filter(|number| *number > 0);
    let numkeys = numkeys.ok_or(Error::text("ERR numkeys should be greater than 0"))?;
    let mut keys = Vec::new();
    for _ in 0..numkeys {
        keys.push(context.key(args.next_value()?));
    }
    let ends = [("min", Direction::Forward), ("max", Direction::Backward)];
    let end = args.take_one_of(&ends).ok_or(Error::SYNTAX)?;
    let mut count = None;
    while !args.is_empty() {
        if count.is_some() || args.len() < 2 || !args.take("count") {
            return Err(Error::SYNTAX);
        }
        count = Some(positive(&mut args).filter(|count| *count > 0).ok_or(BAD_COUNT)?);
    }
    for key in keys {
        if let Some(popped) = zset::pop(&mut context.unit, &key, end, count.unwrap_or(1)).await? {
            return Ok(Reply::Array(vec![Reply::Bulk(key.name), Reply::Array(pairs(popped))]));
        }
    }
    Ok(Reply::NullArray)
}

/// The next argument as a number that is not negative.
fn positive(args: &mut Args<'_>) -> Option<usize> {
    args.next_integer().ok().and_then(|number| usize::try_from(number).ok())
}
