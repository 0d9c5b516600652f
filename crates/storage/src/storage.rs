//! The public methods of the storage, from open to close.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures::executor::block_on;
use schema::{Catalog, StreamGeneration, TableId};
use tokio::sync::watch::Receiver;
use tokio::sync::{Semaphore, mpsc, oneshot};
use turns::Turns;
use uuid::Uuid;

use crate::clock::{Clock, ServerClock, SystemClock};
use crate::commit::{
    self, Beginning, Bounds, Committer, Edited, Mended, Mending, PendingWrite, Request,
    SchemaChange, Unfinished,
};
use crate::engine::{Directory, Engine, EngineOptions, Examiners, SpaceId, SpaceOptions};
use crate::forget::Forgetting;
use crate::growth::{LogEnd, LogSettled};
use crate::horizon::Horizon;
use crate::layout::Schema;
use crate::mutation::{Write, WriteOutcome};
use crate::read::ReadRequest;
use crate::reader::{ReadContext, RowStream, View};
use crate::scrub::{self, Pass, Scrubbed};
use crate::shared::Shared;
use crate::watch::{self, Watch};
use crate::{ChangeError, Health, Statistics, StorageError, StorageOptions};

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
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    /// `None` once the last clone is dropped.
    requests: Option<mpsc::Sender<Request>>,
    /// The low-water mark of the CDC logs when the storage was opened. Microseconds since the
    /// epoch.
    opened_at_micros: i64,
    waiting_bytes: Arc<Semaphore>,
    max_write_bytes: usize,
    turns: Turns,
    committer: Mutex<Option<JoinHandle<()>>>,
    watch: Mutex<Option<Watch>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.requests = None;
        self.join();
    }
}

impl Inner {
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
        let (unstarted, committer) = Unstarted::open_directory(directory, &options, clock)?;
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
        let (unstarted, committer) = Unstarted::open(open, &options, clock)?;
        let requests = unstarted.requests.downgrade();
        tokio::spawn(watch::run(Arc::clone(&unstarted.shared), requests));
        tokio::spawn(committer.run());
        Ok(unstarted.started(&options, None, None))
    }
}

/// A storage whose committer does not run yet.
struct Unstarted {
    shared: Arc<Shared>,
    requests: mpsc::Sender<Request>,
}

