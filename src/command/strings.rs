//! Strings.

use super::{Access, Args, Command, Context, Flags, KeySpec, Result};
use crate::{resp::Reply, types::string};

/// `GET key`
async fn get(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    Ok(string::get(&mut context.unit, &key).await?.into())
}

/// `SET key value`
async fn set(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let value = args.next_value()?;
    args.finish()?;
    string::set(&mut context.unit, &key, value.clone(), None)?;
    Ok(Reply::OK)
}

pub(super) const COMMANDS: &[Command] = &[
    Command::new("get", 2, Flags::READONLY.union(Flags::FAST), |context, args| Box::pin(get(context, args)))
        .keys(&[KeySpec::at(1, Access::RO.union(Access::ACCESS))])
        .doc("1.0.0", "O(1)", "Returns the string value of a key."),
    Command::new("set", -3, Flags::WRITE.union(Flags::DENYOOM).union(Flags::BLIND), |context, args| {
        Box::pin(set(context, args))
    })
    .keys(&[KeySpec::at(1, Access::RW.union(Access::ACCESS).union(Access::UPDATE).union(Access::VARIABLE_FLAGS))])
    .doc("1.0.0", "O(1)", "Sets the string value of a key, ignoring its type."),
];
