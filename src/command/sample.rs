use super::{Args, Error, Result};
use crate::types::Sample;

/// The most elements, repetitions included, that one command chooses: its reply must be bounded.
const COUNT_MAX: u64 = 10_000_000;

/// The next argument as the count of HRANDFIELD, SRANDMEMBER and ZRANDMEMBER: different elements if positive, perhaps
/// the same ones several times if negative.
pub(super) fn next_sample(args: &mut Args<'_>) -> Result<Sample> {
    const OUT_OF_RANGE: Error =
        Error::text("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");

    let count = args.next_integer()?;
    if count == i64::MIN {
        return Err(OUT_OF_RANGE);
    }
    let many = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count >= 0 {
        return Ok(Sample::Distinct(many));
    }
    if count.unsigned_abs() > COUNT_MAX {
        Err(Error::text("ERR value is out of range"))
    } else {
        Ok(Sample::Repeating(many))
    }
}
