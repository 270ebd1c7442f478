//! SORT.

use bytes::Bytes;

use super::{Access, Args, Command, Context, Error, Flags, KeySpec, Result};
use crate::{
    keyspace::Key,
    resp::Reply,
    types::{
        self,
        key::{self, By, Pattern, SortOptions},
    },
};

const NOT_NUMBERS: Error = Error::text("ERR One or more scores can't be converted into double");

/// `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] [ASC | DESC] [ALPHA] [STORE destination]`; SORT_RO is
/// the same without STORE.
async fn sort(context: &mut Context<'_>, mut args: Args<'_>, may_store: bool) -> Result<Reply> {
    let key = context.key(args.next_value()?);
    let (options, destination) = parse(args, may_store)?;
    let destination = destination.map(|name| context.key(name));
    let sorted = key::sort(&mut context.unit, &key, options).await.map_err(|error| match error {
        types::Error::NotFloat => NOT_NUMBERS,
        error => error.into(),
    })?;
    match destination {
        Some(destination) => store(context, &destination, sorted).await,
        None => Ok(Reply::Array(sorted.into_iter().map(Reply::from).collect())),
    }
}

async fn store(context: &mut Context<'_>, destination: &Key, sorted: Vec<Option<Bytes>>) -> Result<Reply> {
    let count = sorted.len();
    // A list has no nulls: what GET does not find is stored as an empty element.
    let elements = sorted.into_iter().map(Option::unwrap_or_default).collect();
    key::store_list(&mut context.unit, destination, elements).await?;
    Ok(Reply::Int(count as i64))
}

fn parse(mut args: Args<'_>, may_store: bool) -> Result<(SortOptions, Option<&Bytes>)> {
    let mut options = SortOptions::default();
    let mut destination = None;
    while !args.is_empty() {
        let values = args.len() - 1;
        if args.take("asc") {
            options.is_descending = false;
        } else if args.take("desc") {
            options.is_descending = true;
        } else if args.take("alpha") {
            options.as_text = true;
        } else if values >= 2 && args.take("limit") {
            options.offset = args.next_integer()?;
            options.count = Some(args.next_integer()?);
        } else if may_store && values >= 1 && args.take("store") {
            destination = Some(args.next_value()?);
        } else if values >= 1 && args.take("by") {
            options.by = parse_by(args.next_value()?, options.by);
        } else if values >= 1 && args.take("get") {
            options.get.push(Pattern::parse(args.next_value()?));
        } else {
            return Err(Error::SYNTAX);
        }
    }
    options.is_stored = destination.is_some();
    Ok((options, destination))
}

/// A pattern without `*` would be the same for all elements: that is how clients say that nothing is to be sorted. A
/// later BY does not take that back.
fn parse_by(text: &Bytes, earlier: By) -> By {
    match earlier {
        By::Element | By::Pattern(_) if text.contains(&b'*') => By::Pattern(Pattern::parse(text)),
        _ => By::Nothing,
    }
}

/// Where SORT's destination is among its arguments, as Redis finds it: the last STORE counts.
fn destination_of(args: &[Bytes]) -> Vec<usize> {
    let is = |at: usize, word: &str| args.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
    let mut found = Vec::new();
    let mut at = 2;
    while at < args.len() {
        if is(at, "limit") {
            at += 2;
        } else if is(at, "get") || is(at, "by") {
            at += 1;
        } else if is(at, "store") && at + 1 < args.len() {
            found = vec![at + 1];
        }
        at += 1;
    }
    found
}

const SOURCE: KeySpec = KeySpec::at(1, Access::RO.union(Access::ACCESS));

/// The keys that BY and GET name depend on the elements: nobody can tell them from the arguments.
const LOOKED_UP: KeySpec = KeySpec::grammar(|_| Vec::new(), Access::RO.union(Access::ACCESS));

const DESTINATION: KeySpec = KeySpec::grammar(destination_of, Access::OW.union(Access::UPDATE));

const COMPLEXITY: &str = "O(N+M*log(M)) where N is the number of elements in the list or set to sort, and M the number \
                          of returned elements. When the elements are not sorted, complexity is O(N).";

/// ACL categories: those of the types that can be sorted.
const SORTABLE: &[&str] = &["@list", "@set", "@sortedset"];

pub(super) const COMMANDS: &[Command] = &[
    Command::new(
        "sort",
        -2,
        Flags::WRITE.union(Flags::DENYOOM).union(Flags::MOVABLE_KEYS).union(Flags::DANGEROUS).union(Flags::ALONE),
        |context, args| Box::pin(sort(context, args, true)),
    )
    .keys(&[SOURCE, LOOKED_UP, DESTINATION])
    .categories(SORTABLE)
    .doc(
        "1.0.0",
        COMPLEXITY,
        "Sorts the elements in a list, a set, or a sorted set, optionally storing the result.",
    ),
    Command::new(
        "sort_ro",
        -2,
        Flags::READONLY.union(Flags::MOVABLE_KEYS).union(Flags::DANGEROUS).union(Flags::ALONE),
        |context, args| Box::pin(sort(context, args, false)),
    )
    .keys(&[SOURCE, LOOKED_UP])
    .categories(SORTABLE)
    .doc("7.0.0", COMPLEXITY, "Returns the sorted elements of a list, a set, or a sorted set."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_store_names_the_destination() {
        let find = |line: &'static str| {
            destination_of(&line.split(' ').map(|word| Bytes::from_static(word.as_bytes())).collect::<Vec<_>>())
        };
        assert_eq!(find("SORT l STORE a ASC store b"), [7 - 1]);
        assert_eq!(find("SORT l GET STORE x"), [0; 0]);
        assert_eq!(find("SORT l BY w* LIMIT 0 STORE STORE d"), [8]);
        assert_eq!(find("SORT l STORE"), [0; 0]);
    }
}
