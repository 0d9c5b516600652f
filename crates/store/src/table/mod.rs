//! The tasks of one indexed table.
//!
//! The indexes of the table share the readers of its log and the re-reader. Each index has a scan
//! and a task that owns its rows. The order of starts matters: the log is followed, and the index
//! subscribed to its hints, before the index's scan begins. So the log tells a change that comes
//! after the scan read the row.

mod watched;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use store_api::types::IndexState;
use tasks::Registry;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::apply::Applier;
use crate::aside::aside;
use crate::compute::Compute;
use crate::database::{CatchUp, Database, LogFacts, Progress, ReaderSeries};
use crate::feed::{Interrupted, LogFollower, Rereader, Scan, Subscriber};
use crate::identity::{IndexName, TableIdentity};
use crate::indexes::{Engine, IndexHandle};
use crate::items::{Items, Sequencer, Unread};
use crate::keys::{KeySchema, PrimaryKey};
use crate::long_work::{self, STEPS_OF_A_BUILD};
use crate::memory::Memory;
use crate::message::{HINTS_MAX, Hint, HintMessage, HintTarget, MESSAGES_MAX, Message};
use crate::options::{CdcOptions, IndexesOptions, ScanOptions};
use crate::present::Present;
use crate::repair::{Access, Attached, Repairs};
use crate::rows::{RowReader, VectorColumn};
use crate::snapshot::{Saved, Saver, Snapshots, verify, watch};
use watched::{PAUSE, Watched};

/// The parts of the service that every table needs.
#[derive(Clone)]
pub struct TableContext {
    /// The database that has the tables.
    pub database: Arc<dyn Database>,
    /// The engine, which is told when an index is complete.
    pub engine: Arc<Engine>,
    /// The threads on which indexes are changed.
    pub compute: Compute,
    /// The options for following logs.
    pub cdc: CdcOptions,
    /// The options for scans of tables.
    pub scan: ScanOptions,
    /// The place where indexes keep their vectors.
    pub indexes: IndexesOptions,
    /// The place where indexes are saved.
    pub snapshots: Arc<Snapshots>,
    /// The channel for indexes whose vectors turn out to be damaged.
    pub damaged: mpsc::Sender<Arc<IndexHandle>>,
    /// The channel for tables whose indexes missed a part of the log.
    pub interrupted: mpsc::Sender<Interrupted>,
    /// The memory of the process, which tells whether there is room for more rows.
    pub memory: Arc<Memory>,
    /// All tasks of the service. Its end waits for them.
    pub tasks: TaskTracker,
    /// The registry of long work that `/api/v1/tasks` shows.
    pub work: Registry,
    /// The indexes that serve, and so can be repaired.
    pub repairs: Repairs,
}

impl TableContext {
    fn present(&self) -> Present {
        Present::of(self.database.clock())
    }
}

/// A reader of the table's log.
struct Reader {
    name: String,
    series: Arc<ReaderSeries>,
    progress: Arc<Progress>,
}

impl Reader {
    /// Prepares a reader that begins at the time from which on the log may name changes that a scan
    /// misses.
    fn new(context: &TableContext, table: &TableIdentity, name: String, log: &LogFacts) -> Reader {
        let present = context.present();
        // A write that comes after the scan read its row may be back-dated. Its log row may then
        // lie anywhere behind `settled`.
        let now = present.now();
        let first = log.settled.map_or(now, |settled| settled.min(now));
        let start = first.saturating_sub(context.cdc.lookback);
        let series = Arc::<ReaderSeries>::default();
        let catch_up = CatchUp::new(context.work.clone(), table, &name);
        let progress = Progress::new(present, start, series.clone(), catch_up, log.ttl_s);
        Reader {
            name,
            series,
            progress: Arc::new(progress),
        }
    }
}

/// The state from which an index begins.
pub struct Beginning {
    /// Facts about the table's log.
    pub log: LogFacts,
    /// The rows of a snapshot. Without them the table is scanned.
    pub rows: Option<BeginningRows>,
}

/// The rows of an index that is opened from a snapshot.
pub struct BeginningRows {
    /// The state of the rows.
    pub items: Items,
    /// Rows that have to be read again.
    pub unread: Unread,
    /// The snapshot that the rows come from.
    pub saved: Saved,
    /// Whether the table has to be scanned nevertheless, as the log may lack changes.
    pub to_reconcile: bool,
}

/// An indexed table.
pub struct Table {
    identity: TableIdentity,
    context: TableContext,
    sequencer: Arc<Sequencer>,
    hints: mpsc::Sender<HintMessage>,
    subscriptions: mpsc::Sender<Subscriber>,
    readers: Vec<Reader>,
    indexes: HashMap<IndexName, CancellationToken>,
    watched: Watched,
    cancel: CancellationToken,
}

