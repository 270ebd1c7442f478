use respgate_backend_api::{Capabilities, Error, Result, WriteSet};

/// TiKV refuses keys of more than 8 KiB as it encodes them: nine bytes for each eight, and eight for the time.
const KEY_BYTES_MAX: usize = 6 << 10;

/// The client splits commits into requests of this size; one that it has to split takes two phases.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// What a keyspace puts before a key.
const KEYSPACE_BYTES: usize = 4;

/// What a cluster takes, under its defaults. A record must fit into an entry of the Raft log (8 MiB).
pub(crate) fn capabilities(key_prefix_bytes: usize) -> Capabilities {
    Capabilities {
        range_partitioned: true,
        shared: true,
        key_bytes_max: KEY_BYTES_MAX.saturating_sub(KEYSPACE_BYTES + key_prefix_bytes),
        value_bytes_max: 7 << 20,
        commit_bytes_max: 32 << 20,
        part_bytes_max: REQUEST_BYTES_MAX,
    }
}

/// Fails if `writes` exceed `limits`.
pub(crate) fn check(limits: &Capabilities, writes: &WriteSet) -> Result<()> {
    for (key, value) in &writes.writes {
        check_one("a key", key.len(), limits.key_bytes_max)?;
        check_one("a value", value.as_ref().map_or(0, |value| value.len()), limits.value_bytes_max)?;
    }
    for key in &writes.guards {
        check_one("a key", key.len(), limits.key_bytes_max)?;
    }
    check_one("a commit", writes.bytes(), limits.commit_bytes_max)
}

fn check_one(what: &str, bytes: usize, bytes_max: usize) -> Result<()> {
    if bytes > bytes_max {
        return Err(Error::TooLarge(format!("{what} of {bytes} bytes, where {bytes_max} are the limit")));
    }
    Ok(())
}
