use bytes::Bytes;

/// Keys from `start` up to but without `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key of the range.
    pub start: Bytes,
    /// The first key after the range. Not above `start`: the range is empty.
    pub end: Bytes,
}

impl KeyRange {
    /// The keys from `start` up to but without `end`.
    pub fn new(start: impl Into<Bytes>, end: impl Into<Bytes>) -> Self {
        Self { start: start.into(), end: end.into() }
    }

    /// Every key that begins with `prefix`.
    ///
    /// `prefix` must hold a byte below 255, as every prefix of a record does: the end of the range is the prefix with
    /// its last such byte raised. Without one the range is empty.
    pub fn prefix(prefix: impl Into<Bytes>) -> Self {
        let start = prefix.into();
        let end = prefix_end(&start);
        Self { start, end }
    }

    /// The part of the range that lies after `key`.
    pub fn after(&self, key: &[u8]) -> Self {
        let next = Bytes::from([key, &[0]].concat());
        Self { start: next.max(self.start.clone()), end: self.end.clone() }
    }

    /// True if no key can be in the range.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// True if `key` is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start <= key && key < &*self.end
    }
}

/// The least key above all keys that begin with `prefix`; empty if there is none.
fn prefix_end(prefix: &[u8]) -> Bytes {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            break;
        }
    }
    end.into()
}

/// The order in which a scan returns keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the least key upwards.
    Forward,
    /// From the greatest key downwards.
    Backward,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_range_ends_after_the_last_key_of_the_prefix() {
        let range = KeyRange::prefix(&b"a\xff\xff"[..]);
        assert_eq!(range.end, &b"b"[..]);
        assert!(range.contains(b"a\xff\xff\xff\xff"));
        assert!(!range.contains(b"b"));
        assert!(!range.contains(b"a\xff\xfe"));
    }

    #[test]
    fn what_lies_after_a_key_lies_in_the_range_too() {
        let range = KeyRange::new("b", "d");
        assert_eq!(range.after(b"c"), KeyRange::new("c\0", "d"));
        assert_eq!(range.after(b"a"), range);
        assert!(range.after(b"d").is_empty());
    }

    #[test]
    fn a_range_whose_end_is_not_above_its_start_is_empty() {
        assert!(KeyRange::new("b", "b").is_empty());
        assert!(KeyRange::new("c", "b").is_empty());
        assert!(KeyRange::prefix(&b"\xff"[..]).is_empty());
    }
}
