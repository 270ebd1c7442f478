use std::ops::Range;

use bytes::Bytes;

use super::super::{Args, Context, Error, Result};
use crate::{
    encoding::{Metadata, Type},
    keyspace::Key,
    resp::Reply,
    types::string::{self, CommonRun, Lcs},
};

const NOT_STRINGS: Error = Error::text("ERR The specified keys must contain string values");
const AMBIGUOUS: Error = Error::text("ERR If you want both the length and indexes, please just use IDX.");
const TOO_LONG: Error = Error::text("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");

/// What Redis needs for each pair of bytes. We need less, but refuse what it refuses.
const CELL_BYTES: u64 = 4;

/// What LCS is to reply.
#[derive(Default)]
struct Options {
    length: bool,
    indexes: bool,
    run_bytes_min: i64,
    run_lengths: bool,
}

/// `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN]`
pub(super) async fn lcs(context: &mut Context<'_>, mut args: Args<'_>) -> Result<Reply> {
    let first = Source::load(context, args.next_value()?).await?;
    let second = Source::load(context, args.next_value()?).await?;
    let options = parse(args)?;
    let table_bytes = (first.length()? + 1).saturating_mul(second.length()? + 1).saturating_mul(CELL_BYTES);
    if table_bytes > super::string_bytes_max(context) {
        return Err(TOO_LONG);
    }
    let (first, second) = (first.value(context).await?, second.value(context).await?);
    let lcs = Lcs::find(&first, &second).await;
    Ok(if options.indexes {
        indexes(&lcs, &options)
    } else if options.length {
        integer(lcs.length)
    } else {
        Reply::Bulk(lcs.text(&first))
    })
}

/// One of the two strings.
struct Source {
    key: Key,
    metadata: Option<Metadata>,
}

impl Source {
    async fn load(context: &mut Context<'_>, name: &Bytes) -> Result<Self> {
        let key = context.key(name);
        let metadata = context.unit.load(&key).await?;
        if metadata.as_ref().is_some_and(|metadata| metadata.kind() != Type::String) {
            return Err(NOT_STRINGS);
        }
        Ok(Self { key, metadata })
    }

    fn length(&self) -> Result<u64> {
        Ok(self.metadata.as_ref().map_or(Ok(0), string::length)?)
    }

    async fn value(&self, context: &mut Context<'_>) -> Result<Bytes> {
        match &self.metadata {
            Some(metadata) => Ok(string::value(&mut context.unit, &self.key, metadata).await?),
            None => Ok(Bytes::new()),
        }
    }
}

fn parse(mut args: Args<'_>) -> Result<Options> {
    let mut options = Options::default();
    while !args.is_empty() {
        if args.take("idx") {
            options.indexes = true;
        } else if args.take("len") {
            options.length = true;
        } else if args.take("withmatchlen") {
            options.run_lengths = true;
        } else if args.take("minmatchlen") {
            options.run_bytes_min = args.next_integer()?;
        } else {
            return Err(Error::SYNTAX);
        }
    }
    if options.indexes && options.length { Err(AMBIGUOUS) } else { Ok(options) }
}

/// The runs that are long enough, and the length of the whole.
fn indexes(lcs: &Lcs, options: &Options) -> Reply {
    let is_shown =
        |run: &&CommonRun| i64::try_from(run.first.len()).is_ok_and(|length| length >= options.run_bytes_min);
    let matches = lcs.runs.iter().filter(is_shown).map(|run| {
        let mut shown = vec![bounds(&run.first), bounds(&run.second)];
        shown.extend(options.run_lengths.then(|| integer(run.first.len())));
        Reply::Array(shown)
    });
    Reply::Map(vec![
        (Reply::bulk("matches"), Reply::Array(matches.collect())),
        (Reply::bulk("len"), integer(lcs.length)),
    ])
}

/// The first and the last position of a range that is not empty.
fn bounds(range: &Range<usize>) -> Reply {
    Reply::Array(vec![integer(range.start), integer(range.end.saturating_sub(1))])
}

fn integer(value: usize) -> Reply {
    Reply::Int(i64::try_from(value).unwrap_or(i64::MAX))
}
