use bitflags::bitflags;
use bytes::Bytes;

use super::Error;

/// Where some of a command's keys are among its arguments, in the terms of Redis' key specifications.
#[derive(Clone, Copy)]
pub struct KeySpec {
    /// Where the search begins.
    pub begin: Begin,
    /// How the keys are found from there.
    pub find: Find,
    /// What happens to the keys.
    pub access: Access,
}

/// Where the search for keys begins.
#[derive(Clone, Copy)]
pub enum Begin {
    /// At this argument; the command's name is argument 0.
    Index(usize),
    /// After the first of these words, looked for from an argument on.
    Keyword(&'static str, usize),
    /// Cannot be told without the command's own grammar, which this function knows: it gives the keys' positions.
    Unknown(fn(&[Bytes]) -> Vec<usize>),
}

/// How keys are found from where the search begins.
#[derive(Clone, Copy)]
pub enum Find {
    /// Every `step`th argument up to `last`: counted from the beginning, or from the end (-1 is the last) if negative.
    Range {
        /// The last key.
        last: i32,
        /// From one key to the next.
        step: usize,
    },
    /// As many as the argument where the search begins says, right after it.
    Counted,
    /// As [`Begin::Unknown`] says.
    Unknown,
}

bitflags! {
    /// What a command does to a key, as COMMAND INFO and GETKEYSANDFLAGS show it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Access: u16 {
        /// Reads, and writes nothing.
        const RO = 1 << 0;
        /// Reads and writes.
        const RW = 1 << 1;
        /// Overwrites.
        const OW = 1 << 2;
        /// Deletes.
        const RM = 1 << 3;
        /// Returns, copies or compares data of the key.
        const ACCESS = 1 << 4;
        /// Changes data depending on what it was.
        const UPDATE = 1 << 5;
        /// Adds data.
        const INSERT = 1 << 6;
        /// Takes data away.
        const DELETE = 1 << 7;
        /// May touch other keys than those found.
        const INCOMPLETE = 1 << 8;
        /// Depends on the options that are given.
        const VARIABLE_FLAGS = 1 << 9;
    }
}

impl KeySpec {
    /// One key at argument `index`.
    pub const fn at(index: usize, access: Access) -> Self {
        Self { begin: Begin::Index(index), find: Find::Range { last: 0, step: 1 }, access }
    }

    /// All arguments from `index` on.
    pub const fn from(index: usize, access: Access) -> Self {
        Self::every(index, 1, access)
    }

    /// Every `step`th argument from `index` on.
    pub const fn every(index: usize, step: usize, access: Access) -> Self {
        Self { begin: Begin::Index(index), find: Find::Range { last: -1, step }, access }
    }

    /// As many keys as argument `index` says, after it.
    pub const fn counted(index: usize, access: Access) -> Self {
        Self { begin: Begin::Index(index), find: Find::Counted, access }
    }

    /// One key after the word `keyword`, which is looked for from argument `from` on.
    pub const fn after(keyword: &'static str, from: usize, access: Access) -> Self {
        Self { begin: Begin::Keyword(keyword, from), find: Find::Range { last: 0, step: 1 }, access }
    }

    /// Keys that only the command's own grammar can find.
    pub const fn grammar(positions: fn(&[Bytes]) -> Vec<usize>, access: Access) -> Self {
        Self { begin: Begin::Unknown(positions), find: Find::Unknown, access }
    }

    /// The positions of the keys among `args`. Arguments that break the command's grammar give few or none: the
    /// command refuses them itself, before it touches a key.
    pub fn positions(&self, args: &[Bytes]) -> Vec<usize> {
        let begin = match self.begin {
            Begin::Index(index) => index,
            Begin::Keyword(keyword, from) => {
                let Some(found) = position_of(keyword, from, args) else { return Vec::new() };
                found + 1
            }
            Begin::Unknown(positions) => return positions(args),
        };
        match self.find {
            Find::Range { last, step } => range(begin, last, step, args.len()),
            Find::Counted => counted(begin, args),
            Find::Unknown => Vec::new(),
        }
    }
}

fn position_of(keyword: &str, from: usize, args: &[Bytes]) -> Option<usize> {
    (from..args.len()).find(|&at| args.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(keyword.as_bytes())))
}

fn range(begin: usize, last: i32, step: usize, count: usize) -> Vec<usize> {
    let distance = usize::try_from(last.unsigned_abs()).unwrap_or(usize::MAX);
    let end = if last < 0 { (count + 1).saturating_sub(distance) } else { begin.saturating_add(distance + 1) };
    (begin..end.min(count)).step_by(step).collect()
}

fn counted(at: usize, args: &[Bytes]) -> Vec<usize> {
    let count = args.get(at).and_then(|arg| std::str::from_utf8(arg).ok()?.parse::<usize>().ok()).unwrap_or(0);
    let first = at + 1;
    if count > args.len().saturating_sub(first) { Vec::new() } else { (first..first + count).collect() }
}

/// The keys that a command names, for COMMAND GETKEYS.
///
/// # Errors
/// The texts of Redis for a command without keys and for arguments that break its grammar.
pub(super) fn keys_of(command: &super::Command, args: &[Bytes]) -> Result<Vec<(usize, Access)>, Error> {
    if command.keys.is_empty() {
        return Err(Error::user("ERR The command has no key arguments"));
    }
    if !command.takes(args.len()) {
        return Err(Error::user("ERR Invalid number of arguments specified for command"));
    }
    let found: Vec<_> =
        command.keys.iter().flat_map(|spec| spec.positions(args).into_iter().map(|at| (at, spec.access))).collect();
    if found.is_empty() && !command.flags.contains(super::Flags::NO_MANDATORY_KEYS) {
        return Err(Error::user("ERR Invalid arguments specified for command"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<Bytes> {
        line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
    }

    #[test]
    fn keys_are_found_by_position() {
        assert_eq!(KeySpec::at(1, Access::RO).positions(&args("GET a")), [1]);
        assert_eq!(KeySpec::from(1, Access::RO).positions(&args("DEL a b c")), [1, 2, 3]);
        assert_eq!(KeySpec::every(1, 2, Access::OW).positions(&args("MSET a 1 b 2")), [1, 3]);
        assert_eq!(KeySpec::at(2, Access::RO).positions(&args("OBJECT HELP")), [0; 0]);
    }

    #[test]
    fn keys_are_found_by_count() {
        let spec = KeySpec::counted(1, Access::RO);
        assert_eq!(spec.positions(&args("SINTERCARD 2 a b LIMIT 1")), [2, 3]);
        assert_eq!(spec.positions(&args("SINTERCARD 9 a b")), [0; 0]);
        assert_eq!(spec.positions(&args("SINTERCARD -1 a b")), [0; 0]);
    }

    #[test]
    fn keys_are_found_after_a_word() {
        let spec = KeySpec::after("STORE", 2, Access::OW);
        assert_eq!(spec.positions(&args("GEORADIUS src store dst")), [3]);
        assert_eq!(spec.positions(&args("GEORADIUS src")), [0; 0]);
    }
}
