//! Many clients that write to one key share units of work.
//!
//! Each unit by itself would wait for the key's latch, read, and commit, while all others wait. So whoever finds the latch
//! taken joins the *crowd* before it instead. A task carries out a crowd as one unit, with one commit, while the next
//! crowd gathers.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    mem,
    sync::Arc,
};

use parking_lot::Mutex;
use respgate_backend_api as backend;
use tokio::{sync::oneshot, task};

use super::{Error, Gateway, Replies, Session, Step, execute::execute_unit};
use crate::resp::Reply;

/// Those who wait for latches, by the number of the latch. A latch that is not here has nobody to carry out its crowd.
#[derive(Default)]
pub(super) struct Crowds(Mutex<HashMap<usize, VecDeque<Guest>>>);

/// A pipeline, or a part of one, whose steps all write and need one latch only.
struct Guest {
    session: Session,
    steps: Vec<Step>,
    /// Takes the replies, and the steps that have none yet.
    done: oneshot::Sender<(Replies, Vec<Step>)>,
}

impl Guest {
    /// True if `other` may follow in the same unit. What commands that write see of a session is the same for both.
    fn goes_with(&self, other: &Self) -> bool {
        (self.session.db, self.session.protocol) == (other.session.db, other.session.protocol)
    }
}

impl Crowds {
    /// Adds a guest to the crowd before a latch. True if there was none before.
    fn join(&self, latch: usize, guest: Guest) -> bool {
        match self.0.lock().entry(latch) {
            Entry::Occupied(mut crowd) => {
                crowd.get_mut().push_back(guest);
                false
            }
            Entry::Vacant(place) => {
                place.insert(VecDeque::from([guest]));
                true
            }
        }
    }

    /// Those who go next, with at most `steps_max` steps unless there is one guest only; none if nobody is left.
    fn next(&self, latch: usize, steps_max: usize) -> Vec<Guest> {
        let mut crowds = self.0.lock();
        let Entry::Occupied(mut crowd) = crowds.entry(latch) else { return Vec::new() };
        let Some(first) = crowd.get_mut().pop_front() else {
            crowd.remove();
            return Vec::new();
        };
        let (mut guests, mut steps) = (vec![first], 0);
        while let (Some(last), Some(next)) = (guests.last(), crowd.get().front()) {
            steps += last.steps.len();
            if steps + next.steps.len() > steps_max || !last.goes_with(next) {
                break;
            }
            guests.extend(crowd.get_mut().pop_front());
        }
        guests
    }

    /// Puts back those whose turn has not come after all.
    fn put_back(&self, latch: usize, guests: impl DoubleEndedIterator<Item = Guest>) {
        let mut crowds = self.0.lock();
        let crowd = crowds.entry(latch).or_default();
        guests.rev().for_each(|guest| crowd.push_front(guest));
    }
}

/// The latch that all `steps` need, and nothing else, if it is taken and they may share a unit with other clients'.
pub(super) fn latch_before(gateway: &Gateway, steps: &[Step]) -> Option<usize> {
    if !steps.iter().all(|step| step.may_write() && !step.runs_alone()) {
        return None;
    }
    gateway.keyspace.latches().contended(steps.iter().flat_map(Step::keys))
}

/// Carries out `steps` among others. Gives the replies, and leaves the steps that have none.
pub(super) async fn join(gateway: &Arc<Gateway>, session: &Session, latch: usize, steps: &mut Vec<Step>) -> Replies {
    let (done, outcome) = oneshot::channel();
    let count = steps.len();
    let guest = Guest { session: session.beside(), steps: mem::take(steps), done };
    if gateway.crowds.join(latch, guest) {
        task::spawn(carry_out(Arc::clone(gateway), latch));
    }
    let (replies, left) = outcome.await.unwrap_or_else(|_| {
        let lost = Error::Store(backend::Error::OutcomeUnknown("the process is shutting down".into()));
        (Replies::only(vec![lost.into_reply(); count]), Vec::new())
    });
    *steps = left;
    replies
}

/// The task that carries out the crowds before a latch. If it ends before them, nobody must go on waiting for it.
struct Host<'g> {
    gateway: &'g Gateway,
    latch: usize,
    has_guests: bool,
}

impl Drop for Host<'_> {
    fn drop(&mut self) {
        if self.has_guests {
            self.gateway.crowds.0.lock().remove(&self.latch);
        }
    }
}

/// Carries out one crowd after the other until nobody is left.
async fn carry_out(gateway: Arc<Gateway>, latch: usize) {
    let mut host = Host { gateway: &gateway, latch, has_guests: true };
    loop {
        let settings = gateway.settings();
        let guests = gateway.crowds.next(latch, settings.unit.pipeline_commands_max);
        if guests.is_empty() {
            host.has_guests = false;
            return;
        }
        serve(&gateway, latch, guests, settings.unit.reply_bytes_max.as_usize()).await;
        // By then those who were answered have sent their next requests, perhaps.
        task::yield_now().await;
    }
}

/// Carries out the steps of some guests as one unit and answers them.
async fn serve(gateway: &Gateway, latch: usize, mut guests: Vec<Guest>, reply_bytes_max: usize) {
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
        gateway.crowds.put_back(latch, late.into_iter());
    }
}
