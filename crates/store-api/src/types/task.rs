//! Tasks, which are the long work that `/api/v1/tasks` shows. The terms are those of ScyllaDB's
//! task manager.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskStatus {
    /// The id of the task, a UUID.
    pub id: String,
    /// The number of the task in its service, from 1.
    pub sequence_number: u64,
    /// The kind of the work, such as `build`, `scan`, `catch_up` or `repair`.
    pub kind: String,
    /// The narrowest of the named fields below: `keyspace`, `table`, `index` or `token_range`.
    pub scope: String,
    /// The keyspace, case preserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyspace: Option<String>,
    /// The table, case preserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The index, case preserved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// The part of the token ring that the task works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_range: Option<TaskTokenRange>,
    /// The object of the task that none of these fields names, such as one of several readers of a
    /// log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// The state of the task.
    pub state: TaskState,
    /// Whether the task can be aborted.
    pub is_abortable: bool,
    /// Whether it was requested that the task stop.
    #[serde(default)]
    pub abort_requested: bool,
    /// The time at which the task began, RFC 3339.
    pub start_time: String,
    /// The time at which the task ended, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<String>,
    /// The reason why the task failed or was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The id of the task that this one is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// The ids of the parts of the task that are still listed.
    #[serde(default)]
    pub children_ids: Vec<String>,
    /// The number of parts that have ended and are no longer listed.
    #[serde(default)]
    pub children_left_out: u64,
    /// The unit in which progress is counted.
    pub progress_units: String,
    /// Units done.
    pub progress_completed: u64,
    /// Units in all, if their number is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_total: Option<u64>,
    /// Further counters by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
}

/// A part of the token ring, both ends inclusive. Tokens are text, as not every JSON reader has
/// numbers of 64 bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskTokenRange {
    /// The first token.
    pub start: String,
    /// The last token.
    pub end: String,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// The work goes on.
    Running,
    /// The work has succeeded.
    Done,
    /// The work has ended with an error.
    Failed,
    /// The work was stopped or given up.
    Aborted,
}

impl TaskState {
    /// The word for the state on the wire.
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Running => "running",
            TaskState::Done => "done",
            TaskState::Failed => "failed",
            TaskState::Aborted => "aborted",
        }
    }
}

/// A task and its parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskTree {
    /// The task.
    #[serde(flatten)]
    pub status: TaskStatus,
    /// The parts of the task that are still listed.
    #[serde(default)]
    #[schema(no_recursion)]
    pub children: Vec<TaskTree>,
}
