//! Faults at random, one after the other, as a seed has it.

use std::{
    fmt, thread,
    time::{Duration, Instant},
};

use rand::{Rng, RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use super::Fleet;
use crate::support::{Gateway, Options};

/// Something that goes wrong for a while, or for once.
#[derive(Clone, Debug)]
enum Fault {
    /// A gateway ends at once, and another takes its place.
    Kill(usize),
    /// A gateway does nothing, and goes on as if nothing had been. Its locks may have been taken away meanwhile.
    Pause(usize, Duration),
    /// A server ends, and is back after a while; meanwhile others do its work.
    ReplaceStore(u64, Duration),
    /// A server cannot be reached for a while.
    LoseStore(u64, Duration),
    /// The placement driver cannot be reached for a while.
    LosePd(Duration),
    /// Some requests of a kind go wrong.
    Requests {
        method: &'static str,
        kind: &'static str,
        count: u64,
    },
    /// Some requests of a kind take longer.
    Delay {
        method: &'static str,
        delay_ms: u64,
        lasts: Duration,
    },
    Split([u8; 2]),
    Merge,
    MoveLeaders,
}

impl Fault {
    fn any(rng: &mut impl Rng, gateways: usize) -> Self {
        const METHODS: &[&str] = &["KvPrewrite", "KvCommit", "KvPessimisticLock", "Kv*"];

        let method = METHODS.choose(rng).copied().unwrap_or_default();
        let count = rng.random_range(1..8);
        let lasts = Duration::from_millis(rng.random_range(50..800));
        match rng.random_range(0..24) {
            0..4 => Self::Kill(rng.random_range(0..gateways)),
            // Longer than locks live, once in a while.
            4..6 => Self::Pause(rng.random_range(0..gateways), lasts * rng.random_range(1..6)),
            6..8 => Self::ReplaceStore(rng.random_range(1..=3), lasts),
            8 => Self::LoseStore(rng.random_range(1..=3), lasts),
            9 => Self::LosePd(lasts),
            10..14 => Self::Requests { method, kind: "after", count },
            14 => Self::Requests { method, kind: "before", count },
            15 => Self::Requests { method, kind: "busy", count },
            16 => Self::Requests { method, kind: "leaderless", count },
            17..20 => Self::Delay { method, delay_ms: rng.random_range(1..100), lasts },
            20..22 => Self::Split(rng.random()),
            22 => Self::Merge,
            _ => Self::MoveLeaders,
        }
    }

    /// Lets it happen, and waits until it is over.
    fn strike(&self, fleet: &mut Fleet) {
        let cluster = &fleet.cluster;
        match *self {
            Self::Kill(victim) => fleet.replace(victim),
            Self::Pause(victim, lasts) => {
                fleet.gateways[victim].signal("STOP");
                thread::sleep(lasts);
                fleet.gateways[victim].signal("CONT");
            }
            Self::ReplaceStore(id, lasts) => {
                cluster.replace_store(id);
                thread::sleep(lasts);
                cluster.start_store(id);
            }
            Self::LoseStore(id, lasts) => {
                cluster.stop_store(id);
                thread::sleep(lasts);
                cluster.start_store(id);
            }
            Self::LosePd(lasts) => {
                cluster.stop_pd();
                thread::sleep(lasts);
                cluster.start_pd();
            }
            Self::Requests { method, kind, count } => cluster.fault(method, kind, count),
            Self::Delay { method, delay_ms, lasts } => {
                cluster.delay(method, delay_ms, 0.3);
                thread::sleep(lasts);
                cluster.heal();
            }
            Self::Split(key) => cluster.split(&key),
            Self::Merge => {
                if let [left, _, ..] = cluster.regions()[..] {
                    cluster.merge(left);
                }
            }
            Self::MoveLeaders => cluster.regions().into_iter().for_each(|region| cluster.move_leader(region)),
        }
    }
}

impl Fleet {
    /// Kills a gateway and starts another at the same port. It need not have reached the cluster yet.
    fn replace(&mut self, victim: usize) {
        let gateway = self.gateways.remove(victim);
        let port = gateway.port();
        gateway.kill();
        let successor = Gateway::with(&Options { pd: Some(self.cluster.pd()), port, ..Options::default() });
        self.gateways.insert(victim, successor);
    }

    /// Lets faults happen for a while, with pauses between them. Says what there was.
    pub(super) fn suffer(&mut self, seed: u64, lasts: Duration) -> impl fmt::Display {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut faults = Faults::default();
        let until = Instant::now() + lasts;
        while Instant::now() < until {
            let fault = Fault::any(&mut rng, self.gateways.len());
            fault.strike(self);
            faults.0.push(fault);
            thread::sleep(Duration::from_millis(rng.random_range(0..300)));
        }
        self.cluster.heal();
        faults
    }
}

#[derive(Default)]
struct Faults(Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|fault| writeln!(f, "  {fault:?}"))
    }
}
