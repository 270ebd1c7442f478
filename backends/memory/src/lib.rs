//! In-memory store, to be written in the next commits.
