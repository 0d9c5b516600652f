//! Long work, as `/api/v1/tasks` shows it. The terms are those of ScyllaDB's task manager.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskStatus {
    /// Its name, a UUID.
    pub id: String,
    /// Counts the tasks of the service from 1.
    pub sequence_number: u64,
    /// What kind of work it is: `build`, `scan`, `catch_up`, `repair`.
    pub kind: String,
    /// The narrowest of what is named below: `keyspace`, `table`, `index`, `token_range`.
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
    /// A part of the ring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_range: Option<TaskTokenRange>,
    /// Something that none of these names, such as one of several readers of a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    /// Where it stands.
    pub state: TaskState,
    /// Whether it heeds an abort.
    pub is_abortable: bool,
    /// Whether it was asked to stop.
    #[serde(default)]
    pub abort_requested: bool,
    /// When it began, RFC 3339.
    pub start_time: String,
    /// When it ended, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_time: Option<String>,
    /// Why it failed, or why it was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The task that it is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// Its parts that are kept.
    #[serde(default)]
    pub children_ids: Vec<String>,
    /// Parts that have ended and are no longer kept.
    #[serde(default)]
    pub children_left_out: u64,
    /// What progress is counted in.
    pub progress_units: String,
    /// Units done.
    pub progress_completed: u64,
    /// Units in all, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_total: Option<u64>,
    /// What else is counted, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, u64>,
}

/// A part of the token ring, both ends inclusive. As text, since not every JSON reader has numbers
/// of 64 bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskTokenRange {
    /// The first token.
    pub start: String,
    /// The last token.
    pub end: String,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// The work goes on.
    Running,
    /// It has ended as it should.
    Done,
    /// It has ended with an error.
    Failed,
    /// It was stopped, or given up.
    Aborted,
}

impl TaskState {
    /// The word of the wire.
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
    /// Its parts that are kept.
    #[serde(default)]
    #[schema(no_recursion)]
    pub children: Vec<TaskTree>,
}
