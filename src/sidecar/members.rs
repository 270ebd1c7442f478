use bytes::Bytes;
use quick_cache::{Weighter, sync::Cache};

use super::{Result, Sidecar};

/// The members behind digests, by key-version and index. Neither is ever used for another member.
pub(super) struct MemberCache(Cache<(u64, Bytes), Bytes, ByBytes>);

#[derive(Clone)]
struct ByBytes;

impl Weighter<(u64, Bytes), Bytes> for ByBytes {
    fn weight(&self, (_, index): &(u64, Bytes), member: &Bytes) -> u64 {
        /// About what an entry takes beside its bytes.
        const OVERHEAD_BYTES: usize = 128;

        (index.len() + member.len() + OVERHEAD_BYTES) as u64
    }
}

impl MemberCache {
    pub(super) fn new(bytes: u64) -> Self {
        /// What an entry is expected to take.
        const EXPECTED_BYTES: u64 = 256;

        Self(Cache::with_weighter(usize::try_from(bytes / EXPECTED_BYTES).unwrap_or(usize::MAX), bytes, ByBytes))
    }
}

impl Sidecar {
    /// The member behind an index of the sorted set with this version, if this process remembers it.
    pub fn remembered(&self, version: u64, index: &Bytes) -> Option<Bytes> {
        self.members.0.get(&(version, index.clone()))
    }

    /// Remembers the member behind an index.
    pub fn remember(&self, version: u64, index: &[u8], member: &[u8]) {
        // Copied, because they may be small parts of large allocations.
        let (index, member) = (Bytes::copy_from_slice(index), Bytes::copy_from_slice(member));
        self.members.0.insert((version, index), member);
    }

    /// The members that the sidecar caches under these names. Whether they are what they should be is for the caller to
    /// find out.
    pub async fn cached(&self, names: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        if self.cache_ttl.is_zero() || names.is_empty() {
            return Ok(vec![None; names.len()]);
        }
        let mut request = redis::pipe();
        request.cmd("MGET");
        for name in names {
            request.arg(&**name);
        }
        let (members,) = self.connection.query(&request).await?;
        Ok(members)
    }

    /// Has the sidecar cache members, by the names of their keys.
    pub async fn cache(&self, members: &[(Bytes, Bytes)]) -> Result<()> {
        if self.cache_ttl.is_zero() || members.is_empty() {
            return Ok(());
        }
        let ttl_ms = u64::try_from(self.cache_ttl.as_millis()).unwrap_or(u64::MAX);
        let mut request = redis::pipe();
        for (name, member) in members {
            request.pset_ex(&**name, &**member, ttl_ms).ignore();
        }
        self.connection.query(&request).await
    }
}
