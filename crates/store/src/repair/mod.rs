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
//! An index that the database keeps itself ([`crate::database::DatabaseIndex`]) is compared and
//! mended by the database.
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

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::tasks::{CompletionState, TaskRegistry, TaskSnapshot};
use run::IndexRepair;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::database::{ReaderProgress, SourceDatabase};
use crate::identity::IndexName;
use crate::indexes::IndexHandle;
use crate::long_work;
use crate::message::HintMessage;
use crate::message::IndexMessage;
use crate::options::RepairOptions;
use crate::rows::RowReader;

pub(crate) use schedule::{IndexCreation, IndexSchedules, PeriodicRepairUpdate, ScheduleError};

/// The speed of a repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ComparisonSpeed {
    /// The number of sets of replicas that are read at a time; 0: as many as share no node.
    pub parallel: usize,
    /// The number of ranges at a time for each set of replicas. 0: as many as the nodes allow,
    /// which is also the most.
    pub intensity: usize,
}

/// Everything that the repair of an index needs.
pub(crate) struct IndexAccess {
    /// The index.
    pub index: Arc<IndexHandle>,
    /// Reads the keys and the one vector column of the index.
    pub reader: RowReader,
    /// The database that has the table.
    pub database: Arc<dyn SourceDatabase>,
    /// The sender to the task that owns the index's rows.
    pub items: mpsc::WeakSender<IndexMessage>,
    /// The sender by which rows that the log names are read again.
    pub hints: mpsc::Sender<HintMessage>,
    /// The progress of each reader of the table's log.
    pub readers: Vec<Arc<ReaderProgress>>,
}

/// The reason why a repair can't begin, or can't be changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RepairError {
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
pub(crate) struct Repairs {
    inner: Arc<SharedRepairs>,
}

struct SharedRepairs {
    /// The database, which repairs the indexes that it keeps itself.
    database: Arc<dyn SourceDatabase>,
    work: TaskRegistry,
    tasks: TaskTracker,
    options: RepairOptions,
    /// Cancelled when the service stops.
    stop: CancellationToken,
    state: Mutex<TrackedRepairs>,
}

#[derive(Default)]
struct TrackedRepairs {
    /// The indexes that serve, and so may be repaired.
    serving: BTreeMap<IndexName, ServingIndex>,
    /// The repair that was started last.
    running: Option<RunningRepair>,
    /// The last repair of each index, as long as the index is attached.
    last: BTreeMap<IndexName, LatestRepair>,
    /// The last repair of each index that the database keeps itself, by the version of the index.
    last_of_own: HashMap<Uuid, (IndexName, LatestRepair)>,
}

struct ServingIndex {
    access: Arc<IndexAccess>,
    /// Cancelled when the index ends.
    cancel: CancellationToken,
}

/// The last repair of an index. The status of an ended one is copied here, as the registry of tasks
/// forgets ended tasks in time.
enum LatestRepair {
    Running(Uuid),
    Ended(Box<TaskSnapshot>),
}

impl LatestRepair {
    /// Keeps the final status of a repair, unless another has begun.
    fn end(&mut self, task: Uuid, work: &TaskRegistry) {
        if matches!(self, LatestRepair::Running(running) if *running == task)
            && let Some(status) = work.status(task)
        {
            *self = LatestRepair::Ended(Box::new(status));
        }
    }
}

struct RunningRepair {
    name: IndexName,
    task: Uuid,
    speed: watch::Sender<ComparisonSpeed>,
}

/// The right to repair an index. It ends when this is dropped.
pub(crate) struct IndexAttachment {
    repairs: Repairs,
    access: Arc<IndexAccess>,
    cancel: CancellationToken,
}

