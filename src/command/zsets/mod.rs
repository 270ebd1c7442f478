//! Sorted sets.

mod add;
mod algebra;
mod pop;
mod range;

use respgate_backend_api::Direction;

use super::{
    Access, Args, Command, Context, ElementSpec, Error, Flags, KeySpec, Result,
    sample::next_sample_with,
    scan::{self, ScanOptions},
};
use crate::{
    encoding::Type,
    resp::{Protocol, Reply, double::format_double},
    types::{
        Sample,
        zset::{self, Scored},
    },
};

use add::{zadd, zincrby};
use algebra::Algebra;
use pop::{zmpop, zpop};
use range::{By, Form, zcount, zrange, zrangestore, zremrange};

/// `ZCARD key`
async fn zcard(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(Reply::count(zset::len(&mut context.unit, &key).await?))
}

/// `ZSCORE key member`
async fn zscore(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let scores = zset::scores(&mut context.unit, &key, args.rest()).await?;
    Ok(scores.into_iter().next().map_or(Reply::Null, reply_score))
}

/// `ZMSCORE key member [member ...]`
async fn zmscore(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let scores = zset::scores(&mut context.unit, &key, args.rest()).await?;
    Ok(Reply::Array(scores.into_iter().map(reply_score).collect()))
}

/// `ZREM key member [member ...]`
async fn zrem(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(Reply::count(zset::remove(&mut context.unit, &key, args.rest()).await?))
}

/// `ZRANK key member [WITHSCORE]` and `ZREVRANK`
async fn zrank(context: &mut Context<'_>, mut args: Args<'_>, from: Direction, name: &str) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let member = args.next_value()?;
    if args.len() > 1 {
        return Err(Error::wrong_arity(name));
    }
    let with_score = !args.is_empty();
    if with_score && !args.take("withscore") {
        return Err(Error::SYNTAX);
    }
    Ok(match zset::rank(&mut context.unit, &key, member, from).await? {
        Some((rank, score)) if with_score => Reply::Array(vec![Reply::count(rank), Reply::Double(score)]),
        Some((rank, _)) => Reply::count(rank),
        None if with_score => Reply::NullArray,
        None => Reply::Null,
    })
}

/// `ZRANDMEMBER key [count [WITHSCORES]]`
async fn zrandmember(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    if args.is_empty() {
        let chosen = zset::sample(&mut context.unit, &key, Sample::Distinct(1)).await?;
        return Ok(chosen.into_iter().flatten().next().map(|(member, _)| member).into());
    }
    let (sample, with_scores) = next_sample_with(&mut args, "WITHSCORES")?;
    let chosen = zset::sample(&mut context.unit, &key, sample).await?.unwrap_or_default();
    Ok(reply_members(context, chosen, with_scores))
}

/// `ZSCAN key cursor [MATCH pattern] [COUNT count]`
async fn zscan(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let cursor = scan::parse_cursor(args.next_value()?)?;
    if !zset::exists(&mut context.unit, &key).await? {
        return scan::reply(context, None, Vec::new()).await;
    }
    let options = ScanOptions::parse(args, false)?;
    let position = scan::position(context, cursor).await?;
    let (members, next) = zset::page(&mut context.unit, &key, position.as_ref(), options.count).await?;
    let selected = members.into_iter().filter(|(member, _)| options.selects(member));
    // A bulk string in RESP3, too, as in Redis.
    let found = selected.flat_map(|(member, score)| [Reply::Bulk(member), Reply::bulk(format_double(score))]);
    scan::reply(context, next, found.collect()).await
}

/// Members by themselves, or with their scores: by turns in RESP2, in pairs in RESP3.
fn reply_members(context: &Context<'_>, members: Vec<Scored>, with_scores: bool) -> Reply {
    if !with_scores {
        return Reply::bulks(members.into_iter().map(|(member, _)| member));
    }
    Reply::Array(match context.session.protocol {
        Protocol::Resp2 => {
            members.into_iter().flat_map(|(member, score)| [Reply::Bulk(member), Reply::Double(score)]).collect()
        }
        Protocol::Resp3 => pairs(members),
    })
}

fn pairs(members: Vec<Scored>) -> Vec<Reply> {
    members.into_iter().map(|(member, score)| Reply::Array(vec![Reply::Bulk(member), Reply::Double(score)])).collect()
}

