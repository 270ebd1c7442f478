use std::cmp::Ordering;

use bytes::Bytes;

use super::{delete, restore, value};
use crate::{
    encoding::{Type, rdb::Value},
    keyspace::{self, Key, Unit},
    resp::double::parse_double,
    types::{Error, Result, string, zset},
};

/// How many elements are looked up in one call to the store.
const PAGE: usize = 256;

/// How SORT orders, and what of it is wanted.
#[derive(Clone, Debug, Default)]
pub struct SortOptions {
    /// What to sort by.
    pub by: By,
    /// Texts are compared, not numbers.
    pub as_text: bool,
    /// The greatest first.
    pub is_descending: bool,
    /// How many to skip.
    pub offset: i64,
    /// How many to give; all if negative.
    pub count: Option<i64>,
    /// What to give of each element; the element itself if empty.
    pub get: Vec<Pattern>,
    /// The order of a set must be the same each time.
    pub is_stored: bool,
}

/// What elements are sorted by.
#[derive(Clone, Debug, Default)]
pub enum By {
    /// By themselves.
    #[default]
    Element,
    /// Not at all: they stay in the order that they have, or in the reverse one if they have any.
    Nothing,
    /// By what another key holds.
    Pattern(Pattern),
}

/// Names a key for each element, and maybe a field of the hash there.
#[derive(Clone, Debug)]
pub enum Pattern {
    /// `#`: the element itself.
    Element,
    /// A pattern without `*`: nothing.
    Nothing,
    /// `before*after` or `before*after->field`.
    Key {
        /// What stands before the element in the key's name.
        before: Bytes,
        /// What stands after it.
        after: Bytes,
        /// The field, if the key is to be a hash.
        field: Option<Bytes>,
    },
}

impl Pattern {
    /// Reads a pattern. The first `*` is the element; `->` ends the key if a field's name follows.
    pub fn parse(text: &Bytes) -> Self {
        if text == "#" {
            return Self::Element;
        }
        let Some(star) = text.iter().position(|&byte| byte == b'*') else { return Self::Nothing };
        let after = text.slice(star + 1..);
        let arrow = after.windows(2).position(|pair| pair == b"->").filter(|arrow| arrow + 2 < after.len());
        let (after, field) = match arrow {
            Some(arrow) => (after.slice(..arrow), Some(after.slice(arrow + 2..))),
            None => (after, None),
        };
        Self::Key { before: text.slice(..star), after, field }
    }
}

/// The elements of the list, set or sorted set `key`, in the order and form that `options` ask for. All elements are
/// held in memory; O(N log N), and a read of the store for each pattern and element.
///
/// # Errors
/// [`Error::NotFloat`] if what should be compared as a number is none; [`keyspace::Error::WrongType`].
pub async fn sort(unit: &mut Unit<'_>, key: &Key, mut options: SortOptions) -> Result<Vec<Option<Bytes>>> {
    let Some(metadata) = unit.load(key).await? else { return Ok(Vec::new()) };
    let kind = metadata.kind();
    if matches!(kind, Type::String | Type::Hash) {
        return Err(keyspace::Error::WrongType.into());
    }
    let mut elements = elements(unit, key).await?;
    if matches!(options.by, By::Nothing) && kind == Type::Set && options.is_stored {
        options = SortOptions { by: By::Element, as_text: true, ..options };
    }
    match &options.by {
        By::Element => elements = sorted(elements.clone().into_iter().map(Some).collect(), elements, &options)?,
        By::Pattern(pattern) => {
            elements = sorted(look_up(unit, key.db, pattern, &elements).await?, elements, &options)?
        }
        By::Nothing if kind != Type::Set && options.is_descending => elements.reverse(),
        By::Nothing => {}
    }
    let wanted = limited(elements, &options);
    if options.get.is_empty() {
        return Ok(wanted.into_iter().map(Some).collect());
    }
    let mut columns = Vec::with_capacity(options.get.len());
    for pattern in &options.get {
        columns.push(look_up(unit, key.db, pattern, &wanted).await?.into_iter());
    }
    let rows = wanted.iter().flat_map(|_| columns.iter_mut().map(|column| column.next().flatten()).collect::<Vec<_>>());
    Ok(rows.collect())
}

/// Makes `key` the list of `elements`, whatever it was; an empty list does not exist.
pub async fn store_list(unit: &mut Unit<'_>, key: &Key, elements: Vec<Bytes>) -> Result<()> {
    delete(unit, std::slice::from_ref(key)).await?;
    if elements.is_empty() {
        return Ok(());
    }
    restore(unit, key, Value::List(elements), None).await
}

/// The elements in the order that they have: that of positions, of scores, or of the store.
async fn elements(unit: &mut Unit<'_>, key: &Key) -> Result<Vec<Bytes>> {
    Ok(match value(unit, key).await? {
        Some(Value::List(elements) | Value::Set(elements)) => elements,
        Some(Value::Zset(mut members)) => {
            members.sort_by(zset::order);
            members.into_iter().map(|(member, _)| member).collect()
        }
        _ => Vec::new(),
    })
}

