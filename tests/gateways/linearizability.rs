//! Whatever happens, every reply of three gateways fits into one order of all commands on a key: `tests/linearizability`
//! sends the commands and searches the orders.
//!
//! `RESPGATE_FAULTS_SECONDS=n` lets it go on for longer, `RESPGATE_FAULTS_SEED=n` repeats the choice of commands and faults,
//! though not their timing.

use std::{
    env,
    process::{Command, Stdio},
    time::Duration,
};

use super::Fleet;

const SECONDS: u64 = 10;

#[test]
fn every_key_has_an_order_whatever_goes_wrong() {
    let number = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seconds = number("RESPGATE_FAULTS_SECONDS").unwrap_or(SECONDS);
    let seed = number("RESPGATE_FAULTS_SEED").unwrap_or_else(rand::random);
    let Some(mut fleet) = Fleet::start(3) else { return };
    // So that a unit of two keys commits in two phases.
    (1..8).for_each(|region| fleet.cluster.split(&[region << 5]));
    let Some(checker) = respgate_test_cluster::build_go("linearizability") else { return };
    let addrs: Vec<_> = fleet.gateways.iter().map(|gateway| format!("127.0.0.1:{}", gateway.port())).collect();
    let mut checker = Command::new(checker);
    checker.args(["--addrs", &addrs.join(","), "--seed", &seed.to_string()]);
    checker.args(["--duration", &format!("{seconds}s"), "--report", env!("CARGO_TARGET_TMPDIR")]);
    let checker = checker.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let faults = fleet.suffer(seed, Duration::from_secs(seconds));
    let found = checker.wait_with_output().unwrap();
    let said = [found.stdout, found.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    println!("RESPGATE_FAULTS_SEED={seed}:\n{faults}{said}");
    assert!(found.status.success(), "{}", found.status);
}
