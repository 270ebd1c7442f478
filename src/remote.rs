//! The store in a cluster, reached as the settings say.

use respgate_backend_api::{Access, Error, Result};
use respgate_backend_tikv::{TikvBackend, TikvOptions, TlsFiles};
use tokio::time::timeout;

use crate::config::TikvSettings;

/// The store in the configured cluster. A gateway connects to it in the background; who only works on what is there waits
/// for it, but not for long.
pub async fn open(settings: &TikvSettings, access: Access) -> Result<TikvBackend> {
    let store = TikvBackend::open(options(settings));
    if access != Access::Create && timeout(settings.timeout.as_duration(), store.connected()).await.is_err() {
        return Err(Error::CannotOpen(format!("no placement driver answers at {}", settings.pd.join(", "))));
    }
    Ok(store)
}

fn options(settings: &TikvSettings) -> TikvOptions {
    let has_tls = !settings.tls_ca.as_os_str().is_empty();
    TikvOptions {
        tls: has_tls.then(|| TlsFiles {
            ca: settings.tls_ca.clone(),
            cert: settings.tls_cert.clone(),
            key: settings.tls_key.clone(),
        }),
        timeout: settings.timeout.as_duration(),
        request_timeout: settings.request_timeout.as_duration(),
        keyspace: Some(settings.keyspace.clone()).filter(|name| !name.is_empty()),
        key_prefix: settings.key_prefix.clone().into(),
        is_direct: settings.direct,
        gc_lag: settings.gc.then(|| settings.gc_lag.as_duration()),
        ..TikvOptions::new(settings.pd.iter().map(String::as_str))
    }
}
