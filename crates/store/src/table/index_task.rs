//! The tasks of one index, and the phases that it goes through.
//!
//! ```text
//!   Subscribing --> Completing --> Scanning --> CatchingUp --> Serving
//! ```
//!
//! An index that lacks no row of its snapshot, or has none, goes past `Completing`. One whose
//! snapshot the log completes goes past `Scanning` and `CatchingUp`.
//!
//! The index subscribes to the hints of its table before anything else. So the log names a row that
//! changes after the scan read it.

use std::sync::Arc;
use std::time::Duration;

use platform::aside;
use store_api::types::IndexState;
use tasks::Task;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::TableContext;
use crate::apply::IndexWriter;
use crate::database::{LogFacts, ReaderProgress};
use crate::feed::{SubscriptionRequest, TableScan};
use crate::graph_maintenance::IndexMaintainer;
use crate::identity::TableIdentity;
use crate::indexes::IndexHandle;
use crate::items::{IndexedRows, ReadSequencer, UnreadRows};
use crate::keys::PrimaryKey;
use crate::long_work::{self, STEPS_OF_A_BUILD};
use crate::message::{ChangeHint, HintMessage, HintTarget, IndexMessage, MESSAGES_MAX, RowBatch};
use crate::observed::ObservedColumn;
use crate::repair::{IndexAccess, IndexAttachment};
use crate::rows::RowReader;
use crate::snapshot::{CurrentGeneration, IndexSaver, SaveRequest, verify, watch};

/// The state from which an index begins.
pub(crate) enum InitialRows {
    /// Without rows. The table is scanned.
    Empty,
    /// With the rows of a snapshot, to which the log adds the changes since.
    Resumed {
        /// The rows of the snapshot.
        rows: SnapshotRows,
        /// The snapshot.
        saved: CurrentGeneration,
    },
    /// With the rows of a snapshot, since which the log may lack changes. The table is scanned, and
    /// rows that it doesn't have are removed.
    Reconciled {
        /// The rows of the snapshot.
        rows: SnapshotRows,
    },
}

/// The rows of a snapshot.
pub(crate) struct SnapshotRows {
    /// The state of the rows.
    pub items: IndexedRows,
    /// Rows that have to be read again.
    pub unread: UnreadRows,
}

/// The tasks of one index of a table.
pub(super) struct IndexTask {
    /// The index.
    pub index: Arc<IndexHandle>,
    /// The sender to the task that owns the index's rows.
    pub items: mpsc::WeakSender<IndexMessage>,
    /// The parts of the service that every table needs.
    pub context: TableContext,
    /// The table.
    pub table: TableIdentity,
    /// The sequencer that numbers the reads of the table.
    pub sequencer: Arc<ReadSequencer>,
    /// The channel by which rows are read again.
    pub hints: mpsc::Sender<HintMessage>,
    /// The channel for subscriptions to the hints of the table.
    pub subscriptions: mpsc::Sender<SubscriptionRequest>,
    /// The progress of the readers of the table's log.
    pub readers: Vec<Arc<ReaderProgress>>,
    /// Cancelled when the index goes.
    pub cancel: CancellationToken,
    /// Ends the index whose place this one takes, if there is one.
    pub former: Option<CancellationToken>,
}

/// A phase of an index.
enum BuildPhase {
    /// The index subscribes to the hints of its table.
    Subscribing {
        messages: mpsc::Sender<IndexMessage>,
        source: InitialSource,
        missing: Vec<PrimaryKey>,
    },
    /// The rows are read that the snapshot lacks, as they changed while it was taken.
    Completing {
        source: InitialSource,
        missing: Vec<PrimaryKey>,
        acknowledged_us: Option<i64>,
    },
    /// All rows of the table are read.
    Scanning {
        ends: ScanEnds,
        position: Duration,
        acknowledged_us: Option<i64>,
    },
    /// The hints that came until the end of the scan are taken in.
    CatchingUp {
        position: Duration,
        acknowledged_us: Option<i64>,
    },
    /// The index answers searches.
    Serving {
        /// The snapshot on the disk, if the index came from it without a scan.
        saved: Option<CurrentGeneration>,
        /// The position: all that the log named before it is in the index.
        position: Duration,
    },
}

