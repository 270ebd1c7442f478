use std::{sync::Arc, time::Instant};

use parking_lot::RwLock;
use respgate_backend_api::KvBackend;
use tokio_util::sync::CancellationToken;

use super::{Statistics, crowd::Crowds};
use crate::{
    client::{Clients, Pause},
    config::{Settings, SidecarSettings},
    keyspace::{self, Encodings, Keyspace, Options, Random, SystemClock},
    sidecar::{self, Sidecar},
};

/// What all connections share.
pub struct Gateway {
    /// The data.
    pub keyspace: Keyspace,
    /// Who is connected.
    pub clients: Clients,
    /// CLIENT PAUSE.
    pub pause: Pause,
    /// Who waits for keys that are much written to.
    pub(super) crowds: Crowds,
    /// What has been counted.
    pub statistics: Statistics,
    /// When the gateway started.
    pub started_at: Instant,
    /// Forty hexadecimal digits that no other run of a gateway has.
    pub run_id: String,
    /// Cancelled when the gateway is to stop: by a signal or by SHUTDOWN.
    pub shutdown: CancellationToken,
    settings: RwLock<Arc<Settings>>,
}

impl Gateway {
    /// Opens the keyspace of `backend` as `settings` say.
    pub async fn open(settings: Arc<Settings>, backend: Arc<dyn KvBackend>) -> keyspace::Result<Self> {
        let random = Random::from_entropy();
        let run_id = format!("{:016x}{:016x}{:08x}", random.next_u64(), random.next_u64(), random.below(1 << 32));
        let options = Options {
            namespace: settings.store.namespace.clone(),
            databases: settings.server.databases,
            encodings: Encodings {
                string_chunk_threshold: settings.encoding.string_chunk_threshold.as_usize(),
                counted_hashes: settings.encoding.hash == 0,
                counted_sets: settings.encoding.set == 0,
                zsets_in_sidecar: settings.encoding.zset == 1,
            },
            sidecar: open_sidecar(&settings.sidecar)?,
            cache_bytes: settings.store.record_cache.0,
            grace: settings.background.grace.as_duration(),
            clock: Arc::new(SystemClock),
            random,
        };
        Ok(Self {
            keyspace: Keyspace::open(backend, options).await?,
            clients: Clients::default(),
            pause: Pause::new(),
            crowds: Crowds::default(),
            statistics: Statistics::new(),
            started_at: Instant::now(),
            run_id,
            shutdown: CancellationToken::new(),
            settings: RwLock::new(settings),
        })
    }

    /// The settings as they are now: those of the start, and what CONFIG SET has changed since.
    pub fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.settings.read())
    }

    /// Changes the settings of the running gateway: CONFIG SET. All of `change` or, if it fails, nothing.
    pub fn change_settings<E>(&self, change: impl FnOnce(&mut Settings) -> Result<(), E>) -> Result<(), E> {
        let mut settings = self.settings.write();
        let mut changed = Settings::clone(&settings);
        change(&mut changed)?;
        *settings = Arc::new(changed);
        Ok(())
    }

    /// True if clients must give a password.
    pub fn needs_password(&self) -> bool {
        !self.settings.read().server.requirepass.is_empty()
    }
}

/// Prepares the connection to the sidecar, if one is configured.
pub fn open_sidecar(settings: &SidecarSettings) -> keyspace::Result<Option<Sidecar>> {
    if settings.url.is_empty() {
        return Ok(None);
    }
    let options = sidecar::Options {
        url: settings.url.reveal().to_owned(),
        connect_timeout: settings.connect_timeout.as_duration(),
        timeout: settings.timeout.as_duration(),
        cache_ttl: settings.cache_ttl.as_duration(),
        member_cache_bytes: settings.member_cache.0,
    };
    Ok(Some(Sidecar::new(&options)?))
}
