//! Delta debugging: the smallest sequence that still fails.

use std::time::{Duration, Instant};

use super::plan::Call;

/// How long to look for a smaller one.
const BUDGET: Duration = Duration::from_secs(60);

/// Takes calls away for as long as `fails` says that the rest still fails.
pub(crate) fn shrink(calls: &[Call], mut fails: impl FnMut(&[Call]) -> bool) -> Vec<Call> {
    let until = Instant::now() + BUDGET;
    let mut smallest = calls.to_vec();
    let mut chunk = smallest.len().div_ceil(2);
    while chunk > 0 && Instant::now() < until {
        let before = smallest.len();
        let mut start = 0;
        while start < smallest.len() && Instant::now() < until {
            let end = (start + chunk).min(smallest.len());
            let candidate = [&smallest[..start], &smallest[end..]].concat();
            match fails(&candidate) {
                true => smallest = candidate,
                false => start = end,
            }
        }
        let removed = before - smallest.len();
        chunk = if chunk == 1 && removed > 0 { 1 } else { chunk / 2 };
    }
    separate(smallest, fails)
}

/// Sends everything one by one, if that fails too.
fn separate(calls: Vec<Call>, mut fails: impl FnMut(&[Call]) -> bool) -> Vec<Call> {
    let alone: Vec<Call> = calls.iter().map(|call| Call { joined: false, ..call.clone() }).collect();
    if fails(&alone) { alone } else { calls }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(count: usize) -> Vec<Call> {
        let call = |at: usize| Call { connection: 0, joined: true, args: vec![at.to_string().into_bytes()] };
        (0..count).map(call).collect()
    }

    fn has(calls: &[Call], name: &str) -> bool {
        calls.iter().any(|call| call.args[0] == name.as_bytes())
    }

    #[test]
    fn keeps_only_what_is_needed() {
        let shrunk = shrink(&calls(100), |calls| has(calls, "17") && has(calls, "80"));
        let names: Vec<_> = shrunk.iter().map(|call| call.args[0].clone()).collect();
        assert_eq!(names, [b"17", b"80"]);
        assert!(shrunk.iter().all(|call| !call.joined));
    }
}
