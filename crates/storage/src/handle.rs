//! The public methods of the storage, from open to close.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use cpu_scheduler::CpuScheduler;
use futures::executor::block_on;
use prometheus::Histogram;
use schema::{Catalog, StreamGeneration, TableId};
use tokio::sync::watch::Receiver;
use tokio::sync::{Semaphore, mpsc, oneshot};
use uuid::Uuid;

use crate::active_reads::OldestRead;
use crate::clock::{Clock, ServerClock, SystemClock};
use crate::commit::{
    self, BatchLimits, CatalogEdit, CatalogEditOutcome, Committer, IndexRepairOutcome,
    IndexRepairRequest, PendingWrite, QueuedRequest, UnfinishedWork, WriteClaim,
};
use crate::compaction::PurgeRules;
use crate::engine::{
    CompactionFilterSource, Engine, EngineFigures, EngineOptions, LockedDirectory, SpaceId,
    SpaceOptions,
};
use crate::growth::{LogEnd, LogSettled};
use crate::layout::ResolvedSchema;
use crate::mutation::{AtomicWrite, WriteOutcome};
use crate::read::ReadRequest;
use crate::reader::{ReadContext, RowStream, TableView};
use crate::scrub::{self, BytesReadCallback, IntegrityReport};
use crate::shared::OpenStorage;
use crate::watch::{self, MaintenanceThread};
use crate::{CatalogChangeError, Statistics, StorageError, StorageOptions, WriteAvailability};

/// The most requests that may wait for the committer. Further callers wait until there is room.
const WAITING_REQUESTS_MAX: usize = 4096;
/// The most bytes of writes that may wait for the committer or be in its batch.
const WAITING_BYTES_MAX: usize = 256 << 20;
/// Bytes that one semaphore permit represents. They are more than one, as the number of permits is
/// limited.
const BYTES_PER_PERMIT: usize = 1024;
/// The longest time that a write waits for readers of the log. It is short for a client, and keeps
/// 64 writers that wait in vain at 64 writes a second.
const SLOWED_MAX: Duration = Duration::from_secs(1);

/// An open data directory. Cheap to clone; the last clone closes it.
#[derive(Clone)]
pub struct Storage {
    inner: Arc<RunningStorage>,
}

struct RunningStorage {
    shared: Arc<OpenStorage>,
    /// `None` once the last clone is dropped.
    requests: Option<mpsc::Sender<QueuedRequest>>,
    /// The low-water mark of the CDC logs when the storage was opened. Microseconds since the
    /// epoch.
    opened_at_micros: i64,
    waiting_bytes: Arc<Semaphore>,
    max_write_bytes: usize,
    cpu_scheduler: CpuScheduler,
    committer: Mutex<Option<JoinHandle<()>>>,
    watch: Mutex<Option<MaintenanceThread>>,
}

impl Drop for RunningStorage {
    fn drop(&mut self) {
        self.requests = None;
        self.join();
    }
}

impl RunningStorage {
    /// Stops the watcher, and waits until both threads have ended. The committer ends by itself.
    fn join(&self) {
        let watch = self
            .watch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(watch);
        let handle = self
            .committer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        // The last clone may be dropped in a schema change: on the committer's own thread, which
        // can't wait for itself.
        if let Some(handle) = handle
            && handle.thread().id() != thread::current().id()
        {
            let _ = handle.join();
        }
    }
}

impl Storage {
    /// Opens a data directory, creating it if it is missing, and recovers what was acknowledged.
    pub fn open(directory: &Path, options: StorageOptions) -> Result<Storage, StorageError> {
        Storage::open_with_clock(directory, options, Arc::new(SystemClock))
    }

