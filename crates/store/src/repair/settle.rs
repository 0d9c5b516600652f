//! Decides which differing rows are at fault, and mends those.
//!
//! A row that was written while it was compared differs too. So each row is looked at again once
//! the readers of the log have passed the time at which it was found. Everything that the log named
//! by then is in the index. A row is at fault if the table still holds what it held, and the index
//! doesn't. It is read again by the same way as a row that the log names. So a repair can't go
//! wrong in a way of its own: of two readings, the one that was issued later wins.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use tasks::Task;
use tokio::sync::{mpsc, oneshot};

use super::compare::{BothSides, SuspectRow};
use super::index_side::IndexDropped;
use super::report::{self, RowDifference};
use super::table_side::TableRow;
use super::verdict::{RecheckVerdict, RowRecheck, verdict};
use crate::database::ReaderProgress;
use crate::identity::TokenRange;
use crate::indexes::IndexHandle;
use crate::keys::PrimaryKey;
use crate::long_work;
use crate::message::{ChangeHint, HintMessage, HintTarget, IndexMessage};

/// The number of suspects that are settled at a time.
pub(super) const SUSPECTS_MAX: usize = 65_536;

/// The interval at which the progress of the log's readers is checked.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The number of reads in flight at a time.
const READS_MAX: usize = 8;

/// The number of tries to mend a row before it counts as one that can't be mended.
const TRIES: usize = 2;

/// Settles suspects.
pub(super) struct SuspectSettler<'a> {
    /// The table and the index.
    pub sides: &'a BothSides,
    /// The task of the repair, which counts the differences.
    pub task: &'a Task,
    /// The index.
    pub index: Arc<IndexHandle>,
    /// The sender to the task that owns the index's rows.
    pub items: mpsc::WeakSender<IndexMessage>,
    /// The sender by which rows that the log names are read again.
    pub hints: mpsc::Sender<HintMessage>,
    /// The progress of each reader of the table's log.
    pub readers: Vec<Arc<ReaderProgress>>,
    /// The longest wait for those readers.
    pub settle_max: Duration,
}

