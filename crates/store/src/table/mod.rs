//! The tasks of one indexed table.
//!
//! The indexes of the table share the readers of its log and the re-reader. Each index has a scan
//! and a task that owns its rows. The order of starts matters: the log is followed, and the index
//! subscribed to its hints, before the index's scan begins. So the log names a row that changes
//! after the scan read it.

mod index_task;
mod supervision;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use index_task::IndexTask;
use tasks::TaskRegistry;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::compute::CpuExecutor;
use crate::database::{CatchUp, LogFacts, ReaderProgress, ReaderSeries, SourceDatabase};
use crate::feed::{InterruptedTable, LogFollower, RowRereader, SubscriptionRequest};
use crate::identity::{IndexName, TableIdentity};
use crate::indexes::{IndexEngine, IndexHandle};
use crate::items::ReadSequencer;
use crate::keys::KeySchema;
use crate::memory::ProcessMemory;
use crate::message::{HINTS_MAX, HintMessage, MESSAGES_MAX};
use crate::options::{IndexesOptions, LogReadingOptions, ScanOptions};
use crate::present::TimeSource;
use crate::repair::Repairs;
use crate::snapshot::Snapshots;
pub(crate) use index_task::{InitialRows, SnapshotRows};
use supervision::{PAUSE, TaskSupervisor};

/// The parts of the service that every table needs.
#[derive(Clone)]
pub(crate) struct TableContext {
    /// The database that has the tables.
    pub database: Arc<dyn SourceDatabase>,
    /// The engine, which is notified when an index is complete.
    pub engine: Arc<IndexEngine>,
    /// The threads on which indexes are changed.
    pub compute: CpuExecutor,
    /// The options for following logs.
    pub cdc: LogReadingOptions,
    /// The options for scans of tables.
    pub scan: ScanOptions,
    /// The place where indexes keep their vectors.
    pub indexes: IndexesOptions,
    /// The place where indexes are saved.
    pub snapshots: Arc<Snapshots>,
    /// The channel for indexes whose vectors turn out to be damaged.
    pub damaged: mpsc::Sender<Arc<IndexHandle>>,
    /// The channel for tables whose indexes missed a part of the log.
    pub interrupted: mpsc::Sender<InterruptedTable>,
    /// The memory of the process, which shows whether there is room for more rows.
    pub memory: Arc<ProcessMemory>,
    /// All tasks of the service. Its end waits for them.
    pub tasks: TaskTracker,
    /// The registry of long work that `/api/v1/tasks` shows.
    pub work: TaskRegistry,
    /// The indexes that serve, and so can be repaired.
    pub repairs: Repairs,
}

impl TableContext {
    fn present(&self) -> TimeSource {
        TimeSource::of(self.database.clock())
    }
}

/// A reader of the table's log.
struct LogReader {
    name: String,
    series: Arc<ReaderSeries>,
    progress: Arc<ReaderProgress>,
}

impl LogReader {
    /// Prepares a reader that begins at the time from which on the log may name changes that a scan
    /// misses.
    fn new(
        context: &TableContext,
        table: &TableIdentity,
        name: String,
        log: &LogFacts,
    ) -> LogReader {
        let present = context.present();
        // A write that comes after the scan read its row may be back-dated. Its log row may then be
        // anywhere after `settled`.
        let now = present.now();
        let first = log.settled.map_or(now, |settled| settled.min(now));
        let start = first.saturating_sub(context.cdc.lookback);
        let series = Arc::<ReaderSeries>::default();
        let catch_up = CatchUp::new(context.work.clone(), table, &name);
        let progress = ReaderProgress::new(present, start, series.clone(), catch_up, log.ttl_s);
        LogReader {
            name,
            series,
            progress: Arc::new(progress),
        }
    }
}

/// An index of the table, or one that is built to take its place.
struct MemberIndex {
    index: Weak<IndexHandle>,
    cancel: CancellationToken,
}

/// An indexed table.
pub(crate) struct IndexedTable {
    identity: TableIdentity,
    context: TableContext,
    sequencer: Arc<ReadSequencer>,
    hints: mpsc::Sender<HintMessage>,
    subscriptions: mpsc::Sender<SubscriptionRequest>,
    readers: Vec<LogReader>,
    indexes: BTreeMap<IndexName, Vec<MemberIndex>>,
    watched: TaskSupervisor,
    cancel: CancellationToken,
}

