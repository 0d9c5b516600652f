//! The registry: every task that runs, and those that ended lately.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::book::Book;
use crate::counts::KindCounts;
use crate::entry::TaskRecord;
use crate::retention::TaskRetention;
use crate::spec::TaskSpec;
use crate::status::{TaskHierarchy, TaskSnapshot};
use crate::task::Task;

/// Every task that runs, and those that ended lately. It is cheap to clone; clones are the same
/// registry.
#[derive(Clone, Debug, Default)]
pub struct TaskRegistry {
    book: Arc<Book>,
}

/// The reason why a task was not requested to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AbortError {
    /// The registry has no such task, or no longer.
    #[error("no such task")]
    Missing,
    /// The work of the task can't be stopped.
    #[error("a task of this kind can't be aborted")]
    NotAbortable,
}

impl TaskRegistry {
    /// Makes a registry without tasks.
    pub fn new(retention: TaskRetention) -> TaskRegistry {
        TaskRegistry {
            book: Arc::new(Book::new(retention)),
        }
    }

    /// Begins a task that is no part of another.
    pub fn start(&self, spec: TaskSpec) -> Task {
        Task::new(self.book.begin(spec, None), self.book.clone())
    }

    /// The status of a task.
    pub fn status(&self, id: Uuid) -> Option<TaskSnapshot> {
        Some(self.book.entry(id)?.status())
    }

    /// The tasks in the order of their beginning: those that are no part of another, or all.
    pub fn list(&self, with_parts: bool) -> Vec<TaskSnapshot> {
        let entries: Vec<Arc<TaskRecord>> = {
            let known = self.book.known();
            let ids = known.order.values();
            ids.filter_map(|id| known.entries.get(id).cloned())
                .collect()
        };
        entries
            .iter()
            .filter(|entry| with_parts || entry.parent_id.is_none())
            .map(|entry| entry.status())
            .collect()
    }

    /// The numbers of tasks since the start that are no parts of others, by kind.
    pub fn counts(&self) -> Vec<(&'static str, KindCounts)> {
        let known = self.book.known();
        let counts = known.counts.iter();
        counts.map(|(kind, counts)| (*kind, *counts)).collect()
    }

    /// A task and its parts, as a tree.
    pub fn tree(&self, id: Uuid) -> Option<TaskHierarchy> {
        let status = self.status(id)?;
        let children = status.children_ids.iter();
        Some(TaskHierarchy {
            children: children.filter_map(|child| self.tree(*child)).collect(),
            status,
        })
    }

    /// Requests that a task stop. A task that has ended stays as it is.
    pub fn abort(&self, id: Uuid) -> Result<TaskSnapshot, AbortError> {
        let entry = self.book.entry(id).ok_or(AbortError::Missing)?;
        if !entry.spec.abortable {
            return Err(AbortError::NotAbortable);
        }
        if !entry.status().state.is_final() {
            entry.abort.cancel();
        }
        Ok(entry.status())
    }

    /// The status of a task once it has ended, or as it is after `timeout`.
    pub async fn wait(&self, id: Uuid, timeout: Duration) -> Option<TaskSnapshot> {
        let entry = self.book.entry(id)?;
        let mut ended = entry.ended();
        // The status shows whether the task has ended in time.
        let _ = tokio::time::timeout(timeout, ended.wait_for(Option::is_some)).await;
        Some(entry.status())
    }
}

#[cfg(test)]
mod tests;
