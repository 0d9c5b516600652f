//! The status of a task, as others see it.

use std::time::SystemTime;

use uuid::Uuid;

use crate::scope::TaskScope;

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionState {
    /// The work goes on.
    Running,
    /// The task has ended as it should.
    Done,
    /// The task has ended with an error.
    Failed,
    /// The task was stopped, or given up by the code that did it.
    Aborted,
}

impl CompletionState {
    /// The word for the state.
    pub fn name(self) -> &'static str {
        match self {
            CompletionState::Running => "running",
            CompletionState::Done => "done",
            CompletionState::Failed => "failed",
            CompletionState::Aborted => "aborted",
        }
    }

    /// Whether the work is over.
    pub fn is_final(self) -> bool {
        self != CompletionState::Running
    }
}

/// A task as it was at one moment. The numbers are read one after the other, so they may be some
/// microseconds apart.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSnapshot {
    /// The id of the task.
    pub id: Uuid,
    /// The number of the task among those of its registry, counted from 1.
    pub sequence_number: u64,
    /// The kind of work.
    pub kind: &'static str,
    /// The things that the work is on.
    pub scope: TaskScope,
    /// The state of the task.
    pub state: CompletionState,
    /// Whether the task heeds an abort.
    pub is_abortable: bool,
    /// Whether it was requested that the task stop.
    pub abort_requested: bool,
    /// The time at which the task began.
    pub start_time: SystemTime,
    /// The time at which the task ended; None while it runs.
    pub end_time: Option<SystemTime>,
    /// The reason why the task failed, or was given up.
    pub error: Option<String>,
    /// The task of which this one is a part.
    pub parent_id: Option<Uuid>,
    /// The parts of the task that are retained: those that did not end well, those that did, those
    /// that run.
    pub children_ids: Vec<Uuid>,
    /// Number of parts that have ended and are no longer retained.
    pub children_left_out: u64,
    /// The unit of progress.
    pub progress_units: &'static str,
    /// Number of units done.
    pub progress_completed: u64,
    /// Number of units in all, if that is known.
    pub progress_total: Option<u64>,
    /// The other counts, by name.
    pub counters: Vec<(&'static str, u64)>,
}

/// A task and its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskHierarchy {
    /// The task.
    pub status: TaskSnapshot,
    /// The parts of the task, in the order of `children_ids`.
    pub children: Vec<TaskHierarchy>,
}
