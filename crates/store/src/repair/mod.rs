//! Proving that an index equals its table, range by range, and mending it where it does not.
//!
//! ```text
//!   plan: which ranges, beside each other -> compare: digests, then rows -> settle: look again, mend
//! ```
//!
//! What an index misses: a write that went round whatever writes the log, or that the log told of too
//! late for its readers. Nothing is stopped for a repair: searches, writes and the readers of the log
//! go on, so rows that change meanwhile look different for a moment ([`settle`] tells them apart).
//!
//! What it costs: every row is read once from the table, as in a scan, and again in ranges that looked
//! different. One repair runs at a time in a service.

mod compare;
mod digest;
mod index_side;
mod plan;
mod report;
mod run;
mod schedule;
mod settle;
mod table_side;
mod token;
mod verdict;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::tasks::{Registry, State, Status};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::cdc::Progress;
use crate::database::Database;
use crate::engine::IndexHandle;
use crate::identity::IndexName;
use crate::long_work;
use crate::monitor_items::Message;
use crate::options::RepairOptions;
use crate::reread::HintMessage;
use crate::rows::RowReader;
use run::Run;

pub use report::COUNTERS;
pub use schedule::{Creation, ScheduleError, Schedules, Update};

/// How fast a repair is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speed {
    /// Sets of replicas at a time; 0: as many as share no node.
    pub parallel: usize,
    /// Ranges at a time for each of them; 0: as fast as the nodes allow, which is also the most.
    pub intensity: usize,
}

/// Everything that the repair of an index needs.
pub struct Access {
    /// The index.
    pub index: Arc<IndexHandle>,
    /// Reads its one vector column.
    pub reader: RowReader,
    /// What has the table.
    pub database: Arc<dyn Database>,
    /// The way to the task that owns its rows.
    pub items: mpsc::WeakSender<Message>,
    /// The way of what the log names.
    pub hints: mpsc::Sender<HintMessage>,
    /// The readers of the table's log.
    pub readers: Vec<Arc<Progress>>,
}

/// Why a repair can't begin, or can't be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepairError {
    /// It doesn't exist, or isn't built yet.
    #[error("index {0} is not there, or not yet built: it can be repaired once it is SERVING")]
    NotServing(IndexName),
    /// One at a time.
    #[error("index {0} is being repaired: wait until that has ended, or abort it")]
    Busy(IndexName),
    /// None runs.
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
    /// Those that serve.
    serving: HashMap<IndexName, Serving>,
    running: Option<Running>,
    /// The last repair of each, as long as the index is attached.
    last: HashMap<IndexName, Last>,
}

struct Serving {
    access: Arc<Access>,
    /// Ends with the index.
    cancel: CancellationToken,
}

/// The last repair of an index. Tasks that have ended are forgotten in time, among all others.
enum Last {
    Running(Uuid),
    Ended(Box<Status>),
}

struct Running {
    name: IndexName,
    task: Uuid,
    speed: watch::Sender<Speed>,
}

/// An index that may be repaired as long as this lives.
pub struct Attached {
    repairs: Repairs,
    access: Arc<Access>,
    cancel: CancellationToken,
}

impl Repairs {
    /// None yet. `work`: where they are seen.
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

    /// Makes an index one that may be repaired.
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

    /// Begins a repair; the name of its task. `grace`: how long ranges in flight may go on after it was
    /// asked to stop, if not as long as the options say.
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
            .start(long_work::repair(&access.index.identity));
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

    /// Changes the speed of the repair that runs, as far as it is given; what it is then.
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

    /// An index's last repair since it was built and the service started.
    pub fn last(&self, name: &IndexName) -> Option<Status> {
        match self.state().last.get(name)? {
            Last::Running(task) => self.inner.work.status(*task),
            Last::Ended(status) => Some(Status::clone(status)),
        }
    }

    /// Keeps how a repair has ended, unless another has begun or the index is gone.
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

    /// Indexes that may be repaired.
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
        // Another index of the name may have taken its place.
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
        let identity = crate::engine::tests::identity("i");
        let name = &identity.name;
        let task = work.start(long_work::repair(&identity));
        let id = task.id();
        let last = Last::Running(id);
        repairs.state().last.insert(name.clone(), last);
        let state = || repairs.last(name).map(|status| status.state);
        assert_eq!(state(), Some(State::Running));
        task.done();
        repairs.has_run(name, id);
        for _ in 0..1000 {
            work.start(long_work::repair(&identity)).done();
        }
        assert!(work.status(id).is_none(), "it is forgotten");
        assert_eq!(state(), Some(State::Done));
    }
}
