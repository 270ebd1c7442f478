//! Commands: look one up, parse its arguments, call a type, word the reply.
//!
//! A command is one function and one row, at the bottom of its family's file. Arity checks, key extraction, latches
//! and the COMMAND command all derive from the row.

mod args;
mod by_slot;
mod client;
mod config;
mod connection;
mod context;
mod crowd;
mod databases;
mod docs;
mod dump;
mod elements;
mod error;
mod execute;
mod expire;
mod gate;
mod gateway;
mod generic;
pub mod glob;
mod hashes;
mod help;
mod info;
mod introspection;
mod key_spec;
mod lists;
mod object;
mod pipeline;
mod respgate;
mod sample;
mod scan;
mod server;
mod session;
mod sets;
mod sort;
mod statistics;
mod step;
mod stream;
mod strings;
mod table;
mod transactions;
mod unsupported;
mod zsets;

pub use args::Args;
pub use context::Context;
pub use elements::ElementSpec;
pub use error::{Error, Result};
pub use execute::{Replies, execute_transaction};
pub use gateway::{Gateway, open_sidecar};
pub use key_spec::{Access, Begin, Find, KeySpec};
pub use pipeline::execute;
pub use session::{ReplyMode, Session, Transaction, Watched};
pub use statistics::{CommandStatistics, Counter, Statistics};
pub use step::Step;
pub use stream::Stream;
pub use table::{Command, Entry, Family, Flags, Group, Handler, HandlerFuture, Run, Table};