/// The source of the rows that an index has when it begins to serve.
enum InitialSource {
    /// A scan of the table.
    Scan(ScanEnds),
    /// A scan of the table, in addition to the rows of a snapshot.
    ScanAndSnapshot(ScanEnds),
    /// A snapshot, and the log from there on.
    Snapshot(CurrentGeneration),
}

/// The ends of a scan: where its rows go, and who reports that all of them have been taken in.
struct ScanEnds {
    rows: mpsc::Sender<RowBatch>,
    taken_in: oneshot::Receiver<()>,
}

impl IndexTask {
    /// Builds or opens the index, then keeps it up to date and saves it until it is cancelled.
    /// `received` are the messages that come by `messages`.
    pub(super) async fn run(
        self,
        log: LogFacts,
        beginning: InitialRows,
        messages: mpsc::Sender<IndexMessage>,
        received: mpsc::Receiver<IndexMessage>,
    ) {
        let (rows, row_receiver) = mpsc::channel(MESSAGES_MAX);
        let (saves, save_receiver) = mpsc::channel(1);
        let (scanned, taken_in) = oneshot::channel();
        let applier = IndexWriter::new(
            self.context.present(),
            self.index.clone(),
            self.context.compute.clone(),
            self.sequencer.clone(),
            self.hints.clone(),
            self.context.memory.clone(),
            self.context.indexes.fresh_bytes_max,
        );
        self.watch_vectors();
        self.tend(&beginning);
        let ends = ScanEnds { rows, taken_in };
        let (applier, source, missing) = match beginning {
            InitialRows::Empty => (applier, InitialSource::Scan(ends), Vec::new()),
            InitialRows::Resumed { rows, saved } => {
                // There is no scan: the task that takes in rows finds it ended at once.
                drop(ends);
                let applier = applier.reopened(rows.items, rows.unread.expired, false);
                (applier, InitialSource::Snapshot(saved), rows.unread.missing)
            }
            InitialRows::Reconciled { rows } => {
                let applier = applier.reopened(rows.items, rows.unread.expired, true);
                let source = InitialSource::ScanAndSnapshot(ends);
                (applier, source, rows.unread.missing)
            }
        };
        let first = BuildPhase::Subscribing {
            messages,
            source,
            missing,
        };
        let phases = self.go_through(first, log, saves);
        let apply = applier.run(received, row_receiver, save_receiver, scanned);
        // The phases end before the task that takes in rows does. If that one ends first, the
        // service stops.
        let _ = tokio::join!(phases, apply);
    }

    /// Goes through the phases of the index, from the first one on. The result is the right to
    /// repair the index, which holds until it is dropped. `None` if the service stops.
    async fn go_through(
        &self,
        first: BuildPhase,
        log: LogFacts,
        saves: mpsc::Sender<SaveRequest>,
    ) -> Option<IndexAttachment> {
        let work = long_work::build(&self.index.identity);
        let task = self.context.work.start(work);
        let mut phase = first;
        let (saved, position) = loop {
            phase = match phase {
                BuildPhase::Subscribing {
                    messages,
                    source,
                    missing,
                } => {
                    let acknowledged_us = self.subscribe(messages).await?;
                    match missing.is_empty() {
                        true => self.begin_from(source, acknowledged_us, &task),
                        false => BuildPhase::Completing {
                            source,
                            missing,
                            acknowledged_us,
                        },
                    }
                }
                BuildPhase::Completing {
                    source,
                    missing,
                    acknowledged_us,
                } => {
                    self.read_missing(missing).await?;
                    self.begin_from(source, acknowledged_us, &task)
                }
                BuildPhase::Scanning {
                    ends,
                    position,
                    acknowledged_us,
                } => {
                    self.scan(ends, &task).await?;
                    BuildPhase::CatchingUp {
                        position,
                        acknowledged_us,
                    }
                }
                BuildPhase::CatchingUp {
                    position,
                    acknowledged_us,
                } => {
                    self.catch_up(acknowledged_us, &task).await?;
                    let saved = None;
                    BuildPhase::Serving { saved, position }
                }
                BuildPhase::Serving { saved, position } => break (saved, position),
            };
        };
        self.begin_to_serve(saved, task);
        let attached = self.attach();
        self.saver(log, saves, saved, position).run().await;
        Some(attached)
    }

