//! Clients that would stand in each other's way share units of work.
//!
//! - Many that write to one key: each unit by itself would wait for the key's latch, read, and commit, while all others
//!   wait.
//! - Many that ask the same part of a store that is far away, or write to the same parts: each unit by itself would be
//!   requests of its own, and what a request costs is the request, not the key that it names.
//!
//! So whoever finds such a *gate* taken joins the *crowd* before it instead. A task carries out a crowd as one unit, with
//! one commit, while the next crowd gathers. Nobody waits for a gate at which nobody else is, or lately was, nor long for a
//! part of the store that does not answer.

use std::{
    collections::{BTreeSet, HashMap, VecDeque, hash_map::Entry},
    hash::{DefaultHasher, Hash, Hasher},
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use respgate_backend_api as backend;
use tokio::{runtime::Handle, sync::oneshot, task};

use super::{
    Error, Gateway, Replies, Session, Step,
    execute::{run_shared_unit, run_unit},
};
use crate::resp::Reply;

/// What can be passed by one unit at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Gate {
    /// A latch, by its number.
    Latch(usize),
    /// The way to read from a part of a store that is far away.
    Reads(u64),
    /// The way to write to one.
    Writes(u64),
    /// The way to write to several of them, by a hash of which. Who wants others as well, or only some, must not have to
    /// wait for one that does not answer.
    WritesAcross(u64),
}

/// How much the unit of a crowd may be, unless it is that of one guest.
#[derive(Clone, Copy)]
struct Room {
    steps: usize,
    bytes: usize,
}

impl Room {
    /// What is left once `guest` has come; `None` if it does not fit.
    fn after(self, guest: &Guest) -> Option<Self> {
        let steps = self.steps.checked_sub(guest.steps.len())?;
        let bytes = self.bytes.checked_sub(guest.steps.iter().map(Step::bytes).sum())?;
        Some(Self { steps, bytes })
    }
}

impl Gate {
    /// How many conflicts those who pass together bear with, before each goes alone.
    fn conflicts_max(self, gateway: &Gateway) -> u32 {
        /// The more keys, the more often others are quicker with one.
        const AT_PARTS: u32 = 2;

        match self {
            // There each for itself would only be in each other's way again.
            Self::Latch(_) => gateway.settings().unit.conflict_retries_max,
            Self::Reads(_) | Self::Writes(_) | Self::WritesAcross(_) => AT_PARTS,
        }
    }

    fn room(self, gateway: &Gateway) -> Room {
        /// Enough for requests to many parts to be worth sending.
        const STEPS_ACROSS: usize = 1_024;

        let unit = &gateway.settings().unit;
        let room = Room { steps: unit.pipeline_commands_max, bytes: unit.pipeline_bytes_max.as_usize() };
        match self {
            Self::Latch(_) | Self::Reads(_) => room,
            Self::Writes(_) => Room { bytes: gateway.keyspace.capabilities().part_bytes_max, ..room },
            Self::WritesAcross(_) => Room { steps: STEPS_ACROSS, ..room },
        }
    }
}

/// Those who wait at gates. A gate that is not here has nobody to carry out its crowd.
#[derive(Default)]
pub(super) struct Crowds(Mutex<HashMap<Gate, Crowd>>);

/// Those who wait at a gate while a unit passes it.
struct Crowd {
    guests: VecDeque<Guest>,
    /// When the unit should have passed, if all is well.
    due: Instant,
}

impl Crowd {
    fn behind(steps: usize) -> Self {
        Self { guests: VecDeque::new(), due: Self::due(steps) }
    }

    /// When a unit that comes to the gate now should have passed.
    fn due(steps: usize) -> Instant {
        /// Several times what a part of a store takes that is well.
        const UNIT: Duration = Duration::from_millis(20);
        const STEP: Duration = Duration::from_micros(100);

        Instant::now() + UNIT + STEP * u32::try_from(steps).unwrap_or(u32::MAX)
    }
}

/// A pipeline, or a part of one, whose steps all have to pass the same gate and nothing else.
struct Guest {
    session: Session,
    steps: Vec<Step>,
    /// Takes the replies, and the steps that have none yet.
    done: oneshot::Sender<(Replies, Vec<Step>)>,
}

