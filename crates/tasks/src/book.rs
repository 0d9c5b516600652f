//! The entries of every task, as the registry and the tasks themselves share them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::counts::KindCounts;
use crate::ended::EndedRoots;
use crate::entry::TaskRecord;
use crate::retention::TaskRetention;
use crate::spec::TaskSpec;
use crate::status::CompletionState;

/// The entries of every task that runs, and of those that ended lately.
#[derive(Debug, Default)]
pub struct Book {
    retention: TaskRetention,
    known: Mutex<KnownTasks>,
}

#[derive(Debug, Default)]
pub struct KnownTasks {
    last_sequence_number: u64,
    pub entries: HashMap<Uuid, Arc<TaskRecord>>,
    /// The ids by sequence number, for lists.
    pub order: BTreeMap<u64, Uuid>,
    ended: EndedRoots,
    /// The tasks since the start that are no parts of others, by kind.
    pub counts: BTreeMap<&'static str, KindCounts>,
}

impl Book {
    /// Makes a book without entries.
    pub fn new(retention: TaskRetention) -> Book {
        Book {
            retention,
            known: Mutex::default(),
        }
    }

    /// Enters a task that begins.
    pub fn begin(&self, spec: TaskSpec, parent: Option<&Arc<TaskRecord>>) -> Arc<TaskRecord> {
        let abort = parent.map_or_else(CancellationToken::new, |parent| parent.abort.child_token());
        let mut known = self.known();
        known.last_sequence_number += 1;
        let sequence_number = known.last_sequence_number;
        let parent_id = parent.map(|parent| parent.id);
        if parent.is_none() {
            known.counts.entry(spec.kind).or_default().running += 1;
        }
        let entry = Arc::new(TaskRecord::new(spec, sequence_number, parent_id, abort));
        // A parent that is no longer retained does not retain its parts.
        let is_kept = parent.is_none_or(|parent| known.entries.contains_key(&parent.id));
        if is_kept {
            if let Some(parent) = parent {
                parent.children().begin(entry.id);
            }
            known.entries.insert(entry.id, entry.clone());
            known.order.insert(sequence_number, entry.id);
        }
        entry
    }

    /// Notes the end of a task, unless it has ended already, and forgets those that are too many.
    pub fn end(&self, entry: &TaskRecord, state: CompletionState, error: Option<String>) {
        if !entry.end(state, error) {
            return;
        }
        let retention = self.retention;
        let well = state == CompletionState::Done;
        let mut known = self.known();
        if entry.parent_id.is_none() {
            known.count_end(entry.spec.kind, state);
        }
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
            known.remove(forgotten);
        }
    }

    /// The entry of a task.
    pub fn entry(&self, id: Uuid) -> Option<Arc<TaskRecord>> {
        self.known().entries.get(&id).cloned()
    }

    /// All entries, locked.
    pub fn known(&self) -> MutexGuard<'_, KnownTasks> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownTasks {
    /// Counts the end of a task that is no part of another.
    fn count_end(&mut self, kind: &'static str, state: CompletionState) {
        let counts = self.counts.entry(kind).or_default();
        counts.running = counts.running.saturating_sub(1);
        match state {
            CompletionState::Done => counts.done += 1,
            CompletionState::Failed => counts.failed += 1,
            _ => counts.aborted += 1,
        }
    }

    /// Forgets a task and its parts.
    fn remove(&mut self, id: Uuid) {
        let Some(entry) = self.entries.remove(&id) else {
            return;
        };
        self.order.remove(&entry.sequence_number());
        let parts = entry.children().ids();
        for part in parts {
            self.remove(part);
        }
    }
}
