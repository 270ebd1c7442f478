use respgate_backend_api::Error;
use rocksdb::ErrorKind;

/// Why RocksDB did not read.
pub(crate) fn of_read(error: rocksdb::Error) -> Error {
    let kind = error.kind();
    let message = one_line(error);
    match kind {
        ErrorKind::Corruption | ErrorKind::NotSupported => Error::Corrupt(message),
        _ => Error::Unavailable(message),
    }
}

/// Why RocksDB did not write.
pub(crate) fn of_write(error: rocksdb::Error) -> Error {
    let kind = error.kind();
    let message = one_line(error);
    match kind {
        // RocksDB fails every write after the first that failed, with the same error, until it has recovered.
        ErrorKind::IOError | ErrorKind::Corruption => Error::ReadOnly(message),
        _ => Error::Unavailable(message),
    }
}

pub(crate) fn closed() -> Error {
    Error::Unavailable("the store is closed".into())
}

/// True if a read or write did not finish because it would have had to wait or to work long.
pub(crate) fn is_incomplete(error: &rocksdb::Error) -> bool {
    error.kind() == ErrorKind::Incomplete
}

/// RocksDB's own words, for a log of lines.
pub(crate) fn one_line(error: rocksdb::Error) -> String {
    error.into_string().replace(['\n', '\r'], " ")
}
