//! Compares an index with its table, range by range, and mends the index where they differ.
//!
//! ```text
//!   range_plan: ranges to compare at a time
//!     -> compare: digests, then rows -> settle: look again, mend
//! ```
//!
//! An index misses a write that bypassed the writer of the log, or one whose log row appeared too
//! late for the readers. Nothing is stopped for a repair: searches, writes and the readers of the
//! log go on. So rows that change meanwhile differ for a moment, and [`settle`] distinguishes them
//! from faults.
//!
//! An index that the database keeps itself ([`crate::database::OwnIndex`]) is compared and mended
//! by the database.
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

use crate::database::{Database, Progress};
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
    /// The index, which the database keeps itself, does not have all rows yet.
    #[error(
        "index {0} does not have all rows yet: it can be repaired once it is built; if the log says that \
         building was given up, drop the index and create it again"
    )]
    Building(IndexName),
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
    /// The database, which repairs the indexes that it keeps itself.
    database: Arc<dyn Database>,
    work: Registry,
    tasks: TaskTracker,
    options: RepairOptions,
    /// Cancelled when the service stops.
    stop: CancellationToken,
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
    /// The last repair of each index that the database keeps itself, by the version of the index.
    last_of_own: HashMap<Uuid, (IndexName, Last)>,
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

impl Last {
    /// Keeps the final status of a repair, unless another has begun.
    fn end(&mut self, task: Uuid, work: &Registry) {
        if matches!(self, Last::Running(running) if *running == task)
            && let Some(status) = work.status(task)
        {
            *self = Last::Ended(Box::new(status));
        }
    }
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
    /// No repairs yet. They are shown as tasks in `work` and run on `tasks`. Those of indexes that
    /// `database` keeps itself end when `stop` is cancelled.
    pub fn new(
        database: Arc<dyn Database>,
        work: Registry,
        tasks: TaskTracker,
        options: RepairOptions,
        stop: CancellationToken,
    ) -> Repairs {
        Repairs {
            inner: Arc::new(Inner {
                database,
                work,
                tasks,
                options,
                stop,
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
        let Some(serving) = state.serving.get(name) else {
            return self.start_own(&mut state, name);
        };
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

    /// Begins a repair of an index that the database keeps itself.
    fn start_own(&self, state: &mut Indexes, name: &IndexName) -> Result<Uuid, RepairError> {
        let inner = &self.inner;
        let index = inner.database.own_index(name);
        let index = index.ok_or_else(|| RepairError::NotServing(name.clone()))?;
        if !index.is_built() {
            return Err(RepairError::Building(name.clone()));
        }
        let spec = long_work::repair_of_own(name, &index.table(), index.counters());
        let (task, version) = (inner.work.start(spec), index.version());
        let id = task.id();
        // Those of dropped indexes are forgotten.
        state.last_of_own.retain(|version, (name, _)| {
            let index = inner.database.own_index(name);
            index.is_some_and(|index| index.version() == *version)
        });
        let last = (name.clone(), Last::Running(id));
        state.last_of_own.insert(version, last);
        state.running = Some(Running {
            name: name.clone(),
            task: id,
            speed: watch::Sender::default(),
        });
        let (repairs, stop) = (self.clone(), inner.stop.clone());
        inner.tasks.spawn(async move {
            let repair = async {
                match index.repair(&task).await {
                    Ok(true) => task.done(),
                    Ok(false) => task.stopped(),
                    Err(error) => task.failed(format!("{error:#}")),
                }
            };
            stop.run_until_cancelled(repair).await;
            let mut state = repairs.state();
            if let Some((_, last)) = state.last_of_own.get_mut(&version) {
                last.end(id, &repairs.inner.work);
            }
        });
        Ok(id)
    }

    /// Whether the database keeps an index of that name itself.
    pub fn is_own(&self, name: &IndexName) -> bool {
        self.inner.database.own_index(name).is_some()
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
        let own = self.inner.database.own_index(name);
        let state = self.state();
        let last = match own {
            Some(own) => &state.last_of_own.get(&own.version())?.1,
            None => state.last.get(name)?,
        };
        match last {
            Last::Running(task) => self.inner.work.status(*task),
            Last::Ended(status) => Some(Status::clone(status)),
        }
    }

    /// Keeps the final status of a repair, unless another has begun or the index was dropped.
    fn has_run(&self, name: &IndexName, task: Uuid) {
        let mut state = self.state();
        if let Some(last) = state.last.get_mut(name) {
            last.end(task, &self.inner.work);
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
    use crate::database::tests::Silent;

    #[test]
    fn the_last_repair_is_known_however_much_has_ended_since() {
        let work = Registry::default();
        let repairs = Repairs::new(
            Arc::new(Silent),
            work.clone(),
            TaskTracker::new(),
            RepairOptions::default(),
            CancellationToken::new(),
        );
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
