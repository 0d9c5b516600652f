//! The definitions of vector and full-text indexes: stored in the cluster, and seen by every
//! request in one snapshot.
//!
//! Definitions are stored in a keyspace of the cluster, so they are replicated and backed up as the
//! rows are, and all gateways see the same ones. Each gateway has an internal session to the
//! cluster, under a user of its own, and follows that keyspace. It holds what it read in one
//! immutable [`IndexCatalogSnapshot`], which is replaced as a whole. A request takes the snapshot
//! once ([`IndexCatalog::snapshot`], one atomic load) and decides everything by it.
//!
//! While no index is defined, the snapshot [is empty](IndexCatalogSnapshot::is_empty), and requests
//! pass without a look at their tables.
//!
//! Each snapshot has an [epoch](IndexCatalogSnapshot::epoch), and a statement is prepared by the
//! snapshot of one epoch. Under a later snapshot the statement holds for as long as everything it
//! depends on is unchanged (`crate::dependencies`). Otherwise its EXECUTE is answered UNPREPARED.

mod active_revision;
mod activity;
mod base_table;
mod change;
mod clocks;
mod cluster;
mod connect;
mod creation;
mod define;
mod defined_index;
mod definition;
#[cfg(test)]
mod fixtures;
mod follower;
mod gateways;
mod generations;
mod grants;
mod history;
mod indexable;
mod lease;
mod log_table;
mod next_change;
mod one_version;
mod options;
mod reconcile;
mod snapshot;
mod statement;
mod streams;
mod table;
mod tables;
mod task;
mod timeuuids;
mod truncation;
mod validity;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use cql::error::CqlError;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::activity::{LogMarks, mark_of};
use self::cluster::ClusterError;
use self::follower::RoundFindings;
use self::gateways::LiveGateway;
use self::task::DefinitionTask;
use self::validity::SnapshotValidity;
use crate::clients::OpenConnections;
use crate::log_clock::LogClock;

pub(crate) use activity::MarkedWrite;
pub(crate) use clocks::ClusterClocks;
pub(crate) use cluster::InternalSession;
pub(crate) use defined_index::DefinedIndex;
pub use options::InternalSessionOptions;
pub(crate) use snapshot::IndexCatalogSnapshot;
pub(crate) use statement::{IndexStatement, probe};
#[cfg(test)]
pub(crate) use streams::{GenerationStreams, LogStreams};
pub(crate) use table::{LoggedColumn, LoggedColumnKind, LoggedTable};

/// The time limit for a request to wait for a new look at the cluster. It is less than drivers wait
/// for an answer.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(4);

/// The pause after a look at the gateways that failed.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// The vector and full-text indexes of the cluster, as this gateway knows them.
pub(crate) struct IndexCatalog {
    /// The snapshot that requests are decided by.
    current: ArcSwap<IndexCatalogSnapshot>,
    /// The time until which the snapshot holds.
    validity: SnapshotValidity,
    /// The number of times that the snapshot has lapsed. It is locked while a snapshot is replaced
    /// on the condition that none has lapsed.
    lapses: Mutex<u64>,
    /// The options of the internal session; `None` for a gateway that passes everything through.
    options: Option<InternalSessionOptions>,
    /// The internal session, once it is open.
    cluster: OnceLock<Arc<InternalSession>>,
    /// The clocks that this gateway's clock is compared with.
    clocks: ClusterClocks,
    /// The change logs that may get rows at present.
    pub(crate) activity: Arc<LogMarks>,
    /// Begins a round of the follower at once.
    refresh_requested: Notify,
    /// The beginning of the last look at the cluster whose findings are in place.
    refreshed: watch::Sender<Instant>,
    /// The last round of the follower; `None` before the first.
    rounds: watch::Receiver<Option<RoundFindings>>,
    /// The reason why there was no round yet; `None` if none is known.
    trouble: watch::Receiver<Option<String>>,
}

impl IndexCatalog {
    /// Starts a catalog whose task, given to `spawn`, follows the definitions of the cluster.
    /// Without options there is no task, and the catalog stays empty. `clock` dates log rows, and
    /// is compared with other clocks. After `stop` the task goes on until no client is there any
    /// more, or until `kill`.
    pub(crate) fn start(
        options: Option<InternalSessionOptions>,
        address: String,
        clients: Arc<OpenConnections>,
        clock: Arc<LogClock>,
        (stop, kill): (CancellationToken, CancellationToken),
        spawn: impl FnOnce(std::pin::Pin<Box<dyn Future<Output = ()> + Send>>),
    ) -> Arc<IndexCatalog> {
        let (rounds_in, rounds) = watch::channel(None);
        let (trouble_in, trouble) = watch::channel(None);
        let catalog = Arc::new(IndexCatalog {
            current: ArcSwap::default(),
            validity: SnapshotValidity::new(),
            lapses: Mutex::new(0),
            options: options.clone(),
            cluster: OnceLock::new(),
            clocks: ClusterClocks::new(clock),
            activity: Arc::new(LogMarks::new(options.is_some())),
            refresh_requested: Notify::new(),
            refreshed: watch::Sender::new(Instant::now()),
            rounds,
            trouble,
        });
        if let Some(options) = options {
            let task = DefinitionTask {
                catalog: catalog.clone(),
                clients,
                options,
                address,
                rounds: rounds_in,
                trouble: trouble_in,
                stop,
                kill,
            };
            spawn(Box::pin(task.run()));
        }
        catalog
    }