impl SuspectSettler<'_> {
    /// Settles suspects until no more can come.
    pub(super) async fn run(
        self,
        mut suspects: mpsc::Receiver<SuspectRow>,
    ) -> Result<(), IndexDropped> {
        let mut differed = HashSet::new();
        while let Some(first) = suspects.recv().await {
            let mut batch = vec![first];
            self.gather(&mut suspects, &mut batch).await;
            let seen_at = batch.iter().map(|suspect| suspect.seen_at).max();
            self.readers_pass(seen_at.unwrap_or_default()).await;
            self.settle(batch, &mut differed).await?;
        }
        Ok(())
    }

    /// Receives more suspects until the readers have passed the time of the first, there are too
    /// many, or no more can come.
    async fn gather(&self, suspects: &mut mpsc::Receiver<SuspectRow>, batch: &mut Vec<SuspectRow>) {
        let ripe = self.readers_pass(batch[0].seen_at);
        tokio::pin!(ripe);
        while batch.len() < SUSPECTS_MAX {
            tokio::select! {
                biased;
                suspect = suspects.recv() => match suspect {
                    Some(suspect) => batch.push(suspect),
                    None => return,
                },
                () = &mut ripe => return,
            }
        }
    }

    /// Waits until every reader has read the log up to `time`, or until
    /// [`SuspectSettler::settle_max`] after `time`, in case a reader makes no progress.
    async fn readers_pass(&self, time: Duration) {
        let ends = time + self.settle_max;
        let present = &self.sides.present;
        while present.now() < ends {
            let look = join_all(self.readers.iter().map(|reader| reader.request_progress()));
            let left = ends.saturating_sub(present.now());
            // A reader that doesn't answer makes no progress.
            let _ = tokio::time::timeout(left, look).await;
            if self.readers.iter().all(|reader| reader.read_up_to() > time) {
                return;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }

    async fn settle(
        &self,
        batch: Vec<SuspectRow>,
        differed: &mut HashSet<TokenRange>,
    ) -> Result<(), IndexDropped> {
        self.hints_are_in().await?;
        let task = self
            .task
            .child(long_work::repair_of_rows(&self.index.identity, batch.len()));
        let mut faulty = Vec::new();
        let mut in_motion = Vec::new();
        for look in self.recheck(batch).await? {
            match verdict(&look, self.sides.present.now_s()) {
                RecheckVerdict::Equal => task.add(1),
                RecheckVerdict::InMotion => in_motion.push(look.suspect),
                RecheckVerdict::Faulty(fault) => {
                    if differed.insert(look.suspect.range) {
                        self.task.count(report::RANGES_DIFFERED, 1);
                    }
                    faulty.push((look.suspect, Some(fault)));
                }
                // The row is no fault yet. If reading it again doesn't help it counts as left.
                RecheckVerdict::Unsettled => faulty.push((look.suspect, None)),
            }
        }
        // The log will name these rows. They are read again in case it doesn't.
        self.read_again(in_motion.iter()).await?;
        task.add(in_motion.len() as u64);
        self.repair(faulty, &task).await?;
        task.done();
        Ok(())
    }

    async fn repair(
        &self,
        mut faulty: Vec<(SuspectRow, Option<RowDifference>)>,
        task: &Task,
    ) -> Result<(), IndexDropped> {
        for _ in 0..TRIES {
            if faulty.is_empty() {
                return Ok(());
            }
            self.read_again(faulty.iter().map(|(suspect, _)| suspect))
                .await?;
            self.hints_are_in().await?;
            let faults: Vec<Option<RowDifference>> =
                faulty.iter().map(|(_, fault)| *fault).collect();
            let suspects = faulty.into_iter().map(|(suspect, _)| suspect).collect();
            let looks = self.recheck(suspects).await?;
            faulty = Vec::new();
            for (look, fault) in looks.into_iter().zip(faults) {
                match verdict(&look, self.sides.present.now_s()) {
                    RecheckVerdict::Equal => {
                        task.add(1);
                        if let Some(fault) = fault {
                            self.task.count(fault.counter(), 1);
                        }
                    }
                    // The row was written since, and the log names it.
                    RecheckVerdict::InMotion => task.add(1),
                    // The fault stays the one that was found first, whatever the mending has
                    // changed.
                    RecheckVerdict::Faulty(_) | RecheckVerdict::Unsettled => {
                        faulty.push((look.suspect, fault));
                    }
                }
            }
        }
        self.task.count(report::ROWS_LEFT, faulty.len() as u64);
        task.add(faulty.len() as u64);
        Ok(())
    }

    /// Has rows read again by the same way as those that the log names.
    async fn read_again(
        &self,
        suspects: impl Iterator<Item = &SuspectRow>,
    ) -> Result<(), IndexDropped> {
        for suspect in suspects {
            let hint = HintMessage::Hint(ChangeHint {
                target: HintTarget::Row(suspect.key.clone()),
                noticed_us: None,
            });
            self.hints.send(hint).await.map_err(|_| IndexDropped)?;
        }
        Ok(())
    }

    /// Waits until all hints up to now have been read and are in the index.
    async fn hints_are_in(&self) -> Result<(), IndexDropped> {
        let (answer, answered) = oneshot::channel();
        let marker = HintMessage::Marker {
            index: self.items.clone(),
            answer,
        };
        self.hints.send(marker).await.map_err(|_| IndexDropped)?;
        answered.await.map_err(|_| IndexDropped)
    }

    /// Reads the rows of the suspects on both sides again. Keeps the order of the suspects.
    async fn recheck(&self, suspects: Vec<SuspectRow>) -> Result<Vec<RowRecheck>, IndexDropped> {
        let at_a_time = self.sides.table.keys_at_a_time();
        let chunks: Vec<Vec<SuspectRow>> = suspects
            .chunks(at_a_time)
            .map(<[SuspectRow]>::to_vec)
            .collect();
        let looks = chunks.into_iter().map(|chunk| self.recheck_chunk(chunk));
        let mut looks = futures::stream::iter(looks).buffered(READS_MAX);
        let mut all = Vec::with_capacity(suspects.len());
        while let Some(some) = looks.next().await {
            all.append(&mut some?);
        }
        Ok(all)
    }

    async fn recheck_chunk(
        &self,
        suspects: Vec<SuspectRow>,
    ) -> Result<Vec<RowRecheck>, IndexDropped> {
        let keys: Vec<PrimaryKey> = suspects.iter().map(|suspect| suspect.key.clone()).collect();
        let mut rows: HashMap<PrimaryKey, TableRow> = self
            .sides
            .table
            .by_key(&keys)
            .await
            .into_iter()
            .map(|row| (row.key.clone(), row))
            .collect();
        let known = self.sides.index.known(&keys).await?;
        let looks = suspects.into_iter().zip(known).map(|(suspect, known)| {
            let row = rows.remove(&suspect.key).unwrap_or_else(|| TableRow {
                key: suspect.key.clone(),
                fingerprint: None,
            });
            RowRecheck {
                suspect,
                row,
                known,
            }
        });
        Ok(looks.collect())
    }
}
