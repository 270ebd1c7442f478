//! What each type of key does, without a word of RESP.
//!
//! Every function works within a [`Unit`](crate::keyspace::Unit) and leaves committing to it.

mod collection;
mod error;
pub mod hash;
pub mod key;
pub mod list;
mod long_double;
pub mod set;
pub mod string;
pub mod zset;

pub use collection::{Elements, Sample, element_records};
pub use error::{Error, Result};
pub use long_double::LongDouble;
