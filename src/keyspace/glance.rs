use super::{Key, Keyspace, Result, Unit};
use crate::encoding::{Body, Metadata};

/// How far the time of a glance may be from that of the store, with time to spare: a placement driver that takes over from
/// another may be three seconds ahead of it.
const CLOCK_ERROR_MS: i64 = 5_000;

impl Keyspace {
    /// Begins a unit that reads the metadata of `keys` and nothing else, and has done that: each as it was committed last, and
    /// so not all at one moment. For commands on one key each, of different clients. On a store that is far away that is the
    /// one request, where a snapshot is another.
    ///
    /// `None` if it takes a snapshot to tell what the keys are: because the store knows no such way or it is closed for now,
    /// because a key is about to expire, or because the map of databases would have to be read again.
    pub async fn glance(&self, keys: &[Key]) -> Result<Option<Unit<'_>>> {
        let Some(glance) = self.databases.glance().filter(|_| self.capabilities.shared) else { return Ok(None) };
        let mut unit = Unit::begin_glance(self, &glance);
        let mut records = Vec::with_capacity(keys.len());
        for key in keys {
            records.push(self.codec.metadata(unit.physical(key.db)?, &key.name));
        }
        let Some(values) = self.backend.read_latest(&records).await? else { return Ok(None) };
        for (record, value) in records.into_iter().zip(values) {
            if let Some(value) = &value
                && !tells_all(&Metadata::decode(value)?, unit.now_ms())
            {
                return Ok(None);
            }
            unit.overlay.remember(record, value);
        }
        Ok(glance.is_valid().then_some(unit))
    }
}

/// True if metadata are enough to answer by, at about this time.
fn tells_all(metadata: &Metadata, now_ms: i64) -> bool {
    let is_about_to_expire = metadata.expires_at_ms.is_some_and(|at| (at - now_ms).abs() < CLOCK_ERROR_MS);
    !is_about_to_expire && !matches!(metadata.body, Body::Chunks { .. })
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicU64, Ordering},
        },
        time::{Duration, Instant},
    };

    use bytes::Bytes;
    use respgate_backend_api::{Capabilities, Error as StoreError};
    use respgate_backend_memory::MemoryBackend;

    use crate::{
        keyspace::{
            Error, Intent, Key, Keyspace,
            fixture::{START_MS, key, keyspace_over},
        },
        types::string,
    };

    /// A keyspace on a store that others use too, whose time moves on by itself and can be moved.
    async fn shared() -> (Keyspace, Arc<AtomicU64>) {
        let (began, moved) = (Instant::now(), Arc::new(AtomicU64::new(START_MS)));
        let now = Arc::clone(&moved);
        let clock = move || now.load(Ordering::SeqCst) + began.elapsed().as_millis() as u64;
        let capabilities = Capabilities { shared: true, ..MemoryBackend::CAPABILITIES };
        let store = MemoryBackend::new().with_capabilities(capabilities).with_clock(Arc::new(clock));
        (keyspace_over(Arc::new(store), crate::keyspace::Encodings::default()).await.0, moved)
    }

    async fn set(keyspace: &Keyspace, key: &Key, value: impl Into<Bytes>, expires_in_ms: Option<i64>) {
        let mut unit = keyspace.begin(Intent::Write).await.unwrap();
        let expires_at_ms = expires_in_ms.map(|after_ms| unit.now_ms() + after_ms);
        string::set(&mut unit, key, value.into(), expires_at_ms).unwrap();
        unit.commit().await.unwrap();
    }

    /// What a glance tells; `None` if it takes a snapshot.
    async fn glance(keyspace: &Keyspace, key: &Key) -> Option<Option<Bytes>> {
        // The map of databases is known then, and not about to be read again.
        let until = Instant::now() + Duration::from_secs(10);
        while keyspace.databases.glance().is_none() {
            assert!(Instant::now() < until);
            string::get(&mut keyspace.begin(Intent::Read).await.unwrap(), key).await.unwrap();
        }
        let mut unit = keyspace.glance(std::slice::from_ref(key)).await.unwrap()?;
        Some(string::get(&mut unit, key).await.unwrap())
    }

    #[tokio::test]
    async fn it_tells_what_was_committed_last() {
        let (keyspace, _) = shared().await;
        assert_eq!(glance(&keyspace, &key("x")).await, Some(None));
        for value in ["1", "2"] {
            set(&keyspace, &key("x"), value, None).await;
            assert_eq!(glance(&keyspace, &key("x")).await, Some(Some(value.into())));
        }
        set(&keyspace, &key("long"), vec![b'v'; 100_000], None).await;
        assert_eq!(glance(&keyspace, &key("long")).await, None, "the chunks are of a moment");
    }

    #[tokio::test]
    async fn it_tells_nothing_of_what_is_about_to_expire() {
        let (keyspace, time_ms) = shared().await;
        set(&keyspace, &key("x"), "value", Some(20_000)).await;
        assert_eq!(glance(&keyspace, &key("x")).await, Some(Some("value".into())));
        for (after_ms, told) in [(17_000, None), (6_000, None), (17_000, Some(None))] {
            time_ms.fetch_add(after_ms, Ordering::SeqCst);
            keyspace.databases.publish(keyspace.databases.current());
            assert_eq!(glance(&keyspace, &key("x")).await, told);
        }
    }

    #[tokio::test]
    async fn it_takes_a_map_of_databases_that_nobody_can_have_changed() {
        let (keyspace, _) = shared().await;
        assert!(keyspace.glance(&[key("x")]).await.unwrap().is_none(), "none is known");
        assert_eq!(glance(&keyspace, &key("x")).await, Some(None));
        keyspace.announce_change(0).await.unwrap();
        let until = Instant::now() + super::super::databases::GLANCE;
        while Instant::now() < until {
            tokio::task::yield_now().await;
        }
        keyspace.begin(Intent::Read).await.unwrap();
        assert!(keyspace.glance(&[key("x")]).await.unwrap().is_none(), "it may change now");
    }

    #[tokio::test]
    async fn it_reads_nothing_else() {
        let (keyspace, _) = shared().await;
        glance(&keyspace, &key("x")).await;
        let mut unit = keyspace.glance(&[key("x")]).await.unwrap().unwrap();
        let other = string::get(&mut unit, &key("y")).await;
        let conflict = crate::types::Error::Keyspace(Error::Store(StoreError::Conflict));
        assert_eq!(other.unwrap_err().to_string(), conflict.to_string());
    }
}