fn reply_score(score: Option<f64>) -> Reply {
    score.map_or(Reply::Null, Reply::Double)
}

const READ: Flags = Flags::READONLY;
const READ_FAST: Flags = Flags::READONLY.union(Flags::FAST);
const READ_MOVABLE: Flags = Flags::READONLY.union(Flags::MOVABLE_KEYS);
const WRITE: Flags = Flags::WRITE;
const WRITE_FAST: Flags = Flags::WRITE.union(Flags::FAST);
const GROW: Flags = Flags::WRITE.union(Flags::DENYOOM);
const GROW_FAST: Flags = GROW.union(Flags::FAST);
const GROW_MOVABLE: Flags = GROW.union(Flags::MOVABLE_KEYS);

const READS: &[KeySpec] = &[KeySpec::at(1, Access::RO.union(Access::ACCESS))];
const READS_COUNTED: &[KeySpec] = &[KeySpec::counted(1, Access::RO.union(Access::ACCESS))];
const COUNTS: &[KeySpec] = &[KeySpec::at(1, Access::RO)];
const DELETES: &[KeySpec] = &[KeySpec::at(1, Access::RW.union(Access::DELETE))];
const POPS: &[KeySpec] = &[KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::DELETE))];
const STORES: &[KeySpec] =
    &[KeySpec::at(1, Access::OW.union(Access::UPDATE)), KeySpec::counted(2, Access::RO.union(Access::ACCESS))];

const RANGE: Form = Form { by: None, direction: None };
const RANGE_BY_LEX: Form = Form { by: Some(By::Member), direction: Some(Direction::Forward) };
const RANGE_BY_SCORE: Form = Form { by: Some(By::Score), direction: Some(Direction::Forward) };
const REVERSE: Form = Form { by: Some(By::Rank), direction: Some(Direction::Backward) };
const REVERSE_BY_LEX: Form = Form { by: Some(By::Member), direction: Some(Direction::Backward) };
const REVERSE_BY_SCORE: Form = Form { by: Some(By::Score), direction: Some(Direction::Backward) };

