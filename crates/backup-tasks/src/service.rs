//! Backups, restores and drills of a process: one at a time, each as a task.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use clock::{Clock, SystemClock};
use store_api::types::{BackupPreview, BackupScheduleStatus, BackupsStatus};
use tasks::{CompletionState, Task, TaskRegistry, TaskScope, TaskSnapshot, TaskSpec};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::BackupTaskError;
use crate::background::BackgroundThreads;
use crate::book::{BackupBook, DueWork};
use crate::bounds::RequestBounds;
use crate::files::{make_directory, remove_directory};
use crate::order::{BackupOrder, DrillOrder, RestoreOrder, location_options};
use crate::pace::{ClientWork, QueriesFirst};
use crate::state::{BackedUpState, CHECKPOINT, checkpoint_alone, folder};
use crate::transfer::{ROWS, SENT_BYTES, TransferReporter};

/// The interval at which due runs are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The longest time that a stop waits for the work to end. What is cut off goes on after a start.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// The counters of tasks.
pub(crate) const SENT_OBJECTS: &str = "sent_objects";
pub(crate) const FILES: &str = "files";
pub(crate) const TABLES: &str = "tables";
pub(crate) const BYTES: &str = "bytes";
pub(crate) const WRITERS_WAITED: &str = "writers_waited_us";

/// The parts of a process that its backups need.
pub struct BackupRunnerOptions {
    /// The data directory. Schedules, checkpoints and downloads are below it.
    pub data_dir: PathBuf,
    /// The directory of indexes, which may be elsewhere.
    pub index_dir: PathBuf,
    /// The bounds of what requests may name.
    pub bounds: RequestBounds,
    /// The state that is backed up.
    pub state: Arc<dyn BackedUpState>,
    /// The tasks.
    pub tasks: TaskRegistry,
    /// The work of clients, which goes first.
    pub clients: ClientWork,
    /// The version of the program.
    pub version: String,
}

/// The backups, restores and drills of a process. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct BackupRunner {
    inner: Arc<SharedBackupRunner>,
}

/// The backups of a process as long as they exist, for parts that they hold themselves.
pub(crate) struct WeakBackupRunner {
    inner: Weak<SharedBackupRunner>,
}

impl WeakBackupRunner {
    /// The backups, unless they are dropped.
    pub(crate) fn upgrade(&self) -> Option<BackupRunner> {
        let inner = self.inner.upgrade()?;
        Some(BackupRunner { inner })
    }
}

struct SharedBackupRunner {
    options: BackupRunnerOptions,
    clock: SystemClock,
    book: Mutex<BackupBook>,
    /// The task that began last, and the word for it.
    last: Mutex<Option<(Uuid, &'static str)>>,
    restore_failures: Mutex<u64>,
    threads: BackgroundThreads,
    /// Wakes the schedule.
    changed: Notify,
    stop: CancellationToken,
    work: TaskTracker,
}

/// A piece of work.
#[derive(Debug)]
pub(crate) enum LongWork {
    BackUp(Box<BackupOrder>),
    Drill(Box<DrillOrder>),
    Restore(Box<RestoreOrder>),
    Snapshot(PathBuf),
}

impl LongWork {
    /// The kind of its task.
    fn kind(&self) -> &'static str {
        match self {
            LongWork::BackUp(_) => "backup",
            LongWork::Drill(_) => "drill",
            LongWork::Restore(_) => "restore",
            LongWork::Snapshot(_) => "checkpoint",
        }
    }

    fn spec(&self) -> TaskSpec {
        let location = |location: &str| TaskScope {
            entity: Some(location.to_owned()),
            ..TaskScope::default()
        };
        let (scope, counters): (TaskScope, &'static [&'static str]) = match self {
            LongWork::BackUp(order) => (
                location(&order.place.location),
                &[SENT_BYTES, SENT_OBJECTS, FILES, WRITERS_WAITED],
            ),
            LongWork::Drill(order) => {
                (location(&order.place.location), &[SENT_BYTES, TABLES, ROWS])
            }
            LongWork::Restore(order) => (
                TaskScope {
                    keyspace: order.choice.keyspace.clone(),
                    table: order.choice.table.clone(),
                    ..location(&order.place.location)
                },
                &[SENT_BYTES, TABLES, ROWS],
            ),
            LongWork::Snapshot(directory) => (
                location(&directory.to_string_lossy()),
                &[FILES, BYTES, WRITERS_WAITED],
            ),
        };
        TaskSpec {
            kind: self.kind(),
            scope,
            units: BYTES,
            total: None,
            counters,
            abortable: true,
        }
    }
}