impl Table {
    /// Begins to follow the table's log.
    pub fn start(
        identity: TableIdentity,
        keys: KeySchema,
        log: &LogFacts,
        context: TableContext,
        cancel: CancellationToken,
    ) -> Table {
        let sequencer = Arc::<Sequencer>::default();
        let watched = Watched {
            tasks: context.tasks.clone(),
            interrupted: context.interrupted.clone(),
            table: identity.clone(),
            keys: keys.clone(),
            following: cancel.clone(),
            pause: PAUSE,
        };
        let (hints, hint_receiver) = mpsc::channel(HINTS_MAX);
        let (subscriptions, subscription_receiver) = mpsc::channel(1);
        let rereader = Rereader::new(
            identity.clone(),
            keys.clone(),
            context.database.clone(),
            sequencer.clone(),
        );
        watched.spawn(&cancel, rereader.run(hint_receiver, subscription_receiver));
        let mut readers = Vec::new();
        for (at, name) in context.database.log_readers().into_iter().enumerate() {
            let reader = Reader::new(&context, &identity, name, log);
            let follower = LogFollower {
                table: identity.clone(),
                keys: keys.clone(),
                database: context.database.clone(),
                reader: at,
                name: reader.name.clone(),
                restart_interval: context.cdc.restart_interval,
                hints: hints.clone(),
                series: reader.series.clone(),
                progress: reader.progress.clone(),
                interrupted: context.interrupted.clone(),
                following: cancel.clone(),
            };
            watched.spawn(&cancel, follower.run());
            readers.push(reader);
        }
        Table {
            identity,
            context,
            sequencer,
            hints,
            subscriptions,
            readers,
            indexes: HashMap::new(),
            watched,
            cancel,
        }
    }

    /// Begins to build an index of the table, or to bring it up to date.
    pub fn add(&mut self, index: Arc<IndexHandle>, beginning: Beginning) {
        let name = index.identity.name.clone();
        for reader in &self.readers {
            let metrics = self.context.engine.metrics();
            let read_up_to = reader.series.add(metrics, &name, &reader.name);
            index.freshness.show_in(read_up_to);
        }
        let cancel = self.cancel.child_token();
        let (messages, received) = mpsc::channel(MESSAGES_MAX);
        let build = Build {
            index,
            items: messages.downgrade(),
            context: self.context.clone(),
            table: self.identity.clone(),
            sequencer: self.sequencer.clone(),
            hints: self.hints.clone(),
            subscriptions: self.subscriptions.clone(),
            readers: self.readers.iter().map(|of| of.progress.clone()).collect(),
            cancel: cancel.clone(),
        };
        self.watched
            .spawn(&cancel, build.run(beginning, messages, received));
        self.indexes.insert(name, cancel);
    }

    /// Frees an index of the table.
    pub fn remove(&mut self, name: &IndexName) {
        for reader in &self.readers {
            reader.series.remove(name);
        }
        if let Some(cancel) = self.indexes.remove(name) {
            cancel.cancel();
        }
    }

    /// Whether the table has no index left.
    pub fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }
}

impl Drop for Table {
    /// Ends the log's readers and all other tasks of the table.
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// The life of an index. It is built or opened, then kept up to date and saved until it is
/// cancelled.
struct Build {
    index: Arc<IndexHandle>,
    /// The sender to the task that owns the index's rows.
    items: mpsc::WeakSender<Message>,
    context: TableContext,
    table: TableIdentity,
    sequencer: Arc<Sequencer>,
    hints: mpsc::Sender<HintMessage>,
    subscriptions: mpsc::Sender<Subscriber>,
    /// The progress of the readers of the table's log.
    readers: Vec<Arc<Progress>>,
    cancel: CancellationToken,
}

impl Build {
    async fn run(
        self,
        beginning: Beginning,
        messages: mpsc::Sender<Message>,
        received: mpsc::Receiver<Message>,
    ) {
        let (rows, row_receiver) = mpsc::channel(MESSAGES_MAX);
        let (saves, save_receiver) = mpsc::channel(1);
        let (scanned, all_scanned) = oneshot::channel();
        let mut applier = Applier::new(
            self.context.present(),
            self.index.clone(),
            self.context.compute.clone(),
            self.sequencer.clone(),
            self.hints.clone(),
            self.context.memory.clone(),
        );
        self.watch_vectors();
        let reopened = beginning.rows.is_some();
        let mut from = None;
        let mut to_scan = true;
        let mut missing = Vec::new();
        if let Some(rows) = beginning.rows {
            to_scan = rows.to_reconcile;
            from = Some(rows.saved).filter(|_| !to_scan);
            missing = rows.unread.missing;
            applier = applier.reopened(rows.items, rows.unread.expired, rows.to_reconcile);
        }
        let build = async {
            let work = long_work::build(&self.index.identity);
            let task = self.context.work.start(work);
            let (subscribed, ready) = oneshot::channel();
            let subscriber = Subscriber {
                column: self.column(),
                messages,
                subscribed,
            };
            self.subscriptions.send(subscriber).await.ok()?;
            ready.await.ok()?;
            // Every hint reaches the index from here on. A scan sees the writes that were
            // acknowledged before.
            let acknowledged_us = self.index.freshness.acknowledged_us();
            self.read_missing(missing).await?;
            let position = self.position(from);
            if reopened {
                self.verify_vectors();
            }
            if to_scan {
                self.index.set_state(IndexState::Bootstrapping);
                tracing::info!(index = %self.index.identity.name, table = %self.table, "scanning");
                self.scan().run(rows, &task).await?;
                all_scanned.await.ok()?;
                task.add(1);
                self.settle().await?;
                task.add(1);
                if let Some(acknowledged_us) = acknowledged_us {
                    self.index.freshness.taken_up(acknowledged_us);
                }
            } else {
                drop(rows);
                task.add(STEPS_OF_A_BUILD);
            }
            self.context.engine.serving(&self.index);
            task.done();
            tracing::info!(
                index = %self.index.identity.name,
                rows = self.index.vectors.len(),
                from_snapshot = !to_scan,
                "serving"
            );
            // The index may be repaired until it is gone.
            let attached = self.attach();
            let saver = Saver {
                present: self.context.present(),
                index: self.index.clone(),
                snapshots: self.context.snapshots.clone(),
                work: self.context.work.clone(),
                readers: self.readers.clone(),
                hints: self.hints.clone(),
                items: self.items.clone(),
                rows: saves,
                log: beginning.log,
                saved: from,
                position,
                heard: 0,
                cancel: self.cancel.clone(),
            };
            saver.run().await;
            Some(attached)
        };
        let applier = applier.run(received, row_receiver, save_receiver, scanned);
        // The build ends before the applier does. A applier that ends first means that the service
        // stops.
        let _ = tokio::join!(build, applier);
    }

