use super::{Args, Error, Result};
use crate::types::Sample;

/// The most elements, repetitions included, that one command chooses: its reply must be bounded.
const COUNT_MAX: u64 = 10_000_000;

const OUT_OF_RANGE: Error = Error::text("ERR value is out of range");

/// The next argument as the count of SRANDMEMBER: different elements if positive, perhaps the same ones several times if
/// negative.
pub(super) fn next_sample(args: &mut Args<'_>) -> Result<Sample> {
    sample(next_count(args)?)
}

/// The last arguments of HRANDFIELD and ZRANDMEMBER: a count as that of [`next_sample`], and perhaps a word that asks for
/// what belongs to each element.
pub(super) fn next_sample_with(args: &mut Args<'_>, word: &str) -> Result<(Sample, bool)> {
    let count = next_count(args)?;
    let asks = !args.is_empty();
    if asks && !(args.take(word) && args.is_empty()) {
        return Err(Error::SYNTAX);
    }
    if asks && !(-i64::MAX / 2..=i64::MAX / 2).contains(&count) {
        return Err(OUT_OF_RANGE);
    }
    Ok((sample(count)?, asks))
}

fn next_count(args: &mut Args<'_>) -> Result<i64> {
    let count = args.next_integer()?;
    if count == i64::MIN {
        let text = "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807";
        return Err(Error::text(text));
    }
    Ok(count)
}

fn sample(count: i64) -> Result<Sample> {
    let many = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count >= 0 {
        Ok(Sample::Distinct(many))
    } else if count.unsigned_abs() <= COUNT_MAX {
        Ok(Sample::Repeating(many))
    } else {
        Err(OUT_OF_RANGE)
    }
}
