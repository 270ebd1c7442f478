//! Clients that would stand in each other's way share units of work.
//!
//! - Many that write to one key: each unit by itself would wait for the key's latch, read, and commit, while all others
//!   wait.
//! - Many that write a little each: each unit by itself would go to the store's log, and what that costs is the way there.
//! - Many that ask the same part of a store that is far away, or write to the same parts: each unit by itself would be
//!   requests of its own, and what a request costs is the request, not the key that it names.
//!
//! So whoever finds such a *gate* taken joins the *crowd* before it instead. A task carries out a crowd as one unit, with
//! one commit, while the next crowd gathers. Nobody waits for a gate at which nobody else is, or lately was, nor long for a
//! part of the store that does not answer.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    mem,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use respgate_backend_api as backend;
use tokio::{runtime::Handle, sync::oneshot, task};

use super::{
    Error, Gateway, Replies, Session, Step,
    execute::{run_shared_unit, run_unit},
    gate::{self, Gate, Room},
};
use crate::resp::Reply;

/// Those who wait at gates.
#[derive(Default)]
pub(super) struct Crowds {
    /// A gate that is not here has nobody to carry out its crowd.
    gathered: Mutex<HashMap<Gate, Crowd>>,
    /// How many of the next that only want to commit are not to wait for others.
    alone: AtomicU32,
}

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
        match self.gathered.lock().entry(gate) {
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

    /// True if somebody who only wants to commit need not look for others, because nobody was there lately.
    fn goes_alone(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.alone.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Notes how many have just gone together to commit, which is probably so the next time.
    fn note_commit(&self, guests: usize) {
        /// How many go at once after one that nobody joined.
        const ALONE: u32 = 15;

        if guests == 1 {
            self.alone.store(ALONE, Ordering::Relaxed);
        }
    }

    /// True if nobody is left at a gate, which has nobody to carry out its crowd from now on.
    fn close_if_empty(&self, gate: Gate) -> bool {
        let mut crowds = self.gathered.lock();
        let is_empty = crowds.get(&gate).is_none_or(|crowd| crowd.guests.is_empty());
        if is_empty {
            crowds.remove(&gate);
        }
        is_empty
    }

    /// Those who go next: the first, and whoever may go with him, as many as there is room for. None if nobody is left.
    fn next(&self, gate: Gate, room: Room) -> Vec<Guest> {
        let mut crowds = self.gathered.lock();
        let Entry::Occupied(mut entry) = crowds.entry(gate) else { return Vec::new() };
        let waiting = &mut entry.get_mut().guests;
        let Some(first) = waiting.pop_front() else {
            entry.remove();
            return Vec::new();
        };
        let mut room = room.after(&first.steps);
        let mut guests = vec![first];
        for guest in mem::take(waiting) {
            let goes_along = guests.first().is_some_and(|first| first.goes_with(&guest));
            match room.filter(|_| goes_along).and_then(|room| room.after(&guest.steps)) {
                Some(left) => {
                    room = Some(left);
                    guests.push(guest);
                }
                None => waiting.push_back(guest),
            }
        }
        entry.get_mut().due = Crowd::due(guests.iter().map(|guest| guest.steps.len()).sum());
        guests
    }

    /// Puts back those whose turn has not come after all.
    fn put_back(&self, gate: Gate, guests: impl DoubleEndedIterator<Item = Guest>) {
        let mut crowds = self.gathered.lock();
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
    let Some(gate) = gate::before(gateway, steps) else { return Way::Free(None) };
    match gate {
        Gate::Latch(_) => return Way::Waiting(gate),
        Gate::Commit { .. } if gateway.crowds.goes_alone() => return Way::Free(None),
        Gate::Commit { .. } => return Way::Waiting(gate),
        Gate::Reads(_) | Gate::Writes(_) | Gate::WritesAcross(_) => {}
    }
    match gateway.crowds.gathered.lock().entry(gate) {
        Entry::Vacant(place) => {
            place.insert(Crowd::behind(steps.len()));
            Way::Free(Some(Pass { gateway, gate }))
        }
        Entry::Occupied(crowd) if crowd.get().due < Instant::now() => Way::Free(None),
        Entry::Occupied(_) => Way::Waiting(gate),
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut crowds = self.gateway.crowds.gathered.lock();
        let has_guests = crowds.get(&self.gate).is_some_and(|crowd| !crowd.guests.is_empty());
        match Handle::try_current() {
            Ok(runtime) if has_guests => drop(runtime.spawn(carry_out(Arc::clone(self.gateway), self.gate))),
            // Without a runtime, guests learn that nobody is left.
            _ => drop(crowds.remove(&self.gate)),
        }
    }
}

/// Carries out what a pipeline begins with, in one unit of work, which is shared with other connections that want the same
/// keys or parts of the store. Gives the replies, in order, and removes the steps that they answer.
pub(super) async fn execute_unit(gateway: &Arc<Gateway>, session: &mut Session, steps: &mut Vec<Step>) -> Replies {
    let _pass = match way(gateway, steps) {
        Way::Free(pass) => pass,
        Way::Waiting(gate) => return join(gateway, session, gate, steps).await,
    };
    let replies = run_unit(gateway, session, steps).await;
    steps.drain(..replies.replies.len());
    replies
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
            self.gateway.crowds.gathered.lock().remove(&self.gate);
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
        match gate {
            Gate::Latch(latch) => gateway.keyspace.latches().note_crowd(latch, guests.len() > 1),
            Gate::Commit { .. } => {
                let count = guests.len();
                let guests = send_away_who_would_wait(&gateway, guests);
                if gateway.crowds.close_if_empty(gate) {
                    host.has_guests = false;
                    gateway.crowds.note_commit(count);
                    return serve(&gateway, gate, guests).await;
                }
                let gateway = Arc::clone(&gateway);
                task::spawn(async move { serve(&gateway, gate, guests).await });
                continue;
            }
            Gate::Reads(_) | Gate::Writes(_) | Gate::WritesAcross(_) => {}
        }
        serve(&gateway, gate, guests).await;
    }
}

/// Lets those go alone for whose keys somebody has taken a latch meanwhile, and gives back the others.
fn send_away_who_would_wait(gateway: &Arc<Gateway>, guests: Vec<Guest>) -> Vec<Guest> {
    let is_held_up = |guest: &mut Guest| gate::is_latched(gateway, &guest.steps);
    let mut guests = guests;
    guests.extract_if(.., is_held_up).for_each(|guest| drop(task::spawn(guest.go_alone(Arc::clone(gateway)))));
    guests
}

/// Carries out the steps of some guests, as one unit unless each had better have its own, and answers them.
async fn serve(gateway: &Arc<Gateway>, gate: Gate, mut guests: Vec<Guest>) {
    let counts: Vec<usize> = guests.iter().map(|guest| guest.steps.len()).collect();
    let mut steps: Vec<Step> = guests.iter_mut().flat_map(|guest| mem::take(&mut guest.steps)).collect();
    let Some(first) = guests.first_mut() else { return };
    let replies = if counts.len() == 1 {
        Some(run_unit(gateway, &mut first.session, &steps).await)
    } else {
        run_shared_unit(gateway, &mut first.session, &steps, gate).await
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
fn share_out(gateway: &Arc<Gateway>, gate: Gate, guests: Vec<Guest>, replies: Replies) {
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
    if matches!(gate, Gate::Commit { .. }) {
        late.into_iter().for_each(|guest| drop(task::spawn(guest.go_alone(Arc::clone(gateway)))));
    } else if !late.is_empty() {
        gateway.crowds.put_back(gate, late.into_iter());
    }
}
