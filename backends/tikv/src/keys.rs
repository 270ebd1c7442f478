use bytes::Bytes;
use respgate_backend_api::KeyRange;
use tikv_client::{BoundRange, Key, KvPair};

/// Our keys as the cluster knows them: each with a prefix, which may be empty.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: Bytes,
}

impl Keys {
    pub(crate) fn new(prefix: Bytes) -> Self {
        Self { prefix }
    }

    pub(crate) fn prefix_bytes(&self) -> usize {
        self.prefix.len()
    }

    pub(crate) fn encode(&self, key: &[u8]) -> Key {
        [&self.prefix, key].concat().into()
    }

    pub(crate) fn encode_range(&self, range: &KeyRange) -> BoundRange {
        (self.encode(&range.start)..self.encode(&range.end)).into()
    }

    pub(crate) fn decode(&self, key: Key) -> Bytes {
        let key = Bytes::from(Vec::from(key));
        key.slice(self.prefix.len().min(key.len())..)
    }

    pub(crate) fn decode_pair(&self, KvPair(key, value): KvPair) -> (Bytes, Bytes) {
        (self.decode(key), value.into())
    }
}
