//! RocksDB, to be written in the next commits.