    /// A catalog with this snapshot, until a test replaces it. It is never out of date.
    #[cfg(test)]
    pub(crate) fn new(snapshot: IndexCatalogSnapshot) -> IndexCatalog {
        const GOOD: Duration = Duration::from_secs(24 * 60 * 60);
        IndexCatalog {
            current: ArcSwap::from_pointee(snapshot),
            validity: SnapshotValidity::new(),
            lapses: Mutex::new(0),
            options: None,
            cluster: OnceLock::new(),
            clocks: ClusterClocks::default(),
            activity: Arc::new(LogMarks::new(false)),
            refresh_requested: Notify::new(),
            refreshed: watch::Sender::new(Instant::now() + GOOD),
            rounds: watch::channel(None).1,
            trouble: watch::channel(None).1,
        }
    }

    /// The present snapshot. A request takes it once and decides only by it.
    pub(crate) fn snapshot(&self) -> arc_swap::Guard<Arc<IndexCatalogSnapshot>> {
        self.current.load()
    }

    /// The clocks that this gateway's clock is compared with.
    pub(crate) fn clocks(&self) -> &ClusterClocks {
        &self.clocks
    }

    /// The gateway's own session; `None` until it is open, and for a gateway that passes everything
    /// through.
    pub(crate) fn cluster(&self) -> Option<Arc<InternalSession>> {
        self.cluster.get().cloned()
    }

    /// The keyspace of the definitions; `None` for a gateway that passes everything through.
    pub(crate) fn keyspace(&self) -> Option<&str> {
        Some(&self.options.as_ref()?.keyspace)
    }

