//! Keys, whatever their type.

use bytes::Bytes;

use super::{Access, Args, Command, Context, Error, Flags, KeySpec, Result, glob};
use crate::{
    resp::Reply,
    types::key::{self, IfExists},
};

/// How many keys KEYS looks at before it lets others run.
const KEYS_PAGE: usize = 256;

const READ_BRIEF: Flags = Flags::READONLY.union(Flags::FAST).union(Flags::BRIEF);

const SAME_OBJECT: Error = Error::text("ERR source and destination objects are the same");

/// `COPY source destination [DB destination-db] [REPLACE]`
async fn copy(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let from = context.key(args.next_value()?);
    let mut to = context.key(args.next_value()?);
    let mut if_exists = IfExists::Keep;
    while !args.is_empty() {
        if args.take("replace") {
            if_exists = IfExists::Replace;
        } else if args.len() > 1 && args.take("db") {
            to.db = next_db(context, &mut args)?;
        } else {
            return Err(Error::SYNTAX);
        }
    }
    if from == to {
        return Err(SAME_OBJECT);
    }
    Ok(Reply::Int(key::copy(&mut context.unit, &from, &to, if_exists).await?.into()))
}

/// `DEL key [key …]`, `UNLINK key [key …]`: the same here, as neither looks at elements.
async fn del(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    let keys = context.keys(args.rest());
    Ok(Reply::Int(key::delete(&mut context.unit, &keys).await? as i64))
}

/// `EXISTS key [key …]`, `TOUCH key [key …]`: the same here, as nobody keeps the time of the last access.
async fn exists(context: &mut Context<'_>, args: Args<'_>) -> Result<Reply> {
    let keys = context.keys(args.rest());
    Ok(Reply::Int(key::count_existing(&mut context.unit, &keys).await? as i64))
}

/// `KEYS pattern`
async fn keys(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let pattern = args.next_value()?;
    let mut position: Option<Bytes> = None;
    let mut names = Vec::new();
    loop {
        let page = context.unit.names(context.session.db, position.as_deref(), KEYS_PAGE).await?;
        let matching = page.keys.into_iter().map(|(name, _)| name).filter(|name| glob::selects(pattern, name));
        names.extend(matching.map(|name| Reply::Bulk(compact(&name))));
        position = page.next;
        if position.is_none() {
            return Ok(Reply::Array(names));
        }
        tokio::task::yield_now().await;
    }
}

/// A copy of a name, which else would keep the memory of its whole record.
fn compact(name: &Bytes) -> Bytes {
    Bytes::copy_from_slice(name)
}

/// `MOVE key db`
async fn move_to(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let db = next_db(context, &mut args)?;
    if db == key.db {
        return Err(SAME_OBJECT);
    }
    Ok(Reply::Int(key::move_to(&mut context.unit, &key, db).await?.into()))
}

/// `RANDOMKEY`
async fn randomkey(context: &mut Context<'_>) -> Result<Reply> {
    Ok(context.unit.random_name(context.session.db).await?.into())
}

/// `RENAME key newkey`
async fn rename(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (from, to) = (context.key(args.next_value()?), context.key(args.next_value()?));
    key::rename(&mut context.unit, &from, &to, IfExists::Replace).await?;
    Ok(Reply::OK)
}

/// `RENAMENX key newkey`
async fn renamenx(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let (from, to) = (context.key(args.next_value()?), context.key(args.next_value()?));
    Ok(Reply::Int(key::rename(&mut context.unit, &from, &to, IfExists::Keep).await?.into()))
}

/// `TYPE key`
async fn kind(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let kind = key::kind(&mut context.unit, &key).await?;
    Ok(Reply::status(kind.map_or("none", |kind| kind.name())))
}

