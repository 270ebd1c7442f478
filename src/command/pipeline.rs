use std::sync::Arc;

use super::{Gateway, Replies, Session, Step, by_slot, crowd};
use crate::config::PipelineOrder;

/// Carries out what a pipeline begins with: in one unit of work, or in units side by side if only the order within slots
/// counts. Gives the replies, in order, and removes the steps that they answer.
///
/// At least one step is answered, and not always all of them: a unit ends early when its replies have become large, or
/// with one that is so large that it is sent page by page.
pub async fn execute(gateway: &Arc<Gateway>, session: &mut Session, steps: &mut Vec<Step>) -> Replies {
    match gateway.settings().unit.pipeline_order {
        PipelineOrder::Session => crowd::execute_unit(gateway, session, steps).await,
        PipelineOrder::Slot => by_slot::execute(gateway, session, steps).await,
    }
}
