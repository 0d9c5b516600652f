//! A task, in the hands of the code that does the work.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::book::Book;
use crate::entry::TaskRecord;
use crate::spec::TaskSpec;
use crate::status::{CompletionState, TaskSnapshot};

/// A running task. If it is dropped without telling its end, it has been aborted.
pub struct Task {
    entry: Arc<TaskRecord>,
    book: Arc<Book>,
}

/// A handle by which another thread reports how far a task is, but not how it ends.
#[derive(Clone, Debug)]
pub struct ProgressReporter {
    entry: Arc<TaskRecord>,
}

impl ProgressReporter {
    /// Sets the number of units that are done in all.
    pub fn set_completed(&self, units: u64) {
        self.entry.set_completed(units);
    }

    /// Sets the number of units that are to be done.
    pub fn set_total(&self, units: u64) {
        self.entry.set_total(units);
    }

    /// Whether the work is to go on: no stop was requested, and its owner still exists.
    pub fn is_wanted(&self) -> bool {
        !self.entry.abort.is_cancelled() && !self.entry.has_ended()
    }
}

impl Task {
    pub(crate) fn new(entry: Arc<TaskRecord>, book: Arc<Book>) -> Task {
        Task { entry, book }
    }

    /// The id of the task.
    pub fn id(&self) -> Uuid {
        self.entry.id
    }

    /// The status of the task, as others see it.
    pub fn status(&self) -> TaskSnapshot {
        self.entry.status()
    }

    /// A handle for a thread that does a piece of the work.
    pub fn progress_reporter(&self) -> ProgressReporter {
        ProgressReporter {
            entry: self.entry.clone(),
        }
    }

    /// Begins a part of the task. An abort of this task aborts its parts too.
    #[must_use]
    pub fn child(&self, spec: TaskSpec) -> Task {
        let entry = self.book.begin(spec, Some(&self.entry));
        Task::new(entry, self.book.clone())
    }

    /// Adds to the number of units that are done.
    pub fn add(&self, units: u64) {
        self.entry.add(units);
    }

    /// Sets the number of units that are done in all.
    pub fn set_completed(&self, units: u64) {
        self.entry.set_completed(units);
    }

    /// Sets the number of units that are to be done.
    pub fn set_total(&self, units: u64) {
        self.entry.set_total(units);
    }

    /// Adds to one of the counters of its [`TaskSpec`].
    pub fn count(&self, name: &str, more: u64) {
        self.entry.count(name, more);
    }

    /// The value of one of the counters.
    pub fn counter(&self, name: &str) -> u64 {
        self.entry.counter(name)
    }

    /// Whether it was requested that the task stop.
    pub fn abort_requested(&self) -> bool {
        self.entry.abort.is_cancelled()
    }

    /// Waits until it is requested that the task stop.
    pub async fn aborted(&self) {
        self.entry.abort.cancelled().await;
    }

    /// Ends the task: the work has been done as it should.
    pub fn done(self) {
        self.book.end(&self.entry, CompletionState::Done, None);
    }

    /// Ends the task: the work has failed.
    pub fn failed(self, error: impl fmt::Display) {
        let error = Some(error.to_string());
        self.book.end(&self.entry, CompletionState::Failed, error);
    }

    /// Ends the task: the work has stopped as requested.
    pub fn stopped(self) {
        self.book.end(&self.entry, CompletionState::Aborted, None);
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Task").field(&self.entry.status()).finish()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let error = match self.abort_requested() {
            true => None,
            false => Some("given up before its end".to_owned()),
        };
        self.book.end(&self.entry, CompletionState::Aborted, error);
    }
}
