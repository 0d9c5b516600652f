//! The task that owns the rows of an index. It puts the results of reads in order and changes the
//! index.
//!
//! Two channels lead to the task: one from the scan, one from the re-reads of rows that the log
//! names. Re-reads go first, so that an index that is being built follows the table closely. After
//! each of their messages the scan has a turn, or heavy writing would keep an index from ever being
//! complete. [`crate::items`] explains why the order of arrival doesn't matter.
//!
//! A change is [fresh](drain) at first: searches see it as soon as it was observed, and the graph
//! takes it in later. When the fresh changes take as many bytes as they may, the task takes in no
//! more messages, and so holds up all that lead to it. From half of that on it has the writers of
//! the table slowed, if it can, so that it does not come to that: a search waits for the messages
//! that lead to the writes before it. It also waits while an index on texts has many that are in no
//! segment yet, until some have been written.
//!
//! The task looks at its rows a second after a change, and when a row expires. While nothing can
//! change by itself the task has no timer.

mod drain;
mod memory_gate;
mod room;
mod saving;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use drain::{AppliedBlocks, ChangeDrain};
use memory_gate::MemoryGate;
use room::CapacityStatus;
use store_api::types::IndexState;
use tokio::sync::mpsc::Permit;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::compute::{CpuExecutor, ServiceStopping};
use crate::counters::CountedEvent;
use crate::indexes::{IndexHandle, RefusedChange, RetiredIds};
use crate::items::{
    ChangeKind, InFlightRead, IndexedRows, ReadSequencer, RowObservation, RowState, StructureChange,
};
use crate::keys::{PartitionKey, PrimaryKey};
use crate::memory::ProcessMemory;
use crate::message::{ChangeHint, HintMessage, HintTarget, IndexMessage, RowBatch};
use crate::observed::{ReadCell, UnindexableValue};
use crate::present::TimeSource;
use crate::snapshot::SaveRequest;

/// The time from a change to the next look at the rows, and the interval of looks while there is
/// something to do.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// The longest time between two looks while a row is to expire, as the clock may be set forward
/// meanwhile.
const LOOK_FOR_EXPIRY_WITHIN: Duration = Duration::from_secs(60);

/// The number of rows of a kind that are named to the re-reader at a time, if it has room.
const NAMED_MAX: usize = 1024;

/// The number of ids that are checked at a time for rows that the scan has not found.
const UNSEEN_AT_A_TIME: usize = 4096;

/// The number of observations that are taken in while searches wait for keys.
const OBSERVED_AT_A_TIME: usize = 64;

/// The number of rows whose unusable vector is logged. Beyond that they are only counted.
const LOGGED_MAX: usize = 1000;

/// The rows of one index, with the state of the task that owns them.
pub(crate) struct IndexWriter {
    present: TimeSource,
    index: Arc<IndexHandle>,
    drain: ChangeDrain,
    fresh_bytes_max: usize,
    /// Slows the writers of the table while it is held.
    slowed: Option<Box<dyn Send>>,
    sequencer: Arc<ReadSequencer>,
    hints: mpsc::Sender<HintMessage>,
    items: IndexedRows,
    retired: RetiredIds,
    /// Rows that have to be read again, for which the re-reader has had no room yet.
    due: Vec<PrimaryKey>,
    /// Rows that had expired when a snapshot was opened. They are named last, as no search finds
    /// them.
    expired_before: Vec<PrimaryKey>,
    /// The number of a read from before the scan, if rows that the scan doesn't find have to be
    /// removed.
    reconciling: Option<Arc<InFlightRead>>,
    gate: MemoryGate,
    room: CapacityStatus,
    logged: HashSet<u64>,
    hasher: RandomState,
}

