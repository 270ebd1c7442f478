use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use respgate_backend_api::{Error, Result};
use tikv_client::{Timestamp, Transaction, TransactionOptions};
use tokio::{runtime::Handle, time::timeout_at};

use crate::{
    cluster::{Cluster, writing},
    failure::Failure,
};

/// A transaction that has not been committed yet. Dropped, it leaves nothing behind.
pub(crate) struct Pending {
    cluster: Arc<Cluster>,
    transaction: Option<Transaction>,
    /// Keys that others cannot change meanwhile; `None` if none are locked before the commit.
    locked: Option<HashSet<Bytes>>,
}

impl Pending {
    /// A transaction that finds out at its end whether others were quicker.
    pub(crate) async fn optimistic(cluster: &Arc<Cluster>) -> Result<Self> {
        let transaction = cluster.begin(writing(TransactionOptions::new_optimistic())).await?;
        Ok(Self { cluster: Arc::clone(cluster), transaction: Some(transaction), locked: None })
    }

    /// A transaction that keeps others from changing `keys` from now on.
    pub(crate) async fn locking(cluster: &Arc<Cluster>, keys: &[Bytes]) -> Result<Self> {
        let transaction = cluster.begin(writing(TransactionOptions::new_pessimistic())).await?;
        let locked = Some(keys.iter().cloned().collect());
        let pending = Self { cluster: Arc::clone(cluster), transaction: Some(transaction), locked };
        // In a task of its own, because who gives up waiting must not leave locks behind that nobody knows of.
        let task = tokio::spawn(pending.lock());
        match timeout_at(cluster.deadline(), task).await {
            Ok(Ok(locked)) => locked,
            Ok(Err(_)) => Err(Error::Unavailable("the client of the cluster failed".to_owned())),
            Err(_) => Err(Error::Conflict),
        }
    }

    async fn lock(mut self) -> Result<Self> {
        let mut patience = self.cluster.patience(self.cluster.deadline());
        loop {
            let keys: Vec<_> = self.locked.iter().flatten().map(|key| self.cluster.keys.encode(key)).collect();
            let Some(transaction) = &mut self.transaction else { return Err(Error::Conflict) };
            let Err(error) = transaction.lock_keys(keys.clone()).await else { return Ok(self) };
            match self.cluster.failure(&error) {
                Failure::Busy(_) if patience.wait().await => {}
                Failure::Moved(_) if patience.wait().await => {
                    let begun_at = transaction.start_timestamp();
                    self.cluster.refresh_routes(keys, &begun_at, patience.deadline).await;
                }
                Failure::Conflict => return Err(Error::Conflict),
                failure => return Err(failure.of_read()),
            }
        }
    }

    /// When the transaction began.
    pub(crate) fn begun_at(&self) -> Timestamp {
        self.transaction.as_ref().map(Transaction::start_timestamp).unwrap_or_default()
    }

    /// True if the transaction has locked keys before its end.
    pub(crate) fn locks_early(&self) -> bool {
        self.locked.is_some()
    }

    /// True if the transaction may rely on `key` as it is at its end.
    pub(crate) fn may_guard(&self, key: &[u8]) -> bool {
        self.locked.as_ref().is_none_or(|locked| locked.contains(key))
    }

    /// Hands over the transaction, to be finished by whoever takes it.
    pub(crate) fn take(&mut self) -> Option<Transaction> {
        self.transaction.take()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Locks that were taken early would stand in the way of others for 20 s.
        if let (Some(mut transaction), Some(_), Ok(runtime)) =
            (self.transaction.take(), &self.locked, Handle::try_current())
        {
            let deadline = self.cluster.deadline();
            runtime.spawn(async move { timeout_at(deadline, transaction.rollback()).await.map(drop) });
        }
    }
}