impl Unstarted {
    /// Opens a data directory.
    fn open_directory(
        directory: &Path,
        options: &StorageOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<(Unstarted, Committer), StorageError> {
        let (directory, is_new) = Directory::open(directory)?;
        let open = |examiners| {
            let engine_options = EngineOptions {
                cache_bytes: options.cache_bytes,
                memtable_bytes: options.memtable_bytes,
                write_buffer_bytes: options.write_buffer_bytes,
                resident_bytes: options.resident_bytes,
            };
            let engine = Engine::open(directory, engine_options, examiners)?;
            if !is_new {
                commit::await_clock(&engine, &*clock)?;
            }
            Ok((engine, is_new))
        };
        Unstarted::open(open, options, Arc::clone(&clock))
    }

    /// Opens the engine and loads the catalog. `open` opens the engine with the examiners that
    /// decide what is dropped when files are rewritten, and returns whether the engine is new.
    fn open(
        open: impl FnOnce(Examiners) -> Result<(Engine, bool), StorageError>,
        options: &StorageOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<(Unstarted, Committer), StorageError> {
        let clock = ServerClock::new(clock);
        let horizon = Horizon::new(Arc::clone(&clock));
        let forgetting = Forgetting::new(Arc::clone(&horizon));
        let examiners: Examiners = {
            let forgetting = Arc::clone(&forgetting);
            Arc::new(move |space, of| forgetting.examiner(space, of))
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
        let schema = Schema::new(Arc::new(catalog), generations, building, None);
        remove_orphans(&engine, &schema)?;
        forgetting.set_expiring(commit::load_expiring(&engine)?);
        forgetting.set_schema(&schema);
        engine.hold(&schema.resident_spaces(), clock.now_micros())?;
        let sweeps = commit::load_sweeps(&engine)?;
        let shared = Arc::new(Shared::new(
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
        let turns = options.turns.clone();
        let bounds = Bounds {
            batch_bytes: options.batch_bytes,
            write_rows_bytes: options.write_rows_bytes,
        };
        let unfinished = Unfinished { sweeps, builds };
        let tasks = options.tasks.clone();
        let committer = Committer::new(
            Arc::clone(&shared),
            receiver,
            unfinished,
            tasks,
            turns,
            bounds,
        );
        Ok((Unstarted { shared, requests }, committer))
    }

    /// Makes the storage. `committer` and `watch` are its threads; `None` where tasks do their
    /// work.
    fn started(
        self,
        options: &StorageOptions,
        committer: Option<JoinHandle<()>>,
        watch: Option<Watch>,
    ) -> Storage {
        Storage {
            inner: Arc::new(Inner {
                opened_at_micros: self.shared.gate.latest_micros(),
                shared: self.shared,
                requests: Some(self.requests),
                waiting_bytes: Arc::new(Semaphore::new(WAITING_BYTES_MAX / BYTES_PER_PERMIT)),
                max_write_bytes: options.max_write_bytes,
                turns: options.turns.clone(),
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
    pub fn turns(&self) -> &Turns {
        &self.inner.turns
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
    ) -> Result<R, ChangeError<E>>
    where
        R: Send + 'static,
        E: Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let edit = Box::new(move |catalog: &mut Catalog| {
            match catch_unwind(AssertUnwindSafe(|| change(catalog))) {
                Ok(Ok(value)) => {
                    Edited::Done(Box::new(move |outcome: Result<(), StorageError>| {
                        let _ = reply.send(match outcome {
                            Ok(()) => Ok(value),
                            Err(error) => Err(ChangeError::Storage(error)),
                        });
                    }))
                }
                Ok(Err(refusal)) => {
                    let _ = reply.send(Err(ChangeError::Refused(refusal)));
                    Edited::Refused
                }
                Err(_) => {
                    let _ = reply.send(Err(ChangeError::Storage(StorageError::Invalid(
                        "internal error: the schema change panicked and was dropped".to_owned(),
                    ))));
                    Edited::Refused
                }
            }
        });
        self.ask(Request::Change(SchemaChange { edit }))
            .await
            .map_err(ChangeError::Storage)?;
        answer
            .await
            .unwrap_or(Err(ChangeError::Storage(StorageError::Closed)))
    }

    /// Applies mutations as one atomic batch, with the CDC log rows that the catalog requires, and
    /// returns once they are durable (see [`crate::Durability`]).
    ///
    /// A caller that stops waiting does not undo the write. A write that was under way when the
    /// disk failed is answered with [`StorageError::ReadOnly`] and is not applied, unless the disk
    /// also refuses to take it back and the process is killed.
    pub async fn write(&self, write: Write) -> Result<WriteOutcome, StorageError> {
        self.write_at(write, None).await
    }

    /// As [`Storage::write`], by the present that a client sent, in seconds since the epoch: values
    /// with a time to live expire by it, and conditions see what is alive by it.
    pub async fn write_at(
        &self,
        write: Write,
        told_s: Option<i64>,
    ) -> Result<WriteOutcome, StorageError> {
        self.carry_out(write, told_s, None).await
    }

    /// As [`Storage::write_at`], with a limit of the time until the committer begins. A write that
    /// has not begun by then fails with [`StorageError::Late`] and is not carried out. One that has
    /// begun is answered when it is done.
    ///
    /// Needs a runtime with a timer.
    pub async fn write_within(
        &self,
        limit: Duration,
        write: Write,
        told_s: Option<i64>,
    ) -> Result<WriteOutcome, StorageError> {
        let beginning = Beginning::default();
        // In an allocation of its own, as requests with such writes hold it for long.
        let mut carried_out = Box::pin(self.carry_out(write, told_s, Some(beginning.clone())));
        match tokio::time::timeout(limit, &mut carried_out).await {
            Ok(outcome) => outcome,
            Err(_) if beginning.give_up() => Err(StorageError::Late),
            Err(_) => carried_out.await,
        }
    }

    async fn carry_out(
        &self,
        write: Write,
        told_s: Option<i64>,
        beginning: Option<Beginning>,
    ) -> Result<WriteOutcome, StorageError> {
        let bytes = write.size();
        let max = self.inner.max_write_bytes;
        if bytes > max {
            return Err(StorageError::Invalid(format!(
                "the write carries {bytes} bytes of keys and values, more than the maximum of {max}"
            )));
        }
        self.inner.shared.check_writable()?;
        self.let_readers_follow(&write).await;
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
            told_s,
            beginning,
            reply,
            permit,
        };
        self.ask(Request::Write { write, bytes }).await?;
        answer.await.unwrap_or(Err(StorageError::Closed))
    }

    /// Waits while readers have the writers of a log slowed that the write adds to, for a second at
    /// most.
    async fn let_readers_follow(&self, write: &Write) {
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
    pub fn view(&self, table: TableId) -> Result<View, StorageError> {
        self.view_at(table, None)
    }

    /// As [`Storage::view`], by the present that a client sent, in seconds since the epoch. What
    /// has died before the present of this machine may be removed already.
    pub fn view_at(&self, table: TableId, told_s: Option<i64>) -> Result<View, StorageError> {
        let shared = &self.inner.shared;
        let hold = shared.horizon.hold();
        let table = Arc::clone(shared.schema().table(table)?);
        Ok(View::new(ReadContext {
            snapshot: shared.engine.snapshot()?,
            engine: Arc::clone(&shared.engine),
            lease: Arc::clone(&table.lease),
            table,
            now_s: told_s.unwrap_or_else(|| hold.start_s()),
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
            self.ask(Request::Keep {
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
    pub(crate) async fn mend(&self, mending: Mending) -> Result<Mended, StorageError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Mend { mending, reply }).await?;
        answer.await.unwrap_or(Err(StorageError::Closed))
    }

    /// Drops all rows of a table. Its CDC log stays as it is. Sets
    /// [`schema::Table::truncated_at_ms`] and gives the catalog a new version.
    pub async fn truncate(&self, table: TableId) -> Result<(), StorageError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Truncate { table, reply }).await?;
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
    pub fn scrub(&self, pass: Pass<'_>) -> Result<Scrubbed, StorageError> {
        match self.inner.shared.engine.directory() {
            Some(directory) => scrub::check(directory, true, pass),
            None => Ok(Scrubbed::default()),
        }
    }

    /// Returns whether writes are taken, which is checked every second and at every write.
    pub fn health(&self) -> Health {
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
            clock_lead_micros: self.inner.shared.clock.lead_micros(),
            replayed_bytes: engine.replayed_bytes(),
        }
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
        self.ask(Request::Close { reply }).await?;
        let closed = answer.await.unwrap_or(Err(StorageError::Closed));
        self.inner.join();
        closed
    }

    /// The shared state of the storage, for tests that damage it.
    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    async fn ask(&self, request: Request) -> Result<(), StorageError> {
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
pub(crate) fn committer_by_hand(
    directory: &Path,
    options: &StorageOptions,
    clock: Arc<dyn Clock>,
) -> Result<Committer, StorageError> {
    Unstarted::open_directory(directory, options, clock).map(|(_, committer)| committer)
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
fn remove_orphans(engine: &Engine, schema: &Schema) -> Result<(), StorageError> {
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