    /// Opens a data directory like [`Storage::open`], with `clock` in the place of the machine's
    /// clock. See [`Storage::clock`].
    pub fn open_with_clock(
        directory: &Path,
        options: StorageOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Storage, StorageError> {
        let (unstarted, committer) = UnstartedStorage::open_directory(directory, &options, clock)?;
        let no_thread =
            |error: std::io::Error| StorageError::Io(format!("can't start a thread: {error}"));
        let requests = unstarted.requests.downgrade();
        let watch = watch::start(Arc::clone(&unstarted.shared), requests).map_err(no_thread)?;
        let handle = thread::Builder::new()
            .name("storage-commit".to_owned())
            .spawn(move || block_on(committer.run()))
            .map_err(no_thread)?;
        Ok(unstarted.started(&options, Some(handle), Some(watch)))
    }

    /// Opens a simulated disk. The committer and the watcher, which have threads of their own on a
    /// real disk, run as tasks of the caller's runtime.
    #[cfg(feature = "simulation")]
    pub fn open_simulated(
        disk: &crate::SimulatedDisk,
        options: StorageOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Storage, StorageError> {
        let open = |_| {
            let (engine, is_new) = Engine::simulated(disk);
            Ok((engine, is_new))
        };
        let (unstarted, committer) =
            UnstartedStorage::open(open, &options, clock, OpenPurpose::ReadWrite)?;
        let requests = unstarted.requests.downgrade();
        tokio::spawn(watch::run(Arc::clone(&unstarted.shared), requests));
        tokio::spawn(committer.run());
        Ok(unstarted.started(&options, None, None))
    }
}

impl Storage {
    /// Opens a checkpoint ([`Storage::checkpoint`]), or the data directory of a server that is
    /// stopped, to read its rows and its schema. Writes are refused, nothing expires and nothing is
    /// forgotten. Dropping the last clone closes it.
    ///
    /// Files of tables may be missing, of a copy that has only some tables: reads of the others
    /// fail with [`StorageError::NoSuchTable`]. Tables in memory are read from their files.
    ///
    /// # Errors
    /// If it is no data directory, is in use or is damaged. Reading writes journals out to tables,
    /// so a disk that is full or can't be written to is an error, too.
    pub fn open_read_only(
        directory: &Path,
        options: StorageOptions,
    ) -> Result<Storage, StorageError> {
        let directory = LockedDirectory::open_existing(directory)?;
        let engine_options = engine_options(&options);
        let open = |_| {
            // Without examiners no compaction drops anything.
            let engine = Engine::open(directory, engine_options, Arc::new(|_, _| None))?;
            Ok((engine, false))
        };
        let clock = Arc::new(SystemClock);
        // Without its committer, no request is carried out.
        let (unstarted, _) = UnstartedStorage::open(open, &options, clock, OpenPurpose::ReadOnly)?;
        unstarted
            .shared
            .refuse_writes("the directory is open to read only");
        Ok(unstarted.started(&options, None, None))
    }
}

/// The use for which a storage is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenPurpose {
    ReadWrite,
    ReadOnly,
}

pub(crate) fn engine_options(options: &StorageOptions) -> EngineOptions {
    EngineOptions {
        cache_bytes: options.cache_bytes,
        memtable_bytes: options.memtable_bytes,
        write_buffer_bytes: options.write_buffer_bytes,
        resident_bytes: options.resident_bytes,
    }
}

/// A storage whose committer does not run yet.
struct UnstartedStorage {
    shared: Arc<OpenStorage>,
    requests: mpsc::Sender<QueuedRequest>,
}

impl UnstartedStorage {
    /// Opens a data directory.
    fn open_directory(
        directory: &Path,
        options: &StorageOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<(UnstartedStorage, Committer), StorageError> {
        let (directory, is_new) = LockedDirectory::open(directory)?;
        let open = |examiners| {
            let engine = Engine::open(directory, engine_options(options), examiners)?;
            if !is_new {
                commit::await_clock(&engine, &*clock)?;
            }
            Ok((engine, is_new))
        };
        let clock = Arc::clone(&clock);
        UnstartedStorage::open(open, options, clock, OpenPurpose::ReadWrite)
    }

    /// Opens the engine and loads the catalog. `open` opens the engine with the examiners that
    /// decide what is dropped when files are rewritten, and returns whether the engine is new.
    fn open(
        open: impl FnOnce(CompactionFilterSource) -> Result<(Engine, bool), StorageError>,
        options: &StorageOptions,
        clock: Arc<dyn Clock>,
        purpose: OpenPurpose,
    ) -> Result<(UnstartedStorage, Committer), StorageError> {
        let clock = ServerClock::new(clock);
        let horizon = OldestRead::new(Arc::clone(&clock));
        let forgetting = PurgeRules::new(Arc::clone(&horizon));
        let examiners: CompactionFilterSource = {
            let forgetting = Arc::clone(&forgetting);
            Arc::new(move |space, of| forgetting.compaction_filter(space, of))
        };
        let (engine, is_new) = open(examiners)?;
        if is_new {
            make(&engine, clock.now_micros())?;
        }
        let kept_micros = commit::load_mark(&engine)?;
        clock.raise(kept_micros);
        let (catalog, generations) =
            commit::load(&engine, clock.now_micros())?.ok_or_else(|| {
                StorageError::Corrupt(format!("{} holds no schema", engine.path().display()))
            })?;
        let builds = commit::load_builds(&engine)?;
        let building = commit::indexes_of_builds(&builds);
        let schema = ResolvedSchema::new(Arc::new(catalog), generations, building, None);
        forgetting.set_expiring(commit::load_expiring(&engine)?);
        forgetting.set_schema(&schema);
        if purpose == OpenPurpose::ReadWrite {
            remove_orphans(&engine, &schema)?;
            engine.hold(&schema.resident_spaces(), clock.now_micros())?;
        }
        let sweeps = commit::load_sweeps(&engine)?;
        let shared = Arc::new(OpenStorage::new(
            Arc::new(engine),
            horizon,
            forgetting,
            clock,
            kept_micros,
            options.durability,
            schema,
        ));
        let (requests, receiver) = mpsc::channel(WAITING_REQUESTS_MAX);
        shared
            .statistics
            .sweeps_waiting
            .store(sweeps.len() as u64, Ordering::Relaxed);
        let turns = options.cpu_scheduler.clone();
        let bounds = BatchLimits {
            batch_bytes: options.batch_bytes,
            write_rows_bytes: options.write_rows_bytes,
        };
        let unfinished = UnfinishedWork { sweeps, builds };
        let tasks = options.tasks.clone();
        let committer = Committer::new(
            Arc::clone(&shared),
            receiver,
            unfinished,
            tasks,
            turns,
            bounds,
        );
        Ok((UnstartedStorage { shared, requests }, committer))
    }

    /// Makes the storage. `committer` and `watch` are its threads; `None` where tasks do their
    /// work.
    fn started(
        self,
        options: &StorageOptions,
        committer: Option<JoinHandle<()>>,
        watch: Option<MaintenanceThread>,
    ) -> Storage {
        Storage {
            inner: Arc::new(RunningStorage {
                opened_at_micros: self.shared.gate.latest_micros(),
                shared: self.shared,
                requests: Some(self.requests),
                waiting_bytes: Arc::new(Semaphore::new(WAITING_BYTES_MAX / BYTES_PER_PERMIT)),
                max_write_bytes: options.max_write_bytes,
                cpu_scheduler: options.cpu_scheduler.clone(),
                committer: Mutex::new(committer),
                watch: Mutex::new(watch),
            }),
        }
    }
}

impl Storage {
    /// The clock for write timestamps, expiry and the times of log rows. It never goes back, not
    /// even over a restart.
    pub fn clock(&self) -> &Arc<ServerClock> {
        &self.inner.shared.clock
    }

