//! Compares an index with its table, range by range, and mends the index where they differ.
//!
//! ```text
//!   range_plan: ranges to compare at a time
//!     -> compare: digests, then rows -> settle: look again, mend
//! ```
//!
//! An index misses a write that bypassed the writer of the log, or one whose log row appeared too
//! late for the readers. Nothing is stopped for a repair: searches, writes and the readers of the
//! log go on. So rows that change meanwhile differ for a moment, and [`settle`] tells them from
//! faults.
//!
//! The costs: every row is read once from the table, as in a scan, and again in ranges that
//! differed at first. One repair runs at a time in a service.

mod compare;
mod digest;
mod index_side;
mod range_plan;
mod report;
mod run;
mod schedule;
mod settle;
mod table_side;
mod verdict;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::tasks::{Registry, State, Status};
use run::Run;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::database::Database;
use crate::database::Progress;
use crate::identity::IndexName;
use crate::indexes::IndexHandle;
use crate::long_work;
use crate::message::HintMessage;
use crate::message::Message;
use crate::options::RepairOptions;
use crate::rows::RowReader;

pub use schedule::{Creation, ScheduleError, Schedules, Update};

/// The speed of a repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speed {
    /// The number of sets of replicas that are read at a time; 0: as many as share no node.
    pub parallel: usize,
    /// The number of ranges at a time for each set of replicas. 0: as many as the nodes allow,
    /// which is also the most.
    pub intensity: usize,
}

/// Everything that the repair of an index needs.
pub struct Access {
    /// The index.
    pub index: Arc<IndexHandle>,
    /// Reads the keys and the one vector column of the index.
    pub reader: RowReader,
    /// The database that has the table.
    pub database: Arc<dyn Database>,
    /// The sender to the task that owns the index's rows.
    pub items: mpsc::WeakSender<Message>,
    /// The sender by which rows that the log names are read again.
    pub hints: mpsc::Sender<HintMessage>,
    /// The progress of each reader of the table's log.
    pub readers: Vec<Arc<Progress>>,
}

/// The reason why a repair can't begin, or can't be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepairError {
    /// The index doesn't exist, or isn't built yet.
    #[error("index {0} is not there, or not yet built: it can be repaired once it is SERVING")]
    NotServing(IndexName),
    /// A repair of this index runs, and only one may run in a service.
    #[error("index {0} is being repaired: wait until that has ended, or abort it")]
    Busy(IndexName),
    /// No repair of the index runs.
    #[error("index {0} is not being repaired: its schedule is changed by an update")]
    NotRunning(IndexName),
}

/// The repairs of a service. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Repairs {
    inner: Arc<Inner>,
}

struct Inner {
    work: Registry,
    tasks: TaskTracker,
    options: RepairOptions,
    state: Mutex<Indexes>,
}

#[derive(Default)]
struct Indexes {
    /// The indexes that serve, and so may be repaired.
    serving: HashMap<IndexName, Serving>,
    /// The repair that was started last.
    running: Option<Running>,
    /// The last repair of each index, as long as the index is attached.
    last: HashMap<IndexName, Last>,
}

struct Serving {
    access: Arc<Access>,
    /// Cancelled when the index ends.
    cancel: CancellationToken,
}

/// The last repair of an index. The status of an ended one is copied here, as the registry of tasks
/// forgets ended tasks in time.
enum Last {
    Running(Uuid),
    Ended(Box<Status>),
}

struct Running {
    name: IndexName,
    task: Uuid,
    speed: watch::Sender<Speed>,
}

/// The right to repair an index. It ends when this is dropped.
pub struct Attached {
    repairs: Repairs,
    access: Arc<Access>,
    cancel: CancellationToken,
}

impl Repairs {
    /// No repairs yet. They are shown as tasks in `work` and run on `tasks`.
    pub fn new(work: Registry, tasks: TaskTracker, options: RepairOptions) -> Repairs {
        Repairs {
            inner: Arc::new(Inner {
                work,
                tasks,
                options,
                state: Mutex::default(),
            }),
        }
    }

    /// Allows repairs of an index until the result is dropped.
    pub fn attach(&self, access: Access) -> Attached {
        let access = Arc::new(access);
        let cancel = CancellationToken::new();
        let serving = Serving {
            access: access.clone(),
            cancel: cancel.clone(),
        };
        let name = access.index.identity.name.clone();
        let mut state = self.state();
        state.last.remove(&name);
        state.serving.insert(name, serving);
        drop(state);
        Attached {
            repairs: self.clone(),
            access,
            cancel,
        }
    }

