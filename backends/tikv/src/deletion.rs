use respgate_backend_api::{Direction, Error, KeyRange, KvBackend, Result, WriteSet};

/// Deletes a range, some records at a time.
///
/// The cluster could destroy a range at once, but would take it from open snapshots too. Deletions keep the old versions
/// until the cluster collects them.
pub(crate) async fn delete_range(store: &dyn KvBackend, range: KeyRange) -> Result<()> {
    /// So few that their keys make one commit in one phase, as a rule.
    const PAGE_RECORDS: usize = 200;

    let mut rest = range;
    while !rest.is_empty() {
        let snapshot = store.snapshot().await?;
        let page = snapshot.scan(&rest, Direction::Forward, PAGE_RECORDS).await?;
        let Some((last, _)) = page.last() else { break };
        let (next, is_last) = (rest.after(last), page.len() < PAGE_RECORDS);
        let writes = page.into_iter().map(|(key, _)| (key, None)).collect();
        match snapshot.commit(WriteSet { writes, guards: Vec::new() }).await {
            Ok(()) if is_last => break,
            Ok(()) => rest = next,
            // Somebody else deletes there as well.
            Err(Error::Conflict) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
