//! Values as RDB payloads.

use super::{Access, Args, Command, Context, Error, Flags, KeySpec, Result};
use crate::{
    encoding::rdb,
    resp::{Reply, integer::parse_integer},
    types::key::{self, IfExists},
};

const BUSY_KEY: Error = Error::text("BUSYKEY Target key name already exists.");
const INVALID_TTL: Error = Error::text("ERR Invalid TTL value, must be >= 0");
const INVALID_IDLETIME: Error = Error::text("ERR Invalid IDLETIME value, must be >= 0");
const INVALID_FREQ: Error = Error::text("ERR Invalid FREQ value, must be >= 0 and <= 255");

/// `DUMP key`
async fn dump(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let value = key::value(&mut context.unit, &key).await?;
    Ok(value.map_or(Reply::Null, |value| Reply::bulk(rdb::dump(&value))))
}

/// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
async fn restore(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let (ttl, payload) = (args.next_value()?, args.next_value()?);
    let options = RestoreOptions::parse(args)?;
    let unit = &mut context.unit;
    if options.if_exists == IfExists::Keep && unit.load(&key).await?.is_some() {
        return Err(BUSY_KEY);
    }
    let expires_at_ms = parse_ttl(ttl, options.is_absolute, unit.now_ms())?;
    let value = rdb::restore(payload).map_err(|error| Error::user(format!("ERR {error}")))?;
    key::delete(unit, std::slice::from_ref(&key)).await?;
    if expires_at_ms.is_none_or(|at_ms| at_ms > unit.now_ms()) {
        key::restore(unit, &key, value, expires_at_ms).await?;
    }
    Ok(Reply::OK)
}

/// When a restored key expires, in milliseconds since the Unix epoch; never for 0. As in Redis a time beyond 64 bits
/// wraps round to one long past.
fn parse_ttl(text: &[u8], is_absolute: bool, now_ms: i64) -> Result<Option<i64>> {
    match parse_integer(text).ok_or(Error::NOT_INTEGER)? {
        ..0 => Err(INVALID_TTL),
        0 => Ok(None),
        ttl_ms if is_absolute => Ok(Some(ttl_ms)),
        ttl_ms => Ok(Some(ttl_ms.wrapping_add(now_ms))),
    }
}

/// What RESTORE was told. IDLETIME and FREQ are checked and forgotten: nobody keeps track of accesses.
struct RestoreOptions {
    if_exists: IfExists,
    is_absolute: bool,
}

impl RestoreOptions {
    fn parse(mut args: Args<'_>) -> Result<Self> {
        let mut options = Self { if_exists: IfExists::Keep, is_absolute: false };
        let (mut has_idle_time, mut has_frequency) = (false, false);
        while !args.is_empty() {
            let has_value = args.len() > 1;
            if args.take("replace") {
                options.if_exists = IfExists::Replace;
            } else if args.take("absttl") {
                options.is_absolute = true;
            } else if has_value && !has_frequency && args.take("idletime") {
                has_idle_time = true;
                if args.next_integer()? < 0 {
                    return Err(INVALID_IDLETIME);
                }
            } else if has_value && !has_idle_time && args.take("freq") {
                has_frequency = true;
                if !(0..=255).contains(&args.next_integer()?) {
                    return Err(INVALID_FREQ);
                }
            } else {
                return Err(Error::SYNTAX);
            }
        }
        Ok(options)
    }
}

pub(super) const COMMANDS: &[Command] = &[
    Command::new("dump", 2, Flags::READONLY, |context, args| Box::pin(dump(context, args)))
        .keys(&[KeySpec::at(1, Access::RO.union(Access::ACCESS))])
        .doc(
            "2.6.0",
            "O(1) to access the key and additional O(N*M) to serialize it, where N is the number of Redis objects \
             composing the value and M their average size. For small string values the time complexity is thus \
             O(1)+O(1*M) where M is small, so simply O(1).",
            "Returns a serialized representation of the value stored at a key.",
        ),
    Command::new("restore", -4, Flags::WRITE.union(Flags::DENYOOM).union(Flags::DANGEROUS), |context, args| {
        Box::pin(restore(context, args))
    })
    .keys(&[KeySpec::at(1, Access::OW.union(Access::UPDATE))])
    .doc(
        "2.6.0",
        "O(1) to create the new key and additional O(N*M) to reconstruct the serialized value, where N is the number \
         of Redis objects composing the value and M their average size. For small string values the time complexity \
         is thus O(1)+O(1*M) where M is small, so simply O(1). However for sorted set values the complexity is \
         O(N*M*log(N)) because inserting values into sorted sets is O(log(N)).",
        "Creates a key from the serialized representation of a value.",
    ),
];