impl Guest {
    /// True if `other` may follow in the same unit. What such commands see of a session is the same for both.
    fn goes_with(&self, other: &Self) -> bool {
        (self.session.db, self.session.protocol) == (other.session.db, other.session.protocol)
    }

    async fn go_alone(mut self, gateway: Arc<Gateway>) {
        let replies = run_unit(&gateway, &mut self.session, &self.steps).await;
        self.answer(replies);
    }

    /// Gives the client its replies, and the steps back that have none.
    fn answer(mut self, replies: Replies) {
        let left = self.steps.split_off(replies.replies.len());
        // A client that is gone needs no answer.
        let _ = self.done.send((replies, left));
    }
}

impl Crowds {
    /// Adds a guest to the crowd at a gate. True if there was none before.
    fn join(&self, gate: Gate, guest: Guest) -> bool {
        match self.0.lock().entry(gate) {
            Entry::Occupied(mut crowd) => {
                crowd.get_mut().guests.push_back(guest);
                false
            }
            Entry::Vacant(place) => {
                place.insert(Crowd::behind(0)).guests.push_back(guest);
                true
            }
        }
    }

    /// Those who go next, as many as there is room for; none if nobody is left.
    fn next(&self, gate: Gate, mut room: Room) -> Vec<Guest> {
        let mut crowds = self.0.lock();
        let Entry::Occupied(mut entry) = crowds.entry(gate) else { return Vec::new() };
        let waiting = &mut entry.get_mut().guests;
        let Some(first) = waiting.pop_front() else {
            entry.remove();
            return Vec::new();
        };
        let mut guests = vec![first];
        while let (Some(last), Some(next)) = (guests.last(), waiting.front()) {
            match room.after(last) {
                Some(left) if left.after(next).is_some() && last.goes_with(next) => room = left,
                _ => break,
            }
            guests.extend(waiting.pop_front());
        }
        entry.get_mut().due = Crowd::due(guests.iter().map(|guest| guest.steps.len()).sum());
        guests
    }

    /// Puts back those whose turn has not come after all.
    fn put_back(&self, gate: Gate, guests: impl DoubleEndedIterator<Item = Guest>) {
        let mut crowds = self.0.lock();
        let crowd = crowds.entry(gate).or_insert_with(|| Crowd::behind(0));
        guests.rev().for_each(|guest| crowd.guests.push_front(guest));
    }
}

/// How to go on with some steps.
pub(super) enum Way<'g> {
    /// At once, and with the gate taken until the pass is dropped, if there is one.
    Free(Option<Pass<'g>>),
    /// By [joining](join) those who wait at the gate.
    Waiting(Gate),
}

/// The right to pass a gate. Dropped, it lets those pass who have come since.
pub(super) struct Pass<'g> {
    gateway: &'g Arc<Gateway>,
    gate: Gate,
}

/// Finds the way for `steps`. Nobody waits at a gate, other than a latch, at which somebody takes too long.
pub(super) fn way<'g>(gateway: &'g Arc<Gateway>, steps: &[Step]) -> Way<'g> {
    let Some(gate) = gate_before(gateway, steps) else { return Way::Free(None) };
    if matches!(gate, Gate::Latch(_)) {
        return Way::Waiting(gate);
    }
    match gateway.crowds.0.lock().entry(gate) {
        Entry::Vacant(place) => {
            place.insert(Crowd::behind(steps.len()));
            Way::Free(Some(Pass { gateway, gate }))
        }
        Entry::Occupied(crowd) if crowd.get().due < Instant::now() => Way::Free(None),
        Entry::Occupied(_) => Way::Waiting(gate),
    }
}

/// The gate that all `steps` have to pass, and nothing else, if there is one that it is worth waiting at.
fn gate_before(gateway: &Gateway, steps: &[Step]) -> Option<Gate> {
    let keyspace = &gateway.keyspace;
    if steps.iter().all(|step| step.may_write() && !step.runs_alone())
        && let Some(latch) = keyspace.latches().contended(steps.iter().flat_map(Step::keys))
    {
        return Some(Gate::Latch(latch));
    }
    let writes = steps.iter().any(Step::may_write);
    // A pipeline that only reads shares requests among its own commands, and their replies may be long.
    let may_share = writes || steps.len() == 1;
    if !may_share || !keyspace.capabilities().shared || !steps.iter().all(Step::is_brief) {
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

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut crowds = self.gateway.crowds.0.lock();
        let has_guests = crowds.get(&self.gate).is_some_and(|crowd| !crowd.guests.is_empty());
        match Handle::try_current() {
            Ok(runtime) if has_guests => drop(runtime.spawn(carry_out(Arc::clone(self.gateway), self.gate))),
            // Without a runtime, guests learn that nobody is left.
            _ => drop(crowds.remove(&self.gate)),
        }
    }
}

