//! All that runs for one indexed table.
//!
//! The readers of its log and the re-reader are shared by the indexes of the table. Each index
//! has a scan and a task that owns its rows. The order matters: the log is followed, and the
//! index subscribed to what it names, before the index's scan begins, so that a change that the
//! scan comes too early for is told by the log.

use std::collections::HashMap;
use std::sync::Arc;

use store_api::types::IndexState;
use tasks::Registry;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cdc::{LogFollower, ReaderSeries};
use crate::compute::Compute;
use crate::db::DbHandle;
use crate::engine::{Engine, IndexHandle};
use crate::identity::{IndexName, TableIdentity};
use crate::items::Sequencer;
use crate::keys::KeySchema;
use crate::long_work;
use crate::memory::Memory;
use crate::monitor_items::{MESSAGES_MAX, Message, MonitorItems};
use crate::options::{CdcOptions, IndexesOptions, ScanOptions};
use crate::repair::{Access, Attached, Repairs};
use crate::reread::{HINTS_MAX, HintMessage, Rereader, Subscriber};
use crate::rows::{RowReader, VectorColumn};
use crate::scan::Scan;

/// What every table needs.
#[derive(Clone)]
pub struct TableContext {
    /// The session.
    pub db: DbHandle,
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
    /// Whether there is memory for more rows.
    pub memory: Arc<Memory>,
    /// All tasks, for the end.
    pub tasks: TaskTracker,
    /// Where long work is seen.
    pub work: Registry,
    /// Where indexes that serve are made known for repair.
    pub repairs: Repairs,
}

/// An indexed table.
pub struct Table {
    identity: TableIdentity,
    context: TableContext,
    sequencer: Arc<Sequencer>,
    hints: mpsc::Sender<HintMessage>,
    subscriptions: mpsc::Sender<Subscriber>,
    /// By reader.
    series: Vec<(String, Arc<ReaderSeries>)>,
    indexes: HashMap<IndexName, CancellationToken>,
    cancel: CancellationToken,
}

impl Table {
    /// Begins to follow the table's log.
    pub fn start(
        identity: TableIdentity,
        keys: KeySchema,
        context: TableContext,
        cancel: CancellationToken,
    ) -> Table {
        let sequencer = Arc::<Sequencer>::default();
        let (hints, hint_receiver) = mpsc::channel(HINTS_MAX);
        let (subscriptions, subscription_receiver) = mpsc::channel(1);
        let rereader = Rereader::new(
            identity.clone(),
            keys.clone(),
            context.db.clone(),
            sequencer.clone(),
        );
        spawn(
            &context.tasks,
            &cancel,
            rereader.run(hint_receiver, subscription_receiver),
        );
        let mut series = Vec::new();
        for reader in &context.cdc.readers {
            let of_reader = Arc::<ReaderSeries>::default();
            series.push((reader.name.clone(), of_reader.clone()));
            let follower = LogFollower {
                table: identity.clone(),
                keys: keys.clone(),
                db: context.db.clone(),
                reader: reader.clone(),
                options: context.cdc.clone(),
                hints: hints.clone(),
                series: of_reader,
                work: context.work.clone(),
            };
            spawn(&context.tasks, &cancel, follower.run());
        }
        Table {
            identity,
            context,
            sequencer,
            hints,
            subscriptions,
            series,
            indexes: HashMap::new(),
            cancel,
        }
    }

    /// Begins to build an index of the table.
    pub fn add(&mut self, index: Arc<IndexHandle>) {
        let name = index.identity.name.clone();
        for (reader, series) in &self.series {
            series.add(self.context.engine.metrics(), &name, reader);
        }
        let cancel = self.cancel.child_token();
        let build = Build {
            index,
            context: self.context.clone(),
            table: self.identity.clone(),
            sequencer: self.sequencer.clone(),
            hints: self.hints.clone(),
            subscriptions: self.subscriptions.clone(),
            readers: self.series.iter().map(|(_, of)| of.clone()).collect(),
        };
        spawn(&self.context.tasks, &cancel, build.run());
        self.indexes.insert(name, cancel);
    }

    /// Frees an index of the table.
    pub fn remove(&mut self, name: &IndexName) {
        for (_, series) in &self.series {
            series.remove(name);
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

/// Runs a task until it ends or is cancelled.
fn spawn(
    tasks: &TaskTracker,
    cancel: &CancellationToken,
    task: impl Future<Output = ()> + Send + 'static,
) {
    let cancel = cancel.clone();
    tasks.spawn(async move {
        cancel.run_until_cancelled(task).await;
    });
}

/// The life of an index: built, then kept up to date until it is cancelled.
struct Build {
    index: Arc<IndexHandle>,
    context: TableContext,
    table: TableIdentity,
    sequencer: Arc<Sequencer>,
    hints: mpsc::Sender<HintMessage>,
    subscriptions: mpsc::Sender<Subscriber>,
    /// The readers of the table's log.
    readers: Vec<Arc<ReaderSeries>>,
}

impl Build {
    async fn run(self) {
        let (messages, message_receiver) = mpsc::channel(MESSAGES_MAX);
        let items = messages.downgrade();
        let (rows, row_receiver) = mpsc::channel(MESSAGES_MAX);
        let (scanned, all_scanned) = oneshot::channel();
        let monitor = MonitorItems::new(
            self.index.clone(),
            self.context.compute.clone(),
            self.sequencer.clone(),
            self.hints.clone(),
            self.context.memory.clone(),
        );
        let scan = Scan {
            db: self.context.db.clone(),
            reader: self.reader(),
            sequencer: self.sequencer.clone(),
            index: self.index.clone(),
            options: self.context.scan.clone(),
            compute_threads: self.context.compute.threads(),
        };
        let build = async {
            let task = self
                .context
                .work
                .start(long_work::build(&self.index.identity));
            let (subscribed, ready) = oneshot::channel();
            let subscriber = Subscriber {
                index: self.index.clone(),
                messages,
                subscribed,
            };
            self.subscriptions.send(subscriber).await.ok()?;
            ready.await.ok()?;
            self.index.set_state(IndexState::Bootstrapping);
            tracing::info!(index = %self.index.identity.name, table = %self.table, "scanning");
            scan.run(rows, &task).await;
            all_scanned.await.ok()?;
            task.add(1);
            self.settle().await?;
            task.add(1);
            self.context.engine.serving(&self.index);
            task.done();
            tracing::info!(
                index = %self.index.identity.name,
                rows = self.index.vectors.len(),
                "serving"
            );
            // It may be repaired until it is gone, with the monitor.
            Some(self.attach(items))
        };
        // The build ends long before the monitor does, and without it only when the service stops.
        let _ = tokio::join!(build, monitor.run(message_receiver, row_receiver, scanned));
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
            db: self.context.db.clone(),
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
