use std::ops::Range;

use bytes::Bytes;

/// How many cells of the table are computed before other tasks get their turn: about a millisecond's work.
const CELLS_PER_TURN: usize = 1 << 20;

/// Bytes that two strings have in common without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommonRun {
    /// Where they are in the first string.
    pub first: Range<usize>,
    /// Where they are in the second string.
    pub second: Range<usize>,
}

/// The longest common subsequence of two strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lcs {
    /// Its length.
    pub length: usize,
    /// The runs that it is made of, from the last to the first.
    pub runs: Vec<CommonRun>,
}

impl Lcs {
    /// The longest common subsequence of `first` and `second`; of several, the one that Redis finds.
    ///
    /// Takes O(n m) steps, and lets other tasks run now and then. Memory: 4 bytes for each byte of `second`, and one
    /// bit for each pair of bytes, which says where the way back through the table leads.
    pub async fn find(first: &[u8], second: &[u8]) -> Self {
        // The lengths for the bytes of `first` so far and each beginning of `second`.
        let mut lengths = vec![0_u32; second.len()];
        let mut is_up = Bits::new(first.len() * second.len());
        let mut cells = 0;
        for (row, a) in first.iter().enumerate() {
            let (mut diagonal, mut left) = (0, 0);
            for (column, (b, above)) in second.iter().zip(&mut lengths).enumerate() {
                let length = if a == b {
                    diagonal + 1
                } else {
                    if *above > left {
                        is_up.set(row * second.len() + column);
                    }
                    left.max(*above)
                };
                diagonal = *above;
                *above = length;
                left = length;
            }
            cells += second.len();
            if cells >= CELLS_PER_TURN {
                cells = 0;
                tokio::task::yield_now().await;
            }
        }
        Self { length: lengths.last().map_or(0, |&length| length as usize), runs: runs(first, second, &is_up) }
    }

    /// Its bytes, of which `first` is one source.
    pub fn text(&self, first: &[u8]) -> Bytes {
        self.runs.iter().rev().filter_map(|run| first.get(run.first.clone())).collect::<Vec<_>>().concat().into()
    }
}

/// Walks from the ends of both strings back to the beginning of one, and collects what they share on the way.
fn runs(first: &[u8], second: &[u8], is_up: &Bits) -> Vec<CommonRun> {
    let mut runs: Vec<CommonRun> = Vec::new();
    let (mut i, mut j) = (first.len(), second.len());
    while let (Some(row), Some(column)) = (i.checked_sub(1), j.checked_sub(1)) {
        if first.get(row) == second.get(column) {
            match runs.last_mut() {
                Some(run) if run.first.start == i && run.second.start == j => {
                    run.first.start = row;
                    run.second.start = column;
                }
                _ => runs.push(CommonRun { first: row..i, second: column..j }),
            }
            (i, j) = (row, column);
        } else if is_up.get(row * second.len() + column) {
            i = row;
        } else {
            j = column;
        }
    }
    runs
}

/// A fixed number of bits, all clear at first.
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn set(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    fn get(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word & 1 << (at % 64) != 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn find(first: &[u8], second: &[u8]) -> Lcs {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(Lcs::find(first, second))
    }

    /// The length, straight from the definition.
    fn length(first: &[u8], second: &[u8]) -> usize {
        match (first, second) {
            ([a, first @ ..], [b, second @ ..]) if a == b => 1 + length(first, second),
            ([_, first_rest @ ..], [_, second_rest @ ..]) => length(first_rest, second).max(length(first, second_rest)),
            _ => 0,
        }
    }

    #[test]
    fn the_example_of_redis() {
        let lcs = find(b"ohmytext", b"mynewtext");
        assert_eq!(lcs.length, 6);
        assert_eq!(lcs.text(b"ohmytext"), "mytext");
        let runs = vec![CommonRun { first: 4..8, second: 5..9 }, CommonRun { first: 2..4, second: 0..2 }];
        assert_eq!(lcs.runs, runs);
    }

    #[test]
    fn nothing_in_common() {
        for (first, second) in [(&b""[..], &b""[..]), (b"", b"a"), (b"a", b""), (b"ab", b"cd")] {
            assert_eq!(find(first, second), Lcs { length: 0, runs: Vec::new() });
        }
    }

    proptest! {
        #[test]
        fn it_is_common_and_the_longest(first in "[abc]{0,9}", second in "[abc]{0,9}") {
            let lcs = find(first.as_bytes(), second.as_bytes());
            prop_assert_eq!(lcs.length, length(first.as_bytes(), second.as_bytes()));
            let mut end = (first.len(), second.len());
            for run in &lcs.runs {
                prop_assert!(!run.first.is_empty() && run.first.end <= end.0 && run.second.end <= end.1);
                prop_assert_eq!(first.get(run.first.clone()), second.get(run.second.clone()));
                end = (run.first.start, run.second.start);
            }
            prop_assert_eq!(lcs.text(first.as_bytes()).len(), lcs.length);
        }
    }
}
