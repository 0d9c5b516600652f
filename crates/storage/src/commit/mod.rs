//! The committer is the one thread that writes.
//!
//! It takes requests in the order of their arrival, merges writes that follow each other into one
//! batch, syncs once and acknowledges all of them. As nothing else writes, it reads before it
//! writes without any lock. A write that is refused, as for an invalid value, leaves no trace in
//! the batch. A write that was handed over is carried out whether or not its caller still waits,
//! unless the caller gave a limit of time and it had not begun by then (`beginning`).
//!
//! A batch is prepared in a turn on the processor ([`cpu_scheduler`]), which is given back before
//! the disk is waited for.

mod adopted_types;
mod adoption;
mod apply;
mod beginning;
mod building;
mod checkpoint;
mod condition;
mod counters;
mod derived;
mod emptied;
mod expiring;
mod expiry;
#[cfg(test)]
mod fixtures;
mod lists;
mod mark;
mod overlay;
mod pending_ranges;
mod range_lookup;
mod repair;
mod resolve;
mod room;
mod schema_change;
mod skipped;
mod sweep;
mod sweeping;
mod write;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use apply::CommitTime;
use cpu_scheduler::{CpuScheduler, Permit, WorkClass};
use derived::RaisedLogTimes;
use emptied::EmptyRanges;
use expiry::RowExpirer;
use overlay::UncommittedChanges;
use room::{DeadEntryScans, ResidentGrowth};
use schema::{Catalog, TableId};
use tasks::TaskRegistry;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use crate::clock::seconds;
use crate::engine::{CheckpointDraft, EntryBatch, SpaceId, SyncTarget};
use crate::layout::ResolvedSchema;
use crate::mutation::{AtomicWrite, WriteOutcome};
use crate::shared::OpenStorage;
use crate::{Durability, StorageError, WriteAvailability, record};

pub(crate) use adopted_types::take_types_of;
pub(crate) use adoption::{
    AdoptionStep, FinishedCopy, check_names, check_source_time, keyspace_of,
};
pub(crate) use beginning::WriteClaim;
pub(crate) use building::{IndexBuild, indexes as indexes_of_builds, load as load_builds};
pub(crate) use checkpoint::LinkedCheckpoint;
pub(crate) use expiring::load as load_expiring;
pub(crate) use mark::{await_clock, load as load_mark};
pub(crate) use repair::{IndexRepairOutcome, IndexRepairRequest};
pub(crate) use schema_change::{load, renew_host, store_first};
pub(crate) use sweep::{DeletionSweep, load as load_sweeps, load_at as load_sweeps_at};

/// The most writes in one batch: more would make the first of them wait too long.
const BATCH_WRITES_MAX: usize = 1024;
/// Bytes of writes after which a batch takes no more. The last write may exceed them.
const BATCH_BYTES_MAX: usize = 8 << 20;

/// The bounds of what the committer holds in memory ([`crate::StorageOptions`]).
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    pub batch_bytes: usize,
    pub write_rows_bytes: usize,
}

/// A request to the committer.
pub(crate) enum QueuedRequest {
    Write {
        write: PendingWrite,
        bytes: usize,
    },
    Change(CatalogEdit),
    Truncate {
        table: TableId,
        reply: oneshot::Sender<Result<(), StorageError>>,
    },
    /// Raises the mark on disk to this time, which a reader is about to get: a later process must
    /// not give out an earlier one.
    RaiseMark {
        until_micros: i64,
        reply: oneshot::Sender<()>,
    },
    /// Repairs entries of a secondary index.
    Repair {
        mending: IndexRepairRequest,
        reply: oneshot::Sender<Result<IndexRepairOutcome, StorageError>>,
    },
    /// Links the files of a checkpoint.
    Checkpoint {
        draft: Box<CheckpointDraft>,
        reply: oneshot::Sender<Result<LinkedCheckpoint, StorageError>>,
    },
    /// Does a step of an adoption.
    Adopt {
        step: AdoptionStep,
        reply: oneshot::Sender<Result<(), StorageError>>,
    },
    /// Opens the engine again after a disk error.
    Reopen,
    /// Removes dropped tables that have no readers any more. That is done after each request, so
    /// this one just wakes the committer.
    DropRetired,
    /// Deletes the rows whose time has come.
    Expire,
    Close {
        reply: oneshot::Sender<Result<(), StorageError>>,
    },
}