/// Sorts `elements` by their `weights`.
fn sorted(weights: Vec<Option<Bytes>>, elements: Vec<Bytes>, options: &SortOptions) -> Result<Vec<Bytes>> {
    let directed = |ordering: Ordering| if options.is_descending { ordering.reverse() } else { ordering };
    if options.as_text {
        return Ok(sorted_by(weights, elements, |one, other| directed(one.cmp(other))));
    }
    let weights: Result<Vec<f64>> =
        weights.into_iter().map(|weight| weight.map_or(Ok(0.0), |text| number(&text))).collect();
    let weighed: Vec<(f64, Bytes)> = weights?.into_iter().zip(elements.iter().cloned()).collect();
    let compare = |(one, element): &(f64, Bytes), (other, other_element): &(f64, Bytes)| {
        directed(one.partial_cmp(other).unwrap_or(Ordering::Equal).then_with(|| element.cmp(other_element)))
    };
    Ok(sorted_by(weighed, elements, compare))
}

fn sorted_by<W>(weights: Vec<W>, elements: Vec<Bytes>, compare: impl Fn(&W, &W) -> Ordering) -> Vec<Bytes> {
    let mut pairs: Vec<(W, Bytes)> = weights.into_iter().zip(elements).collect();
    pairs.sort_by(|(one, _), (other, _)| compare(one, other));
    pairs.into_iter().map(|(_, element)| element).collect()
}

/// A weight, as C's `strtod` reads it: it ends before a zero byte, blanks may stand before it, and nothing at all is zero.
fn number(text: &[u8]) -> Result<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Ok(0.0);
    }
    parse_double(text.trim_ascii_start()).ok_or(Error::NotFloat)
}

fn limited(elements: Vec<Bytes>, options: &SortOptions) -> Vec<Bytes> {
    let offset = usize::try_from(options.offset.max(0)).unwrap_or(usize::MAX);
    let count = options.count.and_then(|count| usize::try_from(count).ok()).unwrap_or(usize::MAX);
    elements.into_iter().skip(offset).take(count).collect()
}

/// What `pattern` gives for each element.
async fn look_up(unit: &mut Unit<'_>, db: u8, pattern: &Pattern, elements: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
    let (before, after, field) = match pattern {
        Pattern::Element => return Ok(elements.iter().cloned().map(Some).collect()),
        Pattern::Nothing => return Ok(vec![None; elements.len()]),
        Pattern::Key { before, after, field } => (before, after, field.as_ref()),
    };
    let mut found = Vec::with_capacity(elements.len());
    for page in elements.chunks(PAGE) {
        let name = |element: &Bytes| Bytes::from([before, &**element, after].concat());
        let keys: Vec<Key> = page.iter().map(|element| Key { db, name: name(element) }).collect();
        let loaded = unit.peek_many(&keys).await?;
        for (key, metadata) in keys.iter().zip(loaded) {
            found.push(match (metadata, field) {
                (Some(metadata), None) if metadata.kind() == Type::String => {
                    Some(string::value(unit, key, &metadata).await?)
                }
                (Some(metadata), Some(field)) if metadata.kind() == Type::Hash => {
                    let record = unit.collection(key, &metadata)?.element(field);
                    unit.peek(&record).await?
                }
                _ => None,
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort_texts(texts: &[&'static str], options: &SortOptions) -> Result<Vec<Bytes>> {
        let elements: Vec<Bytes> = texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
        sorted(elements.iter().cloned().map(Some).collect(), elements, options)
    }

    #[test]
    fn numbers_are_compared_as_numbers_and_equal_ones_as_text() {
        let options = SortOptions::default();
        assert_eq!(
            sort_texts(&["10", "9", "1.0", "", "1", "-inf"], &options).unwrap(),
            ["-inf", "", "1", "1.0", "9", "10"]
        );
        let options = SortOptions { is_descending: true, ..options };
        assert_eq!(sort_texts(&["9", "1.0", "1", " 10"], &options).unwrap(), [" 10", "9", "1.0", "1"]);
        for text in ["a", "nan", "1 ", " "] {
            assert_eq!(sort_texts(&["1", text], &options), Err(Error::NotFloat), "{text:?}");
        }
    }

    #[test]
    fn texts_are_compared_as_bytes_and_a_missing_one_comes_first() {
        let options = SortOptions { as_text: true, ..SortOptions::default() };
        assert_eq!(sort_texts(&["b", "B", "10", "9"], &options).unwrap(), ["10", "9", "B", "b"]);
        let weights = vec![Some(Bytes::new()), None];
        let elements = vec![Bytes::from_static(b"empty"), Bytes::from_static(b"missing")];
        assert_eq!(sorted(weights, elements, &options).unwrap(), ["missing", "empty"]);
    }

    #[test]
    fn patterns_name_a_key_and_maybe_a_field() {
        let parts = |text: &'static str| match Pattern::parse(&Bytes::from_static(text.as_bytes())) {
            Pattern::Element => "element".to_owned(),
            Pattern::Nothing => "nothing".to_owned(),
            Pattern::Key { before, after, field } => format!("{before:?} {after:?} {field:?}"),
        };
        assert_eq!(parts("#"), "element");
        assert_eq!(parts("a->b"), "nothing");
        assert_eq!(parts("w_*_x"), r#"b"w_" b"_x" None"#);
        assert_eq!(parts("a->*b*->f->g"), r#"b"a->" b"b*" Some(b"f->g")"#);
        assert_eq!(parts("*->"), r#"b"" b"->" None"#);
    }

    #[test]
    fn limits_may_lie_outside() {
        let limited = |offset, count| {
            let elements = vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")];
            limited(elements, &SortOptions { offset, count: Some(count), ..SortOptions::default() }).len()
        };
        assert_eq!((limited(0, 1), limited(1, -1), limited(-1, 9), limited(2, 1)), (1, 1, 2, 0));
        assert_eq!((limited(i64::MAX, i64::MAX), limited(i64::MIN, i64::MAX), limited(0, 0)), (0, 2, 0));
    }
}
