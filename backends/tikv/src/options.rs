use std::{path::PathBuf, time::Duration};

use bytes::Bytes;

/// Where the cluster is, and how long to wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TikvOptions {
    /// Hosts and ports of the placement driver; one that answers is enough.
    pub pd_endpoints: Vec<String>,
    /// Certificates, if the cluster asks for them.
    pub tls: Option<TlsFiles>,
    /// How long a call may take in all, retries included. More than the 3 s for which a gateway that died may hold locks.
    pub timeout: Duration,
    /// How long a single request to one server may take.
    pub request_timeout: Duration,
    /// The keyspace, on a cluster with API version 2.
    pub keyspace: Option<String>,
    /// For how long the cluster keeps what was overwritten or deleted, if the gateways are to say when it goes; `None` where
    /// somebody else does, such as TiDB. More than any unit takes: each gateway knows only of its own.
    pub gc_lag: Option<Duration>,
    /// Whether a region's leader is asked directly for what was committed last, and to commit in one phase.
    pub is_direct: bool,
    /// Stands before every key, on a cluster that others use too.
    pub key_prefix: Bytes,
}

impl TikvOptions {
    /// The defaults, for a cluster whose placement driver listens there.
    pub fn new<S: Into<String>>(pd_endpoints: impl IntoIterator<Item = S>) -> Self {
        Self {
            pd_endpoints: pd_endpoints.into_iter().map(Into::into).collect(),
            tls: None,
            timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(2),
            keyspace: None,
            gc_lag: Some(Duration::from_secs(600)),
            is_direct: true,
            key_prefix: Bytes::new(),
        }
    }
}

/// Files in PEM format that say who we are and whom we trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the authority that signed the cluster's certificates.
    pub ca: PathBuf,
    /// Our certificate.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
}
