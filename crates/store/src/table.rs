//! All that runs for one indexed table.
//!
//! The readers of its log and the re-reader are shared by the indexes of the table. Each index
//! has a scan and a task that owns its rows. The order matters: the log is followed, and the
//! index subscribed to what it names, before the index's scan begins, so that a change that the
//! scan comes too early for is told by the log.

mod watched;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use store_api::types::IndexState;
use tasks::Registry;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::aside::aside;
use crate::cdc::{CatchUp, Interrupted, LogFollower, Progress, ReaderSeries};
use crate::compute::Compute;
use crate::database::{Database, LogFacts};
use crate::engine::{Engine, IndexHandle};
use crate::identity::{IndexName, TableIdentity};
use crate::items::{Items, Sequencer, Unread};
use crate::keys::{KeySchema, PrimaryKey};
use crate::long_work::{self, STEPS_OF_A_BUILD};
use crate::memory::Memory;
use crate::monitor_items::{MESSAGES_MAX, Message, MonitorItems};
use crate::options::{CdcOptions, IndexesOptions, ScanOptions};
use crate::present::Present;
use crate::repair::{Access, Attached, Repairs};
use crate::reread::{HINTS_MAX, Hint, HintMessage, HintTarget, Rereader, Subscriber};
use crate::rows::{RowReader, VectorColumn};
use crate::scan::Scan;
use crate::snapshot::{Saved, Saver, Snapshots, verify, watch};
use watched::{PAUSE, Watched};

/// What every table needs.
#[derive(Clone)]
pub struct TableContext {
    /// What has the tables.
    pub database: Arc<dyn Database>,
    /// Told when an index is complete.
    pub engine: Arc<Engine>,
    /// Where indexes are changed.
    pub compute: Compute,
    /// How logs are followed.
    pub cdc: CdcOptions,
    /// How tables are scanned.
    pub scan: ScanOptions,
    /// Where indexes keep their vectors.
    pub indexes: IndexesOptions,
    /// Where indexes are saved.
    pub snapshots: Arc<Snapshots>,
    /// Where indexes go whose vectors turn out to be damaged.
    pub damaged: mpsc::Sender<Arc<IndexHandle>>,
    /// Where tasks of a table say that what its indexes are told has a gap.
    pub interrupted: mpsc::Sender<Interrupted>,
    /// Whether there is memory for more rows.
    pub memory: Arc<Memory>,
    /// All tasks, for the end.
    pub tasks: TaskTracker,
    /// Where long work is seen.
    pub work: Registry,
    /// Where indexes that serve are made known for repair.
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
    /// Begins to follow a log.
    fn new(context: &TableContext, table: &TableIdentity, name: String, log: &LogFacts) -> Reader {
        let present = context.present();
        // A write that the scan comes too early for may be back-dated, and lie in the log as early as that.
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

/// What an index begins with.
pub struct Beginning {
    /// The table's log.
    pub log: LogFacts,
    /// Rows of a snapshot; without them the table is scanned.
    pub rows: Option<BeginningRows>,
}

/// The rows of an index that comes out of a snapshot.
pub struct BeginningRows {
    /// What is known of them.
    pub items: Items,
    /// Rows to be read.
    pub unread: Unread,
    /// The snapshot.
    pub saved: Saved,
    /// Whether the table has to be scanned all the same, as the log may lack changes.
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
        let build = Build {
            index,
            context: self.context.clone(),
            table: self.identity.clone(),
            sequencer: self.sequencer.clone(),
            hints: self.hints.clone(),
            subscriptions: self.subscriptions.clone(),
            readers: self.readers.iter().map(|of| of.progress.clone()).collect(),
            cancel: cancel.clone(),
        };
        self.watched.spawn(&cancel, build.run(beginning));
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
    /// Ends the log's readers and whatever else runs for the table.
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// The life of an index: built or opened, then kept up to date and saved until it is cancelled.
struct Build {
    index: Arc<IndexHandle>,
    context: TableContext,
    table: TableIdentity,
    sequencer: Arc<Sequencer>,
    hints: mpsc::Sender<HintMessage>,
    subscriptions: mpsc::Sender<Subscriber>,
    /// How far the readers of the table's log are.
    readers: Vec<Arc<Progress>>,
    cancel: CancellationToken,
}

impl Build {
    async fn run(self, beginning: Beginning) {
        let (messages, message_receiver) = mpsc::channel(MESSAGES_MAX);
        let items = messages.downgrade();
        let (rows, row_receiver) = mpsc::channel(MESSAGES_MAX);
        let (saves, save_receiver) = mpsc::channel(1);
        let (scanned, all_scanned) = oneshot::channel();
        let mut monitor = MonitorItems::new(
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
            monitor = monitor.reopened(rows.items, rows.unread.expired, rows.to_reconcile);
        }
        let build = async {
            let work = long_work::build(&self.index.identity);
            let task = self.context.work.start(work);
            let (subscribed, ready) = oneshot::channel();
            let subscriber = Subscriber {
                index: self.index.clone(),
                messages,
                subscribed,
            };
            self.subscriptions.send(subscriber).await.ok()?;
            ready.await.ok()?;
            // From here on every hint reaches the index; what was acknowledged before is seen by a scan.
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
            // It may be repaired until it is gone, with the monitor.
            let attached = self.attach(items);
            let saver = Saver {
                present: self.context.present(),
                index: self.index.clone(),
                snapshots: self.context.snapshots.clone(),
                work: self.context.work.clone(),
                readers: self.readers.clone(),
                hints: self.hints.clone(),
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
        let monitor = monitor.run(message_receiver, row_receiver, save_receiver, scanned);
        // The build ends before the monitor does, and without it only when the service stops.
        let _ = tokio::join!(build, monitor);
    }

    /// Reads rows that a snapshot lacks, as they changed while it was taken, so that no search goes without them.
    /// That comes before the log is read from where the snapshot ends, whose hints would take up the room for theirs.
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

    /// Has the log read from where a snapshot ends. All that the log told before what is returned is in the
    /// index, or will be when it has been scanned.
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

    /// Has the index built anew when its vectors turn out to be damaged, for as long as it lives.
    fn watch_vectors(&self) {
        let watch = watch(self.index.clone(), self.context.damaged.clone());
        let cancel = self.cancel.clone();
        let until_gone = async move { cancel.run_until_cancelled(watch).await };
        self.context.tasks.spawn(until_gone);
    }

    /// In the background.
    fn verify_vectors(&self) {
        let (index, cancel) = (self.index.clone(), self.cancel.clone());
        self.context
            .tasks
            .spawn(aside(move || verify(&index, &cancel)));
    }

    /// Reads the one vector column of the index.
    fn reader(&self) -> RowReader {
        RowReader {
            table: self.table.clone(),
            keys: self.index.identity.keys.clone(),
            columns: vec![VectorColumn {
                name: self.index.identity.column.clone(),
                dimensions: self.index.identity.options.dimensions,
            }],
        }
    }

    fn attach(&self, items: mpsc::WeakSender<Message>) -> Attached {
        self.context.repairs.attach(Access {
            index: self.index.clone(),
            reader: self.reader(),
            database: self.context.database.clone(),
            items,
            hints: self.hints.clone(),
            readers: self.readers.clone(),
        })
    }

    /// Waits until the hints that have come up to now are in the index.
    async fn settle(&self) -> Option<()> {
        let (answer, settled) = oneshot::channel();
        let marker = HintMessage::Marker {
            index: self.index.clone(),
            answer,
        };
        self.hints.send(marker).await.ok()?;
        settled.await.ok()
    }
}
