//! What is seen of a task.

use std::time::SystemTime;

use uuid::Uuid;

use crate::scope::Scope;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The work goes on.
    Running,
    /// It has ended as it should.
    Done,
    /// It has ended with an error.
    Failed,
    /// It was stopped, or given up by whoever did it.
    Aborted,
}

impl State {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Done => "done",
            State::Failed => "failed",
            State::Aborted => "aborted",
        }
    }

    /// Whether the work is over.
    pub fn is_final(self) -> bool {
        self != State::Running
    }
}

/// A task as it was at one moment. Its numbers are read one after the other, so they may be some
/// microseconds apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Its name.
    pub id: Uuid,
    /// Counts the tasks of a registry from 1.
    pub sequence_number: u64,
    /// What kind of work it is.
    pub kind: &'static str,
    /// What the work is on.
    pub scope: Scope,
    /// Where it stands.
    pub state: State,
    /// Whether it heeds an abort.
    pub is_abortable: bool,
    /// Whether it was asked to stop.
    pub abort_requested: bool,
    /// When it began.
    pub start_time: SystemTime,
    /// When it ended.
    pub end_time: Option<SystemTime>,
    /// Why it failed, or why it was given up.
    pub error: Option<String>,
    /// The task that it is a part of.
    pub parent_id: Option<Uuid>,
    /// Its parts that are kept: those that did not end well, those that did, those that run.
    pub children_ids: Vec<Uuid>,
    /// Parts that have ended and are no longer kept.
    pub children_left_out: u64,
    /// What progress is counted in.
    pub progress_units: &'static str,
    /// Units done.
    pub progress_completed: u64,
    /// Units in all, if that is known.
    pub progress_total: Option<u64>,
    /// What else is counted, by name.
    pub counters: Vec<(&'static str, u64)>,
}

/// A task and its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The task.
    pub status: Status,
    /// Its parts, in the order of `children_ids`.
    pub children: Vec<Tree>,
}
