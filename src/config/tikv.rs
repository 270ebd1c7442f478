use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::Span;

/// The store in a cluster.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TikvSettings {
    /// Hosts and ports of the placement driver.
    pub pd: Vec<String>,
    /// The keyspace, on a cluster with API version 2; empty for none.
    pub keyspace: String,
    /// Stands before every key, on a cluster that others use too.
    pub key_prefix: String,
    /// How long one call to the store may take in all.
    pub timeout: Span,
    /// How long one request to one server may take.
    pub request_timeout: Span,
    /// Whether a region's leader is asked directly for what was committed last, and to commit in one phase.
    pub direct: bool,
    /// Whether gateways let the cluster forget old versions.
    pub gc: bool,
    /// For how long old versions are kept.
    pub gc_lag: Span,
    /// The certificate of the authority that signed the cluster's certificates, in PEM; empty for no TLS.
    pub tls_ca: PathBuf,
    /// Our certificate, in PEM.
    pub tls_cert: PathBuf,
    /// The key of our certificate, in PEM.
    pub tls_key: PathBuf,
}

impl Default for TikvSettings {
    fn default() -> Self {
        Self {
            pd: vec!["127.0.0.1:2379".to_owned()],
            keyspace: String::new(),
            key_prefix: String::new(),
            timeout: Span(Duration::from_secs(5)),
            request_timeout: Span(Duration::from_secs(2)),
            direct: true,
            gc: true,
            gc_lag: Span(Duration::from_secs(600)),
            tls_ca: PathBuf::new(),
            tls_cert: PathBuf::new(),
            tls_key: PathBuf::new(),
        }
    }
}

impl TikvSettings {
    /// Fails with the first key whose value cannot be, and why.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        if self.key_prefix.len() > 255 {
            return Err(("tikv.key_prefix", "it may have at most 255 bytes".to_owned()));
        }
        if self.gc_lag.as_duration() < Duration::from_secs(60) {
            return Err(("tikv.gc_lag", "it must be at least 1m".to_owned()));
        }
        let tls = [&self.tls_ca, &self.tls_cert, &self.tls_key];
        if tls.iter().any(|file| file.as_os_str().is_empty()) != tls.iter().all(|file| file.as_os_str().is_empty()) {
            return Err(("tikv.tls_ca", "TLS needs tls_ca, tls_cert and tls_key".to_owned()));
        }
        Ok(())
    }
}
