use bytes::Bytes;

/// One change to one key: its new value, or `None` to delete it.
pub type Write = (Bytes, Option<Bytes>);

/// What one commit changes, and what it relies on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteSet {
    /// The changes, one per key, in ascending order of keys.
    pub writes: Vec<Write>,
    /// Keys whose values must not have changed since the snapshot. They need not exist or be written.
    pub guards: Vec<Bytes>,
}

impl WriteSet {
    /// True if the commit would change nothing and relies on nothing.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.guards.is_empty()
    }

    /// Bytes of keys and values, which [`Capabilities::commit_bytes_max`](crate::Capabilities) bounds.
    pub fn bytes(&self) -> usize {
        self.writes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len)).sum()
    }
}
