//! Redis is the oracle: random sequences of commands go to a gateway and to a Redis server, and the replies must be
//! equal, but for the differences that [`compare`] lists.
//!
//! A sequence follows from its seed. When one fails it is shrunk and printed. `RESPGATE_ORACLE_SEED=n` runs only the
//! sequence with that seed; `RESPGATE_ORACLE_SEQUENCES=n` changes how many each test runs.

mod atoms;
mod compare;
mod families;
mod grammar;
mod plan;
mod run;
mod shrink;

use std::fmt::Write;

use rand::SeedableRng;
use rand::rngs::StdRng;

use compare::EncodeVersion;
use families::Family;
use plan::{Call, Planner, audit};
use run::{Difference, Env, Servers};

/// Calls in one sequence.
const LENGTH: usize = 300;

#[test]
fn strings_and_keys() {
    compare_with_redis(&[families::STRINGS, families::KEYS]);
}

#[test]
fn large_strings() {
    compare_with_redis(&[families::LARGE_STRINGS, families::TRANSACTIONS]);
}

#[test]
fn transactions() {
    compare_with_redis(&[families::STRINGS, families::KEYS, families::TRANSACTIONS]);
}

#[test]
fn connection_and_server() {
    compare_with_redis(&[families::STRINGS, families::CONNECTION, families::SERVER, families::TRANSACTIONS]);
}

#[test]
fn hashes() {
    compare_with_redis(&[families::HASHES, families::KEYS, families::STRINGS, families::TRANSACTIONS]);
}

#[test]
fn lists() {
    compare_with_redis(&[families::LISTS, families::KEYS, families::STRINGS, families::TRANSACTIONS]);
}

#[test]
fn sets() {
    compare_with_redis(&[families::SETS, families::KEYS, families::STRINGS, families::TRANSACTIONS]);
}

#[test]
fn zsets() {
    compare_with_redis(&[families::ZSETS, families::SETS]);
}

#[test]
fn sorting() {
    // Without what sets errno to ERANGE, such as a score of 5e-324: Redis' SORT takes an old one for its own.
    compare_with_redis(&[families::SORTING, families::LISTS, families::SETS]);
}

#[test]
fn everything() {
    use families::*;
    compare_with_redis(&[STRINGS, KEYS, RESTORE, TRANSACTIONS, HASHES, LISTS, SETS, ZSETS]);
}

/// One connection cannot tell in which order its pipelines are carried out.
#[test]
fn everything_by_slot() {
    use families::*;
    let families = [STRINGS, KEYS, TRANSACTIONS, HASHES, LISTS, SETS, ZSETS, CONNECTION];
    compare(&families, EncodeVersion::V0, &[("RESPGATE_UNIT__PIPELINE_ORDER", "slot")]);
}

#[test]
fn hashes_and_sets_without_counts() {
    // Nothing is watched: a write that does not look cannot tell that it changes nothing.
    compare(&[families::HASHES, families::SETS, families::KEYS], EncodeVersion::Uncounted, &[]);
}

#[test]
fn zsets_in_a_sidecar() {
    compare(&[families::ZSETS, families::SETS], EncodeVersion::Sidecar, &[]);
}

#[test]
fn everything_in_a_sidecar() {
    use families::*;
    compare(&[STRINGS, KEYS, RESTORE, TRANSACTIONS, SETS, ZSETS, SORTING], EncodeVersion::Sidecar, &[]);
}

/// Each command goes to one of three gateways at random.
#[cfg(feature = "tikv")]
#[test]
fn everything_through_three_gateways() {
    use families::*;
    let Some(cluster) = respgate_test_cluster::TestCluster::start() else { return };
    compare_servers(&[STRINGS, KEYS, TRANSACTIONS, HASHES, LISTS, SETS, ZSETS], Servers::over(cluster), 2);
}

fn compare_with_redis(families: &[Family]) {
    compare(families, EncodeVersion::V0, &[]);
}

fn compare(families: &[Family], version: EncodeVersion, env: Env) {
    compare_servers(families, Servers::start(version, env), 60);
}

/// Compares the replies to so many sequences, unless the environment says otherwise.
fn compare_servers(families: &[Family], mut servers: Servers, sequences: u64) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number("RESPGATE_ORACLE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("RESPGATE_ORACLE_SEQUENCES").unwrap_or(sequences),
    };
    let planner = Planner::new(families);
    let audit = audit(families);
    for seed in seeds.clone() {
        let calls = planner.sequence(LENGTH, &mut StdRng::seed_from_u64(seed));
        if let Some(difference) = servers.first_difference(&calls, &audit) {
            // What comes after the difference has no part in it.
            let end = difference.at.map_or(calls.len(), |at| at + 1);
            let shrunk = shrink::shrink(&calls[..end], |calls| servers.first_difference(calls, &audit).is_some());
            // A failure that does not come back is shown as it was.
            let difference = servers.first_difference(&shrunk, &audit).unwrap_or(difference);
            panic!("{}", report(seed, &shrunk, &difference));
        }
    }
    println!("seeds {seeds:?}: replies equal those of Redis");
}

fn report(seed: u64, calls: &[Call], difference: &Difference) -> String {
    let mut text = format!("RESPGATE_ORACLE_SEED={seed} differs from Redis:\n");
    calls.iter().for_each(|call| writeln!(text, "  {call}").unwrap());
    let place = if difference.at.is_some() { "in reply to" } else { "reading back with" };
    let Difference { call, ours, oracle, .. } = difference;
    write!(text, "{place} {call}\n  respgate: {ours}\n  redis:    {oracle}").unwrap();
    text
}