/// A change of the schema, which edits a copy of the catalog.
pub(crate) struct CatalogEdit {
    pub edit: Box<dyn FnOnce(&mut Catalog) -> CatalogEditOutcome + Send>,
}

pub(crate) enum CatalogEditOutcome {
    /// The change was refused, and its caller was answered already.
    Refused,
    /// The copy was edited. The function is called with the result of the commit.
    Done(Box<dyn FnOnce(Result<(), StorageError>) + Send>),
}

pub(crate) struct Committer {
    shared: Arc<OpenStorage>,
    requests: mpsc::Receiver<QueuedRequest>,
    /// Spaces of dropped tables with their leases, which stay for as long as they have readers.
    retired: Vec<(SpaceId, Arc<()>)>,
    /// Deletions of partitions and ranges whose rows are still stored.
    sweeps: VecDeque<DeletionSweep>,
    /// The ranges that sweeps have emptied.
    emptied: EmptyRanges,
    /// Secondary indexes that lack entries of older rows.
    builds: Vec<IndexBuild>,
    /// The spaces of tables that are being adopted.
    adopting: HashSet<SpaceId>,
    /// The deletion of rows whose time has come.
    expiry: RowExpirer,
    /// The looks for what is dead in the tables in memory.
    looks: DeadEntryScans,
    tasks: TaskRegistry,
    cpu_scheduler: CpuScheduler,
    bounds: BatchLimits,
}

/// The work that was not done when the storage stopped.
#[derive(Default)]
pub(crate) struct UnfinishedWork {
    pub sweeps: Vec<DeletionSweep>,
    pub builds: Vec<IndexBuild>,
}

/// A write that waits for its batch.
pub(crate) struct PendingWrite {
    pub write: AtomicWrite,
    /// The present that the client sent, in seconds since the epoch.
    pub client_now_s: Option<i64>,
    /// `None` if the write is carried out whenever its turn comes.
    pub beginning: Option<WriteClaim>,
    pub reply: oneshot::Sender<Result<WriteOutcome, StorageError>>,
    /// The write's share of the bytes that may wait. Given back when the write has been answered.
    pub permit: OwnedSemaphorePermit,
}

impl PendingWrite {
    /// Begins the write. Returns whether its caller still wants it.
    fn begin(&self) -> bool {
        self.beginning.as_ref().is_none_or(WriteClaim::begin)
    }
}

impl Committer {
    pub(crate) fn new(
        shared: Arc<OpenStorage>,
        requests: mpsc::Receiver<QueuedRequest>,
        unfinished: UnfinishedWork,
        tasks: TaskRegistry,
        turns: CpuScheduler,
        bounds: BatchLimits,
    ) -> Committer {
        Committer {
            shared,
            requests,
            retired: Vec::new(),
            sweeps: unfinished.sweeps.into(),
            emptied: EmptyRanges::default(),
            builds: unfinished.builds,
            adopting: HashSet::new(),
            expiry: RowExpirer::default(),
            looks: DeadEntryScans::default(),
            tasks,
            cpu_scheduler: turns,
            bounds,
        }
    }