    /// The turns on the processor, for those who read much at a time.
    pub fn cpu_scheduler(&self) -> &CpuScheduler {
        &self.inner.cpu_scheduler
    }

    /// The present schema. Costs one atomic load.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.inner.shared.schema().catalog)
    }

    /// Changes the schema. The closure edits a copy of the catalog on the committer thread, between
    /// two batches of writes. If it returns `Ok` and has changed anything, the copy gets a new
    /// version ([`Catalog::version`]), is made durable and replaces the old catalog. New tables get
    /// their files; the files of dropped tables are removed.
    pub async fn change_catalog<R, E>(
        &self,
        change: impl FnOnce(&mut Catalog) -> Result<R, E> + Send + 'static,
    ) -> Result<R, CatalogChangeError<E>>
    where
        R: Send + 'static,
        E: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let edit = Box::new(move |catalog: &mut Catalog| {
            match catch_unwind(AssertUnwindSafe(|| change(catalog))) {
                Ok(Ok(value)) => {
                    CatalogEditOutcome::Done(Box::new(move |outcome: Result<(), StorageError>| {
                        let _ = reply.send(match outcome {
                            Ok(()) => Ok(value),
                            Err(error) => Err(CatalogChangeError::Storage(error)),
                        });
                    }))
                }
                Ok(Err(refusal)) => {
                    let _ = reply.send(Err(CatalogChangeError::Refused(refusal)));
                    CatalogEditOutcome::Refused
                }
                Err(_) => {
                    let _ = reply.send(Err(CatalogChangeError::Storage(StorageError::Invalid(
                        "internal error: the schema change panicked and was dropped".to_owned(),
                    ))));
                    CatalogEditOutcome::Refused
                }
            }
        });
        self.send_request(QueuedRequest::Change(CatalogEdit { edit }))
            .await
            .map_err(CatalogChangeError::Storage)?;
        answer
            .await
            .unwrap_or(Err(CatalogChangeError::Storage(StorageError::Closed)))
    }