/// The next argument as the number of a database that exists.
pub(super) fn next_db(context: &Context<'_>, args: &mut Args<'_>) -> Result<u8> {
    const OUT_OF_RANGE: Error = Error::text("ERR value is out of range, value must between -2147483648 and 2147483647");

    let number = args.next_integer()?;
    let number = i32::try_from(number).map_err(|_| OUT_OF_RANGE)?;
    let db = u8::try_from(number).map_err(|_| Error::DB_OUT_OF_RANGE)?;
    context.unit.physical(db)?;
    Ok(db)
}

pub(super) const COMMANDS: &[Command] = &[
    Command::new("copy", -3, Flags::WRITE.union(Flags::DENYOOM), |context, args| Box::pin(copy(context, args)))
        .keys(&[KeySpec::at(1, Access::RO.union(Access::ACCESS)), KeySpec::at(2, Access::OW.union(Access::UPDATE))])
        .doc(
            "6.2.0",
            "O(N) worst case for collections, where N is the number of nested items. O(1) for string values.",
            "Copies the value of a key to a new key.",
        ),
    Command::new("del", -2, Flags::WRITE, |context, args| Box::pin(del(context, args)))
        .keys(&[KeySpec::from(1, Access::RM.union(Access::DELETE))])
        .doc("1.0.0", "O(N) where N is the number of keys that will be removed.", "Deletes one or more keys."),
    Command::new("exists", -2, READ_BRIEF, |context, args| Box::pin(exists(context, args)))
        .keys(&[KeySpec::from(1, Access::RO)])
        .doc("1.0.0", "O(N) where N is the number of keys to check.", "Determines whether one or more keys exist."),
    Command::new("keys", 2, Flags::READONLY.union(Flags::DANGEROUS).union(Flags::ALONE), |context, args| {
        Box::pin(keys(context, args))
    })
    .doc(
        "1.0.0",
        "O(N) with N being the number of keys in the database, under the assumption that the key names in the \
         database and the given pattern have limited length.",
        "Returns all key names that match a pattern.",
    ),
    Command::new("move", 3, Flags::WRITE.union(Flags::FAST), |context, args| Box::pin(move_to(context, args)))
        .keys(&[KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::UPDATE))])
        .doc(
            "1.0.0",
            "O(1) for short strings, O(N) for collections, where N is the number of nested items.",
            "Moves a key to another database.",
        ),
    Command::new("randomkey", 1, Flags::READONLY, |context, _| Box::pin(randomkey(context))).doc(
        "1.0.0",
        "O(1)",
        "Returns a random key name from the database.",
    ),
    Command::new("rename", 3, Flags::WRITE, |context, args| Box::pin(rename(context, args)))
        .keys(&[
            KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::DELETE)),
            KeySpec::at(2, Access::OW.union(Access::UPDATE)),
        ])
        .doc("1.0.0", "O(1)", "Renames a key and overwrites the destination."),
    Command::new("renamenx", 3, Flags::WRITE.union(Flags::FAST), |context, args| Box::pin(renamenx(context, args)))
        .keys(&[
            KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::DELETE)),
            KeySpec::at(2, Access::OW.union(Access::INSERT)),
        ])
        .doc("1.0.0", "O(1)", "Renames a key only when the target key name doesn't exist."),
    Command::new("touch", -2, Flags::READONLY.union(Flags::FAST), |context, args| Box::pin(exists(context, args)))
        .keys(&[KeySpec::from(1, Access::RO)])
        .doc(
            "3.2.1",
            "O(N) where N is the number of keys that will be touched.",
            "Returns the number of existing keys out of those specified after updating the time they were last \
             accessed.",
        ),
    Command::new("type", 2, READ_BRIEF, |context, args| Box::pin(kind(context, args)))
        .keys(&[KeySpec::at(1, Access::RO)])
        .doc("1.0.0", "O(1)", "Determines the type of value stored at a key."),
    Command::new("unlink", -2, Flags::WRITE.union(Flags::FAST), |context, args| Box::pin(del(context, args)))
        .keys(&[KeySpec::from(1, Access::RM.union(Access::DELETE))])
        .doc("4.0.0", "O(1) for each key removed regardless of its size.", "Asynchronously deletes one or more keys."),
];
