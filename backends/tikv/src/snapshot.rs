use std::{collections::HashMap, future::Future, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use respgate_backend_api::{Direction, Error, KeyRange, Result, Snapshot, WriteSet};
use tikv_client::{KvPair, Timestamp};
use tokio::time::timeout_at;

use crate::{
    cluster::{Cluster, reading},
    commit::commit,
    failure::Failure,
    pending::Pending,
    versions::Moment,
};

/// The most keys of one request for many.
const BATCH_KEYS_MAX: usize = 4_096;

/// A moment of the cluster, and the transaction that began then.
///
/// Each read is a request of its own to the moment, not to the transaction: that would keep all that was ever read, and
/// let only one task read at a time.
pub(crate) struct TikvSnapshot {
    cluster: Arc<Cluster>,
    read_at: Timestamp,
    /// `None` once it has been committed.
    pending: Mutex<Option<Pending>>,
    /// Keeps old versions for as long as they may be read.
    _moment: Moment,
}

impl TikvSnapshot {
    pub(crate) fn new(cluster: &Arc<Cluster>, read_at: Timestamp, pending: Pending) -> Self {
        let moment = Moment::new(cluster, &read_at);
        Self { cluster: Arc::clone(cluster), read_at, pending: Mutex::new(Some(pending)), _moment: moment }
    }

    /// Repeats a read until it succeeds, cannot succeed, or takes too long. `None` if it asks for too much at once.
    async fn read<T, F>(&self, attempt: impl Fn(tikv_client::Snapshot) -> F) -> Result<Option<T>>
    where
        F: Future<Output = tikv_client::Result<T>>,
    {
        let mut patience = self.cluster.patience(self.cluster.deadline());
        let mut cause = "a server does not answer in time".to_owned();
        loop {
            let client = self.cluster.connection.client()?;
            let snapshot = client.snapshot(self.read_at.clone(), reading());
            let Ok(outcome) = timeout_at(patience.deadline, attempt(snapshot)).await else {
                self.cluster.connection.renew();
                return Err(Error::Unavailable(cause));
            };
            cause = match outcome.map_err(|error| self.cluster.failure(&error)) {
                Ok(found) => return Ok(Some(found)),
                Err(Failure::AnswerTooLarge) => return Ok(None),
                Err(Failure::Busy(cause) | Failure::Moved(cause) | Failure::Lost(cause)) => cause,
                // The owner of a lock ended while the lock was being looked at.
                Err(Failure::Conflict) => "a lock is being removed".to_owned(),
                Err(failure) => return Err(failure.of_read()),
            };
            if !patience.wait().await {
                return Err(Error::Unavailable(cause));
            }
        }
    }

    /// The values of some of `keys`, in requests as large as the answers may be.
    async fn batch(&self, keys: &[Bytes]) -> Result<HashMap<Bytes, Bytes>> {
        let mut found = HashMap::with_capacity(keys.len());
        let mut rest: Vec<&[Bytes]> = keys.chunks(BATCH_KEYS_MAX).collect();
        while let Some(batch) = rest.pop() {
            let encoded: Vec<_> = batch.iter().map(|key| self.cluster.keys.encode(key)).collect();
            let pairs = self.read(|mut snapshot| {
                let encoded = encoded.clone();
                async move { Ok(snapshot.batch_get(encoded).await?.collect::<Vec<KvPair>>()) }
            });
            match pairs.await? {
                Some(pairs) => found.extend(pairs.into_iter().map(|pair| self.cluster.keys.decode_pair(pair))),
                None if batch.len() > 1 => rest.extend(<[_; 2]>::from(batch.split_at(batch.len() / 2))),
                None => return Err(Failure::AnswerTooLarge.of_read()),
            }
        }
        Ok(found)
    }

    /// The first records of a range, at most `limit` of them, in one request to each region. `None` if that is too much.
    async fn page(&self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Option<Page>> {
        let keys = &self.cluster.keys;
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let pairs = self.read(|mut snapshot| {
            let range = keys.encode_range(range);
            async move {
                Ok(match direction {
                    Direction::Forward => snapshot.scan(range, limit).await?.collect::<Vec<KvPair>>(),
                    Direction::Backward => snapshot.scan_reverse(range, limit).await?.collect(),
                })
            }
        });
        Ok(pairs.await?.map(|pairs| pairs.into_iter().map(|pair| keys.decode_pair(pair)).collect()))
    }
}

/// Records of a range, in the order of a scan.
type Page = Vec<(Bytes, Bytes)>;

/// How many records a scan asks for at once: few at first, then as many as come to a handy answer.
///
/// A server makes room for all that it is asked for, so this has a limit whatever the caller's is; and it refuses to send
/// answers above 10 MiB.
struct PageSize(usize);

impl PageSize {
    const FIRST: Self = Self(256);
    const RECORDS_MAX: usize = 4_096;
    const BYTES: usize = 2 << 20;

    fn after(self, page: &Page) -> Self {
        let bytes: usize = page.iter().map(|(key, value)| key.len() + value.len()).sum();
        let fitting = (Self::BYTES * page.len()).checked_div(bytes).unwrap_or(Self::RECORDS_MAX);
        Self(fitting.clamp(1, (self.0 * 4).min(Self::RECORDS_MAX)))
    }

    fn smaller(self) -> Result<Self> {
        if self.0 > 1 { Ok(Self((self.0 / 4).max(1))) } else { Err(Failure::AnswerTooLarge.of_read()) }
    }
}

#[async_trait]
impl Snapshot for TikvSnapshot {
    fn time_ms(&self) -> Option<u64> {
        u64::try_from(self.read_at.physical).ok()
    }

    async fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let key = self.cluster.keys.encode(key);
        let value = self.read(|mut snapshot| {
            let key = key.clone();
            async move { snapshot.get(key).await }
        });
        match value.await? {
            Some(value) => Ok(value.map(Bytes::from)),
            None => Err(Failure::AnswerTooLarge.of_read()),
        }
    }

    async fn multi_get(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        if let [key] = keys {
            return Ok(vec![self.get(key).await?]);
        }
        let mut wanted = keys.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let found = self.batch(&wanted).await?;
        Ok(keys.iter().map(|key| found.get(key).cloned()).collect())
    }

    async fn scan(&self, range: &KeyRange, direction: Direction, limit: usize) -> Result<Vec<(Bytes, Bytes)>> {
        self.cluster.connection.check_open()?;
        let (mut rest, mut pairs, mut size) = (range.clone(), Page::new(), PageSize::FIRST);
        while pairs.len() < limit && !rest.is_empty() {
            let wanted = size.0.min(limit - pairs.len());
            let Some(page) = self.page(&rest, direction, wanted).await? else {
                size = PageSize(wanted).smaller()?;
                continue;
            };
            size = size.after(&page);
            let is_last = page.len() < wanted;
            pairs.extend(page);
            match (pairs.last(), direction) {
                (Some((last, _)), Direction::Forward) if !is_last => rest = rest.after(last),
                (Some((last, _)), Direction::Backward) if !is_last => rest.end = last.clone(),
                _ => break,
            }
        }
        Ok(pairs)
    }

    async fn commit(&self, writes: WriteSet) -> Result<()> {
        self.cluster.connection.check_open()?;
        let Some(pending) = self.pending.lock().take() else { return Err(Error::Conflict) };
        commit(&self.cluster, pending, writes).await
    }
}
