//! ZRANGE and all that is a special case of it.

use std::ops::Bound;

use bytes::Bytes;
use respgate_backend_api::Direction;

use super::{Args, Context, Error, Result, reply_members};
use crate::{
    resp::{Reply, double::parse_bound},
    types::zset::{self, Edge, Range, Span},
};

/// By what a range is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Rank,
    Score,
    Member,
}

/// What the name of a command says about its range. What it leaves open, ZRANGE's options say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Form {
    pub(super) by: Option<By>,
    pub(super) direction: Option<Direction>,
}

struct Options {
    by: By,
    direction: Direction,
    offset: i64,
    limit: i64,
    with_scores: bool,
}

/// `ZRANGE key min max [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]`, and its older forms.
pub(super) async fn zrange(context: &mut Context<'_>, mut args: Args<'_>, form: Form) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let (range, with_scores) = parse(args, form, true)?;
    let members = zset::range(&mut context.unit, &key, &range).await?;
    Ok(reply_members(context, members, with_scores))
}

/// `ZRANGESTORE destination source min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]`
pub(super) async fn zrangestore(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (destination, source) = (context.key(args.next_value()?), context.key(args.next_value()?));
    let (range, _) = parse(args, Form::default(), false)?;
    let members = zset::range(&mut context.unit, &source, &range).await?;
    Ok(Reply::count(zset::replace(&mut context.unit, &destination, members).await?))
}

/// `ZCOUNT key min max` and `ZLEXCOUNT key min max`
pub(super) async fn zcount(context: &mut Context<'_>, mut args: Args<'_>, by: By) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let span = span(by, args.next_value()?, args.next_value()?)?;
    Ok(Reply::count(zset::count(&mut context.unit, &key, &span).await?))
}

/// `ZREMRANGEBYSCORE key min max` and its like.
pub(super) async fn zremrange(context: &mut Context<'_>, mut args: Args<'_>, by: By) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let span = span(by, args.next_value()?, args.next_value()?)?;
    Ok(Reply::count(zset::remove_range(&mut context.unit, &key, span).await?))
}

fn parse(mut args: Args<'_>, form: Form, may_show_scores: bool) -> Result<(Range, bool)> {
    let (first, second) = (args.next_value()?, args.next_value()?);
    let options = Options::parse(args, form, may_show_scores)?;
    let (min, max) = match (options.by, options.direction) {
        (By::Score | By::Member, Direction::Backward) => (second, first),
        _ => (first, second),
    };
    let range = Range {
        span: span(options.by, min, max)?,
        direction: options.direction,
        // Redis counts a negative offset down for ever, so that nothing is left.
        offset: usize::try_from(options.offset).unwrap_or(usize::MAX),
        limit: usize::try_from(options.limit).unwrap_or(usize::MAX),
    };
    Ok((range, options.with_scores))
}

impl Options {
    fn parse(mut args: Args<'_>, form: Form, may_show_scores: bool) -> Result<Self> {
        let Form { mut by, mut direction } = form;
        let (mut offset, mut limit, mut with_scores) = (0, -1, false);
        while !args.is_empty() {
            if may_show_scores && args.take("withscores") {
                with_scores = true;
            } else if args.len() > 2 && args.take("limit") {
                (offset, limit) = (args.next_integer()?, args.next_integer()?);
            } else if direction.is_none() && args.take("rev") {
                direction = Some(Direction::Backward);
            } else if by.is_none() && args.take("bylex") {
                by = Some(By::Member);
            } else if by.is_none() && args.take("byscore") {
                by = Some(By::Score);
            } else {
                return Err(Error::SYNTAX);
            }
        }
        let by = by.unwrap_or(By::Rank);
        if limit != -1 && by == By::Rank {
            let text = "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX";
            return Err(Error::text(text));
        }
        if with_scores && by == By::Member {
            return Err(Error::text("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        Ok(Self { by, direction: direction.unwrap_or(Direction::Forward), offset, limit, with_scores })
    }
}

fn span(by: By, min: &Bytes, max: &Bytes) -> Result<Span> {
    let rank = |text: &Bytes| crate::resp::integer::parse_integer(text).ok_or(Error::NOT_INTEGER);
    Ok(match by {
        By::Rank => Span::Ranks(rank(min)?, rank(max)?),
        By::Score => Span::Scores(score(min)?, score(max)?),
        By::Member => Span::Members(edge(min)?, edge(max)?),
    })
}

/// `1.5`, or `(1.5` without that score itself.
fn score(text: &[u8]) -> Result<Bound<f64>> {
    let bound = match text {
        [b'(', text @ ..] => parse_bound(text).map(Bound::Excluded),
        text => parse_bound(text).map(Bound::Included),
    };
    bound.ok_or(Error::text("ERR min or max is not a float"))
}

/// `-`, `+`, `[member`, or `(member` without that member itself.
fn edge(text: &Bytes) -> Result<Edge> {
    match &text[..] {
        b"-" => Ok(Edge::Lowest),
        b"+" => Ok(Edge::Highest),
        [b'[', ..] => Ok(Edge::Including(text.slice(1..))),
        [b'(', ..] => Ok(Edge::Excluding(text.slice(1..))),
        _ => Err(Error::text("ERR min or max not valid string range item")),
    }
}
