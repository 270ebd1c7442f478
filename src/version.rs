//! What this program calls itself.

/// The version of Redis whose behaviour is followed. Clients choose what they dare to use by it.
pub const REDIS_VERSION: &str = "7.2.4";

/// The version of Respgate.
pub const RESPGATE_VERSION: &str = env!("CARGO_PKG_VERSION");