impl BackupRunner {
    /// Opens the schedules of a data directory, and removes what interrupted work has left in it.
    /// Interrupted restores into the storage are undone by [`BackupRunner::undo_restores`].
    ///
    /// # Errors
    /// If the directory can't be used.
    pub fn open(options: BackupRunnerOptions) -> Result<BackupRunner, BackupTaskError> {
        let directory = folder(&options.data_dir);
        make_directory(&directory)?;
        for left in left_checkpoints(&directory)? {
            remove_directory(&left).map_err(|error| BackupTaskError::file(&left, error))?;
        }
        let drills = options.data_dir.join("drills");
        remove_directory(&drills).map_err(|error| BackupTaskError::file(&drills, error))?;
        let book = BackupBook::open(&directory);
        Ok(BackupRunner {
            inner: Arc::new(SharedBackupRunner {
                options,
                clock: SystemClock,
                book: Mutex::new(book),
                last: Mutex::new(None),
                restore_failures: Mutex::new(0),
                threads: BackgroundThreads::default(),
                changed: Notify::new(),
                stop: CancellationToken::new(),
                work: TaskTracker::new(),
            }),
        })
    }

    /// Runs backups and drills by their schedules, until the process ends.
    pub async fn run_by_schedule(self) {
        loop {
            tokio::select! {
                () = self.inner.stop.cancelled() => return,
                () = self.inner.changed.notified() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            self.start_due();
        }
    }

    /// Stops the work that runs, and waits a little for its end. Nothing begins any more.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        self.inner.work.close();
        let ended = tokio::time::timeout(STOP_WITHIN, self.inner.work.wait()).await;
        if ended.is_err() {
            tracing::info!("a backup or a restore was cut off");
        }
    }

    /// Begins the work that is due by a schedule, if nothing runs.
    fn start_due(&self) {
        let due = self.book().due(self.now_micros());
        let work = match due {
            None => return,
            Some(DueWork::Backup(schedule)) => {
                let has_drills = schedule.drills.is_some();
                location_options(&schedule.place).map(|options| {
                    LongWork::BackUp(Box::new(BackupOrder {
                        options,
                        place: schedule.place,
                        retention: schedule.retention,
                        schedule: None,
                        take_over: false,
                        full_check: false,
                        digests: has_drills,
                    }))
                })
            }
            Some(DueWork::Drill(schedule)) => location_options(&schedule.place).map(|options| {
                LongWork::Drill(Box::new(DrillOrder {
                    options,
                    place: schedule.place,
                    point: None,
                }))
            }),
        };
        match work.and_then(|work| self.start(work)) {
            // It is looked for again.
            Ok(_) | Err(BackupTaskError::Busy(_)) => {}
            Err(error) => tracing::error!(%error, "a backup by schedule can't begin"),
        }
    }

    /// Begins a piece of work, and returns its task.
    ///
    /// # Errors
    /// If another runs.
    pub(crate) fn start(&self, work: LongWork) -> Result<TaskSnapshot, BackupTaskError> {
        let task = self.begin(&work)?;
        let status = task.status();
        let service = self.clone();
        self.inner.work.spawn(async move {
            let outcome = service.carry_out(work, &task).await;
            end(task, outcome);
            service.inner.changed.notify_one();
        });
        Ok(status)
    }

    /// Begins the task of a piece of work, if no other runs.
    fn begin(&self, work: &LongWork) -> Result<Task, BackupTaskError> {
        let inner = &self.inner;
        if inner.stop.is_cancelled() {
            return Err(BackupTaskError::Stopped);
        }
        let mut last = inner.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((id, kind)) = *last
            && let Some(status) = inner.options.tasks.status(id)
            && status.state == CompletionState::Running
        {
            return Err(BackupTaskError::Busy(kind));
        }
        let task = inner.options.tasks.start(work.spec());
        *last = Some((task.id(), work.kind()));
        Ok(task)
    }

    /// The plan of a backup, which sends nothing.
    pub(crate) async fn preview(
        &self,
        order: BackupOrder,
    ) -> Result<BackupPreview, BackupTaskError> {
        let work = LongWork::BackUp(Box::new(order));
        let task = self.begin(&work)?;
        let LongWork::BackUp(order) = work else {
            return Err(BackupTaskError::Internal("bug: no backup".to_owned()));
        };
        let planned = self.plan(&order, &task).await;
        match planned {
            Ok(plan) => {
                task.done();
                Ok(plan)
            }
            Err(error) => {
                task.failed(&error);
                Err(error)
            }
        }
    }

    async fn carry_out(&self, work: LongWork, task: &Task) -> Result<(), BackupTaskError> {
        match work {
            LongWork::BackUp(order) => self.back_up(*order, task).await,
            LongWork::Drill(order) => self.drill(*order, task).await,
            LongWork::Restore(order) => {
                let restored = self.restore(*order, task).await;
                if restored.as_ref().is_err_and(|error| !error.is_stopped()) {
                    let failures = &self.inner.restore_failures;
                    *failures.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                }
                restored
            }
            LongWork::Snapshot(directory) => self.snapshot(&directory, task).await,
        }
    }

