//! Clients that would stand in each other's way share units of work.
//!
//! - Many that write to one key: each unit by itself would wait for the key's latch, read, and commit, while all others
//!   wait.
//! - Many that ask the same part of a store that is far away: each unit by itself would be requests of its own, and what a
//!   request costs is the request, not the key that it names.
//!
//! So whoever finds such a *gate* taken joins the *crowd* before it instead. A task carries out a crowd as one unit, with
//! one commit, while the next crowd gathers. Nobody waits for a gate at which nobody else is, nor long for a part of the store
//! that does not answer.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    mem,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use respgate_backend_api as backend;
use tokio::{runtime::Handle, sync::oneshot, task};

use super::{Error, Gateway, Replies, Session, Step, execute::execute_unit};
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
}

/// Those who wait at gates. A gate that is not here has nobody to carry out its crowd.
#[derive(Default)]
pub(super) struct Crowds(Mutex<HashMap<Gate, Crowd>>);

/// Those who wait at a gate while a unit passes it.
struct Crowd {
    guests: VecDeque<Guest>,
    /// When the unit came to the gate.
    since: Instant,
}

impl Crowd {
    fn of(guests: impl IntoIterator<Item = Guest>) -> Self {
        Self { guests: guests.into_iter().collect(), since: Instant::now() }
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
                place.insert(Crowd::of([guest]));
                true
            }
        }
    }

    /// Those who go next, with at most `steps_max` steps unless there is one guest only; none if nobody is left.
    fn next(&self, gate: Gate, steps_max: usize) -> Vec<Guest> {
        let mut crowds = self.0.lock();
        let Entry::Occupied(mut entry) = crowds.entry(gate) else { return Vec::new() };
        let Some(first) = entry.get_mut().guests.pop_front() else {
            entry.remove();
            return Vec::new();
        };
        let crowd = entry.get_mut();
        crowd.since = Instant::now();
        let (mut guests, mut steps) = (vec![first], 0);
        while let (Some(last), Some(next)) = (guests.last(), crowd.guests.front()) {
            steps += last.steps.len();
            if steps + next.steps.len() > steps_max || !last.goes_with(next) {
                break;
            }
            guests.extend(crowd.guests.pop_front());
        }
        guests
    }

    /// Puts back those whose turn has not come after all.
    fn put_back(&self, gate: Gate, guests: impl DoubleEndedIterator<Item = Guest>) {
        let mut crowds = self.0.lock();
        let crowd = crowds.entry(gate).or_insert_with(|| Crowd::of([]));
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
    /// Several times what a part of a store takes that is well.
    const PATIENCE: Duration = Duration::from_millis(20);

    let Some(gate) = gate_before(gateway, steps) else { return Way::Free(None) };
    if matches!(gate, Gate::Latch(_)) {
        return Way::Waiting(gate);
    }
    match gateway.crowds.0.lock().entry(gate) {
        Entry::Vacant(place) => {
            place.insert(Crowd::of([]));
            Way::Free(Some(Pass { gateway, gate }))
        }
        Entry::Occupied(crowd) if crowd.get().since.elapsed() > PATIENCE => Way::Free(None),
        Entry::Occupied(_) => Way::Waiting(gate),
    }
}

/// The gate that all `steps` have to pass, and nothing else, if there is one that it is worth waiting at.
fn gate_before(gateway: &Gateway, steps: &[Step]) -> Option<Gate> {
    if steps.iter().all(|step| step.may_write() && !step.runs_alone())
        && let Some(latch) = gateway.keyspace.latches().contended(steps.iter().flat_map(Step::keys))
    {
        return Some(Gate::Latch(latch));
    }
    // Of a pipeline the order counts, and it shares its requests among its own commands.
    let ([step], true) = (steps, gateway.keyspace.capabilities().shared) else { return None };
    let slot = step.slot().filter(|_| step.is_brief())?;
    let part = gateway.keyspace.partition(slot);
    Some(if step.may_write() { Gate::Writes(part) } else { Gate::Reads(part) })
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
        let settings = gateway.settings();
        let guests = gateway.crowds.next(gate, settings.unit.pipeline_commands_max);
        if guests.is_empty() {
            host.has_guests = false;
            return;
        }
        serve(&gateway, gate, guests, settings.unit.reply_bytes_max.as_usize()).await;
        // By then those who were answered have sent their next requests, perhaps.
        task::yield_now().await;
    }
}

/// Carries out the steps of some guests as one unit and answers them.
async fn serve(gateway: &Gateway, gate: Gate, mut guests: Vec<Guest>, reply_bytes_max: usize) {
    let counts: Vec<usize> = guests.iter().map(|guest| guest.steps.len()).collect();
    let mut steps: Vec<Step> = guests.iter_mut().flat_map(|guest| mem::take(&mut guest.steps)).collect();
    let Some(first) = guests.first_mut() else { return };
    let Replies { replies, mut stream } = execute_unit(gateway, &mut first.session, &steps, reply_bytes_max).await;
    let (mut replies, mut steps) = (replies.into_iter(), steps.drain(..));
    let mut late = Vec::new();
    for (mut guest, count) in guests.into_iter().zip(counts) {
        let own: Vec<Reply> = replies.by_ref().take(count).collect();
        let left: Vec<Step> = steps.by_ref().take(count).skip(own.len()).collect();
        if own.is_empty() {
            guest.steps = left;
            late.push(guest);
            continue;
        }
        // The last reply is the one that is sent page by page.
        let stream = if replies.len() == 0 { stream.take() } else { None };
        // A client that is gone needs no answer.
        let _ = guest.done.send((Replies { replies: own, stream }, left));
    }
    if !late.is_empty() {
        gateway.crowds.put_back(gate, late.into_iter());
    }
}