    /// Begins a repair and returns the id of its task. `grace` is the time for which ranges in
    /// flight may go on after a request to stop, if not that of the options.
    pub fn start(
        &self,
        name: &IndexName,
        speed: Speed,
        grace: Option<Duration>,
    ) -> Result<Uuid, RepairError> {
        let mut state = self.state();
        if let Some(running) = &state.running
            && !self.has_ended(running.task)
        {
            return Err(RepairError::Busy(running.name.clone()));
        }
        let serving = state.serving.get(name);
        let serving = serving.ok_or_else(|| RepairError::NotServing(name.clone()))?;
        let (access, cancel) = (serving.access.clone(), serving.cancel.clone());
        let task = self
            .inner
            .work
            .start(long_work::repair(&access.index.identity, report::COUNTERS));
        let id = task.id();
        let (sender, receiver) = watch::channel(speed);
        let run = Run {
            access,
            task,
            speed: receiver,
            options: RepairOptions {
                grace: grace.unwrap_or(self.inner.options.grace),
                ..self.inner.options.clone()
            },
        };
        let (repairs, of) = (self.clone(), name.clone());
        self.inner.tasks.spawn(async move {
            cancel.run_until_cancelled(run.run()).await;
            repairs.has_run(&of, id);
        });
        state.running = Some(Running {
            name: name.clone(),
            task: id,
            speed: sender,
        });
        state.last.insert(name.clone(), Last::Running(id));
        Ok(id)
    }

    /// Changes the speed of the repair of an index that runs, and returns the new speed. `None`
    /// leaves a value as it is.
    pub fn control(
        &self,
        name: &IndexName,
        parallel: Option<usize>,
        intensity: Option<usize>,
    ) -> Result<Speed, RepairError> {
        let state = self.state();
        let running = state.running.as_ref();
        let running = running
            .filter(|running| running.name == *name && !self.has_ended(running.task))
            .ok_or_else(|| RepairError::NotRunning(name.clone()))?;
        running.speed.send_modify(|speed| {
            speed.parallel = parallel.unwrap_or(speed.parallel);
            speed.intensity = intensity.unwrap_or(speed.intensity);
        });
        Ok(*running.speed.borrow())
    }

    /// Returns the last repair of an index since it was built and the service started.
    pub fn last(&self, name: &IndexName) -> Option<Status> {
        match self.state().last.get(name)? {
            Last::Running(task) => self.inner.work.status(*task),
            Last::Ended(status) => Some(Status::clone(status)),
        }
    }

    /// Keeps the final status of a repair, unless another has begun or the index is gone.
    fn has_run(&self, name: &IndexName, task: Uuid) {
        let status = self.inner.work.status(task);
        let mut state = self.state();
        if let Some(last) = state.last.get_mut(name)
            && matches!(last, Last::Running(running) if *running == task)
            && let Some(status) = status
        {
            *last = Last::Ended(Box::new(status));
        }
    }

    /// Returns the indexes that may be repaired.
    pub fn serving(&self) -> Vec<Creation> {
        let state = self.state();
        let serving = state.serving.values();
        serving
            .map(|serving| Creation::of(&serving.access.index.identity))
            .collect()
    }

    fn has_ended(&self, task: Uuid) -> bool {
        let status = self.inner.work.status(task);
        status.is_none_or(|status| status.state != State::Running)
    }

    fn state(&self) -> MutexGuard<'_, Indexes> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.cancel.cancel();
        let name = &self.access.index.identity.name;
        let mut state = self.repairs.state();
        let is_this = |serving: &Serving| Arc::ptr_eq(&serving.access, &self.access);
        // Another index of the same name may have taken its place.
        if state.serving.get(name).is_some_and(is_this) {
            state.serving.remove(name);
            state.last.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_repair_is_known_however_much_has_ended_since() {
        let work = Registry::default();
        let repairs = Repairs::new(work.clone(), TaskTracker::new(), RepairOptions::default());
        let identity = crate::indexes::tests::identity("i");
        let name = &identity.name;
        let task = work.start(long_work::repair(&identity, report::COUNTERS));
        let id = task.id();
        let last = Last::Running(id);
        repairs.state().last.insert(name.clone(), last);
        let state = || repairs.last(name).map(|status| status.state);
        assert_eq!(state(), Some(State::Running));
        task.done();
        repairs.has_run(name, id);
        for _ in 0..1000 {
            work.start(long_work::repair(&identity, report::COUNTERS))
                .done();
        }
        assert!(work.status(id).is_none(), "it is forgotten");
        assert_eq!(state(), Some(State::Done));
    }
}