impl Repairs {
    /// No repairs yet. They are shown as tasks in `work` and run on `tasks`. Those of indexes that
    /// `database` keeps itself end when `stop` is cancelled.
    pub(crate) fn new(
        database: Arc<dyn SourceDatabase>,
        work: TaskRegistry,
        tasks: TaskTracker,
        options: RepairOptions,
        stop: CancellationToken,
    ) -> Repairs {
        Repairs {
            inner: Arc::new(SharedRepairs {
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
    pub(crate) fn attach(&self, access: IndexAccess) -> IndexAttachment {
        let access = Arc::new(access);
        let cancel = CancellationToken::new();
        let serving = ServingIndex {
            access: access.clone(),
            cancel: cancel.clone(),
        };
        let name = access.index.identity.name.clone();
        let mut state = self.state();
        state.last.remove(&name);
        state.serving.insert(name, serving);
        drop(state);
        IndexAttachment {
            repairs: self.clone(),
            access,
            cancel,
        }
    }

    /// Begins a repair and returns the id of its task. `grace` is the time for which ranges in
    /// flight may go on after a request to stop, if not that of the options.
    pub(crate) fn start(
        &self,
        name: &IndexName,
        speed: ComparisonSpeed,
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
        let run = IndexRepair {
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
        state.running = Some(RunningRepair {
            name: name.clone(),
            task: id,
            speed: sender,
        });
        state.last.insert(name.clone(), LatestRepair::Running(id));
        Ok(id)
    }

    /// Begins a repair of an index that the database keeps itself.
    fn start_own(&self, state: &mut TrackedRepairs, name: &IndexName) -> Result<Uuid, RepairError> {
        let inner = &self.inner;
        let index = inner.database.database_index(name);
        let index = index.ok_or_else(|| RepairError::NotServing(name.clone()))?;
        if !index.is_built() {
            return Err(RepairError::Building(name.clone()));
        }
        let spec = long_work::repair_of_database_index(name, &index.table(), index.counters());
        let (task, version) = (inner.work.start(spec), index.version());
        let id = task.id();
        // Those of dropped indexes are forgotten.
        state.last_of_own.retain(|version, (name, _)| {
            let index = inner.database.database_index(name);
            index.is_some_and(|index| index.version() == *version)
        });
        let last = (name.clone(), LatestRepair::Running(id));
        state.last_of_own.insert(version, last);
        state.running = Some(RunningRepair {
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
    pub(crate) fn is_own(&self, name: &IndexName) -> bool {
        self.inner.database.database_index(name).is_some()
    }

    /// Changes the speed of the repair of an index that runs, and returns the new speed. `None`
    /// leaves a value as it is.
    pub(crate) fn control(
        &self,
        name: &IndexName,
        parallel: Option<usize>,
        intensity: Option<usize>,
    ) -> Result<ComparisonSpeed, RepairError> {
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
    pub(crate) fn last(&self, name: &IndexName) -> Option<TaskSnapshot> {
        let own = self.inner.database.database_index(name);
        let state = self.state();
        let last = match own {
            Some(own) => &state.last_of_own.get(&own.version())?.1,
            None => state.last.get(name)?,
        };
        match last {
            LatestRepair::Running(task) => self.inner.work.status(*task),
            LatestRepair::Ended(status) => Some(TaskSnapshot::clone(status)),
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
    pub(crate) fn serving(&self) -> Vec<IndexCreation> {
        let state = self.state();
        let serving = state.serving.values();
        serving
            .map(|serving| IndexCreation::of(&serving.access.index.identity))
            .collect()
    }

    fn has_ended(&self, task: Uuid) -> bool {
        let status = self.inner.work.status(task);
        status.is_none_or(|status| status.state != CompletionState::Running)
    }

    fn state(&self) -> MutexGuard<'_, TrackedRepairs> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for IndexAttachment {
    fn drop(&mut self) {
        self.cancel.cancel();
        let name = &self.access.index.identity.name;
        let mut state = self.repairs.state();
        let is_this = |serving: &ServingIndex| Arc::ptr_eq(&serving.access, &self.access);
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
        let work = TaskRegistry::default();
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
        let last = LatestRepair::Running(id);
        repairs.state().last.insert(name.clone(), last);
        let state = || repairs.last(name).map(|status| status.state);
        assert_eq!(state(), Some(CompletionState::Running));
        task.done();
        repairs.has_run(name, id);
        for _ in 0..1000 {
            work.start(long_work::repair(&identity, report::COUNTERS))
                .done();
        }
        assert!(work.status(id).is_none(), "it is forgotten");
        assert_eq!(state(), Some(CompletionState::Done));
    }
}
