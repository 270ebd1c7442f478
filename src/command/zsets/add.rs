//! ZADD and ZINCRBY.

use std::cmp::Ordering;

use bitflags::bitflags;

use super::{Args, Context, Error, Result};
use crate::{
    resp::{Reply, double::parse_double},
    types::{
        string::Condition,
        zset::{self, AddOptions, Scored},
    },
};

/// `ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]`
pub(super) async fn zadd(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    add(context, args, AddFlags::empty()).await
}

/// `ZINCRBY key increment member`
pub(super) async fn zincrby(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    add(context, args, AddFlags::INCR).await
}

async fn add(context: &mut Context<'_>, mut args: Args<'_>, preset: AddFlags) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let flags = preset | AddFlags::take(&mut args);
    if args.is_empty() || !args.len().is_multiple_of(2) {
        return Err(Error::SYNTAX);
    }
    let options = flags.options()?;
    let increments = flags.contains(AddFlags::INCR);
    if increments && args.len() > 2 {
        return Err(Error::text("ERR INCR option supports a single increment-element pair"));
    }
    let mut members: Vec<Scored> = Vec::with_capacity(args.len() / 2);
    while !args.is_empty() {
        let score = parse_double(args.next_value()?).ok_or(Error::NOT_FLOAT)?;
        members.push((args.next_value()?.clone(), score));
    }
    if let ([(member, by)], true) = (&*members, increments) {
        let score = zset::increment(&mut context.unit, &key, member, *by, options).await?;
        return Ok(score.map_or(Reply::Null, Reply::Double));
    }
    let done = zset::add(&mut context.unit, &key, &members, options).await?;
    Ok(Reply::count(done.added + if flags.contains(AddFlags::CH) { done.updated } else { 0 }))
}

bitflags! {
    /// The words before the first score.
    #[derive(Clone, Copy)]
    struct AddFlags: u8 {
        const NX = 1 << 0;
        const XX = 1 << 1;
        const GT = 1 << 2;
        const LT = 1 << 3;
        const CH = 1 << 4;
        const INCR = 1 << 5;
    }
}

impl AddFlags {
    fn take(args: &mut Args<'_>) -> Self {
        let words = [
            ("nx", Self::NX),
            ("xx", Self::XX),
            ("gt", Self::GT),
            ("lt", Self::LT),
            ("ch", Self::CH),
            ("incr", Self::INCR),
        ];
        let mut flags = Self::empty();
        while let Some(flag) = args.take_one_of(&words) {
            flags |= flag;
        }
        flags
    }

    fn options(self) -> Result<AddOptions> {
        if self.contains(Self::NX | Self::XX) {
            return Err(Error::text("ERR XX and NX options at the same time are not compatible"));
        }
        if (self & (Self::GT | Self::LT | Self::NX)).bits().count_ones() > 1 {
            return Err(Error::text("ERR GT, LT, and/or NX options at the same time are not compatible"));
        }
        let has = |flag| self.contains(flag);
        let absent = has(Self::NX).then_some(Condition::Absent);
        let greater = has(Self::GT).then_some(Ordering::Greater);
        Ok(AddOptions {
            condition: absent.or(has(Self::XX).then_some(Condition::Present)),
            must_be: greater.or(has(Self::LT).then_some(Ordering::Less)),
        })
    }
}