    /// Subscribes to the hints of the table. Returns the end of the log, if it is known.
    async fn subscribe(&self, messages: mpsc::Sender<IndexMessage>) -> Option<Option<i64>> {
        let (subscribed, ready) = oneshot::channel();
        let subscriber = SubscriptionRequest {
            columns: ObservedColumn::all_of(&self.index.identity),
            required: self.index.identity.local_filters(),
            takes_static: self.index.identity.observes_static(),
            messages,
            subscribed,
        };
        self.subscriptions.send(subscriber).await.ok()?;
        ready.await.ok()?;
        // Every hint reaches the index from here on. A scan sees the writes that were acknowledged
        // before.
        Some(self.index.freshness.acknowledged_us())
    }

    /// Reads the rows that a snapshot lacks, so that no search goes without them. It does so before
    /// the log is read from the end of the snapshot, as the hints of the log would take up the room
    /// for these.
    async fn read_missing(&self, missing: Vec<PrimaryKey>) -> Option<()> {
        self.index.set_state(IndexState::Bootstrapping);
        tracing::info!(
            index = %self.index.identity.name,
            rows = missing.len(),
            "reading the rows that the snapshot lacks"
        );
        for key in missing {
            let hint = HintMessage::Hint(ChangeHint {
                target: HintTarget::Row(key),
                noticed_us: None,
            });
            self.hints.send(hint).await.ok()?;
        }
        self.settle().await
    }

    /// The phase after the index has all rows of its snapshot.
    fn begin_from(
        &self,
        source: InitialSource,
        acknowledged_us: Option<i64>,
        task: &Task,
    ) -> BuildPhase {
        let (ends, is_opened) = match source {
            InitialSource::Snapshot(saved) => {
                self.rewind(saved.position);
                self.verify_vectors();
                task.add(STEPS_OF_A_BUILD);
                return BuildPhase::Serving {
                    saved: Some(saved),
                    position: saved.position,
                };
            }
            InitialSource::Scan(ends) => (ends, false),
            InitialSource::ScanAndSnapshot(ends) => (ends, true),
        };
        let position = self.confirmed();
        if is_opened {
            self.verify_vectors();
        }
        BuildPhase::Scanning {
            ends,
            position,
            acknowledged_us,
        }
    }

    /// Has the log read from the position of a snapshot on.
    fn rewind(&self, position: Duration) {
        for reader in &self.readers {
            let run = reader.rewind(position);
            self.index.freshness.counts_from(run);
        }
        let metrics = &self.index.metrics.snapshots;
        metrics.position_s.set(position.as_secs().cast_signed());
    }

    /// A position: all that the log named before it will be in the index after the scan.
    fn confirmed(&self) -> Duration {
        // The slowest reader counts, as the others may have passed the time of a late log row.
        let confirmed = self.readers.iter().map(|reader| reader.confirmed());
        confirmed.min().unwrap_or_default()
    }

    /// Reads all rows of the table, and waits until they have been taken in.
    async fn scan(&self, ends: ScanEnds, task: &Task) -> Option<()> {
        self.index.set_state(IndexState::Bootstrapping);
        tracing::info!(index = %self.index.identity.name, table = %self.table, "scanning");
        let scan = TableScan {
            database: self.context.database.clone(),
            reader: self.reader(),
            sequencer: self.sequencer.clone(),
            index: self.index.clone(),
            engine: self.context.engine.clone(),
            options: self.context.scan.clone(),
            compute_threads: self.context.compute.threads(),
        };
        scan.run(ends.rows, task).await?;
        ends.taken_in.await.ok()?;
        task.add(1);
        Some(())
    }

