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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_000_000;

    fn expiry(line: &str) -> Result<Option<Expiry>> {
        let words: Vec<Bytes> = line.split_whitespace().map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        let mut args = Args::new(&words, 0);
        let mut options = ExpiryOptions::default();
        while !args.is_empty() {
            options.take_or_keep(&mut args)?;
        }
        options.expiry("set", NOW_MS)
    }

    #[test]
    fn options_say_when_a_key_expires() {
        assert_eq!(expiry(""), Ok(None));
        assert_eq!(expiry("keepttl"), Ok(Some(Expiry::Unchanged)));
        assert_eq!(expiry("EX 5"), Ok(Some(Expiry::At(NOW_MS + 5_000))));
        assert_eq!(expiry("px 5"), Ok(Some(Expiry::At(NOW_MS + 5))));
        assert_eq!(expiry("ExAt 5"), Ok(Some(Expiry::At(5_000))));
        assert_eq!(expiry("PXAT 5"), Ok(Some(Expiry::At(5))));
        assert_eq!(expiry("PX 5 PX 6"), Ok(Some(Expiry::At(NOW_MS + 6))));
    }

    #[test]
    fn one_kind_of_option_excludes_the_others() {
        for line in
            ["EX 5 PX 5", "KEEPTTL EX 5", "EX 5 KEEPTTL", "PXAT 5 EXAT 5", "EX", "PERSIST", "EX 5 5", "EX x PX 5"]
        {
            assert_eq!(expiry(line), Err(Error::SYNTAX), "{line}");
        }
    }

    #[test]
    fn times_are_above_zero_and_fit_64_bits() {
        assert_eq!(expiry("EX 1.5"), Err(Error::NOT_INTEGER));
        assert_eq!(expiry("PX 9223372036854775808"), Err(Error::NOT_INTEGER));
        for line in ["EX 0", "PX -1", "EXAT 0", "PXAT -5", "EX 9223372036854775", "PX 9223372036854775807"] {
            assert_eq!(expiry(line), Err(Error::invalid_expire("set")), "{line}");
        }
        assert_eq!(expiry("PXAT 9223372036854775807"), Ok(Some(Expiry::At(i64::MAX))));
    }
}