/// Carries out `steps` among others. Gives the replies, and leaves the steps that have none.
pub(super) async fn join(gateway: &Arc<Gateway>, session: &Session, gate: Gate, steps: &mut Vec<Step>) -> Replies {
    let (done, outcome) = oneshot::channel();
    let count = steps.len();
    let guest = Guest { session: session.beside(), steps: mem::take(steps), done };
    if gateway.crowds.join(gate, guest) {
        task::spawn(carry_out(Arc::clone(gateway), gate));
    }
    let (replies, left) = outcome.await.unwrap_or_else(|_| {
        let lost = Error::Store(backend::Error::OutcomeUnknown("the process is shutting down".into()));
        (Replies::only(vec![lost.into_reply(); count]), Vec::new())
    });
    *steps = left;
    replies
}

/// The task that carries out the crowds at a gate. If it ends before them, nobody must go on waiting for it.
struct Host<'g> {
    gateway: &'g Gateway,
    gate: Gate,
    has_guests: bool,
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        if self.has_guests {
            self.gateway.crowds.0.lock().remove(&self.gate);
        }
    }
}

/// Carries out one crowd after the other until nobody is left.
async fn carry_out(gateway: Arc<Gateway>, gate: Gate) {
    let mut host = Host { gateway: &gateway, gate, has_guests: true };
    loop {
        // Everybody whose request has arrived has his turn before, and those who were answered have sent the next, perhaps.
        task::yield_now().await;
        let guests = gateway.crowds.next(gate, gate.room(&gateway));
        if guests.is_empty() {
            host.has_guests = false;
            return;
        }
        if let Gate::Latch(latch) = gate {
            gateway.keyspace.latches().note_crowd(latch, guests.len() > 1);
        }
        serve(&gateway, gate, guests).await;
    }
}

/// Carries out the steps of some guests, as one unit unless each had better have its own, and answers them.
async fn serve(gateway: &Arc<Gateway>, gate: Gate, mut guests: Vec<Guest>) {
    let counts: Vec<usize> = guests.iter().map(|guest| guest.steps.len()).collect();
    let mut steps: Vec<Step> = guests.iter_mut().flat_map(|guest| mem::take(&mut guest.steps)).collect();
    let Some(first) = guests.first_mut() else { return };
    let replies = if counts.len() == 1 {
        Some(run_unit(gateway, &mut first.session, &steps).await)
    } else {
        run_shared_unit(gateway, &mut first.session, &steps, gate.conflicts_max(gateway)).await
    };
    let mut steps = steps.drain(..);
    for (guest, count) in guests.iter_mut().zip(counts) {
        guest.steps.extend(steps.by_ref().take(count));
    }
    match replies {
        Some(replies) => share_out(gateway, gate, guests, replies),
        None => guests.into_iter().for_each(|guest| drop(task::spawn(guest.go_alone(Arc::clone(gateway))))),
    }
}

/// Gives every guest its replies. Those for whom there are none go next.
fn share_out(gateway: &Gateway, gate: Gate, guests: Vec<Guest>, replies: Replies) {
    let Replies { replies, mut stream } = replies;
    let mut replies = replies.into_iter();
    let mut late = Vec::new();
    for guest in guests {
        let own: Vec<Reply> = replies.by_ref().take(guest.steps.len()).collect();
        if own.is_empty() {
            late.push(guest);
            continue;
        }
        // The last reply is the one that is sent page by page.
        let stream = if replies.len() == 0 { stream.take() } else { None };
        guest.answer(Replies { replies: own, stream });
    }
    if !late.is_empty() {
        gateway.crowds.put_back(gate, late.into_iter());
    }
}
