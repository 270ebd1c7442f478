//! The clients that are connected: what each one shows of itself, and the list of all of them.

mod pause;
mod registry;

pub use pause::{Pause, Paused};
pub use registry::{Client, Clients, Identity};
