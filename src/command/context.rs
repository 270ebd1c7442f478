use bytes::Bytes;

use super::{Gateway, Session, Stream};
use crate::keyspace::{Key, Unit};

/// What a command may use: the gateway, the connection it came from, and the unit that it is part of.
pub struct Context<'a> {
    /// What all connections share.
    pub gateway: &'a Gateway,
    /// What the connection has agreed with us.
    pub session: &'a mut Session,
    /// The unit of work.
    pub unit: Unit<'a>,
    /// True if a reply may be sent after the unit has ended.
    pub may_stream: bool,
    /// The reply of the command that runs, if it is to be sent after the unit has ended.
    pub stream: Option<Stream>,
}

impl Context<'_> {
    /// The key with this name in the selected database.
    pub fn key(&self, name: &Bytes) -> Key {
        Key { db: self.session.db, name: name.clone() }
    }

    /// The keys with these names in the selected database.
    pub fn keys(&self, names: &[Bytes]) -> Vec<Key> {
        names.iter().map(|name| self.key(name)).collect()
    }
}
