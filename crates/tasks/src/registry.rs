//! The registry: every task that runs, and those that ended lately.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::ended::EndedRoots;
use crate::entry::Entry;
use crate::retention::Retention;
use crate::spec::Spec;
use crate::status::{State, Status, Tree};
use crate::task::Task;

/// Every task that runs, and those that ended lately. It is cheap to clone; clones are the same
/// registry.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    retention: Retention,
    state: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    last_sequence_number: u64,
    entries: HashMap<Uuid, Arc<Entry>>,
    /// The ids by sequence number, for lists.
    order: BTreeMap<u64, Uuid>,
    ended: EndedRoots,
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

impl Registry {
    /// Makes a registry without tasks.
    pub fn new(retention: Retention) -> Registry {
        Registry {
            inner: Arc::new(Inner {
                retention,
                state: Mutex::default(),
            }),
        }
    }

    /// Begins a task that is no part of another.
    pub fn start(&self, spec: Spec) -> Task {
        self.begin(spec, None)
    }

    pub(crate) fn begin(&self, spec: Spec, parent: Option<&Arc<Entry>>) -> Task {
        let abort = parent.map_or_else(CancellationToken::new, |parent| parent.abort.child_token());
        let mut known = self.known();
        known.last_sequence_number += 1;
        let sequence_number = known.last_sequence_number;
        let parent_id = parent.map(|parent| parent.id);
        let entry = Arc::new(Entry::new(spec, sequence_number, parent_id, abort));
        // A parent that is no longer retained does not retain its parts.
        let is_kept = parent.is_none_or(|parent| known.entries.contains_key(&parent.id));
        if is_kept {
            if let Some(parent) = parent {
                parent.children().begin(entry.id);
            }
            known.entries.insert(entry.id, entry.clone());
            known.order.insert(sequence_number, entry.id);
        }
        drop(known);
        Task::new(entry, self.clone())
    }

    pub(crate) fn end(&self, entry: &Entry, state: State, error: Option<String>) {
        if !entry.end(state, error) {
            return;
        }
        let retention = self.inner.retention;
        let well = state == State::Done;
        let mut known = self.known();
        let parent = entry.parent_id.and_then(|id| known.entries.get(&id));
        let forgotten = match (entry.parent_id, parent.cloned()) {
            (None, _) => known.ended.add(entry.id, &entry.spec, well, &retention),
            (Some(_), Some(parent)) => {
                let max = retention.ended_children_max;
                parent.children().end(entry.id, well, max)
            }
            (Some(_), None) => None,
        };
        if let Some(forgotten) = forgotten {
            known.forget(forgotten);
        }
    }

    /// The status of a task.
    pub fn status(&self, id: Uuid) -> Option<Status> {
        Some(self.entry(id)?.status())
    }

    /// The tasks in the order of their beginning: those that are no part of another, or all.
    pub fn list(&self, with_parts: bool) -> Vec<Status> {
        let entries: Vec<Arc<Entry>> = {
            let known = self.known();
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

    /// A task and its parts, as a tree.
    pub fn tree(&self, id: Uuid) -> Option<Tree> {
        let status = self.status(id)?;
        let children = status.children_ids.iter();
        Some(Tree {
            children: children.filter_map(|child| self.tree(*child)).collect(),
            status,
        })
    }

    /// Requests that a task stop. A task that has ended stays as it is.
    pub fn abort(&self, id: Uuid) -> Result<Status, AbortError> {
        let entry = self.entry(id).ok_or(AbortError::Missing)?;
        if !entry.spec.abortable {
            return Err(AbortError::NotAbortable);
        }
        if !entry.status().state.is_final() {
            entry.abort.cancel();
        }
        Ok(entry.status())
    }

    /// The status of a task once it has ended, or as it is after `timeout`.
    pub async fn wait(&self, id: Uuid, timeout: Duration) -> Option<Status> {
        let entry = self.entry(id)?;
        let mut ended = entry.ended();
        // The status shows whether the task has ended in time.
        let _ = tokio::time::timeout(timeout, ended.wait_for(Option::is_some)).await;
        Some(entry.status())
    }

    fn entry(&self, id: Uuid) -> Option<Arc<Entry>> {
        self.known().entries.get(&id).cloned()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Forgets a task and its parts.
    fn forget(&mut self, id: Uuid) {
        let Some(entry) = self.entries.remove(&id) else {
            return;
        };
        self.order.remove(&entry.sequence_number());
        let parts = entry.children().ids();
        for part in parts {
            self.forget(part);
        }
    }
}

#[cfg(test)]
mod tests;
