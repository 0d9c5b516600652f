//! Repair of an index: comparing it with its table, and mending it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::TaskStatus;

/// `POST .../repair`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RepairRequest {
    /// Sets of replicas at a time; 0: as many as share no node, which is also the most.
    pub parallel: usize,
    /// Token ranges at a time for each of them; 0: as fast as the nodes allow, which is also the most.
    /// 1 if it is not given.
    pub intensity: usize,
    /// Seconds that ranges in flight may still take after the repair was asked to stop. 30 if it is
    /// not given.
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

/// `PATCH .../repair`: what is absent stays. The answer has both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RepairSpeed {
    /// As in [`RepairRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<usize>,
    /// As in [`RepairRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intensity: Option<usize>,
}

/// When an index is repaired without being asked, and how fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RepairSchedule {
    /// Seconds from the beginning of one repair to that of the next.
    pub interval_s: u64,
    /// As in [`RepairRequest`].
    pub parallel: usize,
    /// As in [`RepairRequest`].
    pub intensity: usize,
}

/// `PUT .../repair/schedule`: what is absent stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RepairScheduleUpdate {
    /// No repair by schedule, even if there is a setting for all indexes.
    pub never: bool,
    /// As in [`RepairSchedule`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_s: Option<u64>,
    /// As in [`RepairRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel: Option<usize>,
    /// As in [`RepairRequest`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intensity: Option<usize>,
}

/// `GET .../repair`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RepairStatus {
    /// The last repair since the service started and the index was built, running or not.
    pub last: Option<TaskStatus>,
    /// When the index is repaired without being asked; null: never.
    pub schedule: Option<RepairSchedule>,
}