impl IndexWriter {
    /// Makes the task without rows. `present` is the clock for expiry. `hints` takes the rows that
    /// have to be read again. Fresh changes take about `fresh_bytes_max` bytes at most, and fewer
    /// if `memory` has less room for them.
    pub(crate) fn new(
        present: TimeSource,
        index: Arc<IndexHandle>,
        compute: CpuExecutor,
        sequencer: Arc<ReadSequencer>,
        hints: mpsc::Sender<HintMessage>,
        memory: Arc<ProcessMemory>,
        fresh_bytes_max: usize,
    ) -> IndexWriter {
        IndexWriter {
            present,
            items: IndexedRows::new(index.identity.keys.clone()),
            drain: ChangeDrain::new(index.clone(), compute, memory.clone()),
            index,
            fresh_bytes_max,
            slowed: None,
            sequencer,
            hints,
            retired: RetiredIds::default(),
            due: Vec::new(),
            expired_before: Vec::new(),
            reconciling: None,
            gate: MemoryGate::new(memory),
            room: CapacityStatus::default(),
            logged: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Goes on with the rows of a snapshot. `expired` are rows that are not among them and have to
    /// be read. With `to_reconcile`, rows that the coming scan does not find are removed.
    pub(crate) fn reopened(
        self,
        items: IndexedRows,
        expired: Vec<PrimaryKey>,
        to_reconcile: bool,
    ) -> IndexWriter {
        self.index.set_without_room(items.waiting());
        IndexWriter {
            items,
            expired_before: expired,
            reconciling: to_reconcile.then(|| self.sequencer.issue()),
            ..self
        }
    }

    /// Takes in messages until the table's re-reader has ended. Answers `scanned` when the scan has
    /// ended and each of its rows has been taken in or found no room. So an index that is too large
    /// serves what it holds, and keeps nothing else from serving.
    pub(crate) async fn run(
        mut self,
        mut rereads: mpsc::Receiver<IndexMessage>,
        mut scan: mpsc::Receiver<RowBatch>,
        mut saves: mpsc::Receiver<SaveRequest>,
        scanned: oneshot::Sender<()>,
    ) -> Result<(), ServiceStopping> {
        let mut scanned = Some(scanned);
        let mut scan_ended = false;
        let mut looks = CheckTimer::default();
        looks.within(LOOK_AFTER);
        // Copies, as the futures of the loop borrow them while `self` is changed.
        let hints = self.hints.clone();
        let index = self.index.clone();
        // The wait continues from turn to turn. Begun again, it would lose its place among all that
        // wait for room, and never end.
        let room = hints.reserve();
        tokio::pin!(room);
        loop {
            tokio::select! {
                // Short work comes first: messages keep coming, and would hold it up.
                biased;
                () = looks.due() => {
                    self.check_rows();
                    looks.next = self.next_check();
                    continue;
                }
                () = index.doubts.wait_for_request() => {
                    self.check_rows();
                    continue;
                }
                Some(request) = saves.recv() => {
                    self.serve_save(request);
                    continue;
                }
                permit = &mut room, if self.has_due() => {
                    let Ok(permit) = permit else {
                        return Ok(());
                    };
                    self.send_due_hints(permit, &hints);
                    room.set(hints.reserve());
                }
                Some(piece) = self.drain.next() => {
                    self.settle(piece?);
                    // Nothing has changed for searches.
                    continue;
                }
                () = index.tending.advanced(), if self.waits_for_maintenance() => continue,
                message = rereads.recv(), if self.has_room() => {
                    let Some(message) = message else {
                        return Ok(());
                    };
                    self.take_in_reread(message);
                    match scan.try_recv() {
                        Ok(batch) => self.take_in(batch),
                        // While re-reads keep coming, nothing else notices the end of the scan.
                        Err(TryRecvError::Disconnected) => scan_ended = true,
                        Err(TryRecvError::Empty) => {}
                    }
                }
                batch = scan.recv(), if !scan_ended && self.has_room() => match batch {
                    Some(batch) => self.take_in(batch),
                    None => scan_ended = true,
                },
            }
            looks.within(LOOK_AFTER);
            if !self.room.is_there {
                // Most of what is fresh will have no room. Until that is known, it must not be
                // reported as taken in.
                self.drain_all().await?;
            }
            if scan_ended && let Some(scanned) = scanned.take() {
                self.end_reconciling();
                self.drain_all().await?;
                // The receiver may have been dropped.
                let _ = scanned.send(());
            }
        }
    }

    fn take_in_reread(&mut self, message: IndexMessage) {
        match message {
            IndexMessage::Rows(batch) => self.take_in(batch),
            IndexMessage::PartitionEnd { issue, partition } => self.end_partition(issue, partition),
            IndexMessage::Known { keys, answer } => {
                let table = self.index.content.keys();
                let known = keys.iter().map(|key| self.items.known(&table, key));
                let known = known.collect();
                // The requester may have stopped waiting.
                let _ = answer.send((known, self.items.hashing().clone()));
            }
            IndexMessage::Marker(answer) => {
                // The requester may have stopped waiting.
                let _ = answer.send(());
            }
            IndexMessage::Position(position) => self.index.freshness.reached(position),
        }
    }

    fn take_in(&mut self, batch: RowBatch) {
        let RowBatch {
            issue,
            rows,
            noticed_us,
        } = batch;
        let metrics = &self.index.metrics;
        metrics.counters.count(CountedEvent::RowRead, rows.len());
        let observations: Vec<RowObservation> = rows
            .into_iter()
            .map(|(key, cell)| {
                let state = self.state(&key, cell);
                RowObservation { key, state }
            })
            .collect();
        self.observe(issue.sequence(), observations);
        self.index.doubts.notify_taken_in();
        drop(issue);
        self.items.forget(self.sequencer.oldest_in_flight());
        let now_us = self.present.now_us();
        for noticed_us in noticed_us {
            let lag_us = now_us.saturating_sub(noticed_us).max(0);
            self.index.metrics.lag.observe(lag_us as f64 / 1e6);
        }
    }

    /// Makes the changes of a read's observations. Searches wait for keys meanwhile, some at a
    /// time.
    fn observe(&mut self, sequence: u64, observations: Vec<RowObservation>) {
        let index = self.index.clone();
        let mut observations = observations.into_iter();
        while observations.len() > 0 {
            index.content.keys().make_room(OBSERVED_AT_A_TIME);
            let mut keys = index.content.keys_mut();
            let some = observations.by_ref().take(OBSERVED_AT_A_TIME);
            let changes = some.filter_map(|some| self.items.observe(&mut keys, sequence, some));
            let changes = changes.collect();
            drop(keys);
            self.apply(changes);
            // Rows that have found room are found by now.
            self.show_waiting();
        }
    }

    fn end_partition(&mut self, issue: Arc<InFlightRead>, partition: PartitionKey) {
        let mut changes = Vec::new();
        let ids = self.index.content.keys().partition(partition.as_bytes());
        // The lock is taken for some ids at a time, so that searches come in between.
        for some in ids.chunks(OBSERVED_AT_A_TIME) {
            let mut keys = self.index.content.keys_mut();
            self.items
                .end_rows(&mut keys, issue.sequence(), some, &mut changes);
        }
        self.items.end_partition(issue.sequence(), partition);
        self.apply(changes);
        drop(issue);
        self.items.forget(self.sequencer.oldest_in_flight());
    }

    /// Removes the rows of a snapshot that neither the scan nor the log has shown.
    fn end_reconciling(&mut self) {
        let Some(issue) = self.reconciling.take() else {
            return;
        };
        let before = self.index.content.len();
        let mut from = Some(0);
        while let Some(next) = from {
            let mut changes = Vec::new();
            from = self.items.remove_unseen(
                &mut self.index.content.keys_mut(),
                issue.sequence(),
                next,
                UNSEEN_AT_A_TIME,
                &mut changes,
            );
            self.apply(changes);
        }
        drop(issue);
        self.items.forget(self.sequencer.oldest_in_flight());
        let removed = before.saturating_sub(self.index.content.len());
        tracing::info!(index = %self.index.identity.name, removed, "reconciled with the table");
    }

    /// Makes the changes. When this returns, searches find them.
    fn apply(&mut self, changes: Vec<StructureChange>) {
        if changes.is_empty() {
            return;
        }
        let (mut updated, mut removed) = (0, 0);
        for change in &changes {
            match change {
                StructureChange::Insert { .. } => {}
                StructureChange::Replace { .. } => updated += 1,
                StructureChange::Remove { .. } => removed += 1,
            }
        }
        let metrics = &self.index.metrics;
        metrics.updated.inc_by(updated);
        metrics.removed.inc_by(removed);
        let (changes, held_back) = self.gate.sift(changes);
        self.gate.gone(removed);
        for refused in &held_back {
            self.take_back(refused);
        }
        let never_in = held_back.iter().map(|refused| refused.id);
        self.retire(never_in.collect());
        for refused in self.drain.put(changes) {
            self.take_back(&refused);
        }
        self.slow_writers();
    }

    /// Notes what the graph has taken in.
    fn settle(&mut self, piece: AppliedBlocks) {
        self.index.tending.wake();
        if self.index.content.should_be_tended_soon() {
            self.index.tending.hurry();
        }
        // While searches still find these rows: a search that looks at the number first learns of
        // each row that it may lack.
        self.index.add_without_room(piece.without_room());
        let settled = self.drain.settle(piece);
        for refused in &settled.refused {
            if refused.operation == ChangeKind::Replace {
                self.index.metrics.removed.inc();
                self.gate.gone(1);
            }
            self.take_back(refused);
        }
        // A row that changes takes no more room than before, so it proves nothing.
        if settled.inserted > 0 && !settled.refused.iter().any(RefusedChange::for_want_of_room) {
            self.room.is_there = true;
        }
        self.index.metrics.inserted.inc_by(settled.inserted);
        self.retire(settled.gone);
        self.show_waiting();
        self.slow_writers();
    }

    /// Waits until nothing is fresh any more, and takes in nothing meanwhile.
    async fn drain_all(&mut self) -> Result<(), ServiceStopping> {
        while let Some(piece) = self.drain.next().await {
            self.settle(piece?);
        }
        Ok(())
    }

    /// Lets ids be used again once no search can meet them any more.
    fn retire(&mut self, ids: Vec<u32>) {
        self.retired.retire(&self.index.content, ids);
        self.items.reuse(self.retired.free());
    }

    /// Whether there is room for more fresh changes.
    fn has_room(&self) -> bool {
        !self.drain.charge().is_full(self.fresh_bytes_max) && !self.waits_for_maintenance()
    }

    /// Whether the structure has to be tended before it takes in more.
    fn waits_for_maintenance(&self) -> bool {
        self.index.content.is_full_of_changes() && self.index.tending.is_under_way()
    }

    /// Slows the writers of the table while half of the room for fresh changes is taken. An index
    /// that is being built has no searches, and slows no writers.
    fn slow_writers(&mut self) {
        let is_tight = self.drain.charge().is_half_full(self.fresh_bytes_max)
            && self.index.state() == IndexState::Serving;
        self.slowed = match (is_tight, self.slowed.take()) {
            (false, _) => None,
            (true, None) => self.index.freshness.slow_writers(),
            (true, slowed) => slowed,
        };
    }

    /// Takes a refused change back.
    fn take_back(&mut self, refused: &RefusedChange) {
        let index = &self.index;
        let name = &index.identity.name;
        if refused.for_want_of_room() {
            self.items
                .without_room(&mut index.content.keys_mut(), refused.id);
            self.room.is_there = false;
            if self.room.should_log_shortage(Instant::now()) {
                tracing::error!(
                    index = %name,
                    error = %refused.error,
                    "the index has no room for some rows; they are tried again until it has"
                );
            }
            return;
        }
        tracing::error!(index = %name, error = %refused.error, "the index refused a row");
        if refused.operation != ChangeKind::Remove {
            self.items.lost(&mut index.content.keys_mut(), refused.id);
        }
    }

    /// The meaning of a cell for the index.
    fn state(&mut self, key: &PrimaryKey, cell: ReadCell) -> RowState {
        match cell {
            ReadCell::Null => RowState::Absent,
            ReadCell::Value(cell) => RowState::Present(cell),
            ReadCell::Unusable(why) => {
                self.index.metrics.rejected.inc();
                self.log_unusable(key, why);
                RowState::Absent
            }
        }
    }

    fn log_unusable(&mut self, key: &PrimaryKey, why: UnindexableValue) {
        if self.logged.len() < LOGGED_MAX && self.logged.insert(self.hasher.hash_one(key)) {
            tracing::warn!(
                index = %self.index.identity.name,
                key = self.index.identity.keys.show(key),
                %why,
                "a row is not indexed"
            );
        }
    }

    /// Looks for rows that have expired and for rows that wait for room, and updates the metrics.
    fn check_rows(&mut self) {
        if self.due.is_empty() {
            self.due = self.expired();
            // While there was no room, one row is enough to find out whether there is now.
            let tries = if self.room.is_there { NAMED_MAX } else { 1 };
            self.due.extend(self.items.some_waiting(tries));
        }
        self.index.set_items_bytes(self.items.memory_bytes());
        let regressions = self.items.take_regressions();
        self.index.metrics.regressions.inc_by(regressions);
        self.show_waiting();
        if self.items.waiting() == 0 && self.room.should_log_recovery() {
            tracing::info!(index = %self.index.identity.name, "all rows have found room in the index");
        }
    }

    /// The time of the next look; `None` if nothing can change by itself, so that an idle index
    /// wakes no thread.
    fn next_check(&self) -> Option<Instant> {
        let within = match (
            self.has_due() || self.items.waiting() > 0,
            self.items.next_expiry_s(),
        ) {
            (true, _) => LOOK_AFTER,
            (false, Some(expires_s)) => {
                let left_s = expires_s.saturating_sub(self.present.now_s());
                Duration::from_secs(left_s.into()).clamp(LOOK_AFTER, LOOK_FOR_EXPIRY_WITHIN)
            }
            (false, None) => return None,
        };
        Some(Instant::now() + within)
    }

    fn expired(&mut self) -> Vec<PrimaryKey> {
        let keys = self.index.content.keys();
        self.items.expired(&keys, self.present.now_s(), NAMED_MAX)
    }

    fn has_due(&self) -> bool {
        !self.due.is_empty() || !self.expired_before.is_empty()
    }

    /// Names rows that are due: one with `permit`, and as many more as the re-reader has room for
    /// now. It never waits for room, as the re-reader may be waiting for room on its way to this
    /// task.
    fn send_due_hints(
        &mut self,
        permit: Permit<'_, HintMessage>,
        hints: &mpsc::Sender<HintMessage>,
    ) {
        let mut named = 0;
        let mut room = Some(permit);
        while let Some(permit) = room.take() {
            if self.due.is_empty() {
                self.due = self.expired();
            }
            let Some(key) = self.due.pop().or_else(|| self.expired_before.pop()) else {
                return;
            };
            permit.send(HintMessage::Hint(ChangeHint {
                target: HintTarget::Row(key),
                noticed_us: None,
            }));
            named += 1;
            // The limit lets others have their turn.
            if named < NAMED_MAX {
                room = hints.try_reserve().ok();
            }
        }
    }

    fn show_waiting(&self) {
        self.index.set_without_room(self.items.waiting());
    }
}

/// The time of the next look at the rows.
#[derive(Default)]
struct CheckTimer {
    next: Option<Instant>,
}

impl CheckTimer {
    /// Sets the next look to that time from now, if it isn't earlier already.
    fn within(&mut self, within: Duration) {
        let latest = Instant::now() + within;
        self.next = Some(self.next.map_or(latest, |next| next.min(latest)));
    }

    /// Waits for the time of the next look.
    async fn due(&self) {
        match self.next {
            Some(next) => tokio::time::sleep_until(next).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests;