    /// Waits until the hints that came during the scan are taken in.
    async fn catch_up(&self, acknowledged_us: Option<i64>, task: &Task) -> Option<()> {
        self.settle().await?;
        task.add(1);
        if let Some(acknowledged_us) = acknowledged_us {
            self.index.freshness.taken_up(acknowledged_us);
        }
        Some(())
    }

    /// Shows that the index is complete.
    fn begin_to_serve(&self, saved: Option<CurrentGeneration>, task: Task) {
        // Before the former index is cancelled, so that there is one at any time that answers.
        self.context.engine.serving(&self.index);
        if let Some(former) = &self.former {
            former.cancel();
        }
        task.done();
        tracing::info!(
            index = %self.index.identity.name,
            rows = self.index.content.len(),
            from_snapshot = saved.is_some(),
            "serving"
        );
    }

    /// Allows repairs of the index until the result is dropped.
    fn attach(&self) -> IndexAttachment {
        self.context.repairs.attach(IndexAccess {
            index: self.index.clone(),
            reader: self.reader(),
            database: self.context.database.clone(),
            items: self.items.clone(),
            hints: self.hints.clone(),
            readers: self.readers.clone(),
        })
    }

    fn saver(
        &self,
        log: LogFacts,
        rows: mpsc::Sender<SaveRequest>,
        saved: Option<CurrentGeneration>,
        position: Duration,
    ) -> IndexSaver {
        IndexSaver {
            present: self.context.present(),
            index: self.index.clone(),
            snapshots: self.context.snapshots.clone(),
            work: self.context.work.clone(),
            readers: self.readers.clone(),
            hints: self.hints.clone(),
            items: self.items.clone(),
            rows,
            log,
            saved,
            tended: 0,
            position,
            heard: 0,
            cancel: self.cancel.clone(),
        }
    }

    /// Watches for damaged vectors for as long as the index exists, and has the index built again
    /// if there are any.
    fn watch_vectors(&self) {
        let watch = watch(self.index.clone(), self.context.damaged.clone());
        let cancel = self.cancel.clone();
        let until_gone = async move { cancel.run_until_cancelled(watch).await };
        self.context.tasks.spawn(until_gone);
    }

    /// Tends the index in the background for as long as it exists. The graph of a snapshot may have
    /// work left from before.
    fn tend(&self, beginning: &InitialRows) {
        if !matches!(beginning, InitialRows::Empty) {
            self.index.tending.wake();
        }
        let tender = IndexMaintainer {
            index: self.index.clone(),
            compute: self.context.compute.clone(),
            work: self.context.work.clone(),
            cancel: self.cancel.clone(),
        };
        let cancel = self.cancel.clone();
        let until_gone = async move { cancel.run_until_cancelled(tender.run()).await };
        self.context.tasks.spawn(until_gone);
    }

    /// Verifies the vectors in the background.
    fn verify_vectors(&self) {
        let (index, cancel) = (self.index.clone(), self.cancel.clone());
        self.context
            .tasks
            .spawn(aside(move || verify(&index, &cancel)));
    }

    /// Describes a read of the columns that the index observes.
    fn reader(&self) -> RowReader {
        RowReader {
            table: self.table.clone(),
            keys: self.index.identity.keys.clone(),
            columns: ObservedColumn::all_of(&self.index.identity),
        }
    }

    /// Waits until all hints that have come up to now are in the index.
    async fn settle(&self) -> Option<()> {
        let (answer, settled) = oneshot::channel();
        let marker = HintMessage::Marker {
            index: self.items.clone(),
            answer,
        };
        self.hints.send(marker).await.ok()?;
        settled.await.ok()
    }
}
