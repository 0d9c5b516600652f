//! Repair of an index, which compares it with its table and corrects it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::TaskStatus;

/// `POST .../repair`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RepairRequest {
    /// Sets of replicas that are compared at a time. 0 means as many as share no node, which is
    /// also the most.
    pub parallel: usize,
    /// Token ranges that are compared at a time for each set of replicas. 0 means as many as the
    /// nodes allow, which is also the most. 1 if it is not given.
    pub intensity: usize,
    /// Seconds that ranges in flight may still take after the repair was requested to stop. 30 if
    /// it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_s: Option<u64>,
}

impl Default for RepairRequest {
    fn default() -> RepairRequest {
        RepairRequest {
            parallel: 0,
            intensity: 1,
            grace_s: None,
        }
    }
}

/// `PATCH .../repair`: changes the speed of a repair. Absent fields stay as they are. The answer
/// has both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RepairSpeed {
    /// Sets of replicas that are compared at a time, as in [`RepairRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<usize>,
    /// Token ranges that are compared at a time for each set, as in [`RepairRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intensity: Option<usize>,
}

/// The schedule of an index: the interval of its repairs, and their speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RepairSchedule {
    /// Seconds from the beginning of one repair to that of the next.
    pub interval_s: u64,
    /// Sets of replicas that are compared at a time, as in [`RepairRequest`].
    pub parallel: usize,
    /// Token ranges that are compared at a time for each set, as in [`RepairRequest`].
    pub intensity: usize,
}

/// `PUT .../repair/schedule`: changes the schedule. Absent fields stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RepairScheduleUpdate {
    /// Whether the index is never repaired by schedule, even if there is a setting for all indexes.
    pub never: bool,
    /// Seconds from the beginning of one repair to that of the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<u64>,
    /// Sets of replicas that are compared at a time, as in [`RepairRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<usize>,
    /// Token ranges that are compared at a time for each set, as in [`RepairRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intensity: Option<usize>,
}

/// `GET .../repair`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RepairStatus {
    /// The last repair since the service started and the index was built, running or not.
    pub last: Option<TaskStatus>,
    /// The schedule of the index; null if it is never repaired by schedule.
    pub schedule: Option<RepairSchedule>,
}
