use bytes::Bytes;

use super::{Entry, Error, Flags, Run};
use crate::{encoding::slot, resp::Reply};

/// One request of a unit.
pub enum Step {
    /// To be carried out.
    Run(&'static Entry, Vec<Bytes>),
    /// Answered already, but not before the requests ahead of it: a refusal, or QUEUED.
    Answer(Reply),
}

impl Step {
    pub(super) fn command(&self) -> Option<(&'static Entry, &[Bytes])> {
        match self {
            Self::Run(entry, args) => Some((entry, args)),
            Self::Answer(_) => None,
        }
    }

    /// The name of the command, if it is to be carried out.
    pub fn name(&self) -> Option<&'static str> {
        self.command().map(|(entry, _)| entry.name.as_str())
    }

    /// True if the step may write to the store.
    pub fn may_write(&self) -> bool {
        self.command().is_some_and(|(entry, _)| entry.command.may_write())
    }

    /// True if the step reads from the store or writes to it. Others may ask it for a figure or two.
    pub(super) fn needs_store(&self) -> bool {
        self.command().is_some_and(|(entry, args)| {
            entry.command.flags.intersects(Flags::READONLY | Flags::WRITE)
                || entry.command.keys_among(args).next().is_some()
        })
    }

    /// True if the step is EXEC.
    pub fn is_transaction(&self) -> bool {
        self.command().is_some_and(|(entry, _)| matches!(entry.command.run, Run::Transaction))
    }

    /// True if the step needs short records and nothing else, so that those who share a unit with it lose nothing.
    pub(super) fn is_brief(&self) -> bool {
        const BYTES_MAX: usize = 4 << 10;

        self.command().is_some_and(|(entry, args)| {
            entry.command.flags.contains(Flags::BRIEF)
                && args.iter().map(Bytes::len).sum::<usize>() <= BYTES_MAX
                // What SET replaces may be long.
                && !has_option(args, &["get"])
        })
    }

    /// True if the step, a [brief](Self::is_brief) one that writes, reads nothing before it.
    pub(super) fn only_overwrites(&self) -> bool {
        self.command().is_some_and(|(entry, args)| {
            entry.command.flags.contains(Flags::BLIND) && !has_option(args, &["nx", "xx", "keepttl"])
        })
    }

    /// About as many bytes as the step may write, if it is [brief](Self::is_brief).
    pub(super) fn bytes(&self) -> usize {
        /// What metadata and their record key have beside the name and the value.
        const RECORD_BYTES: usize = 64;

        let bytes = |(_, args): (_, &[Bytes])| args.iter().map(Bytes::len).sum::<usize>();
        self.command().map_or(0, bytes) + RECORD_BYTES * self.keys().count()
    }

    /// True if the step must have a unit of its own.
    pub fn runs_alone(&self) -> bool {
        self.command().is_some_and(|(entry, _)| entry.command.flags.contains(Flags::ALONE))
    }

    /// The keys of the step.
    pub(super) fn keys(&self) -> impl Iterator<Item = &Bytes> {
        self.command().into_iter().flat_map(|(entry, args)| entry.command.keys_among(args))
    }

    /// The key of the step, if it reads the metadata of that and needs nothing else.
    pub(super) fn only_read(&self) -> Option<Bytes> {
        let mut keys = self.keys();
        let is_timed = self.command().is_some_and(|(entry, _)| entry.command.flags.contains(Flags::TIMED));
        let key = keys.next().filter(|_| self.is_brief() && !is_timed && !self.may_write())?;
        keys.next().is_none().then(|| key.clone())
    }

    /// The slot that all keys of the step lie in, if it has keys and may share a unit.
    pub(super) fn slot(&self) -> Option<u16> {
        let (entry, args) = self.command().filter(|_| !self.runs_alone())?;
        let mut slots = entry.command.keys_among(args).map(|name| slot(name));
        let first = slots.next()?;
        slots.all(|slot| slot == first).then_some(first)
    }

    /// The reply if the unit fails with `error`.
    pub(super) fn refused(&self, error: &Error) -> Reply {
        match self {
            Self::Run(..) => error.clone().into_reply(),
            Self::Answer(reply) => reply.clone(),
        }
    }
}

/// True if one of `options` is among the words behind a key and its value, or looks as if it were.
fn has_option(args: &[Bytes], options: &[&str]) -> bool {
    args.iter().skip(3).any(|word| options.iter().any(|option| word.eq_ignore_ascii_case(option.as_bytes())))
}
