//! What units of different clients would have to pass one after the other, and had better pass together.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use respgate_backend_api as backend;

use super::{Error, Gateway, Step};

/// What one unit passes at a time, or few had better pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Gate {
    /// A latch, by its number.
    Latch(usize),
    /// The way to the log of a store that this process has for itself, for those who read before they write, or for those
    /// who only overwrite and shall not have to wait while others read. Units may pass it side by side.
    Commit { reads: bool },
    /// The way to read from a part of a store that is far away.
    Reads(u64),
    /// The way to write to one.
    Writes(u64),
    /// The way to write to several of them, by a hash of which. Who wants others as well, or only some, must not have to
    /// wait for one that does not answer.
    WritesAcross(u64),
}

impl Gate {
    /// How many conflicts those who pass together bear with, before each goes alone.
    pub(super) fn conflicts_max(self, gateway: &Gateway) -> u32 {
        /// The more keys, the more often others are quicker with one.
        const AT_PARTS: u32 = 2;

        match self {
            // There each for itself would only be in each other's way again.
            Self::Latch(_) => gateway.settings().unit.conflict_retries_max,
            Self::Commit { .. } | Self::Reads(_) | Self::Writes(_) | Self::WritesAcross(_) => AT_PARTS,
        }
    }

    /// True if those who pass together and fail with `error`, of which nothing has been written, had better go alone.
    pub(super) fn parts_after(self, error: &Error) -> bool {
        match (self, error) {
            (_, error) if error.may_split() => true,
            // It may be the failure of one, and each is asked for what he alone needs.
            (Self::Commit { .. }, Error::Store(error)) => !matches!(error, backend::Error::OutcomeUnknown(_)),
            // A store that is far away need not be told so many times.
            _ => false,
        }
    }

    pub(super) fn room(self, gateway: &Gateway) -> Room {
        /// Enough for requests to many parts to be worth sending.
        const STEPS_ACROSS: usize = 1_024;
        /// Part of a millisecond of work.
        const STEPS_AT_ONCE: usize = 128;
        const BYTES_AT_ONCE: usize = 64 << 10;

        let unit = &gateway.settings().unit;
        let room = Room { steps: unit.pipeline_commands_max, bytes: unit.pipeline_bytes_max.as_usize() };
        match self {
            Self::Latch(_) | Self::Reads(_) => room,
            Self::Commit { .. } => Room { steps: STEPS_AT_ONCE, bytes: BYTES_AT_ONCE },
            Self::Writes(_) => Room { bytes: gateway.keyspace.capabilities().part_bytes_max, ..room },
            Self::WritesAcross(_) => Room { steps: STEPS_ACROSS, ..room },
        }
    }
}

/// How much the unit of a crowd may be, unless it is that of one guest.
#[derive(Clone, Copy)]
pub(super) struct Room {
    steps: usize,
    bytes: usize,
}

impl Room {
    /// What is left once `steps` are in it; `None` if they do not fit.
    pub(super) fn after(self, steps: &[Step]) -> Option<Self> {
        let bytes = self.bytes.checked_sub(steps.iter().map(Step::bytes).sum())?;
        let steps = self.steps.checked_sub(steps.len())?;
        Some(Self { steps, bytes })
    }
}

/// The gate that all `steps` have to pass, and nothing else, if there is one that it is worth waiting at.
pub(super) fn before(gateway: &Gateway, steps: &[Step]) -> Option<Gate> {
    let keyspace = &gateway.keyspace;
    if steps.iter().all(|step| step.may_write() && !step.runs_alone())
        && let Some(latch) = keyspace.latches().contended(steps.iter().flat_map(Step::keys))
    {
        return Some(Gate::Latch(latch));
    }
    let writes = steps.iter().any(Step::may_write);
    if !keyspace.capabilities().shared {
        // What a pipeline commits is as good as a crowd's. Who would have to wait for a latch must not hold up others.
        let [step] = steps else { return None };
        let may_share = writes && step.is_brief() && !is_latched(gateway, steps);
        return may_share.then(|| Gate::Commit { reads: !step.only_overwrites() });
    }
    // A pipeline that only reads shares requests among its own commands, and their replies may be long.
    let may_share = writes || steps.len() == 1;
    if !may_share || !steps.iter().all(Step::is_brief) {
        return None;
    }
    let slots: Option<BTreeSet<u16>> = steps.iter().map(Step::slot).collect();
    let parts: BTreeSet<u64> = slots?.into_iter().map(|slot| keyspace.partition(slot)).collect();
    Some(match parts.first().filter(|_| parts.len() == 1) {
        Some(&part) if writes => Gate::Writes(part),
        Some(&part) => Gate::Reads(part),
        None => {
            let mut hasher = DefaultHasher::new();
            parts.hash(&mut hasher);
            Gate::WritesAcross(hasher.finish())
        }
    })
}

/// True if somebody holds a latch that `steps` need.
pub(super) fn is_latched(gateway: &Gateway, steps: &[Step]) -> bool {
    gateway.keyspace.latches().any_taken(steps.iter().flat_map(Step::keys))
}
