//! Commands of Redis that make no sense for a gateway without state. They are here, so that a client is told why
//! instead of being told that they do not exist.

use super::{Command, Error, Flags, Result};
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

pub(super) const COMMANDS: &[Command] = &[
    Command::new("asking", 1, Flags::FAST, |_, _| Box::pin(refuse(NO_CLUSTER))),
    Command::new("bgrewriteaof", 1, TOOL, |_, _| Box::pin(refuse(PERSISTENCE))),
    Command::new("bgsave", -1, TOOL, |_, _| Box::pin(refuse(PERSISTENCE))),
    Command::new("cluster", -2, Flags::empty(), |_, _| Box::pin(refuse(NO_CLUSTER))),
    Command::new("failover", -1, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
    Command::new("migrate", -6, Flags::WRITE.union(Flags::DANGEROUS), |_, _| Box::pin(refuse(NO_MIGRATION))),
    Command::new("module", -2, Flags::empty(), |_, _| Box::pin(refuse(NO_MODULES))),
    Command::new("monitor", 1, TOOL, |_, _| Box::pin(refuse(NO_MONITOR))),
    Command::new("psync", -3, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
    Command::new("readonly", 1, Flags::FAST, |_, _| Box::pin(refuse(NO_CLUSTER))),
    Command::new("readwrite", 1, Flags::FAST, |_, _| Box::pin(refuse(NO_CLUSTER))),
    Command::new("replconf", -1, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
    Command::new("replicaof", 3, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
    Command::new("save", 1, TOOL, |_, _| Box::pin(refuse(PERSISTENCE))),
    Command::new("slaveof", 3, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
    Command::new("sync", 1, TOOL, |_, _| Box::pin(refuse(REPLICATION))),
];
