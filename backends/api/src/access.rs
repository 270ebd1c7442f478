/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing; the store is created if there is none.
    Create,
    /// Reading and writing a store that is there.
    Write,
    /// Reading a store that is there. Commits fail with [`Error::ReadOnly`](crate::Error::ReadOnly). A store that only one
    /// process may write can be read beside that process, and shows the moment at which it was opened.
    Read,
}