    /// Carries out requests until the storage is closed or no sender is left.
    pub(crate) async fn run(mut self) {
        let mut next = None;
        loop {
            let request = match next.take() {
                Some(request) => request,
                None => match self.receive().await {
                    Some(request) => request,
                    None => break,
                },
            };
            match request {
                QueuedRequest::Write {
                    write: first,
                    bytes,
                } => {
                    let turn = self.cpu_scheduler.acquire(WorkClass::Write).await;
                    // Those that came while it waited are in the batch, too.
                    let (writes, behind) = self.collect(first, bytes);
                    next = behind;
                    self.commit(writes, turn).await;
                }
                QueuedRequest::Change(change) => self.change(change),
                QueuedRequest::Truncate { table, reply } => {
                    let _ = reply.send(self.truncate(table));
                }
                QueuedRequest::RaiseMark {
                    until_micros,
                    reply,
                } => {
                    self.keep(until_micros);
                    let _ = reply.send(());
                }
                QueuedRequest::Repair { mending, reply } => {
                    let _ = reply.send(self.repair(&mending));
                }
                QueuedRequest::Checkpoint { draft, reply } => {
                    let _ = reply.send(self.link_checkpoint(draft));
                }
                QueuedRequest::Adopt { step, reply } => {
                    let _ = reply.send(self.adopt(step));
                }
                QueuedRequest::Reopen => self.reopen(),
                QueuedRequest::DropRetired => {}
                QueuedRequest::Expire => self.begin_expiry(),
                QueuedRequest::Close { reply } => {
                    self.requests.close();
                    // Requests that were sent before are carried out. Later ones find the channel
                    // closed.
                    self.drain().await;
                    let _ = reply.send(self.finish());
                    return;
                }
            }
            // Done here too, as under a steady load the committer never waits for a request.
            self.drop_retired();
            self.work().await;
        }
        if let Err(error) = self.finish() {
            tracing::error!(%error, "the storage could not be synced when it was closed");
        }
    }