    /// Makes a local snapshot.
    async fn snapshot(&self, directory: &Path, task: &Task) -> Result<(), BackupTaskError> {
        let options = &self.inner.options;
        let own = [options.data_dir.as_path(), options.index_dir.as_path()];
        let captured = checkpoint_alone(&*options.state, directory, &own).await?;
        task.set_total(captured.bytes);
        task.set_completed(captured.bytes);
        task.count(FILES, captured.files);
        task.count(BYTES, captured.bytes);
        task.count(WRITERS_WAITED, micros(captured.writers_waited));
        Ok(())
    }

    /// The state that the API shows.
    pub(crate) fn status(&self) -> BackupsStatus {
        let last = *self
            .inner
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let last = last.and_then(|(id, _)| self.inner.options.tasks.status(id));
        let running = last.filter(|status| status.state == CompletionState::Running);
        let book = self.book();
        BackupsStatus {
            running: running.map(store::shown_task),
            schedules: book.shown_schedules(),
            locations: book.shown_results(),
            leaves_out: self.inner.options.state.leaves_out(),
        }
    }

    /// Removes a schedule, and returns it.
    ///
    /// # Errors
    /// If there is none of this id, or the file of schedules can't be written.
    pub(crate) fn remove_schedule(
        &self,
        id: &str,
    ) -> Result<BackupScheduleStatus, BackupTaskError> {
        self.book().remove_schedule(id)
    }

    /// Whether a piece of work runs.
    pub(crate) fn is_running(&self) -> bool {
        let last = *self
            .inner
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let status = last.and_then(|(id, _)| self.inner.options.tasks.status(id));
        status.is_some_and(|status| status.state == CompletionState::Running)
    }

    /// The number of restores that have failed since the start.
    pub(crate) fn restore_failures(&self) -> u64 {
        let failures = &self.inner.restore_failures;
        *failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The book of schedules and results.
    pub(crate) fn book(&self) -> MutexGuard<'_, BackupBook> {
        self.inner
            .book
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The present, microseconds since the epoch.
    pub(crate) fn now_micros(&self) -> i64 {
        self.inner.clock.now_micros()
    }

    /// The backups, without holding them.
    pub(crate) fn downgrade(&self) -> WeakBackupRunner {
        WeakBackupRunner {
            inner: Arc::downgrade(&self.inner),
        }
    }

    /// The parts of the process.
    pub(crate) fn options(&self) -> &BackupRunnerOptions {
        &self.inner.options
    }

    /// The progress of a transfer of a task.
    pub(crate) fn reporter<'a>(&'a self, task: &'a Task) -> TransferReporter<'a> {
        TransferReporter {
            task,
            stop: &self.inner.stop,
        }
    }

    /// The token that ends all work.
    pub(crate) fn stop_token(&self) -> &CancellationToken {
        &self.inner.stop
    }

    /// The pace of a transfer.
    pub(crate) fn pace(&self, max_mib_per_second: Option<u64>) -> QueriesFirst {
        QueriesFirst::new(self.inner.options.clients.clone(), max_mib_per_second)
    }

    /// Carries out a transfer, or other work with its bytes, on threads of a low priority.
    ///
    /// # Errors
    /// That of the work, or if the threads can't be made.
    pub(crate) async fn in_background<T, E: Into<BackupTaskError>>(
        &self,
        work: impl Future<Output = Result<T, E>> + Send,
    ) -> Result<T, BackupTaskError> {
        match self.inner.threads.run(work).await {
            Ok(outcome) => outcome.map_err(Into::into),
            Err(error) => Err(BackupTaskError::Internal(format!(
                "the threads for transfers can't be made: {error}"
            ))),
        }
    }

    /// The name of the checkpoint of a task.
    pub(crate) fn checkpoint_name(task: &Task) -> String {
        format!("{CHECKPOINT}{}", task.id())
    }
}

/// Microseconds, as a counter has them.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Ends a task with its outcome.
fn end(task: Task, outcome: Result<(), BackupTaskError>) {
    let kind = task.status().kind;
    match outcome {
        Ok(()) => {
            tracing::info!(task = %task.id(), kind, "done");
            task.done();
        }
        Err(error) if error.is_stopped() => {
            tracing::info!(task = %task.id(), kind, "stopped");
            task.stopped();
        }
        Err(error) => {
            tracing::error!(task = %task.id(), kind, %error, "failed");
            task.failed(error);
        }
    }
}

/// Checkpoints that a backup has left, as it was interrupted.
fn left_checkpoints(directory: &Path) -> Result<Vec<PathBuf>, BackupTaskError> {
    let entries = std::fs::read_dir(directory);
    let entries = entries.map_err(|error| BackupTaskError::file(directory, error))?;
    let entries = entries.flatten();
    let left = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let name = name.strip_prefix('.').unwrap_or(&name);
        name.starts_with(CHECKPOINT)
    });
    Ok(left.map(|entry| entry.path()).collect())
}
