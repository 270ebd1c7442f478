use respgate_backend_api::{Capabilities, Error, Result, Write};

/// What this store can do. RocksDB itself takes keys of some megabytes and counts a commit's bytes in 32 bits.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    range_partitioned: false,
    shared: false,
    key_bytes_max: 8 << 20,
    value_bytes_max: 1 << 30,
    commit_bytes_max: 2 << 30,
    part_bytes_max: 2 << 30,
};

/// The bytes of `writes`. Fails if they exceed [`CAPABILITIES`].
pub(crate) fn check(writes: &[Write]) -> Result<usize> {
    let mut commit_bytes = 0;
    for (key, value) in writes {
        let value_bytes = value.as_ref().map_or(0, |value| value.len());
        check_one("a key", key.len(), CAPABILITIES.key_bytes_max)?;
        check_one("a value", value_bytes, CAPABILITIES.value_bytes_max)?;
        commit_bytes += key.len() + value_bytes;
    }
    check_one("a commit", commit_bytes, CAPABILITIES.commit_bytes_max)?;
    Ok(commit_bytes)
}

fn check_one(what: &str, bytes: usize, bytes_max: usize) -> Result<()> {
    if bytes > bytes_max {
        return Err(Error::TooLarge(format!("{what} of {bytes} bytes, where {bytes_max} are the limit")));
    }
    Ok(())
}
