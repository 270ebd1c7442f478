//! SCAN, and what its siblings for collections share with it.

use bytes::Bytes;

use super::{Args, Command, Context, Error, Flags, Result, glob};
use crate::resp::Reply;

/// How many keys are looked at in one go, whatever COUNT says.
const PAGE: usize = 256;

/// The most that one call looks at. COUNT is a hint, and a reply must be bounded.
const COUNT_MAX: usize = 100_000;

/// How many are looked at without COUNT.
const COUNT_DEFAULT: usize = 10;

const INVALID_CURSOR: Error = Error::text("ERR invalid cursor");

/// The options of SCAN, HSCAN, SSCAN and ZSCAN.
#[derive(Clone, Copy)]
pub(super) struct ScanOptions<'a> {
    pattern: Option<&'a Bytes>,
    kind: Option<&'a Bytes>,
    /// How many elements to look at.
    pub(super) count: usize,
}

impl<'a> ScanOptions<'a> {
    /// `[MATCH pattern] [COUNT count]`, and `[TYPE type]` if it may be given.
    pub(super) fn parse(mut args: Args<'a>, takes_type: bool) -> Result<Self> {
        let mut options = Self { pattern: None, kind: None, count: COUNT_DEFAULT };
        while !args.is_empty() {
            if args.len() == 1 {
                return Err(Error::SYNTAX);
            } else if args.take("count") {
                options.count = parse_count(args.next_integer()?)?;
            } else if args.take("match") {
                options.pattern = Some(args.next_value()?);
            } else if takes_type && args.take("type") {
                options.kind = Some(args.next_value()?);
            } else {
                return Err(Error::SYNTAX);
            }
        }
        Ok(options)
    }

    /// True if the pattern, if there is one, selects this name, field or member.
    pub(super) fn selects(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::selects(pattern, name))
    }

    fn selects_kind(&self, kind: &str) -> bool {
        self.kind.is_none_or(|wanted| wanted.eq_ignore_ascii_case(kind.as_bytes()))
    }
}

fn parse_count(count: i64) -> Result<usize> {
    if count < 1 {
        return Err(Error::SYNTAX);
    }
    Ok(usize::try_from(count).unwrap_or(COUNT_MAX).min(COUNT_MAX))
}

/// The cursor that a client gave. As in Redis it ends before a zero byte, and nothing at all is the start.
pub(super) fn parse_cursor(text: &[u8]) -> Result<u64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Ok(0);
    }
    let digits = Some(text).filter(|text| text.iter().all(u8::is_ascii_digit));
    digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).ok_or(INVALID_CURSOR)
}

/// Where a scan goes on that gave out `cursor`; `None` for 0, the start.
pub(super) async fn position(context: &mut Context<'_>, cursor: u64) -> Result<Option<Bytes>> {
    if cursor == 0 {
        return Ok(None);
    }
    context.unit.position_of(cursor).await?.map(Some).ok_or(INVALID_CURSOR)
}

/// The reply of a scan: the cursor to go on with, and what was found.
pub(super) async fn reply(context: &mut Context<'_>, next: Option<Bytes>, found: Vec<Reply>) -> Result<Reply> {
    let cursor = context.unit.cursor_of(next.as_deref()).await?;
    Ok(Reply::Array(vec![Reply::bulk(cursor.to_string()), Reply::Array(found)]))
}

/// `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`
async fn scan(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let cursor = parse_cursor(args.next_value()?)?;
    let options = ScanOptions::parse(args, true)?;
    let mut next = position(context, cursor).await?;
    let mut left = options.count;
    let mut found = Vec::new();
    loop {
        let limit = left.min(PAGE);
        let page = context.unit.names(context.session.db, next.as_deref(), limit).await?;
        let selected =
            page.keys.iter().filter(|(name, key)| options.selects(name) && options.selects_kind(key.kind().name()));
        // Copied: a name by itself would keep the memory of its whole record.
        found.extend(selected.map(|(name, _)| Reply::Bulk(Bytes::copy_from_slice(name))));
        next = page.next;
        left -= limit;
        if next.is_none() || left == 0 {
            return reply(context, next, found).await;
        }
        tokio::task::yield_now().await;
    }
}

pub(super) const COMMANDS: &[Command] =
    &[Command::new("scan", -2, Flags::READONLY, |context, args| Box::pin(scan(context, args))).doc(
        "2.8.0",
        "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return \
         back to 0. N is the number of elements inside the collection.",
        "Iterates over the key names in the database.",
    )];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_decimal_numbers() {
        assert_eq!(parse_cursor(b"0"), Ok(0));
        assert_eq!(parse_cursor(b"18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse_cursor(b""), Ok(0));
        assert_eq!(parse_cursor(b"7\0x"), Ok(7));
        for text in ["-1", "+1", " 1", "1 ", "a", "18446744073709551616"] {
            assert_eq!(parse_cursor(text.as_bytes()), Err(INVALID_CURSOR), "{text:?}");
        }
    }
}
