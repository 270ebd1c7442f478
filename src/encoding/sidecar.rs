//! The names of keys in the sidecar, which are no records of the store.

use bytes::Bytes;

use super::{KeyCodec, Owner};

const TAG: [u8; 2] = *b"c#";
const OPEN: u8 = b'{';
const CLOSE: u8 = b'}';

/// What follows the key-version in the names of other keys than the order itself. Indexes begin with 0 or 1.
const REVISION: &[u8] = &[2];
const LOADING: &[u8] = &[3];

impl KeyCodec {
    /// The zset that keeps the order of a sorted set: `c#` ns `{` key `}` version.
    pub fn sidecar_order(&self, db: u8, key: &[u8], version: u64) -> Bytes {
        self.sidecar_key(db, key, version, &[])
    }

    /// The string that tells the revision of the order: the order's name and `2`.
    pub fn sidecar_revision(&self, db: u8, key: &[u8], version: u64) -> Bytes {
        self.sidecar_key(db, key, version, REVISION)
    }

    /// Where an order is put together before it takes its place: the order's name, `3`, and a number of the loader's own.
    pub fn sidecar_loading(&self, db: u8, key: &[u8], version: u64, loader: u64) -> Bytes {
        self.sidecar_key(db, key, version, &[LOADING, &loader.to_be_bytes()].concat())
    }

    /// The string that caches the member of an index: the order's name and the index.
    pub fn sidecar_member(&self, db: u8, key: &[u8], version: u64, index: &[u8]) -> Bytes {
        self.sidecar_key(db, key, version, index)
    }

    /// What the names of all keys of the namespace, or of one database of it, begin with.
    pub fn sidecar_prefix(&self, db: Option<u8>) -> Bytes {
        let db = db.map_or(Vec::new(), |db| vec![db]);
        [&TAG, &*self.namespace, &db].concat().into()
    }

    /// Whom an order or a revision with this name may belong to. A name can be read as both, though hardly with versions that exist.
    pub fn decode_sidecar_key<'a>(&self, name: &'a [u8]) -> Vec<Owner<'a>> {
        let take = |tail: &[u8]| {
            let (rest, version) = name.strip_suffix(tail)?.split_last_chunk()?;
            let (&db, rest) = rest.strip_prefix(&TAG)?.strip_prefix(&*self.namespace)?.split_first()?;
            let key = rest.strip_prefix(&[OPEN])?.strip_suffix(&[CLOSE])?;
            Some(Owner { db, key, version: u64::from_be_bytes(*version) })
        };
        [take(&[]), take(REVISION)].into_iter().flatten().collect()
    }

    fn sidecar_key(&self, db: u8, key: &[u8], version: u64, tail: &[u8]) -> Bytes {
        let version = version.to_be_bytes();
        [&TAG[..], &self.namespace, &[db, OPEN], key, &[CLOSE], &version, tail].concat().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION: u64 = 0x0102_0304_0506_0708;

    #[test]
    fn golden_names() {
        let codec = KeyCodec::new("ns", true).unwrap();
        let order = b"c#\x02ns\x03{foo}\x01\x02\x03\x04\x05\x06\x07\x08";
        assert_eq!(codec.sidecar_order(3, b"foo", VERSION), &order[..]);
        assert_eq!(codec.sidecar_revision(3, b"foo", VERSION), [&order[..], b"\x02"].concat());
        assert_eq!(codec.sidecar_loading(3, b"foo", VERSION, 1), [&order[..], b"\x03\0\0\0\0\0\0\0\x01"].concat());
        assert_eq!(codec.sidecar_member(3, b"foo", VERSION, b"\x00m"), [&order[..], b"\x00m"].concat());
        assert_eq!(codec.sidecar_prefix(Some(3)), &b"c#\x02ns\x03"[..]);
        assert_eq!(codec.sidecar_prefix(None), &b"c#\x02ns"[..]);
    }

    #[test]
    fn orders_and_revisions_tell_what_they_belong_to() {
        let codec = KeyCodec::new("ns", false).unwrap();
        for key in [&b""[..], b"foo", b"a}b{", b"}"] {
            for name in [codec.sidecar_order(3, key, VERSION), codec.sidecar_revision(3, key, VERSION)] {
                let owner = Owner { db: 3, key, version: VERSION };
                assert!(codec.decode_sidecar_key(&name).contains(&owner), "{name:?}");
            }
            assert!(codec.decode_sidecar_key(&codec.sidecar_member(3, key, VERSION, b"\x00m")).is_empty());
        }
        assert!(codec.decode_sidecar_key(b"c#\x03nso\x03{foo}\x01\x02\x03\x04\x05\x06\x07\x08").is_empty());
        assert!(codec.decode_sidecar_key(b"something else").is_empty());
    }
}
