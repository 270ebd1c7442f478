//! Black-box tests: every module starts real processes and talks to them over real sockets.
//!
//! One binary, so that it links once. `support` starts servers and speaks RESP; the other modules are named after what
//! they test. Environment:
//!
//! - `RESPGATE_TEST_BACKEND`: the backend of the gateways, `memory`, `tikv` or `rocksdb` (the default where it is
//!   built in);
//! - `RESPGATE_TEST_GATEWAYS`: how many gateways share each TiKV cluster, each command going to one at random;
//! - `RESPGATE_TEST_CLUSTER`: the program that stands in for a TiKV cluster, if it need not be built;
//! - `RESPGATE_TEST_PROGRAM`: another build to test;
//! - `RESPGATE_FAULTS_SEED`, `RESPGATE_FAULTS_SECONDS`: see `gateways::linearizability`;
//! - `RESPGATE_ORACLE_SEED`, `RESPGATE_ORACLE_SEQUENCES`: see [`oracle`].
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and tells why on its own output"
)]

mod admin;
mod client_library;
mod command_table;
mod crash;
mod crowds;
mod encode_version;
mod expiry;
#[cfg(feature = "tikv")]
mod gateways;
mod large_replies;
mod limits;
mod operators;
mod oracle;
mod pipelines;
mod process;
mod protocol;
mod sidecar;
mod support;
mod zsets;
