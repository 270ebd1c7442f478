//! The Redis serialisation protocol: requests out of bytes, replies into bytes.
//!
//! - [`request`] finds the requests in what a connection sends, and refuses what is none;
//! - [`reply`] is what a command answers, in RESP3's terms, whatever the connection speaks;
//! - [`writer`] turns a reply into RESP2 or RESP3;
//! - [`integer`] and [`double`] are the texts of numbers.

pub mod double;
mod inline;
pub mod integer;
pub mod reply;
pub mod request;
pub mod writer;

pub use inline::unquote;
pub use reply::{Protocol, Reply};
pub use request::{Limits, ProtocolError, Request, Scanner};