    /// Waits until the definitions were read for the first time. No request may pass before that.
    pub(crate) async fn ready(&self) {
        if self.options.is_some() {
            let mut rounds = self.rounds.clone();
            if rounds.wait_for(Option::is_some).await.is_err() {
                // The sender was dropped, as the gateway stops.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Whether [`IndexCatalog::ready`] has nothing to wait for.
    pub(crate) fn is_ready(&self) -> bool {
        self.options.is_none() || self.rounds.borrow().is_some()
    }

    /// Reads the gateways that live, and takes in their clocks and their marks on logs.
    async fn refresh_gateways(
        &self,
        cluster: &InternalSession,
        own: Uuid,
    ) -> Result<Vec<LiveGateway>, ClusterError> {
        let (began, from) = (Instant::now(), self.clocks.now_micros());
        let live = gateways::read(cluster).await?;
        self.clocks
            .take_in(&live, own, from, self.clocks.now_micros());
        self.activity.take_in(&live, began, from);
        Ok(live)
    }

    /// Looks at the gateways whenever a poll of a log waits for a look, until the future is
    /// dropped.
    async fn refresh_gateways_for_polls(&self, cluster: &InternalSession, own: Uuid) {
        loop {
            self.activity.refresh_is_due().await;
            while let Err(error) = self.refresh_gateways(cluster, own).await {
                tracing::debug!(%error, "the gateways cannot be looked at");
                tokio::time::sleep(RETRY_EVERY).await;
            }
        }
    }

    /// Begins a write to these tables. Waits until all gateways can see marks of their logs.
    ///
    /// # Errors
    /// If the marks can't be written in time.
    pub(crate) async fn enter(
        &self,
        tables: impl Iterator<Item = &Arc<LoggedTable>>,
    ) -> Result<MarkedWrite, CqlError> {
        self.activity
            .enter(tables, || self.clocks.now_micros())
            .await
    }

    /// Whether the log of a table has no rows that are dated from `from_micros` on, as far as marks
    /// were seen. Microseconds since the epoch, by the log clock.
    pub(crate) fn is_idle(&self, keyspace: &str, table: &str, from_micros: i64) -> bool {
        let (mark, now) = (mark_of(keyspace, table), self.clocks.now_micros());
        !self.snapshot().lapsed() && self.activity.may_be_idle(&mark, from_micros, now)
    }

    /// Makes the follower read the definitions at once.
    fn request_refresh(&self) {
        self.refresh_requested.notify_one();
    }

    /// Notes that the findings of the look that began at `began` are in place.
    fn set_refreshed(&self, began: Instant) {
        self.refreshed.send_replace(began);
    }

    /// Has the definitions read again, and waits until what the cluster holds now is in place;
    /// false if that takes too long. Callers at the same time share one look.
    pub(crate) async fn refresh_now(&self) -> bool {
        let wanted_at = Instant::now();
        let mut looked = self.refreshed.subscribe();
        self.request_refresh();
        let in_force = looked.wait_for(|began| *began >= wanted_at);
        timeout(REFRESH_TIMEOUT, in_force)
            .await
            .is_ok_and(|looked| looked.is_ok())
    }

    /// The reason why the definitions were not read yet; `None` if none is known.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }

    /// Marks the snapshot as lapsed if its time is over. Every decision on a request begins with
    /// this, as a process that was stopped for a while may have done nothing else about it.
    pub(crate) fn lapse_if_over(&self) {
        if self.validity.is_over() && !self.snapshot().lapsed() {
            let lapses = self.lapses.lock();
            // Another thread may have prolonged it, and replaced the snapshot, before the lock was
            // held.
            if self.validity.is_over() {
                self.lapse();
            }
            drop(lapses);
        }
    }

    fn lapse(&self) {
        if !self.snapshot().lapsed() {
            tracing::error!(
                "the cluster could not be told in time that this gateway lives: writes are refused until it can"
            );
            self.replace(IndexCatalogSnapshot::clone(&self.snapshot()).into_lapsed());
        }
    }

    /// Notes a heartbeat that succeeded: the snapshot holds until `end`. True if its time was over
    /// before; then it has lapsed and must be read again.
    pub(crate) fn prolong(&self, end: Instant) -> bool {
        let mut lapses = self.lapses.lock();
        let was_over = self.validity.is_over();
        if was_over {
            *lapses += 1;
            self.lapse();
        }
        self.validity.prolong(end);
        was_over
    }

    /// The number of times that the snapshot has lapsed.
    fn lapses(&self) -> u64 {
        *self.lapses.lock()
    }

    /// Puts a snapshot in place that was read when there had been `known_lapses` lapses; false if
    /// there has been another one since.
    fn replace_since(&self, known_lapses: u64, snapshot: &IndexCatalogSnapshot) -> bool {
        let lapses = self.lapses.lock();
        let holds = *lapses == known_lapses && !self.validity.is_over();
        if holds {
            self.replace(snapshot.clone());
        }
        holds
    }

    /// Puts another snapshot in place, under the next epoch.
    pub(crate) fn replace(&self, snapshot: IndexCatalogSnapshot) {
        self.current.rcu(|current| {
            let mut next = snapshot.clone();
            next.epoch = current.epoch + 1;
            next
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATER: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_snapshot_lapses_by_itself() {
        let catalog = IndexCatalog::new(IndexCatalogSnapshot::default());
        catalog.lapse_if_over();
        assert!(!catalog.snapshot().lapsed(), "nothing was ever said");
        assert!(!catalog.prolong(Instant::now() + LATER));
        catalog.lapse_if_over();
        assert!(!catalog.snapshot().lapsed());

        assert!(!catalog.prolong(Instant::now()));
        let epoch = catalog.snapshot().epoch();
        catalog.lapse_if_over();
        assert!(catalog.snapshot().lapsed());
        assert!(catalog.snapshot().epoch() > epoch);
    }

    #[tokio::test]
    async fn a_snapshot_read_before_a_lapse_is_not_used_after_it() {
        let catalog = IndexCatalog::new(IndexCatalogSnapshot::default());
        catalog.prolong(Instant::now());
        let known = catalog.lapses();
        assert!(!catalog.replace_since(known, &IndexCatalogSnapshot::default()));
        // No request came meanwhile, so the next heartbeat finds the lapse.
        assert!(catalog.prolong(Instant::now() + LATER));
        assert!(catalog.snapshot().lapsed());
        assert!(!catalog.replace_since(known, &IndexCatalogSnapshot::default()));
        assert!(catalog.snapshot().lapsed());
        assert!(catalog.replace_since(catalog.lapses(), &IndexCatalogSnapshot::default()));
        assert!(!catalog.snapshot().lapsed());
    }

    #[tokio::test]
    async fn a_caller_waits_for_a_refresh_that_began_later() {
        let catalog = Arc::new(IndexCatalog::new(IndexCatalogSnapshot::default()));
        let began = Instant::now() - Duration::from_millis(5);
        catalog.set_refreshed(began);
        let looking = catalog.clone();
        let looking = tokio::spawn(async move { looking.refresh_now().await });
        catalog.refresh_requested.notified().await;
        // A look that was under way before does not count.
        catalog.set_refreshed(began);
        // The other task runs in the same thread, until it waits again.
        tokio::task::yield_now().await;
        assert!(!looking.is_finished());
        catalog.set_refreshed(Instant::now());
        let looked = timeout(LATER, looking).await;
        assert!(looked.unwrap().unwrap());
    }
}
