use bytes::Bytes;

use super::super::{Args, Error, Result};
use crate::{resp::integer::parse_integer, types::string::Expiry};

/// What a number of time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
}

/// The options of SET and GETEX that say when a key expires. Only one kind may be given, but that more than once.
#[derive(Clone, Copy, Default)]
pub(super) struct ExpiryOptions<'a> {
    choice: Option<Choice>,
    time: Option<&'a Bytes>,
}

/// One kind of option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    After(Unit),
    At(Unit),
    Keep,
    Persist,
}

/// The options that are followed by a time.
const TIMES: [(&str, Choice); 4] = [
    ("ex", Choice::After(Unit::Seconds)),
    ("px", Choice::After(Unit::Milliseconds)),
    ("exat", Choice::At(Unit::Seconds)),
    ("pxat", Choice::At(Unit::Milliseconds)),
];

impl<'a> ExpiryOptions<'a> {
    /// Takes an option of GETEX: a time or PERSIST.
    pub(super) fn take_or_persist(&mut self, args: &mut Args<'a>) -> Result<()> {
        self.take(args, "persist", Choice::Persist)
    }

    /// Takes an option of SET: a time or KEEPTTL.
    pub(super) fn take_or_keep(&mut self, args: &mut Args<'a>) -> Result<()> {
        self.take(args, "keepttl", Choice::Keep)
    }

    fn take(&mut self, args: &mut Args<'a>, word: &str, choice: Choice) -> Result<()> {
        if args.take(word) {
            return self.choose(choice);
        }
        let (_, choice) = TIMES.into_iter().find(|(word, _)| args.take(word)).ok_or(Error::SYNTAX)?;
        self.choose(choice)?;
        self.time = Some(args.next_value()?);
        Ok(())
    }

    fn choose(&mut self, choice: Choice) -> Result<()> {
        if self.choice.is_some_and(|chosen| chosen != choice) {
            return Err(Error::SYNTAX);
        }
        self.choice = Some(choice);
        Ok(())
    }

    /// What was chosen, if anything was; `name` is the command's, for errors.
    pub(super) fn expiry(self, name: &str, now_ms: i64) -> Result<Option<Expiry>> {
        let time = || self.time.ok_or(Error::SYNTAX);
        Ok(match self.choice {
            None => None,
            Some(Choice::Keep) => Some(Expiry::Unchanged),
            Some(Choice::Persist) => Some(Expiry::Never),
            Some(Choice::At(unit)) => Some(Expiry::At(milliseconds(time()?, unit, name)?)),
            Some(Choice::After(unit)) => Some(Expiry::At(after(time()?, unit, name, now_ms)?)),
        })
    }
}

/// The time that lies `time` after now, in milliseconds since the Unix epoch.
pub(super) fn after(time: &[u8], unit: Unit, name: &str, now_ms: i64) -> Result<i64> {
    milliseconds(time, unit, name)?.checked_add(now_ms).ok_or_else(|| Error::invalid_expire(name))
}

fn milliseconds(time: &[u8], unit: Unit, name: &str) -> Result<i64> {
    let time = parse_integer(time).ok_or(Error::NOT_INTEGER)?;
    let in_ms = match unit {
        Unit::Seconds => time.checked_mul(1_000),
        Unit::Milliseconds => Some(time),
    };
    in_ms.filter(|&ms| ms > 0).ok_or_else(|| Error::invalid_expire(name))
}
