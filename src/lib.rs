//! Respgate: a stateless gateway that speaks the Redis protocol and keeps every byte in a key-value store.
//!
//! The modules, in the order in which a request meets them:
//!
//! 1. [`server`] accepts the connection, reads its bytes and groups its requests into units of work;
//! 2. [`resp`] finds the requests in the bytes, and turns replies into bytes;
//! 3. [`client`] holds what a connection has agreed with us, and the list of all connections;
//! 4. [`command`] looks the command up, parses its arguments and words the reply;
//! 5. [`types`] knows what a string, a hash or a list does, and nothing of RESP;
//! 6. [`keyspace`] is the unit of work: snapshot, own writes, latches, commit, retry;
//! 7. [`sidecar`] is a Redis that keeps the order of some sorted sets;
//! 8. [`encoding`] maps keys and values to the bytes in the store (`FORMAT.md` beside it is the reference);
//! 9. `respgate-backend-api` is what a store must do; `backends/` holds the stores.
//!
//! Dependencies point downwards in this list only. Beside it stand [`background`], which works without being asked,
//! [`operator`], which works on a store without serving, [`cli`] and [`config`], the only readers of flags, files and
//! environment, [`telemetry`], the log and the names of figures, and [`process`], what the system knows of us.

pub mod background;
pub mod cli;
pub mod client;
pub mod command;
pub mod config;
#[cfg(feature = "rocksdb")]
pub mod embedded;
pub mod encoding;
pub mod keyspace;
pub mod operator;
pub mod process;
#[cfg(feature = "tikv")]
pub mod remote;
pub mod resp;
pub mod server;
pub mod sidecar;
pub mod telemetry;
pub mod types;
pub mod version;
