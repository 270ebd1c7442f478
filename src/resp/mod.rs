//! To be written in the next commits.
