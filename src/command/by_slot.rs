//! `pipeline_order = slot`: what writes to different parts of the store runs side by side.
//!
//! A *group* is what a pipeline begins with up to a command that has no keys, or keys of different slots: that one waits
//! for all before it, and all after it wait for it. A group is split into *lanes*, one for each part of the store, of which
//! each is a unit of its own. Replies wait in the place of their steps until those before them are there.

use std::{collections::BTreeMap, mem, sync::Arc};

use futures_util::future::join_all;

use super::{
    Gateway, Replies, Session, Step,
    crowd::{self, Way, execute_unit},
    execute::run_unit_within,
};
use crate::resp::Reply;

/// The steps of a group whose keys lie in one part of the store, and their positions in the group.
#[derive(Default)]
struct Lane {
    positions: Vec<usize>,
    steps: Vec<Step>,
}

/// Carries out a group, or what cannot be part of one; gives the replies that are due, and removes the steps that they
/// answer.
pub(super) async fn execute(gateway: &Arc<Gateway>, session: &mut Session, steps: &mut Vec<Step>) -> Replies {
    let end = steps.iter().position(|step| !is_answered(step) && step.slot().is_none()).unwrap_or(steps.len());
    if let Some(group) = steps.get_mut(..end) {
        spread(gateway, session, group).await;
    }
    let answers = take_answers(steps);
    if !answers.is_empty() {
        return Replies { replies: answers, stream: None };
    }
    let mut unit = take_leading_unit(steps);
    let replies = execute_unit(gateway, session, &mut unit).await;
    steps.splice(..0, unit);
    replies
}

/// Runs the lanes of a group side by side, and puts the answers in the place of the steps.
///
/// Some steps may be left, without any of the same slot after them that is not: where replies are large. What only reads
/// is left as it is, because one unit reads from all parts of the store at once.
async fn spread(gateway: &Arc<Gateway>, session: &Session, group: &mut [Step]) {
    let reply_bytes_max = gateway.settings().unit.reply_bytes_max.as_usize();
    let held: usize = group.iter().map(|step| if let Step::Answer(reply) = step { reply.bytes() } else { 0 }).sum();
    if held > reply_bytes_max || !group.iter().any(Step::may_write) {
        return;
    }
    let mut lanes: BTreeMap<u64, Lane> = BTreeMap::new();
    for (position, step) in group.iter_mut().enumerate() {
        let Some(slot) = step.slot() else { continue };
        let lane = lanes.entry(gateway.keyspace.partition(slot)).or_default();
        lane.positions.push(position);
        lane.steps.push(mem::replace(step, Step::Answer(Reply::None)));
    }
    let reply_bytes_max = (reply_bytes_max - held) / lanes.len().max(1);
    let lanes = lanes.into_values().map(|lane| run(gateway, session, lane, reply_bytes_max));
    for Lane { positions, steps } in join_all(lanes).await {
        for (position, step) in positions.into_iter().zip(steps) {
            if let Some(place) = group.get_mut(position) {
                *place = step;
            }
        }
    }
}

/// Runs a lane, and puts the answers in the place of its steps.
async fn run(gateway: &Arc<Gateway>, session: &Session, mut lane: Lane, reply_bytes_max: usize) -> Lane {
    let mut session = session.beside();
    let (replies, left) = match crowd::way(gateway, &lane.steps) {
        Way::Waiting(gate) => (crowd::join(gateway, &session, gate, &mut lane.steps).await.replies, lane.steps),
        Way::Free(_pass) => {
            let Replies { mut replies, stream } =
                run_unit_within(gateway, &mut session, &lane.steps, reply_bytes_max).await;
            if stream.is_some() {
                // It cannot be sent before its turn. What it would have told is read again then.
                replies.pop();
            }
            let left = lane.steps.split_off(replies.len());
            (replies, left)
        }
    };
    lane.steps = replies.into_iter().map(Step::Answer).chain(left).collect();
    lane
}

/// Removes the answers that `steps` begin with.
fn take_answers(steps: &mut Vec<Step>) -> Vec<Reply> {
    let count = steps.iter().take_while(|step| is_answered(step)).count();
    let answers =
        steps.drain(..count).filter_map(|step| if let Step::Answer(reply) = step { Some(reply) } else { None });
    answers.collect()
}

/// Removes the steps that make one unit at the beginning of what could not be spread.
fn take_leading_unit(steps: &mut Vec<Step>) -> Vec<Step> {
    let has_slot = |step: &Step| step.slot().is_some();
    let is_first_of_group = steps.first().is_some_and(has_slot);
    let belongs = |step: &&Step| !is_answered(step) && has_slot(step) == is_first_of_group;
    let count = steps.iter().take_while(belongs).count();
    steps.drain(..count).collect()
}

fn is_answered(step: &Step) -> bool {
    matches!(step, Step::Answer(_))
}