impl IndexedTable {
    /// Begins to follow the table's log.
    pub(crate) fn start(
        identity: TableIdentity,
        keys: KeySchema,
        log: &LogFacts,
        context: TableContext,
        cancel: CancellationToken,
    ) -> IndexedTable {
        let sequencer = Arc::<ReadSequencer>::default();
        let watched = TaskSupervisor {
            tasks: context.tasks.clone(),
            interrupted: context.interrupted.clone(),
            table: identity.clone(),
            keys: keys.clone(),
            following: cancel.clone(),
            pause: PAUSE,
        };
        let (hints, hint_receiver) = mpsc::channel(HINTS_MAX);
        let (subscriptions, subscription_receiver) = mpsc::channel(1);
        let rereader = RowRereader::new(
            identity.clone(),
            keys.clone(),
            context.database.clone(),
            sequencer.clone(),
        );
        watched.spawn(&cancel, rereader.run(hint_receiver, subscription_receiver));
        let mut readers = Vec::new();
        for (at, name) in context.database.log_readers().into_iter().enumerate() {
            let reader = LogReader::new(&context, &identity, name, log);
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
        IndexedTable {
            identity,
            context,
            sequencer,
            hints,
            subscriptions,
            readers,
            indexes: BTreeMap::new(),
            watched,
            cancel,
        }
    }

    /// Begins to build an index of the table, or to bring it up to date. `log` are the facts about
    /// the table's log.
    pub(crate) fn add(&mut self, index: Arc<IndexHandle>, log: LogFacts, beginning: InitialRows) {
        self.begin(index, log, beginning, None);
    }

    /// Begins to build an index that takes the place of the one of its name, which goes on until
    /// then.
    pub(crate) fn add_replacement(&mut self, index: Arc<IndexHandle>, log: LogFacts) {
        let name = &index.identity.name;
        let serving = self.context.engine.index(name);
        let mut former = None;
        for member in self.indexes.remove(name).unwrap_or_default() {
            let is_serving = serving
                .as_ref()
                .is_some_and(|serving| std::ptr::eq(member.index.as_ptr(), Arc::as_ptr(serving)));
            match is_serving {
                true => former = Some(member),
                // It was to take the same place.
                false => member.cancel.cancel(),
            }
        }
        let cancel = former.as_ref().map(|former| former.cancel.clone());
        if let Some(former) = former {
            self.indexes.insert(name.clone(), vec![former]);
        }
        self.begin(index, log, InitialRows::Empty, cancel);
    }

    fn begin(
        &mut self,
        index: Arc<IndexHandle>,
        log: LogFacts,
        beginning: InitialRows,
        former: Option<CancellationToken>,
    ) {
        let name = index.identity.name.clone();
        for reader in &self.readers {
            let metrics = self.context.engine.metrics();
            reader.series.remove(&name);
            let read_up_to = reader.series.add(metrics, &name, &reader.name);
            index.freshness.show_in(read_up_to);
        }
        let cancel = self.cancel.child_token();
        let member = MemberIndex {
            index: Arc::downgrade(&index),
            cancel: cancel.clone(),
        };
        let (messages, received) = mpsc::channel(MESSAGES_MAX);
        let task = IndexTask {
            index,
            items: messages.downgrade(),
            context: self.context.clone(),
            table: self.identity.clone(),
            sequencer: self.sequencer.clone(),
            hints: self.hints.clone(),
            subscriptions: self.subscriptions.clone(),
            readers: self.readers.iter().map(|of| of.progress.clone()).collect(),
            cancel: cancel.clone(),
            former,
        };
        let run = task.run(log, beginning, messages, received);
        self.watched.spawn(&cancel, run);
        self.indexes.entry(name).or_default().push(member);
    }

    /// Frees an index of the table.
    pub(crate) fn remove(&mut self, name: &IndexName) {
        for reader in &self.readers {
            reader.series.remove(name);
        }
        for member in self.indexes.remove(name).unwrap_or_default() {
            member.cancel.cancel();
        }
    }

    /// Whether the table has no index left.
    pub(crate) fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }
}

impl Drop for IndexedTable {
    /// Ends the log's readers and all other tasks of the table.
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
