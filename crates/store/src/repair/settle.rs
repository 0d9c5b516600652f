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

use super::compare::{Sides, Suspect};
use super::index_side::Gone;
use super::report::{self, Fault};
use super::table_side::TableRow;
use super::verdict::{Look, Verdict, verdict};
use crate::database::Progress;
use crate::identity::TokenRange;
use crate::indexes::IndexHandle;
use crate::keys::PrimaryKey;
use crate::long_work;
use crate::message::{Hint, HintMessage, HintTarget, Message};

/// The number of suspects that are settled at a time.
pub const SUSPECTS_MAX: usize = 65_536;

/// The interval at which the progress of the log's readers is checked.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// The number of reads in flight at a time.
const READS_MAX: usize = 8;

/// The number of tries to mend a row before it counts as one that can't be mended.
const TRIES: usize = 2;

/// Settles suspects.
pub struct Settler<'a> {
    /// The table and the index.
    pub sides: &'a Sides,
    /// The task of the repair, which counts the differences.
    pub task: &'a Task,
    /// The index.
    pub index: Arc<IndexHandle>,
    /// The sender to the task that owns the index's rows.
    pub items: mpsc::WeakSender<Message>,
    /// The sender by which rows that the log names are read again.
    pub hints: mpsc::Sender<HintMessage>,
    /// The progress of each reader of the table's log.
    pub readers: Vec<Arc<Progress>>,
    /// The longest wait for those readers.
    pub settle_max: Duration,
}

impl Settler<'_> {
    /// Settles suspects until no more can come.
    pub async fn run(self, mut suspects: mpsc::Receiver<Suspect>) -> Result<(), Gone> {
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
    async fn gather(&self, suspects: &mut mpsc::Receiver<Suspect>, batch: &mut Vec<Suspect>) {
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

    /// Waits until every reader has read the log up to `time`, or until [`Settler::settle_max`]
    /// after `time`, in case a reader makes no progress.
    async fn readers_pass(&self, time: Duration) {
        let ends = time + self.settle_max;
        let present = &self.sides.present;
        while present.now() < ends {
            let look = join_all(self.readers.iter().map(|reader| reader.look()));
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
        batch: Vec<Suspect>,
        differed: &mut HashSet<TokenRange>,
    ) -> Result<(), Gone> {
        self.hints_are_in().await?;
        let task = self
            .task
            .child(long_work::mend(&self.index.identity, batch.len()));
        let mut faulty = Vec::new();
        let mut in_motion = Vec::new();
        for look in self.look(batch).await? {
            match verdict(&look, self.sides.present.now_s()) {
                Verdict::Equal => task.add(1),
                Verdict::InMotion => in_motion.push(look.suspect),
                Verdict::Faulty(fault) => {
                    if differed.insert(look.suspect.range) {
                        self.task.count(report::RANGES_DIFFERED, 1);
                    }
                    faulty.push((look.suspect, Some(fault)));
                }
                // The row is no fault yet. If reading it again doesn't help it counts as left.
                Verdict::Unsettled => faulty.push((look.suspect, None)),
            }
        }
        // The log will name these rows. They are read again in case it doesn't.
        self.read_again(in_motion.iter()).await?;
        task.add(in_motion.len() as u64);
        self.mend(faulty, &task).await?;
        task.done();
        Ok(())
    }

    async fn mend(
        &self,
        mut faulty: Vec<(Suspect, Option<Fault>)>,
        task: &Task,
    ) -> Result<(), Gone> {
        for _ in 0..TRIES {
            if faulty.is_empty() {
                return Ok(());
            }
            self.read_again(faulty.iter().map(|(suspect, _)| suspect))
                .await?;
            self.hints_are_in().await?;
            let faults: Vec<Option<Fault>> = faulty.iter().map(|(_, fault)| *fault).collect();
            let suspects = faulty.into_iter().map(|(suspect, _)| suspect).collect();
            let looks = self.look(suspects).await?;
            faulty = Vec::new();
            for (look, fault) in looks.into_iter().zip(faults) {
                match verdict(&look, self.sides.present.now_s()) {
                    Verdict::Equal => {
                        task.add(1);
                        if let Some(fault) = fault {
                            self.task.count(fault.counter(), 1);
                        }
                    }
                    // The row was written since, and the log names it.
                    Verdict::InMotion => task.add(1),
                    // The fault stays the one that was found first, whatever the mending has
                    // changed.
                    Verdict::Faulty(_) | Verdict::Unsettled => faulty.push((look.suspect, fault)),
                }
            }
        }
        self.task.count(report::ROWS_LEFT, faulty.len() as u64);
        task.add(faulty.len() as u64);
        Ok(())
    }

    /// Has rows read again by the same way as those that the log names.
    async fn read_again(&self, suspects: impl Iterator<Item = &Suspect>) -> Result<(), Gone> {
        for suspect in suspects {
            let hint = HintMessage::Hint(Hint {
                target: HintTarget::Row(suspect.key.clone()),
                noticed_us: None,
            });
            self.hints.send(hint).await.map_err(|_| Gone)?;
        }
        Ok(())
    }

    /// Waits until all hints up to now have been read and are in the index.
    async fn hints_are_in(&self) -> Result<(), Gone> {
        let (answer, answered) = oneshot::channel();
        let marker = HintMessage::Marker {
            index: self.items.clone(),
            answer,
        };
        self.hints.send(marker).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// Reads the rows of the suspects on both sides again. Keeps the order of the suspects.
    async fn look(&self, suspects: Vec<Suspect>) -> Result<Vec<Look>, Gone> {
        let at_a_time = self.sides.table.keys_at_a_time();
        let chunks: Vec<Vec<Suspect>> = suspects
            .chunks(at_a_time)
            .map(<[Suspect]>::to_vec)
            .collect();
        let looks = chunks.into_iter().map(|chunk| self.look_at(chunk));
        let mut looks = futures::stream::iter(looks).buffered(READS_MAX);
        let mut all = Vec::with_capacity(suspects.len());
        while let Some(some) = looks.next().await {
            all.append(&mut some?);
        }
        Ok(all)
    }

    async fn look_at(&self, suspects: Vec<Suspect>) -> Result<Vec<Look>, Gone> {
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
            Look {
                suspect,
                row,
                known,
            }
        });
        Ok(looks.collect())
    }
}
