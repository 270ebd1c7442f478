//! ZUNION, ZINTER and ZDIFF, and what stores or counts what they find.

use super::{Args, Context, Error, Result, reply_members};
use crate::{
    encoding::Type,
    keyspace::{self, Key},
    resp::{Reply, double::parse_double},
    types::zset::{self, Aggregate, Input, Scored},
};

/// What is made of several sorted sets and sets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Algebra {
    Union,
    Intersection,
    Difference,
}

/// What may follow the keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Show,
    Store,
    Count,
}

struct Request {
    inputs: Vec<Input>,
    aggregate: Aggregate,
    with_scores: bool,
    /// At most so many are counted; 0 for all.
    limit: usize,
}

impl Algebra {
    /// `ZUNION numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX] [WITHSCORES]` and its like.
    pub(super) async fn show(self, context: &mut Context<'_>, args: Args<'_>, name: &str) -> Result<Reply> {
        let request = self.parse(context, args, name, Purpose::Show).await?;
        let members = self.of(context, &request).await?;
        Ok(reply_members(context, members, request.with_scores))
    }

    /// `ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight ...] [AGGREGATE SUM | MIN | MAX]` and its like.
    pub(super) async fn store(self, context: &mut Context<'_>, mut args: Args<'_>, name: &str) -> Result<Reply> {
        let destination = context.key(args.next_value()?);
        let request = self.parse(context, args, name, Purpose::Store).await?;
        let members = self.of(context, &request).await?;
        Ok(Reply::count(zset::replace(&mut context.unit, &destination, members).await?))
    }

    /// `ZINTERCARD numkeys key [key ...] [LIMIT limit]`
    pub(super) async fn count(self, context: &mut Context<'_>, args: Args<'_>, name: &str) -> Result<Reply> {
        let request = self.parse(context, args, name, Purpose::Count).await?;
        let count = self.of(context, &request).await?.len();
        Ok(Reply::count(if request.limit == 0 { count } else { count.min(request.limit) }))
    }

    async fn of(self, context: &mut Context<'_>, request: &Request) -> Result<Vec<Scored>> {
        let unit = &mut context.unit;
        Ok(match self {
            Self::Union => zset::union(unit, &request.inputs, request.aggregate).await?,
            Self::Intersection => zset::intersection(unit, &request.inputs, request.aggregate).await?,
            Self::Difference => {
                let keys: Vec<Key> = request.inputs.iter().map(|input| input.key.clone()).collect();
                zset::difference(unit, &keys).await?
            }
        })
    }

    async fn parse(
        self,
        context: &mut Context<'_>,
        mut args: Args<'_>,
        name: &str,
        purpose: Purpose,
    ) -> Result<Request> {
        let count = args.next_integer()?;
        if count < 1 {
            return Err(Error::user(format!("ERR at least 1 input key is needed for '{name}' command")));
        }
        let count = usize::try_from(count).ok().filter(|count| *count <= args.len()).ok_or(Error::SYNTAX)?;
        let mut inputs = Vec::with_capacity(count);
        for _ in 0..count {
            inputs.push(Input { key: context.key(args.next_value()?), weight: 1.0 });
        }
        // Redis looks at the keys before it looks at the options.
        for input in &inputs {
            let kind = context.unit.load(&input.key).await?.map(|metadata| metadata.kind());
            if kind.is_some_and(|kind| !matches!(kind, Type::Zset | Type::Set)) {
                return Err(keyspace::Error::WrongType.into());
            }
        }
        let mut request = Request { inputs, aggregate: Aggregate::default(), with_scores: false, limit: 0 };
        while !args.is_empty() {
            request.take_option(&mut args, self, purpose)?;
        }
        Ok(request)
    }
}

impl Request {
    fn take_option(&mut self, args: &mut Args<'_>, algebra: Algebra, purpose: Purpose) -> Result<()> {
        let takes_scores = algebra != Algebra::Difference && purpose != Purpose::Count;
        if takes_scores && args.len() > self.inputs.len() && args.take("weights") {
            for input in &mut self.inputs {
                let weight = parse_double(args.next_value()?);
                input.weight = weight.ok_or(Error::text("ERR weight value is not a float"))?;
            }
        } else if takes_scores && args.len() > 1 && args.take("aggregate") {
            let aggregates = [("sum", Aggregate::Sum), ("min", Aggregate::Min), ("max", Aggregate::Max)];
            self.aggregate = args.take_one_of(&aggregates).ok_or(Error::SYNTAX)?;
        } else if purpose == Purpose::Show && args.take("withscores") {
            self.with_scores = true;
        } else if purpose == Purpose::Count && args.len() > 1 && args.take("limit") {
            let limit = args.next_integer().ok().and_then(|limit| usize::try_from(limit).ok());
            self.limit = limit.ok_or(Error::text("ERR LIMIT can't be negative"))?;
        } else {
            return Err(Error::SYNTAX);
        }
        Ok(())
    }
}
