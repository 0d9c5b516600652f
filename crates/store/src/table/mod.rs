//! The tasks of one indexed table.
//!
//! The indexes of the table share the readers of its log and the re-reader. Each index has a scan
//! and a task that owns its rows. The order of starts matters: the log is followed, and the index
//! subscribed to its hints, before the index's scan begins. So the log names a row that changes
//! after the scan read it.

mod index_task;
mod watched;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use index_task::IndexTask;
use tasks::Registry;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::compute::Compute;
use crate::database::{CatchUp, Database, LogFacts, Progress, ReaderSeries};
use crate::feed::{Interrupted, LogFollower, Rereader, Subscriber};
use crate::identity::{IndexName, TableIdentity};
use crate::indexes::{Engine, IndexHandle};
use crate::items::Sequencer;
use crate::keys::KeySchema;
use crate::memory::Memory;
use crate::message::{HINTS_MAX, HintMessage, MESSAGES_MAX};
use crate::options::{CdcOptions, IndexesOptions, ScanOptions};
use crate::present::Present;
use crate::repair::Repairs;
use crate::snapshot::Snapshots;
pub use index_task::{Beginning, SnapshotRows};
use watched::{PAUSE, Watched};

/// The parts of the service that every table needs.
#[derive(Clone)]
pub struct TableContext {
    /// The database that has the tables.
    pub database: Arc<dyn Database>,
    /// The engine, which is notified when an index is complete.
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
    /// The memory of the process, which shows whether there is room for more rows.
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
        // A write that comes after the scan read its row may be back-dated. Its log row may then be
        // anywhere after `settled`.
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

/// An index of the table, or one that is built to take its place.
struct Member {
    index: Weak<IndexHandle>,
    cancel: CancellationToken,
}

/// An indexed table.
pub struct Table {
    identity: TableIdentity,
    context: TableContext,
    sequencer: Arc<Sequencer>,
    hints: mpsc::Sender<HintMessage>,
    subscriptions: mpsc::Sender<Subscriber>,
    readers: Vec<Reader>,
    indexes: HashMap<IndexName, Vec<Member>>,
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

    /// Begins to build an index of the table, or to bring it up to date. `log` are the facts about
    /// the table's log.
    pub fn add(&mut self, index: Arc<IndexHandle>, log: LogFacts, beginning: Beginning) {
        self.begin(index, log, beginning, None);
    }

    /// Begins to build an index that takes the place of the one of its name, which goes on until
    /// then.
    pub fn add_beside(&mut self, index: Arc<IndexHandle>, log: LogFacts) {
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
        self.begin(index, log, Beginning::Empty, cancel);
    }

    fn begin(
        &mut self,
        index: Arc<IndexHandle>,
        log: LogFacts,
        beginning: Beginning,
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
        let member = Member {
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
    pub fn remove(&mut self, name: &IndexName) {
        for reader in &self.readers {
            reader.series.remove(name);
        }
        for member in self.indexes.remove(name).unwrap_or_default() {
            member.cancel.cancel();
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