    /// Waits for a request, and cleans up while there is none.
    async fn receive(&mut self) -> Option<QueuedRequest> {
        loop {
            match self.requests.try_recv() {
                Ok(request) => return Some(request),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            let has_worked = self.work().await;
            if !has_worked && !self.drop_retired() {
                return self.requests.recv().await;
            }
        }
    }

    /// Does a step of each kind of work that goes on between requests, so that none of them waits
    /// for the end of another. Returns whether there may be more to do.
    async fn work(&mut self) -> bool {
        let has_swept = self.sweep();
        let has_built = self.build();
        let has_looked = self.step_dead_entry_scan();
        let has_expired = self.expire().await;
        has_swept || has_built || has_looked || has_expired
    }

    async fn drain(&mut self) {
        while let Some(request) = self.requests.recv().await {
            match request {
                QueuedRequest::Write { write, .. } => {
                    let turn = self.cpu_scheduler.acquire(WorkClass::Write).await;
                    self.commit(vec![write], turn).await;
                }
                QueuedRequest::Change(change) => self.change(change),
                QueuedRequest::Truncate { table, reply } => {
                    let _ = reply.send(self.truncate(table));
                }
                QueuedRequest::RaiseMark {
                    until_micros,
                    reply,
                } => {
                    self.keep(until_micros);
                    let _ = reply.send(());
                }
                QueuedRequest::Reopen => self.reopen(),
                // The caller finds the storage closed.
                QueuedRequest::Repair { .. }
                | QueuedRequest::Checkpoint { .. }
                | QueuedRequest::Adopt { .. }
                | QueuedRequest::DropRetired
                | QueuedRequest::Expire => {}
                QueuedRequest::Close { reply } => {
                    let _ = reply.send(self.shared.engine.sync());
                }
            }
        }
    }

    /// Opens the engine again after a disk error. Only acknowledged writes are there afterwards.
    fn reopen(&mut self) {
        if self.shared.health() == WriteAvailability::Writable {
            return;
        }
        self.adopting.clear();
        let reopened = self
            .shared
            .engine
            .reopen()
            .and_then(|()| self.reload_mark())
            .and_then(|()| load(&self.shared.engine, self.shared.clock.now_micros()))
            .and_then(|loaded| {
                let engine = &self.shared.engine;
                Ok((loaded, load_builds(engine)?, load_sweeps(engine)?))
            });
        match reopened {
            Ok((Some((catalog, generations)), builds, sweeps)) => {
                let old = self.shared.schema();
                let building = building::indexes(&builds);
                let new = ResolvedSchema::new(Arc::new(catalog), generations, building, Some(&old));
                let now_micros = self.shared.clock.now_micros();
                // A reopened engine has no space in memory. Without them writes stay refused, and
                // the next attempt reads them again.
                let held = (self.shared.engine).hold(&new.resident_spaces(), now_micros);
                if let Err(error) = held {
                    tracing::warn!(%error, "the tables in memory could not be read again yet");
                    return;
                }
                self.builds.clear();
                self.take_builds(&new, builds);
                // Steps that were not synced may be lost.
                self.sweeps = sweeps.into();
                self.emptied.clear();
                self.count_sweeps();
                self.expiry.reset();
                self.looks = DeadEntryScans::default();
                self.shared.set_schema(new);
                self.shared.clear_failure();
                // Readers may have got later times while the disk took no writes.
                self.keep(self.given_micros());
                tracing::info!("the disk takes writes again");
            }
            Ok((None, _, _)) => tracing::error!("the storage was opened again without its schema"),
            Err(error) => tracing::warn!(%error, "the storage could not be opened again yet"),
        }
    }

    fn finish(&mut self) -> Result<(), StorageError> {
        while self.drop_retired() {}
        self.write_last_mark();
        let synced = self.shared.engine.sync();
        self.shared.engine.close();
        synced
    }

    /// Collects the writes that wait in the queue after the first. The second value is the request
    /// after them, if it was taken and is no write.
    fn collect(
        &mut self,
        first: PendingWrite,
        first_bytes: usize,
    ) -> (Vec<PendingWrite>, Option<QueuedRequest>) {
        let mut writes = vec![first];
        let mut total = first_bytes;
        while writes.len() < BATCH_WRITES_MAX && total < BATCH_BYTES_MAX {
            match self.requests.try_recv() {
                Ok(QueuedRequest::Write { write, bytes }) => {
                    total += bytes;
                    writes.push(write);
                }
                Ok(other) => return (writes, Some(other)),
                Err(_) => break,
            }
        }
        (writes, None)
    }

    fn moment(&self) -> CommitTime {
        let now_micros = self.shared.clock.now_micros();
        CommitTime {
            now_micros,
            now_s: seconds(now_micros),
            client_now_s: seconds(now_micros),
        }
    }

    /// Commits writes, in several batches if they take along many bytes of rows.
    async fn commit(&mut self, writes: Vec<PendingWrite>, turn: Permit) {
        let mut rest = VecDeque::from(writes);
        self.commit_batch(&mut rest, turn).await;
        while !rest.is_empty() {
            let turn = self.cpu_scheduler.acquire(WorkClass::Write).await;
            self.commit_batch(&mut rest, turn).await;
        }
    }

    /// Commits the first of these writes, and takes them out.
    async fn commit_batch(&mut self, writes: &mut VecDeque<PendingWrite>, turn: Permit) {
        let started = Instant::now();
        if let Err(error) = self.shared.check_writable() {
            for pending in writes.drain(..) {
                let _ = pending.reply.send(Err(error.clone()));
            }
            return;
        }
        let shared = Arc::clone(&self.shared);
        // Before a log row gets its time: a reader that settles the log waits for the batches that
        // have begun.
        let in_flight = shared.gate.begin();
        let moment = self.moment();
        let schema = self.shared.schema();
        let mut changes = UncommittedChanges::default();
        let mut derived_rows = EntryBatch::new();
        let mut grown = Vec::new();
        let mut waiting = Vec::with_capacity(writes.len());
        // Bytes of rows that refused writes show, and of log rows.
        let mut held = 0;
        let mut growth = ResidentGrowth::default();
        while held + changes.bytes() < self.bounds.batch_bytes
            && let Some(pending) = writes.pop_front()
        {
            // Its caller has stopped waiting, and counts on it that nothing is written.
            if !pending.begin() {
                continue;
            }
            let PendingWrite {
                write,
                client_now_s,
                reply,
                permit,
                ..
            } = pending;
            match self.prepare(
                &schema,
                &changes,
                write,
                moment.with_client_now(client_now_s),
                &mut growth,
            ) {
                Ok(prepared) => {
                    held += prepared.held + prepared.derived.bytes();
                    changes.absorb(prepared.changes);
                    derived_rows.extend(prepared.derived.batch);
                    grown.extend(prepared.derived.grown);
                    waiting.push((reply, prepared.outcome, permit));
                }
                Err(error) => {
                    let _ = reply.send(Err(error));
                }
            }
        }
        let statistics = &self.shared.statistics;
        let taken = (held + changes.bytes()) as u64;
        (statistics.batch_bytes_peak).fetch_max(taken, Ordering::Relaxed);
        let result = self
            .commit_derived(changes, derived_rows, grown, turn)
            .await;
        drop(in_flight);
        if let Err(error) = &result {
            self.shared.note_write_failure(error);
        }
        self.count_batch(waiting.len(), started);
        for (reply, outcome, _permit) in waiting {
            let _ = reply.send(match &result {
                Ok(()) => Ok(outcome),
                Err(error) => Err(self.shared.explain(error)),
            });
        }
    }

    /// Adds a batch of this many writes to the statistics.
    fn count_batch(&self, writes: usize, started: Instant) {
        let statistics = &self.shared.statistics;
        let micros = started.elapsed().as_micros() as u64;
        let elements = record::work::take();
        (statistics.elements_worked_on).fetch_add(elements, Ordering::Relaxed);
        statistics.batches.fetch_add(1, Ordering::Relaxed);
        statistics
            .writes
            .fetch_add(writes as u64, Ordering::Relaxed);
        statistics
            .commit_micros
            .fetch_add(micros, Ordering::Relaxed);
    }

    /// Prepares a write after those of the batch, if the tables in memory have room for it.
    fn prepare(
        &mut self,
        schema: &ResolvedSchema,
        batch: &UncommittedChanges,
        write: AtomicWrite,
        moment: CommitTime,
        growth: &mut ResidentGrowth,
    ) -> Result<write::AppliedWrite, StorageError> {
        let (engine, gate) = (&self.shared.engine, &self.shared.gate);
        let is_deletion = !write.adds_cells();
        let rows_bytes = self.bounds.write_rows_bytes;
        let prepared = write::prepare(engine, schema, gate, batch, write, moment, rows_bytes)?;
        self.admit(schema, batch, &prepared.changes, growth, is_deletion)?;
        Ok(prepared)
    }

    /// Commits changes with the log rows among their derived rows.
    async fn commit_derived(
        &mut self,
        changes: UncommittedChanges,
        derived_rows: EntryBatch,
        grown: RaisedLogTimes,
        turn: Permit,
    ) -> Result<(), StorageError> {
        let result = self.commit_changes(changes, derived_rows, turn).await;
        if result.is_ok() {
            // Noted before a reader of the logs sees the rows, and before their writers are
            // answered.
            for (log, micros) in grown {
                log.acknowledge(micros);
            }
        }
        result
    }

    async fn commit_changes(
        &mut self,
        mut changes: UncommittedChanges,
        derived_rows: EntryBatch,
        turn: Permit,
    ) -> Result<(), StorageError> {
        let expiring: Vec<TableId> = std::mem::take(&mut changes.expiring)
            .into_iter()
            .filter(|table| !self.shared.forgetting.is_expiring(*table))
            .collect();
        let sweeps = std::mem::take(&mut changes.sweeps);
        let times = std::mem::take(&mut changes.times);
        if !self.emptied.is_empty() {
            let schema = self.shared.schema();
            self.emptied
                .note_written(&schema, changes.changed_records());
        }
        let mut batch = changes.into_batch()?;
        batch.extend(sweeps.iter().map(DeletionSweep::entry));
        batch.extend(expiring.iter().map(|table| expiring::entry(*table)));
        batch.extend(derived_rows);
        // A write that changes nothing is acknowledged with a time, too, which has to stay in the
        // past.
        let mark = self.carry_mark(&mut batch);
        if batch.is_empty() {
            return Ok(());
        }
        let now_micros = self.shared.clock.now_micros();
        let (engine, sync) = (&self.shared.engine, self.sync());
        // The wait for the disk needs no processor.
        drop(turn);
        engine.commit_writes(batch, sync, now_micros).await?;
        self.carried(mark);
        if !expiring.is_empty() {
            self.shared.forgetting.set_expiring(expiring);
        }
        self.sweeps.extend(sweeps);
        self.count_sweeps();
        self.expiry.note_written(times);
        Ok(())
    }

    fn sync(&self) -> SyncTarget {
        match self.shared.durability {
            Durability::Synced => SyncTarget::Disk,
            Durability::Buffered { .. } => SyncTarget::Kernel,
        }
    }
}
