use serde::{Deserialize, Serialize};

use super::Size;

/// Units of work.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnitSettings {
    /// How far the order of a pipeline goes.
    pub pipeline_order: PipelineOrder,
    /// How many commands of a pipeline make one unit at most.
    pub pipeline_commands_max: usize,
    /// How many bytes of requests make one unit at most; a single larger request is a unit of its own.
    pub pipeline_bytes_max: Size,
    /// A unit of a pipeline ends early when its replies exceed this.
    pub reply_bytes_max: Size,
    /// How often a unit is run again after a conflict.
    pub conflict_retries_max: u32,
}

/// How far the order of a pipeline goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PipelineOrder {
    /// All effects become visible in the order sent: a pipeline is one unit.
    Session,
    /// Those on keys of one slot do, as in a Redis Cluster: a pipeline is a unit for each part of the store, side by side.
    Slot,
}

impl Default for UnitSettings {
    fn default() -> Self {
        Self {
            pipeline_order: PipelineOrder::Session,
            pipeline_commands_max: 128,
            pipeline_bytes_max: Size(1 << 20),
            reply_bytes_max: Size(1 << 20),
            conflict_retries_max: 16,
        }
    }
}
