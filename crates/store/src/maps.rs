//! The maps of indexes: one is made at a time, as a task, and the last few are held.
//!
//! A map takes seconds of one core, so it is not made again for each viewer: one of the same index,
//! number of points and seed that is there or on its way is reused. It shows rows as they were when
//! they were drawn. A new version of an index has no map.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::tasks::{CompletionState, Task, TaskRegistry, TaskSnapshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::identity::{IndexIdentity, IndexName};
use crate::indexes::IndexHandle;
use crate::long_work;
use crate::memory::ProcessMemory;
use crate::search::{MadeMap, MapFault, VectorSearcher, WantedRows};

/// The most maps that are held, of all indexes.
const HELD_MAX: usize = 4;

/// The most bytes that held maps take. One has no more than that.
const HELD_BYTES_MAX: usize = 16 << 20;

/// The error for a map that is requested while another one is made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a map of index {0} is being made, one at a time: wait until it is done, or abort its task"
)]
pub(crate) struct MapsBusy(pub IndexName);

/// The maps of a service. Clones are cheap and share the state.
#[derive(Clone)]
pub(crate) struct IndexMaps {
    inner: Arc<SharedMaps>,
}

struct SharedMaps {
    searches: VectorSearcher,
    memory: Arc<ProcessMemory>,
    work: TaskRegistry,
    tasks: TaskTracker,
    /// Cancelled when the service ends.
    cancel: CancellationToken,
    state: Mutex<TrackedMaps>,
}

#[derive(Default)]
struct TrackedMaps {
    /// The map that was begun last.
    begun: Option<BegunMap>,
    /// The maps that are there, the one that was requested last at the end.
    held: VecDeque<Arc<HeldMap>>,
}

/// A map that was begun.
struct BegunMap {
    index: IndexIdentity,
    wanted: WantedRows,
    task: Uuid,
}

/// A map that is there.
#[derive(Debug)]
pub(crate) struct HeldMap {
    /// The index that it shows.
    pub index: IndexIdentity,
    /// The rows that were wanted.
    pub wanted: WantedRows,
    /// The map.
    pub map: MadeMap,
    /// The task that made it.
    task: Uuid,
}

/// The state of a map that was requested.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MapState {
    /// The task that makes or has made it; `None` if it is not listed any more.
    pub task: Option<TaskSnapshot>,
    /// Whether the map is there.
    pub is_ready: bool,
}

impl IndexMaps {
    /// Makes the maps of a service, of which there is none yet. `work` shows how they are made.
    pub(crate) fn new(
        searches: VectorSearcher,
        memory: Arc<ProcessMemory>,
        work: TaskRegistry,
        tasks: TaskTracker,
        cancel: CancellationToken,
    ) -> IndexMaps {
        IndexMaps {
            inner: Arc::new(SharedMaps {
                searches,
                memory,
                work,
                tasks,
                cancel,
                state: Mutex::default(),
            }),
        }
    }

    /// Begins to make a map of an index on vectors, unless an equal one is there or on its way. If
    /// it has to be `fresh`, one that is there does not count.
    ///
    /// # Errors
    /// If another map is being made, or an equal one that is to stop.
    pub(crate) fn start(
        &self,
        index: &Arc<IndexHandle>,
        wanted: WantedRows,
        fresh: bool,
    ) -> Result<MapState, MapsBusy> {
        let inner = &self.inner;
        let mut state = inner.state();
        if let Some((begun, task)) = inner.running(&state) {
            let is_equal = begun.index == index.identity && begun.wanted == wanted;
            return match is_equal && !task.abort_requested {
                true => Ok(MapState {
                    task: Some(task),
                    is_ready: false,
                }),
                false => Err(MapsBusy(begun.index.name.clone())),
            };
        }
        let there = match fresh {
            true => None,
            false => state.reuse(&index.identity, wanted),
        };
        if let Some(task) = there {
            return Ok(MapState {
                task: inner.work.status(task),
                is_ready: true,
            });
        }
        let task = inner.work.start(long_work::map(&index.identity));
        let snapshot = task.status();
        state.begun = Some(BegunMap {
            index: index.identity.clone(),
            wanted,
            task: snapshot.id,
        });
        let (maps, index, cancel) = (self.clone(), index.clone(), inner.cancel.clone());
        inner.tasks.spawn(async move {
            let making = maps.make(&index, wanted, task);
            cancel.run_until_cancelled(making).await;
        });
        Ok(MapState {
            task: Some(snapshot),
            is_ready: false,
        })
    }

    /// The map of an index that was requested last, if it is there.
    pub(crate) fn last(&self, index: &IndexIdentity) -> Option<Arc<HeldMap>> {
        let state = self.inner.state();
        let mut held = state.held.iter().rev();
        held.find(|held| held.index == *index).cloned()
    }

    /// The task that makes a map of an index now.
    pub(crate) fn running(&self, index: &IndexIdentity) -> Option<TaskSnapshot> {
        let state = self.inner.state();
        let (begun, task) = self.inner.running(&state)?;
        (begun.index == *index).then_some(task)
    }

    async fn make(&self, index: &Arc<IndexHandle>, wanted: WantedRows, task: Task) {
        let inner = &self.inner;
        let (name, id) = (&index.identity.name, task.id());
        tracing::info!(index = %name, task = %id, points = wanted.points, "a map begins");
        let memory = inner.memory.clone();
        let made = inner.searches.make_map(index, wanted, memory, &task).await;
        match made {
            Ok(map) => {
                tracing::info!(
                    index = %name,
                    task = %id,
                    points = map.points,
                    seconds = map.took.as_secs_f64(),
                    neighbours_kept = map.neighbours_kept,
                    "a map is made"
                );
                // It is there before its task has ended, for whoever waits for that.
                inner.state().hold(HeldMap {
                    index: index.identity.clone(),
                    wanted,
                    map,
                    task: id,
                });
                task.done();
            }
            Err(MapFault::Stopped) => task.stopped(),
            Err(error) => {
                tracing::warn!(index = %name, task = %id, %error, "no map can be made");
                task.failed(error);
            }
        }
    }
}

impl SharedMaps {
    fn state(&self) -> MutexGuard<'_, TrackedMaps> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map that is made now, and its task.
    fn running<'s>(&self, state: &'s TrackedMaps) -> Option<(&'s BegunMap, TaskSnapshot)> {
        let begun = state.begun.as_ref()?;
        let task = self.work.status(begun.task)?;
        (task.state == CompletionState::Running).then_some((begun, task))
    }
}

impl TrackedMaps {
    /// Puts an equal map last among those that are there, and returns the task that made it.
    fn reuse(&mut self, index: &IndexIdentity, wanted: WantedRows) -> Option<Uuid> {
        let is_equal = |held: &Arc<HeldMap>| held.index == *index && held.wanted == wanted;
        let place = self.held.iter().position(is_equal)?;
        let held = self.held.remove(place)?;
        let task = held.task;
        self.held.push_back(held);
        Some(task)
    }

    /// Holds a map in place of an equal one, and drops those that are too many.
    fn hold(&mut self, map: HeldMap) {
        let is_other = |held: &Arc<HeldMap>| held.index != map.index || held.wanted != map.wanted;
        self.held.retain(is_other);
        self.held.push_back(Arc::new(map));
        let bytes = |held: &VecDeque<Arc<HeldMap>>| -> usize {
            held.iter().map(|held| held.map.bytes()).sum()
        };
        while self.held.len() > HELD_MAX || bytes(&self.held) > HELD_BYTES_MAX {
            self.held.pop_front();
        }
    }
}