    /// Applies mutations as one atomic batch, with the CDC log rows that the catalog requires, and
    /// returns once they are durable (see [`crate::Durability`]).
    ///
    /// A caller that stops waiting does not undo the write. A write that was under way when the
    /// disk failed is answered with [`StorageError::ReadOnly`] and is not applied, unless the disk
    /// also refuses to take it back and the process is killed.
    pub async fn write(&self, write: AtomicWrite) -> Result<WriteOutcome, StorageError> {
        self.write_at(write, None).await
    }

    /// As [`Storage::write`], by the present that a client sent, in seconds since the epoch: values
    /// with a time to live expire by it, and conditions see what is alive by it.
    pub async fn write_at(
        &self,
        write: AtomicWrite,
        client_now_s: Option<i64>,
    ) -> Result<WriteOutcome, StorageError> {
        self.carry_out(write, client_now_s, None).await
    }

    /// As [`Storage::write_at`], with a limit of the time until the committer begins. A write that
    /// has not begun by then fails with [`StorageError::Late`] and is not carried out. One that has
    /// begun is answered when it is done.
    ///
    /// Needs a runtime with a timer.
    pub async fn write_within(
        &self,
        limit: Duration,
        write: AtomicWrite,
        client_now_s: Option<i64>,
    ) -> Result<WriteOutcome, StorageError> {
        let beginning = WriteClaim::default();
        // In an allocation of its own, as requests with such writes hold it for long.
        let mut carried_out =
            Box::pin(self.carry_out(write, client_now_s, Some(beginning.clone())));
        match tokio::time::timeout(limit, &mut carried_out).await {
            Ok(outcome) => outcome,
            Err(_) if beginning.give_up() => Err(StorageError::Late),
            Err(_) => carried_out.await,
        }
    }

    async fn carry_out(
        &self,
        write: AtomicWrite,
        client_now_s: Option<i64>,
        beginning: Option<WriteClaim>,
    ) -> Result<WriteOutcome, StorageError> {
        let bytes = write.size();
        let max = self.inner.max_write_bytes;
        if bytes > max {
            return Err(StorageError::Invalid(format!(
                "the write carries {bytes} bytes of keys and values, more than the maximum of {max}"
            )));
        }
        self.inner.shared.check_writable()?;
        self.wait_for_log_readers(&write).await;
        let permits = bytes
            .div_ceil(BYTES_PER_PERMIT)
            .clamp(1, WAITING_BYTES_MAX / BYTES_PER_PERMIT);
        let permit = Arc::clone(&self.inner.waiting_bytes)
            .acquire_many_owned(u32::try_from(permits).unwrap_or(u32::MAX))
            .await
            .map_err(|_| StorageError::Closed)?;
        let (reply, answer) = oneshot::channel();
        let write = PendingWrite {
            write,
            client_now_s,
            beginning,
            reply,
            permit,
        };
        self.send_request(QueuedRequest::Write { write, bytes })
            .await?;
        answer.await.unwrap_or(Err(StorageError::Closed))
    }

