use respgate_backend_api::{Error, KvBackend};

use crate::area::{Area, put, write_set};

/// A guarded key that got another value since the snapshot makes the commit fail with `Conflict`.
pub async fn a_guard_on_a_changed_key_conflicts(store: &dyn KvBackend) {
    let area = Area::new(store, "changed").await;
    let (guarded, written) = (area.key("guarded"), area.key("written"));
    area.put(&guarded, "1").await;
    let snapshot = area.snapshot().await;
    area.put(&guarded, "2").await;
    let writes = write_set([put(&written, "w")], [guarded]);
    assert_eq!(snapshot.commit(writes).await, Err(Error::Conflict));
}

/// A guarded key that did not exist conflicts once it exists, with an empty value too, and also when the commit
/// writes the guarded key itself.
pub async fn a_guard_on_a_created_key_conflicts(store: &dyn KvBackend) {
    let area = Area::new(store, "created").await;
    let guarded = area.tagged_key("s#", "guarded");
    let snapshot = area.snapshot().await;
    area.put(&guarded, "").await;
    let writes = write_set([put(&guarded, "w")], [guarded.clone()]);
    assert_eq!(snapshot.commit(writes).await, Err(Error::Conflict));
    assert_eq!(area.get(&guarded).await.unwrap(), "");
}

/// A guarded key that was deleted since the snapshot conflicts.
pub async fn a_guard_on_a_deleted_key_conflicts(store: &dyn KvBackend) {
    let area = Area::new(store, "deleted").await;
    let guarded = area.key("guarded");
    area.put(&guarded, "").await;
    let snapshot = area.snapshot().await;
    area.delete(&guarded).await;
    let writes = write_set([put(&guarded, "w")], [guarded.clone()]);
    assert_eq!(snapshot.commit(writes).await, Err(Error::Conflict));
    assert_eq!(area.get(&guarded).await, None);
}

/// Guards on keys that stayed as they were, present or missing, let the commit through, whatever else changed.
pub async fn a_guard_on_an_unchanged_key_passes(store: &dyn KvBackend) {
    let area = Area::new(store, "unchanged").await;
    let (present, missing, other, written) = (area.key("p"), area.key("m"), area.key("o"), area.key("w"));
    area.put(&present, "1").await;
    let snapshot = area.snapshot().await;
    area.put(&other, "1").await;
    let writes = write_set([put(&written, "w")], [present.clone(), missing.clone()]);
    assert_eq!(snapshot.commit(writes).await, Ok(()));
    assert_eq!(area.get(&written).await.unwrap(), "w");
    assert_eq!(area.get(&present).await.unwrap(), "1");
    assert_eq!(area.get(&missing).await, None);
}

/// A commit that conflicts on one guard writes nothing, in any tag, even if its other guards hold.
pub async fn a_conflict_writes_nothing(store: &dyn KvBackend) {
    let area = Area::new(store, "nothing").await;
    let (quiet, busy) = (area.key("quiet"), area.tagged_key("s#", "busy"));
    let written = [area.key("1"), area.tagged_key("s#", "2"), area.tagged_key("k#", "3")];
    area.put(&written[0], "before").await;
    let snapshot = area.snapshot().await;
    area.put(&busy, "1").await;
    let writes = written.iter().map(|key| put(key, "after"));
    assert_eq!(snapshot.commit(write_set(writes, [quiet, busy])).await, Err(Error::Conflict));
    let values = area.snapshot().await.multi_get(&written).await.unwrap();
    assert_eq!(values, [Some("before".into()), None, None]);
}

/// A commit may consist of guards alone, and then tells whether they hold.
pub async fn a_commit_without_writes_checks_its_guards(store: &dyn KvBackend) {
    let area = Area::new(store, "guards alone").await;
    let key = area.key("k");
    assert_eq!(area.snapshot().await.commit(write_set([], [key.clone()])).await, Ok(()));
    let snapshot = area.snapshot().await;
    area.put(&key, "1").await;
    assert_eq!(snapshot.commit(write_set([], [key])).await, Err(Error::Conflict));
}
