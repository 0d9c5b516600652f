//! The entry of a task, which its owner and the registry share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::children::ChildTasks;
use crate::spec::TaskSpec;
use crate::status::{CompletionState, TaskSnapshot};

/// The total that means an unknown one.
const UNKNOWN: u64 = u64::MAX;

/// The end of a task.
#[derive(Clone, Debug)]
pub struct TaskOutcome {
    pub state: CompletionState,
    pub time: SystemTime,
    pub error: Option<String>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "an operator reads it, and nothing is ordered or ended by it"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

#[derive(Debug)]
pub struct TaskRecord {
    pub id: Uuid,
    pub parent_id: Option<Uuid>,
    sequence_number: u64,
    pub spec: TaskSpec,
    start_time: SystemTime,
    completed: AtomicU64,
    total: AtomicU64,
    counters: Box<[AtomicU64]>,
    pub abort: CancellationToken,
    children: Mutex<ChildTasks>,
    end: watch::Sender<Option<TaskOutcome>>,
}

impl TaskRecord {
    pub fn new(
        spec: TaskSpec,
        sequence_number: u64,
        parent_id: Option<Uuid>,
        abort: CancellationToken,
    ) -> TaskRecord {
        TaskRecord {
            id: Uuid::new_v4(),
            parent_id,
            sequence_number,
            start_time: now(),
            completed: AtomicU64::new(0),
            total: AtomicU64::new(spec.total.unwrap_or(UNKNOWN)),
            counters: spec.counters.iter().map(|_| AtomicU64::new(0)).collect(),
            spec,
            abort,
            children: Mutex::default(),
            end: watch::Sender::new(None),
        }
    }

    pub fn sequence_number(&self) -> u64 {
        self.sequence_number
    }

    pub fn add(&self, units: u64) {
        self.completed.fetch_add(units, Ordering::Relaxed);
    }

    pub fn set_completed(&self, units: u64) {
        self.completed.store(units, Ordering::Relaxed);
    }

    pub fn set_total(&self, units: u64) {
        self.total.store(units, Ordering::Relaxed);
    }

    pub fn count(&self, name: &str, more: u64) {
        match self.counter_of(name) {
            Some(counter) => drop(counter.fetch_add(more, Ordering::Relaxed)),
            None => debug_assert!(false, "{name} is not counted here"),
        }
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.counter_of(name)
            .map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    fn counter_of(&self, name: &str) -> Option<&AtomicU64> {
        let at = self.spec.counters.iter().position(|other| *other == name)?;
        self.counters.get(at)
    }

    pub fn children(&self) -> MutexGuard<'_, ChildTasks> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the end of the task. Only the first call does so, and returns true.
    pub fn end(&self, state: CompletionState, error: Option<String>) -> bool {
        self.end.send_if_modified(|end| {
            let first = end.is_none();
            if first {
                *end = Some(TaskOutcome {
                    state,
                    time: now(),
                    error,
                });
            }
            first
        })
    }

    /// Whether the task has ended.
    pub fn has_ended(&self) -> bool {
        self.end.borrow().is_some()
    }

    /// A receiver of the end, when it comes.
    pub fn ended(&self) -> watch::Receiver<Option<TaskOutcome>> {
        self.end.subscribe()
    }

    pub fn status(&self) -> TaskSnapshot {
        let end = self.end.borrow().clone();
        let total = self.total.load(Ordering::Relaxed);
        let (children_ids, children_left_out) = {
            let children = self.children();
            (children.ids(), children.left_out())
        };
        let counters = self.spec.counters.iter().zip(&self.counters);
        TaskSnapshot {
            id: self.id,
            sequence_number: self.sequence_number,
            kind: self.spec.kind,
            scope: self.spec.scope.clone(),
            state: end
                .as_ref()
                .map_or(CompletionState::Running, |end| end.state),
            is_abortable: self.spec.abortable,
            abort_requested: self.spec.abortable && self.abort.is_cancelled(),
            start_time: self.start_time,
            end_time: end.as_ref().map(|end| end.time),
            error: end.and_then(|end| end.error),
            parent_id: self.parent_id,
            children_ids,
            children_left_out,
            progress_units: self.spec.units,
            progress_completed: self.completed.load(Ordering::Relaxed),
            progress_total: (total != UNKNOWN).then_some(total),
            counters: counters
                .map(|(name, count)| (*name, count.load(Ordering::Relaxed)))
                .collect(),
        }
    }
}