    /// Waits while readers have the writers of a log slowed that the write adds to, for a second at
    /// most.
    async fn wait_for_log_readers(&self, write: &AtomicWrite) {
        let schema = self.inner.shared.schema();
        let mut tables: Vec<TableId> = write.mutations.iter().map(|of| of.table).collect();
        tables.dedup();
        let free = tables.into_iter().filter_map(|table| {
            let log = schema.table(table).ok()?.table.log.as_ref()?.table;
            schema.table(log).ok()?.growth.free()
        });
        let free: Vec<_> = free.collect();
        // While it waits, it must keep nothing of the tables alive.
        drop(schema);
        if !free.is_empty() {
            let all = async {
                for free in free {
                    free.await;
                }
            };
            let _ = tokio::time::timeout(SLOWED_MAX, all).await;
        }
    }

    /// Starts a read. The stream sees the state of this moment, whatever is written meanwhile, and
    /// does blocking file reads when it is advanced.
    pub fn read(&self, request: ReadRequest) -> Result<RowStream, StorageError> {
        self.view(request.table)?.read(&request)
    }

    /// A view of a table as it is at this moment, for the lookup of many rows.
    pub fn view(&self, table: TableId) -> Result<TableView, StorageError> {
        self.view_at(table, None)
    }

    /// As [`Storage::view`], by the present that a client sent, in seconds since the epoch. What
    /// has died before the present of this machine may be removed already.
    pub fn view_at(
        &self,
        table: TableId,
        client_now_s: Option<i64>,
    ) -> Result<TableView, StorageError> {
        let shared = &self.inner.shared;
        let hold = shared.horizon.begin_read();
        let table = Arc::clone(shared.schema().table(table)?);
        Ok(TableView::new(ReadContext {
            snapshot: shared.engine.snapshot()?,
            engine: Arc::clone(&shared.engine),
            lease: Arc::clone(&table.lease),
            table,
            now_s: client_now_s.unwrap_or_else(|| hold.start_s()),
            hold,
        }))
    }

    /// The number of the last commit of writes since the storage was opened; `None` while one is
    /// under way. If it is the same twice, nothing was written between.
    pub fn last_commit(&self) -> Option<u64> {
        self.inner.shared.gate.last_commit()
    }

    /// Makes later commits take a `cdc$time` above `until_micros`, and waits until no commit in
    /// flight can still add a CDC log row at or below it. Afterwards a read of any log up to
    /// `until_micros` is complete for good. `until_micros` is in microseconds since the epoch, and
    /// is capped at the present. Returns the time at which a read of the log has to end: later rows
    /// are those of deletions that are dated ahead, whose time has yet to come.
    pub async fn settle_log(&self, until_micros: i64) -> Result<i64, StorageError> {
        let shared = &self.inner.shared;
        let mark = until_micros.min(shared.clock.now_micros());
        self.settle_to(mark).await?;
        Ok(shared.gate.latest_micros())
    }

    async fn settle_to(&self, mark_micros: i64) -> Result<LogSettled, StorageError> {
        let shared = &self.inner.shared;
        // A later process must not give out an earlier time, but the mark on the disk does not
        // reach this one yet.
        if mark_micros > shared.kept_micros.load(Ordering::Relaxed) {
            let (reply, kept) = oneshot::channel();
            self.send_request(QueuedRequest::RaiseMark {
                until_micros: mark_micros,
                reply,
            })
            .await?;
            let _ = kept.await;
        }
        shared.gate.settle(mark_micros).await;
        Ok(LogSettled {
            up_to_micros: mark_micros,
            kept_micros: mark_micros.min(shared.kept_micros.load(Ordering::Relaxed)),
        })
    }

    /// Waits until a commit has given a row of this CDC log a `cdc$time` at or after `from_micros`
    /// (microseconds since the epoch). Returns at once if a commit has done so since the storage
    /// was opened, or if there is no such table (any more). That commit may still be under way, and
    /// may fail. A reader that has read the log up to `from_micros` waits here, and then calls
    /// [`Storage::settle_log`].
    pub async fn log_growth(&self, log: TableId, from_micros: i64) {
        // While it waits, the caller must keep nothing of the table alive.
        let schema = self.inner.shared.schema();
        let reached = schema.table(log).map(|log| log.growth.reached(from_micros));
        drop(schema);
        if let Ok(reached) = reached {
            reached.await;
        }
    }