    /// Reads the rows that a snapshot lacks, as they changed while it was taken, so that no search
    /// goes without them. It does so before the log is read from the end of the snapshot, as the
    /// hints of the log would take up the room for these.
    async fn read_missing(&self, missing: Vec<PrimaryKey>) -> Option<()> {
        if missing.is_empty() {
            return Some(());
        }
        self.index.set_state(IndexState::Bootstrapping);
        tracing::info!(
            index = %self.index.identity.name,
            rows = missing.len(),
            "reading the rows that the snapshot lacks"
        );
        for key in missing {
            let hint = HintMessage::Hint(Hint {
                target: HintTarget::Row(key),
                noticed_us: None,
            });
            self.hints.send(hint).await.ok()?;
        }
        self.settle().await
    }

    /// Has the log read from the end of a snapshot. Returns a position: all that the log named
    /// before it is in the index, or will be after the scan.
    fn position(&self, from: Option<Saved>) -> Duration {
        match from {
            Some(saved) => {
                for reader in &self.readers {
                    reader.rewind(saved.position);
                }
                let metrics = &self.index.metrics.snapshots;
                metrics
                    .position_s
                    .set(saved.position.as_secs().cast_signed());
                saved.position
            }
            None => {
                let confirmed = self.readers.iter().map(|reader| reader.confirmed());
                confirmed.min().unwrap_or_default()
            }
        }
    }

    fn scan(&self) -> Scan {
        Scan {
            database: self.context.database.clone(),
            reader: self.reader(),
            sequencer: self.sequencer.clone(),
            index: self.index.clone(),
            options: self.context.scan.clone(),
            compute_threads: self.context.compute.threads(),
        }
    }

    /// Watches for damaged vectors for as long as the index lives, and has the index built anew if
    /// there are any.
    fn watch_vectors(&self) {
        let watch = watch(self.index.clone(), self.context.damaged.clone());
        let cancel = self.cancel.clone();
        let until_gone = async move { cancel.run_until_cancelled(watch).await };
        self.context.tasks.spawn(until_gone);
    }

    /// Verifies the vectors in the background.
    fn verify_vectors(&self) {
        let (index, cancel) = (self.index.clone(), self.cancel.clone());
        self.context
            .tasks
            .spawn(aside(move || verify(&index, &cancel)));
    }

    /// Describes a read of the index's one vector column.
    fn reader(&self) -> RowReader {
        RowReader {
            table: self.table.clone(),
            keys: self.index.identity.keys.clone(),
            columns: vec![self.column()],
        }
    }

    fn column(&self) -> VectorColumn {
        VectorColumn {
            name: self.index.identity.column.clone(),
            dimensions: self.index.identity.options.dimensions,
        }
    }

    fn attach(&self) -> Attached {
        self.context.repairs.attach(Access {
            index: self.index.clone(),
            reader: self.reader(),
            database: self.context.database.clone(),
            items: self.items.clone(),
            hints: self.hints.clone(),
            readers: self.readers.clone(),
        })
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
