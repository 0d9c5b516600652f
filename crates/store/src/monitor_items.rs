//! The task that owns the rows of an index: it orders what arrives and changes the index.
//!
//! Two channels lead here, one from the scan and one from the re-reads of rows that the log names.
//! The latter goes first, so that an index that is being built follows the table closely, but after
//! each of its messages the scan has a turn, or heavy writing would keep an index from ever being
//! complete. See [`crate::items`] for why the order of arrival doesn't matter.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{mpsc, oneshot};

use crate::compute::{Compute, Stopped};
use crate::engine::IndexHandle;
use crate::index_actor::Retired;
use crate::items::{Change, Issue, Items, Observation, RowState, Sequencer};
use crate::keys::{PartitionKey, PrimaryKey};
use crate::reread::{Hint, HintMessage, HintTarget};
use crate::rows::{ReadCell, Unusable, now_s};

/// Messages on their way to an index; a re-read waits when there is no room.
pub const MESSAGES_MAX: usize = 4;

/// Rows that expire in one go.
const EXPIRED_MAX: usize = 1024;

/// Rows whose unusable vector has been logged; beyond that they are only counted.
const LOGGED_MAX: usize = 1000;

/// Rows of one read.
#[derive(Debug)]
pub struct RowBatch {
    /// The read, in flight until the rows have been taken in.
    pub issue: Arc<Issue>,
    /// What was found under each key.
    pub rows: Vec<(PrimaryKey, ReadCell)>,
    /// For rows that the log named: the timestamps of the log rows, microseconds since the epoch.
    pub noticed_us: Vec<i64>,
}

/// What the re-reads of a table tell an index.
#[derive(Debug)]
pub enum Message {
    /// Rows were read.
    Rows(RowBatch),
    /// All rows of a partition were read.
    PartitionEnd {
        /// The read.
        issue: Arc<Issue>,
        /// The partition.
        partition: PartitionKey,
    },
    /// Everything that was sent before is to be taken in, and then this to be answered.
    Marker(oneshot::Sender<()>),
}

/// The rows of one index.
pub struct MonitorItems {
    index: Arc<IndexHandle>,
    compute: Compute,
    sequencer: Arc<Sequencer>,
    hints: mpsc::Sender<HintMessage>,
    items: Items,
    retired: Retired,
    /// Expired rows that the re-reader had no room for.
    expired: Vec<PrimaryKey>,
    logged: HashSet<u64>,
    hasher: RandomState,
}

impl MonitorItems {
    /// No rows. `hints`: where rows go whose time has come.
    pub fn new(
        index: Arc<IndexHandle>,
        compute: Compute,
        sequencer: Arc<Sequencer>,
        hints: mpsc::Sender<HintMessage>,
    ) -> MonitorItems {
        MonitorItems {
            items: Items::new(index.identity.keys.clone()),
            index,
            compute,
            sequencer,
            hints,
            retired: Retired::default(),
            expired: Vec::new(),
            logged: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Takes in what arrives until the table's re-reader is gone. `scanned` is answered when the
    /// scan has ended and all of it has been taken in.
    pub async fn run(
        mut self,
        mut rereads: mpsc::Receiver<Message>,
        mut scan: mpsc::Receiver<RowBatch>,
        scanned: oneshot::Sender<()>,
    ) -> Result<(), Stopped> {
        let mut scanned = Some(scanned);
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => self.tick(),
                message = rereads.recv() => {
                    let Some(message) = message else {
                        return Ok(());
                    };
                    self.take_in_reread(message).await?;
                    if let Ok(batch) = scan.try_recv() {
                        self.take_in(batch).await?;
                    }
                }
                batch = scan.recv(), if scanned.is_some() => match batch {
                    Some(batch) => self.take_in(batch).await?,
                    None => {
                        if let Some(scanned) = scanned.take() {
                            let _ = scanned.send(());
                        }
                    }
                },
            }
        }
    }

    async fn take_in_reread(&mut self, message: Message) -> Result<(), Stopped> {
        match message {
            Message::Rows(batch) => self.take_in(batch).await,
            Message::PartitionEnd { issue, partition } => {
                self.end_partition(issue, partition).await
            }
            Message::Marker(answer) => {
                // Whoever asked may have gone.
                let _ = answer.send(());
                Ok(())
            }
        }
    }