pub(super) const COMMANDS: &[Command] = &[
    Command::new("zadd", -4, GROW_FAST, |context, args| Box::pin(zadd(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::UPDATE))])
        .elements(ElementSpec::scored(Type::Zset))
        .doc(
            "1.2.0",
            "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
            "Adds one or more members to a sorted set, or updates their scores. Creates the key if it doesn't \
             exist.",
        ),
    Command::new("zcard", 2, READ_FAST, |context, args| Box::pin(zcard(context, args))).keys(COUNTS).doc(
        "1.2.0",
        "O(1)",
        "Returns the number of members in a sorted set.",
    ),
    Command::new("zcount", 4, READ_FAST, |context, args| Box::pin(zcount(context, args, By::Score))).keys(READS).doc(
        "2.0.0",
        "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             counted.",
        "Returns the count of members in a sorted set that have scores within a range.",
    ),
    Command::new("zdiff", -3, READ_MOVABLE, |context, args| Box::pin(Algebra::Difference.show(context, args, "zdiff")))
        .keys(READS_COUNTED)
        .doc(
            "6.2.0",
            "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the \
             size of the first set, and K is the size of the result set.",
            "Returns the difference between multiple sorted sets.",
        ),
    Command::new("zdiffstore", -4, GROW_MOVABLE, |context, args| {
        Box::pin(Algebra::Difference.store(context, args, "zdiffstore"))
    })
    .keys(STORES)
    .doc(
        "6.2.0",
        "O(L + (N-K)log(N)) worst case where L is the total number of elements in all the sets, N is the \
             size of the first set, and K is the size of the result set.",
        "Stores the difference of multiple sorted sets in a key.",
    ),
    Command::new("zincrby", 4, GROW_FAST, |context, args| Box::pin(zincrby(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::UPDATE))])
        .elements(ElementSpec::at(Type::Zset, 3))
        .doc(
            "1.2.0",
            "O(log(N)) where N is the number of elements in the sorted set.",
            "Increments the score of a member in a sorted set.",
        ),
    Command::new("zinter", -3, READ_MOVABLE, |context, args| {
        Box::pin(Algebra::Intersection.show(context, args, "zinter"))
    })
    .keys(READS_COUNTED)
    .doc(
        "6.2.0",
        "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of \
             input sorted sets and M being the number of elements in the resulting sorted set.",
        "Returns the intersect of multiple sorted sets.",
    ),
    Command::new("zintercard", -3, READ_MOVABLE, |context, args| {
        Box::pin(Algebra::Intersection.count(context, args, "zintercard"))
    })
    .keys(READS_COUNTED)
    .doc(
        "7.0.0",
        "O(N*K) worst case with N being the smallest input sorted set, K being the number of input sorted \
             sets.",
        "Returns the number of members of the intersect of multiple sorted sets.",
    ),
    Command::new("zinterstore", -4, GROW_MOVABLE, |context, args| {
        Box::pin(Algebra::Intersection.store(context, args, "zinterstore"))
    })
    .keys(STORES)
    .doc(
        "2.0.0",
        "O(N*K)+O(M*log(M)) worst case with N being the smallest input sorted set, K being the number of \
             input sorted sets and M being the number of elements in the resulting sorted set.",
        "Stores the intersect of multiple sorted sets in a key.",
    ),
    Command::new("zlexcount", 4, READ_FAST, |context, args| Box::pin(zcount(context, args, By::Member)))
        .keys(READS)
        .doc(
            "2.8.9",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             counted.",
            "Returns the number of members in a sorted set within a lexicographical range.",
        ),
    Command::new("zmpop", -4, WRITE.union(Flags::MOVABLE_KEYS), |context, args| Box::pin(zmpop(context, args)))
        .keys(&[KeySpec::counted(1, Access::RW.union(Access::ACCESS).union(Access::DELETE))])
        .doc(
            "7.0.0",
            "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the \
             sorted set, and M being the number of elements popped.",
            "Returns the highest- or lowest-scoring members from one or more sorted sets after removing them. \
             Deletes the sorted set if the last member was popped.",
        ),
    Command::new("zmscore", -3, READ_FAST, |context, args| Box::pin(zmscore(context, args)))
        .keys(READS)
        .elements(ElementSpec::all(Type::Zset))
        .doc(
            "6.2.0",
            "O(N) where N is the number of members being requested.",
            "Returns the score of one or more members in a sorted set.",
        ),
    Command::new("zpopmax", -2, WRITE_FAST, |context, args| Box::pin(zpop(context, args, Direction::Backward)))
        .keys(POPS)
        .doc(
            "5.0.0",
            "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of \
             elements popped.",
            "Returns the highest-scoring members from a sorted set after removing them. Deletes the sorted \
             set if the last member was popped.",
        ),
    Command::new("zpopmin", -2, WRITE_FAST, |context, args| Box::pin(zpop(context, args, Direction::Forward)))
        .keys(POPS)
        .doc(
            "5.0.0",
            "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of \
             elements popped.",
            "Returns the lowest-scoring members from a sorted set after removing them. Deletes the sorted set \
             if the last member was popped.",
        ),
    Command::new("zrandmember", -2, READ, |context, args| Box::pin(zrandmember(context, args))).keys(READS).doc(
        "6.2.0",
        "O(N) where N is the number of members returned",
        "Returns one or more random members from a sorted set.",
    ),
    Command::new("zrange", -4, READ, |context, args| Box::pin(zrange(context, args, RANGE))).keys(READS).doc(
        "1.2.0",
        "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             returned.",
        "Returns members in a sorted set within a range of indexes.",
    ),
    Command::new("zrangebylex", -4, READ, |context, args| Box::pin(zrange(context, args, RANGE_BY_LEX)))
        .keys(READS)
        .doc(
            "2.8.9",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             being returned.",
            "Returns members in a sorted set within a lexicographical range.",
        ),
    Command::new("zrangebyscore", -4, READ, |context, args| Box::pin(zrange(context, args, RANGE_BY_SCORE)))
        .keys(READS)
        .doc(
            "1.0.5",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             being returned.",
            "Returns members in a sorted set within a range of scores.",
        ),
    Command::new("zrangestore", -5, GROW, |context, args| Box::pin(zrangestore(context, args)))
        .keys(&[KeySpec::at(1, Access::OW.union(Access::UPDATE)), KeySpec::at(2, Access::RO.union(Access::ACCESS))])
        .doc(
            "6.2.0",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             stored into the destination key.",
            "Stores a range of members from sorted set in a key.",
        ),
    Command::new("zrank", -3, READ_FAST, |context, args| Box::pin(zrank(context, args, Direction::Forward, "zrank")))
        .keys(READS)
        .elements(ElementSpec::one(Type::Zset))
        .doc(
            "2.0.0",
            "O(N) with N being the rank.",
            "Returns the index of a member in a sorted set ordered by ascending scores.",
        ),
    Command::new("zrem", -3, WRITE_FAST, |context, args| Box::pin(zrem(context, args)))
        .keys(DELETES)
        .elements(ElementSpec::all(Type::Zset))
        .doc(
            "1.2.0",
            "O(M*log(N)) with N being the number of elements in the sorted set and M the number of elements \
             to be removed.",
            "Removes one or more members from a sorted set. Deletes the sorted set if all members were removed.",
        ),
    Command::new("zremrangebylex", 4, WRITE, |context, args| Box::pin(zremrange(context, args, By::Member)))
        .keys(DELETES)
        .doc(
            "2.8.9",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             removed by the operation.",
            "Removes members in a sorted set within a lexicographical range. Deletes the sorted set if all \
             members were removed.",
        ),
    Command::new("zremrangebyrank", 4, WRITE, |context, args| Box::pin(zremrange(context, args, By::Rank)))
        .keys(DELETES)
        .doc(
            "2.0.0",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             removed by the operation.",
            "Removes members in a sorted set within a range of indexes. Deletes the sorted set if all members \
             were removed.",
        ),
    Command::new("zremrangebyscore", 4, WRITE, |context, args| Box::pin(zremrange(context, args, By::Score)))
        .keys(DELETES)
        .doc(
            "1.2.0",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             removed by the operation.",
            "Removes members in a sorted set within a range of scores. Deletes the sorted set if all members \
             were removed.",
        ),
    Command::new("zrevrange", -4, READ, |context, args| Box::pin(zrange(context, args, REVERSE))).keys(READS).doc(
        "1.2.0",
        "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             returned.",
        "Returns members in a sorted set within a range of indexes in reverse order.",
    ),
    Command::new("zrevrangebylex", -4, READ, |context, args| Box::pin(zrange(context, args, REVERSE_BY_LEX)))
        .keys(READS)
        .doc(
            "2.8.9",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             being returned.",
            "Returns members in a sorted set within a lexicographical range in reverse order.",
        ),
    Command::new("zrevrangebyscore", -4, READ, |context, args| Box::pin(zrange(context, args, REVERSE_BY_SCORE)))
        .keys(READS)
        .doc(
            "2.2.0",
            "O(log(N)+M) with N being the number of elements in the sorted set and M the number of elements \
             being returned.",
            "Returns members in a sorted set within a range of scores in reverse order.",
        ),
    Command::new("zrevrank", -3, READ_FAST, |context, args| {
        Box::pin(zrank(context, args, Direction::Backward, "zrevrank"))
    })
    .keys(READS)
    .elements(ElementSpec::one(Type::Zset))
    .doc(
        "2.0.0",
        "O(N) with N being the rank.",
        "Returns the index of a member in a sorted set ordered by descending scores.",
    ),
    Command::new("zscan", -3, READ, |context, args| Box::pin(zscan(context, args))).keys(READS).doc(
        "2.8.0",
        "O(1) for every call. O(N) for a complete iteration.",
        "Iterates over members and scores of a sorted set.",
    ),
    Command::new("zscore", 3, READ_FAST, |context, args| Box::pin(zscore(context, args)))
        .keys(READS)
        .elements(ElementSpec::one(Type::Zset))
        .doc("1.2.0", "O(1)", "Returns the score of a member in a sorted set."),
    Command::new("zunion", -3, READ_MOVABLE, |context, args| Box::pin(Algebra::Union.show(context, args, "zunion")))
        .keys(READS_COUNTED)
        .doc(
            "6.2.0",
            "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted sets, and M being the \
             number of elements in the resulting sorted set.",
            "Returns the union of multiple sorted sets.",
        ),
    Command::new("zunionstore", -4, GROW_MOVABLE, |context, args| {
        Box::pin(Algebra::Union.store(context, args, "zunionstore"))
    })
    .keys(STORES)
    .doc(
        "2.0.0",
        "O(N)+O(M log(M)) with N being the sum of the sizes of the input sorted sets, and M being the \
             number of elements in the resulting sorted set.",
        "Stores the union of multiple sorted sets in a key.",
    ),
];
