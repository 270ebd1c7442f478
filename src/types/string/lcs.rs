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