    async fn take_in(&mut self, batch: RowBatch) -> Result<(), Stopped> {
        let RowBatch {
            issue,
            rows,
            noticed_us,
        } = batch;
        let observations: Vec<Observation> = rows
            .into_iter()
            .map(|(key, cell)| {
                let state = self.state(&key, cell);
                Observation { key, state }
            })
            .collect();
        let changes = self.observe(issue.sequence(), observations);
        self.apply(changes).await?;
        drop(issue);
        self.items.forget(self.sequencer.oldest_in_flight());
        let now_us = now_us();
        for noticed_us in noticed_us {
            let lag_us = now_us.saturating_sub(noticed_us).max(0);
            self.index.metrics.lag.observe(lag_us as f64 / 1e6);
        }
        Ok(())
    }

    /// What the observations of a read change. Searches wait for their keys meanwhile.
    fn observe(&mut self, sequence: u64, observations: Vec<Observation>) -> Vec<Change> {
        let index = self.index.clone();
        let mut keys = index.vectors.keys_mut();
        observations
            .into_iter()
            .filter_map(|observation| self.items.observe(&mut keys, sequence, observation))
            .collect()
    }

    async fn end_partition(
        &mut self,
        issue: Arc<Issue>,
        partition: PartitionKey,
    ) -> Result<(), Stopped> {
        let mut changes = Vec::new();
        self.items.end_partition(
            &mut self.index.vectors.keys_mut(),
            issue.sequence(),
            partition,
            &mut changes,
        );
        self.apply(changes).await?;
        drop(issue);
        self.items.forget(self.sequencer.oldest_in_flight());
        Ok(())
    }

    /// Changes the index. When this returns, searches find the changes.
    async fn apply(&mut self, changes: Vec<Change>) -> Result<(), Stopped> {
        if changes.is_empty() {
            return Ok(());
        }
        let metrics = &self.index.metrics;
        let mut removed = Vec::new();
        for change in &changes {
            match change {
                Change::Insert { .. } => metrics.inserted.inc(),
                Change::Replace { .. } => metrics.updated.inc(),
                Change::Remove { id } => {
                    metrics.removed.inc();
                    removed.push(*id);
                }
            }
        }
        let refused = self.index.vectors.apply(&self.compute, changes).await?;
        for refused in refused {
            tracing::error!(
                index = %self.index.identity.name,
                error = %refused.error,
                "the index refused a row"
            );
            if !refused.removal {
                self.items
                    .lost(&mut self.index.vectors.keys_mut(), refused.id);
                removed.push(refused.id);
            }
        }
        self.retired.retire(&self.index.vectors, removed);
        self.items.reuse(self.retired.free());
        Ok(())
    }

    /// What a cell means for the index.
    fn state(&mut self, key: &PrimaryKey, cell: ReadCell) -> RowState {
        match cell {
            ReadCell::Null => RowState::Absent,
            ReadCell::Vector(cell) => RowState::Present(cell),
            ReadCell::Unusable(why) => {
                self.index.metrics.rejected.inc();
                self.log_unusable(key, why);
                RowState::Absent
            }
        }
    }

    fn log_unusable(&mut self, key: &PrimaryKey, why: Unusable) {
        if self.logged.len() < LOGGED_MAX && self.logged.insert(self.hasher.hash_one(key)) {
            tracing::warn!(
                index = %self.index.identity.name,
                key = self.index.identity.keys.show(key),
                %why,
                "a row is not indexed"
            );
        }
    }

    /// Names the rows whose time has come, as far as there is room. To wait for room here could
    /// mean to wait for ourselves: the re-reader waits for room on its way to us.
    fn tick(&mut self) {
        if self.expired.is_empty() {
            let keys = self.index.vectors.keys();
            self.expired = self.items.expired(&keys, now_s(), EXPIRED_MAX);
        }
        while let Some(key) = self.expired.pop() {
            let hint = HintMessage::Hint(Hint {
                target: HintTarget::Row(key),
                noticed_us: None,
            });
            if let Err(error) = self.hints.try_send(hint) {
                if let HintMessage::Hint(Hint {
                    target: HintTarget::Row(key),
                    ..
                }) = error.into_inner()
                {
                    self.expired.push(key);
                }
                break;
            }
        }
        self.index.set_items_bytes(self.items.memory_bytes());
        let regressions = self.items.take_regressions();
        self.index.metrics.regressions.inc_by(regressions);
    }
}

fn now_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
        })
}

#[cfg(test)]
mod tests;
