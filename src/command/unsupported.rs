//! Commands of Redis that make no sense for a gateway without state. They are here, so that a client is told why
//! instead of being told that they do not exist.

use super::{Command, Error, Flags, Handler, Result};
use crate::resp::Reply;

async fn refuse(text: &'static str) -> Result<Reply> {
    Err(Error::text(text))
}

const REPLICATION: &str =
    "ERR Respgate does not replicate: the store does, and any number of gateways may serve it side by side";
const PERSISTENCE: &str = "ERR Respgate does not save: every acknowledged write is in the store already";
const NO_CLUSTER: &str = "ERR This instance has cluster support disabled";
const NO_MODULES: &str = "ERR Respgate does not load modules";
const NO_MIGRATION: &str = "ERR Respgate does not migrate keys: use DUMP here and RESTORE there";
const NO_MONITOR: &str = "ERR Respgate does not show the commands of other clients";

const TOOL: Flags = Flags::ADMIN.union(Flags::NOSCRIPT);

const fn row(name: &'static str, since: &'static str, arity: i32, flags: Flags, handler: Handler) -> Command {
    Command::new(name, arity, flags, handler).doc(
        since,
        "O(1)",
        "Answers with an error that says why it makes no sense here.",
    )
}

pub(super) const COMMANDS: &[Command] = &[
    row("asking", "3.0.0", 1, Flags::FAST, |_, _| Box::pin(refuse(NO_CLUSTER))),
    row("bgrewriteaof", "1.0.0", 1, TOOL, |_, _| Box::pin(refuse(PERSISTENCE))),
    row("bgsave", "1.0.0", -1, TOOL, |_, _| Box::pin(refuse(PERSISTENCE))),
    row("cluster", "3.0.0", -2, Flags::empty(), |_, _| Box::pin(refuse(NO_CLUSTER))),
    row("failover", "6.2.0", -1, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
    row("migrate", "2.6.0", -6, Flags::WRITE.union(Flags::DANGEROUS), |_, _| Box::pin(refuse(NO_MIGRATION))),
    row("module", "4.0.0", -2, Flags::empty(), |_, _| Box::pin(refuse(NO_MODULES))),
    row("monitor", "1.0.0", 1, TOOL, |_, _| Box::pin(refuse(NO_MONITOR))),
    row("psync", "2.8.0", -3, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
    row("readonly", "3.0.0", 1, Flags::FAST, |_, _| Box::pin(refuse(NO_CLUSTER))),
    row("readwrite", "3.0.0", 1, Flags::FAST, |_, _| Box::pin(refuse(NO_CLUSTER))),
    row("replconf", "3.0.0", -1, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
    row("replicaof", "5.0.0", 3, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
    row("save", "1.0.0", 1, TOOL, |_, _| Box::pin(refuse(PERSISTENCE))),
    row("slaveof", "1.0.0", 3, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
    row("sync", "1.0.0", 1, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
];
