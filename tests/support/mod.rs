//! Starts servers and speaks RESP to them.
//!
//! Nothing here sleeps: a server is ready when it says so, a reply is there when it has been read, and every wait has a
//! deadline that only a failing test meets.

mod balancer;
mod conn;
mod monitor;
mod server;
mod value;

pub(crate) use conn::{Conn, command};
pub(crate) use monitor::Monitor;
pub(crate) use server::{Addr, Backend, Gateway, Options, Redis};
pub(crate) use value::{Value, quoted};

use std::time::Duration;

/// How long a test waits for anything before it fails. Generous: machines that run tests are busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
