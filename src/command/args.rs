use bytes::Bytes;

use super::{Error, Result};
use crate::resp::integer::parse_integer;

/// A cursor over a command's arguments, the command's name behind it.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    all: &'a [Bytes],
    position: usize,
}

impl<'a> Args<'a> {
    /// The arguments after the first `position` of `all`.
    pub fn new(all: &'a [Bytes], position: usize) -> Self {
        Self { all, position }
    }

    /// All arguments, the command's name included, wherever the cursor is.
    pub fn all(&self) -> &'a [Bytes] {
        self.all
    }

    /// The arguments from the cursor on.
    pub fn rest(&self) -> &'a [Bytes] {
        self.all.get(self.position..).unwrap_or_default()
    }

    /// The same arguments but for the last one.
    pub fn without_last(self) -> Self {
        let all = self.all.split_last().map_or(self.all, |(_, rest)| rest);
        Self { all, ..self }
    }

    /// How many arguments are left.
    pub fn len(&self) -> usize {
        self.all.len().saturating_sub(self.position)
    }

    /// True if no argument is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The next argument.
    ///
    /// # Errors
    /// A syntax error if there is none. Arity has been checked, so this concerns options that lack their value.
    pub fn next_value(&mut self) -> Result<&'a Bytes> {
        let next = self.all.get(self.position).ok_or(Error::SYNTAX)?;
        self.position += 1;
        Ok(next)
    }

    /// The next argument, left where it is.
    pub fn peek(&self) -> Option<&'a Bytes> {
        self.all.get(self.position)
    }

    /// Takes the next argument if it is this word, in whatever case.
    pub fn take(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
        self.position += usize::from(found);
        found
    }

    /// Takes the next argument if it is one of these words, in whatever case, and gives what the word stands for.
    pub fn take_one_of<T: Copy>(&mut self, words: &[(&str, T)]) -> Option<T> {
        words.iter().find(|(word, _)| self.take(word)).map(|(_, meaning)| *meaning)
    }

    /// The next argument as an integer, in the only spelling that Redis takes.
    pub fn next_integer(&mut self) -> Result<i64> {
        parse_integer(self.next_value()?).ok_or(Error::NOT_INTEGER)
    }

    /// Fails with a syntax error if an argument is left.
    pub fn finish(&self) -> Result<()> {
        if self.is_empty() { Ok(()) } else { Err(Error::SYNTAX) }
    }
}
