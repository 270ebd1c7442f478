//! RESPGATE: what Redis has no command for.

use super::{Access, Args, Command, Context, Flags, KeySpec, Result, Run, help::help};
use crate::{resp::Reply, types::key};

/// `RESPGATE ENCODE key version`
async fn encode(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let version = args.next_integer()?;
    // No version is as large as this: it is refused with the key's type.
    let version = u8::try_from(version).unwrap_or(u8::MAX);
    key::set_encode_version(&mut context.unit, &key, version).await?;
    Ok(Reply::OK)
}

const HELP: &[&str] = &[
    "ENCODE <key> <version>",
    "    Store a hash or a set in encode-version 0, which counts its elements, or 1,",
    "    which does not and writes without reading; or a sorted set in encode-version",
    "    0, which keeps its order in the store, or 1, which keeps it in the sidecar.",
];

const SUBCOMMANDS: &[Command] = &[
    Command::new("encode", 4, Flags::WRITE.union(Flags::ALONE).union(Flags::NO_MULTI), |context, args| {
        Box::pin(encode(context, args))
    })
    .keys(&[KeySpec::at(2, Access::RW.union(Access::UPDATE))])
    .doc(
        "7.0.0",
        "O(N) to count N elements or to write a sorted set anew, O(1) otherwise.",
        "Changes the encode-version of a hash, a set or a sorted set.",
    ),
    Command::new("help", 2, Flags::LOADING.union(Flags::STALE), |_, _| Box::pin(async { Ok(help("RESPGATE", HELP)) }))
        .doc("7.0.0", "O(1)", "Returns helpful text about the different subcommands."),
];

pub(super) const COMMANDS: &[Command] = &[Command::with("respgate", -2, Flags::empty(), Run::Subcommands(SUBCOMMANDS))
    .doc("7.0.0", "Depends on subcommand.", "A container for commands that Redis does not have.")];
