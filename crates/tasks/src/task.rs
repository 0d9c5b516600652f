//! A task in the hands of whoever does the work.

use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use crate::entry::Entry;
use crate::registry::Registry;
use crate::scope::Scope;
use crate::status::{State, Status};

/// What a task is.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What kind of work it is, such as `scan`.
    pub kind: &'static str,
    /// What it is on.
    pub scope: Scope,
    /// What progress is counted in, such as `rows`.
    pub units: &'static str,
    /// Units in all, if that is known from the beginning.
    pub total: Option<u64>,
    /// Names of what else is counted.
    pub counters: &'static [&'static str],
    /// Whether the work heeds an abort.
    pub abortable: bool,
}

/// A running task. Dropped without a word about its end, it has been aborted.
pub struct Task {
    entry: Arc<Entry>,
    registry: Registry,
}

/// A way to tell of a task from another thread: how far it is, not how it ends.
#[derive(Clone, Debug)]
pub struct Teller {
    entry: Arc<Entry>,
}

impl Teller {
    /// So many units are done in all.
    pub fn set_completed(&self, units: u64) {
        self.entry.set_completed(units);
    }

    /// So many units are to be done.
    pub fn set_total(&self, units: u64) {
        self.entry.set_total(units);
    }

    /// Whether the work is to go on: nobody has asked it to stop, and its owner has not gone.
    pub fn is_wanted(&self) -> bool {
        !self.entry.abort.is_cancelled() && !self.entry.has_ended()
    }
}

impl Task {
    pub(crate) fn new(entry: Arc<Entry>, registry: Registry) -> Task {
        Task { entry, registry }
    }

    /// Its name.
    pub fn id(&self) -> Uuid {
        self.entry.id
    }

    /// What others see of it.
    pub fn status(&self) -> Status {
        self.entry.status()
    }

    /// For a thread that does a piece of the work.
    pub fn teller(&self) -> Teller {
        Teller {
            entry: self.entry.clone(),
        }
    }

    /// Begins a part of it. An abort of this task is one of its parts too.
    pub fn child(&self, spec: Spec) -> Task {
        self.registry.begin(spec, Some(&self.entry))
    }

    /// So many more units are done.
    pub fn add(&self, units: u64) {
        self.entry.add(units);
    }

    /// So many units are done in all.
    pub fn set_completed(&self, units: u64) {
        self.entry.set_completed(units);
    }

    /// So many units are to be done.
    pub fn set_total(&self, units: u64) {
        self.entry.set_total(units);
    }

    /// Adds to one of the counters of its [`Spec`].
    pub fn count(&self, name: &str, more: u64) {
        self.entry.count(name, more);
    }

    /// What one of the counters has come to.
    pub fn counter(&self, name: &str) -> u64 {
        self.entry.counter(name)
    }

    /// Whether it was asked to stop.
    pub fn abort_requested(&self) -> bool {
        self.entry.abort.is_cancelled()
    }

    /// Waits until it is asked to stop.
    pub async fn aborted(&self) {
        self.entry.abort.cancelled().await;
    }

    /// The work has ended as it should.
    pub fn done(self) {
        self.registry.end(&self.entry, State::Done, None);
    }

    /// The work has failed.
    pub fn failed(self, error: impl fmt::Display) {
        let error = Some(error.to_string());
        self.registry.end(&self.entry, State::Failed, error);
    }

    /// The work has stopped as it was asked to.
    pub fn stopped(self) {
        self.registry.end(&self.entry, State::Aborted, None);
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
        self.registry.end(&self.entry, State::Aborted, error);
    }
}
