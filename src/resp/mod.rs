//! The Redis serialisation protocol: requests out of bytes, replies into bytes.
//!
//! - [`reply`] is what a command answers, in RESP3's terms, whatever the connection speaks;
//! - [`writer`] turns a reply into RESP2 or RESP3, [`double`] its doubles.

pub mod double;
pub mod reply;
pub mod writer;

pub use reply::{Protocol, Reply};