    /// The end of a CDC log; `None` if there is no such table (any more).
    pub fn log_end(&self, log: TableId) -> Option<LogEnd> {
        let schema = self.inner.shared.schema();
        let log = schema.table(log).ok()?;
        Some(log.growth.end(self.inner.opened_at_micros))
    }

    /// Settles the logs like [`Storage::settle_log`], up to the present or to the last row of this
    /// log, whichever is later. So a clock that was set back hides no row.
    pub async fn settle_log_to_end(&self, log: TableId) -> Result<LogSettled, StorageError> {
        let shared = &self.inner.shared;
        let latest = shared.schema().table(log)?.growth.latest();
        let mark = latest.max(shared.clock.now_micros());
        self.settle_to(mark).await
    }

    /// A receiver that is notified of each change of the schema from now on, TRUNCATE included.
    pub fn schema_changes(&self) -> Receiver<()> {
        self.inner.shared.schema_changes.subscribe()
    }

    /// Waits until a secondary index, by [`schema::SecondaryIndex::version`], has the entries of
    /// all rows. Returns at once if there is no such index.
    pub async fn index_built(&self, index: Uuid) {
        let mut changes = self.schema_changes();
        while self.inner.shared.schema().building.contains(&index) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Whether a secondary index, by [`schema::SecondaryIndex::version`], has the entries of all
    /// rows.
    pub fn is_index_built(&self, index: Uuid) -> bool {
        !self.inner.shared.schema().building.contains(&index)
    }

    /// Looks at rows and entries of a secondary index again, and mends those that are still at
    /// fault.
    pub(crate) async fn repair_entries(
        &self,
        mending: IndexRepairRequest,
    ) -> Result<IndexRepairOutcome, StorageError> {
        let (reply, answer) = oneshot::channel();
        self.send_request(QueuedRequest::Repair { mending, reply })
            .await?;
        answer.await.unwrap_or(Err(StorageError::Closed))
    }

    /// Drops all rows of a table. Its CDC log stays as it is. Sets
    /// [`schema::Table::truncated_at_ms`] and gives the catalog a new version.
    pub async fn truncate(&self, table: TableId) -> Result<(), StorageError> {
        let (reply, answer) = oneshot::channel();
        self.send_request(QueuedRequest::Truncate { table, reply })
            .await?;
        answer.await.unwrap_or(Err(StorageError::Closed))
    }

    /// Writes out what a table and its secondary indexes hold in memory, and rewrites their files
    /// without the records that may be forgotten. Blocks until that is done.
    pub fn compact(&self, table: TableId) -> Result<(), StorageError> {
        let shared = &self.inner.shared;
        let table = Arc::clone(shared.schema().table(table)?);
        shared.engine.compact(table.space)?;
        let mut indexes = table.indexes.iter();
        indexes.try_for_each(|index| shared.engine.compact(index.space))
    }

    /// Reads all files of the directory and checks their checksums, while reads and writes go on.
    /// It goes on after a damaged file, and changes nothing. Blocks until all files are read or
    /// `pass` stops it.
    pub fn scrub(&self, pass: BytesReadCallback<'_>) -> Result<IntegrityReport, StorageError> {
        match self.inner.shared.engine.directory() {
            Some(directory) => scrub::check(directory, true, pass),
            None => Ok(IntegrityReport::default()),
        }
    }

    /// Returns whether writes are taken, which is checked every second and at every write.
    pub fn health(&self) -> WriteAvailability {
        self.inner.shared.health()
    }

    /// Figures for the operator.
    pub fn statistics(&self) -> Statistics {
        let counters = &self.inner.shared.statistics;
        let engine = &self.inner.shared.engine;
        Statistics {
            disk_bytes: engine.disk_bytes(),
            batches: counters.batches.load(Ordering::Relaxed),
            writes: counters.writes.load(Ordering::Relaxed),
            commit_micros: counters.commit_micros.load(Ordering::Relaxed),
            sweeps_waiting: counters.sweeps_waiting.load(Ordering::Relaxed),
            rows_expired: counters.rows_expired.load(Ordering::Relaxed),
            batch_bytes_peak: counters.batch_bytes_peak.load(Ordering::Relaxed),
            elements_worked_on: counters.elements_worked_on.load(Ordering::Relaxed),
            range_deletions_read: engine.range_deletions_read().load(Ordering::Relaxed),
            rows_looked_up: engine.rows_looked_up().load(Ordering::Relaxed),
            resident_bytes: engine.resident_bytes(),
            write_buffer_bytes: engine.write_buffer_bytes(),
            versions_passed: lsm_tree::versions_passed(),
            clock_ahead_micros: self.inner.shared.clock.ahead_micros(),
            replayed_bytes: engine.replayed_bytes(),
        }
    }

    /// Figures of the engine below, for the operator.
    pub fn engine_figures(&self) -> EngineFigures {
        self.inner.shared.engine.figures()
    }

    /// The times of syncs to the disk, which go on being counted in it; `None` in simulations.
    pub fn sync_durations(&self) -> Option<Histogram> {
        self.inner.shared.engine.sync_durations().cloned()
    }

    /// Bytes of memory that rows waiting to be written out, and cached blocks, may take in addition
    /// to those that they take now.
    pub fn bytes_to_come(&self) -> u64 {
        self.inner.shared.engine.bytes_to_come()
    }

    /// Stops taking writes, finishes those in flight, and writes out what is in memory, so that the
    /// next start reads no journal. Later calls fail with [`StorageError::Closed`].
    pub async fn close(&self) -> Result<(), StorageError> {
        let (reply, answer) = oneshot::channel();
        self.send_request(QueuedRequest::Close { reply }).await?;
        let closed = answer.await.unwrap_or(Err(StorageError::Closed));
        self.inner.join();
        closed
    }

    /// The shared state of the storage.
    pub(crate) fn shared(&self) -> &Arc<OpenStorage> {
        &self.inner.shared
    }

    /// Sends a request if there is room for it. Returns whether it was sent.
    pub(crate) fn try_send_request(&self, request: QueuedRequest) -> bool {
        let requests = self.inner.requests.as_ref();
        requests.is_some_and(|requests| requests.try_send(request).is_ok())
    }

    pub(crate) async fn send_request(&self, request: QueuedRequest) -> Result<(), StorageError> {
        let Some(requests) = &self.inner.requests else {
            return Err(StorageError::Closed);
        };
        requests
            .send(request)
            .await
            .map_err(|_| StorageError::Closed)
    }
}

/// The committer over a data directory, which does nothing by itself, without a watcher.
#[cfg(test)]
pub(crate) fn manual_committer(
    directory: &Path,
    options: &StorageOptions,
    clock: Arc<dyn Clock>,
) -> Result<Committer, StorageError> {
    UnstartedStorage::open_directory(directory, options, clock).map(|(_, committer)| committer)
}

/// Writes the first catalog into a new directory.
fn make(engine: &Engine, now_micros: i64) -> Result<(), StorageError> {
    engine.create_space(
        SpaceId::META,
        SpaceOptions {
            separate_values: false,
            resident: false,
        },
    )?;
    let now_ms = now_micros.div_euclid(1_000);
    let random = Uuid::new_v4().as_u64_pair().1;
    let catalog = Catalog {
        version: value::timeuuid::from_micros(now_micros, random).unwrap_or_else(|_| Uuid::nil()),
        host_id: Uuid::new_v4(),
        cluster_name: "Annulus".to_owned(),
        created_at_ms: now_ms,
        vnode_streams: StreamGeneration::of_vnodes(now_ms),
        keyspaces: Default::default(),
        roles: Default::default(),
    };
    commit::store_first(engine, &catalog, now_micros)?;
    engine.mark_made()
}

/// Removes the files of tables that a crash left.
fn remove_orphans(engine: &Engine, schema: &ResolvedSchema) -> Result<(), StorageError> {
    let known: HashSet<SpaceId> = schema.spaces().into_keys().chain([SpaceId::META]).collect();
    let spaces: HashSet<SpaceId> = engine.spaces()?.into_iter().collect();
    if let Some(missing) = known.difference(&spaces).next() {
        return Err(StorageError::Corrupt(format!(
            "the files of table {} are missing in {}",
            missing.table().0,
            engine.path().display()
        )));
    }
    for orphan in spaces.difference(&known) {
        tracing::info!(table = %orphan.table().0, "removing the files of a dropped table");
        engine.drop_space(*orphan)?;
    }
    Ok(())
}
