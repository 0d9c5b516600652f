//! What becomes of rows that look different.
//!
//! A row that was written while it was compared looks different too. So it is looked at again once
//! the readers of the log have passed the moment at which it was found: what the log has told of is
//! in the index then. A row that the table still holds as it did, and the index doesn't, differs. It is
//! read again the way of a row that the log names, so that nothing here can go wrong that doesn't
//! go wrong there: the reading that was issued later wins.

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
use crate::cdc::Progress;
use crate::engine::IndexHandle;
use crate::identity::TokenRange;
use crate::keys::PrimaryKey;
use crate::long_work;
use crate::reread::{Hint, HintMessage, HintTarget};

/// Suspects that are settled at a time.
pub const SUSPECTS_MAX: usize = 65_536;

/// How often it is looked at how far the readers of the log are.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Statements in flight at a time.
const READS_MAX: usize = 8;

/// How often a row is mended before it counts as one that can't be.
const TRIES: usize = 2;

/// Settles suspects.
pub struct Settler<'a> {
    /// What was compared.
    pub sides: &'a Sides,
    /// The repair, which counts what was found.
    pub task: &'a Task,
    /// The index.
    pub index: Arc<IndexHandle>,
    /// The way of what the log names.
    pub hints: mpsc::Sender<HintMessage>,
    /// The readers of the table's log.
    pub readers: Vec<Arc<Progress>>,
    /// How long these are waited for at most.
    pub settle_max: Duration,
}

impl Settler<'_> {
    /// Settles suspects until no more can come.
    pub async fn run(self, mut suspects: mpsc::Receiver<Suspect>) -> Result<(), Gone> {
        let mut differed = HashSet::new();
        while let Some(first) = suspects.recv().await {
            let mut batch = vec![first];
            self.gather(&mut suspects, &mut batch).await;
            let found = batch.iter().map(|suspect| suspect.found).max();
            self.readers_pass(found.unwrap_or_default()).await;
            self.settle(batch, &mut differed).await?;
        }
        Ok(())
    }

    /// Takes more suspects in, as long as those at hand are not ripe.
    async fn gather(&self, suspects: &mut mpsc::Receiver<Suspect>, batch: &mut Vec<Suspect>) {
        let ripe = self.readers_pass(batch[0].found);
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

    /// Waits until every reader has read what was in the log at that time; a reader that doesn't get
    /// on is not waited for without end.
    async fn readers_pass(&self, time: Duration) {
        let ends = time + self.settle_max;
        let present = &self.sides.present;
        while present.now() < ends {
            let look = join_all(self.readers.iter().map(|reader| reader.look()));
            let left = ends.saturating_sub(present.now());
            // One that doesn't answer doesn't get on.
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
                // No fault yet, but one that is left if reading it again does not help.
                Verdict::Unsettled => faulty.push((look.suspect, None)),
            }
        }
        // The log will tell of them; should it not, this does.
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
                    // Written since: the log tells of it.
                    Verdict::InMotion => task.add(1),
                    // What was wrong at first, whatever the mending has made of it.
                    Verdict::Faulty(_) | Verdict::Unsettled => faulty.push((look.suspect, fault)),
                }
            }
        }
        self.task.count(report::ROWS_LEFT, faulty.len() as u64);
        task.add(faulty.len() as u64);
        Ok(())
    }

    /// Has rows read again the way of those that the log names.
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
            index: self.index.clone(),
            answer,
        };
        self.hints.send(marker).await.map_err(|_| Gone)?;
        answered.await.map_err(|_| Gone)
    }

    /// Looks at both sides once more, in the order of the suspects.
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
