//! The engine: every index and its status, and the routes of requests.
//!
//! Requests only read the engine. So the engine is a value that is swapped, and not a task with
//! a mailbox, and a search never waits for discovery.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use store_api::types::{IndexState, NodeStatus, TableSize};
use tokio::sync::watch;
use tokio::time::Instant;
use uuid::Uuid;

use super::handle::IndexHandle;
use crate::database::SourceDatabase;
use crate::filter::{SearchRequirements, UnsupportedRestriction};
use crate::identity::{IndexIdentity, IndexName, StructureClass, TableIdentity};
use crate::metrics::ServiceMetrics;
use crate::present::TimeSource;

/// The reason why no index can answer a search.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NoRoute {
    /// There is no index of that name, neither here nor in the schema.
    Missing,
    /// The service as a whole is not ready yet.
    NodeBootstrapping,
    /// The index is not built yet.
    Building {
        /// The part of the ring that the scan has covered, in per cent.
        progress: f64,
        /// The number of rows that it lacks, by the part of the ring; `None` while the scan begins.
        lacks: Option<u64>,
    },
    /// Indexes serve, but none of them can be searched with such restrictions. The text says why.
    Unsuited(String),
}

/// The time for which searches wait for an index that is built again after TRUNCATE.
const TRUNCATED_LATELY: Duration = Duration::from_secs(10);

/// The most rows that an index may lack for searches to wait until it has them, which takes about a
/// second.
const AWAITED_ROWS_MAX: u64 = 10_000;

/// The longest wait of a search until the scan of an index that begins to be built has covered a
/// part of the ring, by which the rows that the index lacks are estimated.
const BEGINS_WITHIN: Duration = Duration::from_secs(1);

type Registry = BTreeMap<IndexName, Arc<IndexHandle>>;

/// Every index, and the status of the whole service.
pub(crate) struct IndexEngine {
    indexes: ArcSwap<Registry>,
    /// Indexes that are being built to take the place of others, which serve until then.
    replacements: Mutex<Registry>,
    metrics: ServiceMetrics,
    /// The names of the log readers, as in the metrics.
    readers: Vec<String>,
    node: Mutex<ServiceState>,
    status: watch::Sender<NodeStatus>,
    /// The database that has the schema.
    database: OnceLock<Arc<dyn SourceDatabase>>,
    /// Whether the database is reached through gateways.
    behind_gateways: AtomicBool,
    /// Notified when an index comes, goes, begins to serve, or has taken in more of its table.
    news: watch::Sender<()>,
}

/// The state from which the status of the service follows.
#[derive(Debug, Default)]
struct ServiceState {
    /// Whether the first session to the database has been tried.
    started: bool,
    connected: bool,
    /// Whether the first discovery is complete.
    discovered: bool,
    /// Indexes of the first discovery that are still being built.
    initial: HashSet<IndexName>,
}

impl ServiceState {
    fn status(&self) -> NodeStatus {
        match self {
            ServiceState { started: false, .. } => NodeStatus::Initializing,
            ServiceState {
                connected: false, ..
            } => NodeStatus::ConnectingToDb,
            ServiceState {
                discovered: true,
                initial,
                ..
            } if initial.is_empty() => NodeStatus::Serving,
            _ => NodeStatus::Bootstrapping,
        }
    }
}

impl IndexEngine {
    /// Makes an engine without indexes. `readers` are the names of the log readers.
    pub(crate) fn new(metrics: ServiceMetrics, readers: Vec<String>) -> IndexEngine {
        IndexEngine {
            indexes: ArcSwap::default(),
            replacements: Mutex::default(),
            metrics,
            readers,
            node: Mutex::default(),
            status: watch::Sender::new(NodeStatus::Initializing),
            database: OnceLock::new(),
            behind_gateways: AtomicBool::new(false),
            news: watch::Sender::new(()),
        }
    }

    /// The present by the clock of the database, as the time since the epoch.
    pub(crate) fn now(&self) -> Duration {
        let of_database = self.database.get().map(|database| database.clock());
        of_database.map(TimeSource::of).unwrap_or_default().now()
    }

    /// The present by the clock of the database, in seconds since the epoch.
    pub(crate) fn now_s(&self) -> u32 {
        u32::try_from(self.now().as_secs()).unwrap_or(u32::MAX)
    }

    /// Sets the database that has the schema. Only the first call counts.
    pub(crate) fn set_database(&self, database: Arc<dyn SourceDatabase>) {
        let _ = self.database.set(database);
    }

    /// The time by which the database's clock is ahead of the machine's clock, which was set back.
    /// `None` if the database has no clock of its own.
    pub(crate) fn clock_lead(&self) -> Option<Duration> {
        self.database.get()?.clock_lead()
    }

    /// The tables of the database in this process with their sizes; `None` if it is elsewhere.
    pub(crate) fn table_sizes(&self) -> Option<Vec<TableSize>> {
        self.database.get()?.table_sizes()
    }

    /// The database, if a search reads its rows where an index has had no room for some of them.
    pub(crate) fn rows_to_search(&self) -> Option<&Arc<dyn SourceDatabase>> {
        let database = self.database.get();
        database.filter(|database| database.reads_missing_rows())
    }

    /// Whether the schema has an index of that name.
    pub(crate) fn schema_has(&self, name: &IndexName) -> bool {
        let database = self.database.get();
        database.is_some_and(|database| database.has_index(name))
    }

    /// Waits until an index of that version serves with all its columns. Returns at once if the
    /// schema has no index of that name, and as soon as it has none any more.
    pub(crate) async fn serves(&self, name: &IndexName, version: Uuid) {
        // Before the first look, so that no change after it is missed.
        let mut news = self.news.subscribe();
        while self.schema_has(name) && !self.serves_now(name, version) {
            // The sender lives as long as `self`.
            let _ = news.changed().await;
        }
    }

    /// Whether an index of that version serves with all its columns.
    pub(crate) fn serves_now(&self, name: &IndexName, version: Uuid) -> bool {
        self.index(name)
            .is_some_and(|index| index.status(self.now()).serves(version) && self.keeps_all(&index))
    }

    /// The metric families of the service.
    pub(crate) fn metrics(&self) -> &ServiceMetrics {
        &self.metrics
    }

    /// The facts about the session to the database, by name.
    pub(crate) fn session_counters(&self) -> BTreeMap<String, u64> {
        let database = self.database.get();
        let counters = database.map(|database| database.session_counters());
        counters.unwrap_or_default()
    }

    /// The status of the service.
    pub(crate) fn status(&self) -> NodeStatus {
        *self.status.borrow()
    }

    /// A receiver for the status of the service and its changes.
    pub(crate) fn watch_status(&self) -> watch::Receiver<NodeStatus> {
        self.status.subscribe()
    }

    /// All indexes in the order of their names.
    pub(crate) fn indexes(&self) -> Vec<Arc<IndexHandle>> {
        self.indexes.load().values().cloned().collect()
    }

    /// The index of that name.
    pub(crate) fn index(&self, name: &IndexName) -> Option<Arc<IndexHandle>> {
        self.indexes.load().get(name).cloned()
    }

    /// The index of that name, or the reason why it is not here.
    pub(crate) fn find(&self, name: &IndexName) -> Result<Arc<IndexHandle>, NoRoute> {
        self.index(name).ok_or_else(|| self.no_index(name))
    }

    /// The reason why the engine has no index of that name. The schema may have it, as the index is
    /// only being opened or is about to go.
    fn no_index(&self, name: &IndexName) -> NoRoute {
        if !self.schema_has(name) {
            NoRoute::Missing
        } else if self.status() == NodeStatus::Serving {
            NoRoute::Building {
                progress: 0.0,
                lacks: None,
            }
        } else {
            NoRoute::NodeBootstrapping
        }
    }

    /// The index that answers searches of the named one: of the indexes on its column that serve
    /// and have all columns that the search needs, the one that leaves the fewest restricted ones
    /// to a filter, and of equal ones one that lacks no rows, and the newest (contract, section
    /// 1.6). So an index can be built again next to the old one. A search that only an index under
    /// construction can answer gets its progress, even if others serve. A search that is [for one
    /// index](SearchRequirements::is_for_one) is answered by the named index or by none.
    pub(crate) fn route(
        &self,
        name: &IndexName,
        needed: &SearchRequirements<'_>,
    ) -> Result<RoutedSearch, NoRoute> {
        let indexes = self.indexes.load();
        let requested = indexes.get(name).ok_or_else(|| self.no_index(name))?;
        let of_requested = |other: &&Arc<IndexHandle>| match needed.is_for_one {
            true => Arc::ptr_eq(other, requested),
            false => {
                other.identity.table == requested.identity.table
                    && other.identity.column == requested.identity.column
            }
        };
        let of_column = || indexes.values().filter(of_requested);
        let serves = |index: &Arc<IndexHandle>| self.serves_current(index);
        let fits = |index: &Arc<IndexHandle>| needed.fits(&self.identity_now(index));
        let fitting = of_column().filter(|index| serves(index) && fits(index));
        let best = fitting.min_by_key(|index| {
            let left = needed.left_by(&self.identity_now(index)).count();
            let version = version_order(index.identity.version);
            (left, index.lacks_rows(), Reverse(version))
        });
        if let Some(index) = best {
            return Ok(RoutedSearch {
                renamed: self.renamed(index).map(Box::new),
                index: index.clone(),
                requested: requested.clone(),
            });
        }
        let beside = self.replacements();
        let mut awaited = of_column().chain(beside.values().filter(of_requested));
        let awaited = awaited.find(|index| fits(index)).cloned();
        drop(beside);
        let serving = of_column().filter(|index| serves(index));
        let serving: Vec<_> = serving.map(|index| self.identity_now(index)).collect();
        if awaited.is_none() && !serving.is_empty() {
            return Err(NoRoute::Unsuited(unsuited(&serving, needed)));
        }
        match self.status() {
            NodeStatus::Serving => {
                let awaited = awaited.as_ref().unwrap_or(requested);
                Err(NoRoute::Building {
                    progress: awaited.progress(),
                    lacks: awaited.lacks(),
                })
            }
            _ => Err(NoRoute::NodeBootstrapping),
        }
    }

    /// The [route](IndexEngine::route) of a search. If the table was truncated a moment ago, it
    /// waits for the index to be built again, which takes a moment while the table is empty. It
    /// also waits for an index that lacks few rows, and for a moment until that is known.
    pub(crate) async fn current_route(
        &self,
        name: &IndexName,
        needed: &SearchRequirements<'_>,
        within: Duration,
    ) -> Result<RoutedSearch, NoRoute> {
        let route = || self.route(name, needed);
        self.when_current(name, within, route).await
    }

    /// The index on the texts of a column that answers which of them match words: one that serves,
    /// a global one before local ones, the one of this name before others, and the newest. It waits
    /// for an index as [`IndexEngine::current_route`] does.
    pub(crate) async fn current_text_index(
        &self,
        table: &TableIdentity,
        column: &str,
        named: &str,
        within: Duration,
    ) -> Result<Arc<IndexHandle>, NoRoute> {
        let Some(first) = self.text_indexes(table, column).into_iter().next() else {
            return Err(NoRoute::Unsuited(format!(
                "BM25 requires the column to be indexed using 'fulltext_index', but column {column} \
                 is not"
            )));
        };
        let route = || self.text_index(table, column, named);
        self.when_current(&first.identity.name, within, route).await
    }

    fn text_indexes(&self, table: &TableIdentity, column: &str) -> Vec<Arc<IndexHandle>> {
        let indexes = self.indexes.load();
        let of_column = indexes.values().filter(|index| {
            index.identity.table == *table
                && index.identity.options.class() == StructureClass::FullText
                && self.identity_now(index).column == column
        });
        of_column.cloned().collect()
    }

    fn text_index(
        &self,
        table: &TableIdentity,
        column: &str,
        named: &str,
    ) -> Result<Arc<IndexHandle>, NoRoute> {
        let of_column = self.text_indexes(table, column);
        let serving = of_column.iter().filter(|index| self.serves_current(index));
        let best = serving.min_by_key(|index| {
            let IndexIdentity {
                name,
                local_key,
                version,
                ..
            } = &index.identity;
            let is_other = name.index != named;
            let version = Reverse(version_order(*version));
            (!local_key.is_empty(), is_other, index.lacks_rows(), version)
        });
        match (best, of_column.first()) {
            (Some(index), _) => Ok(index.clone()),
            (None, None) => Err(NoRoute::Missing),
            (None, Some(_)) if self.status() != NodeStatus::Serving => {
                Err(NoRoute::NodeBootstrapping)
            }
            (None, Some(awaited)) => Err(NoRoute::Building {
                progress: awaited.progress(),
                lacks: awaited.lacks(),
            }),
        }
    }

    /// Whether an index serves and the schema still has it.
    fn serves_current(&self, index: &IndexHandle) -> bool {
        index.state() == IndexState::Serving && self.is_current(index)
    }

    /// The outcome of a look for an index, once an index that is about to come is there.
    async fn when_current<T>(
        &self,
        name: &IndexName,
        within: Duration,
        route: impl Fn() -> Result<T, NoRoute>,
    ) -> Result<T, NoRoute> {
        let mut news = self.news.subscribe();
        let begins = Instant::now() + BEGINS_WITHIN;
        let current = async {
            loop {
                match route() {
                    Err(NoRoute::Building { lacks, .. })
                        if lacks.is_some_and(|rows| rows <= AWAITED_ROWS_MAX)
                            || self.is_replaced(name) =>
                    {
                        // The sender lives as long as `self`.
                        let _ = news.changed().await;
                    }
                    Err(NoRoute::Building { lacks: None, .. }) if Instant::now() < begins => {
                        let _ = tokio::time::timeout_at(begins, news.changed()).await;
                    }
                    route => return route,
                }
            }
        };
        let current = tokio::time::timeout(within, current).await;
        current.unwrap_or_else(|_| route())
    }

    /// Whether another index is about to take the place of the named one, or did so a moment ago.
    fn is_replaced(&self, name: &IndexName) -> bool {
        // An index that only the schema has is being opened.
        self.index(name).is_none_or(|index| {
            let truncated_ms = index.identity.truncated_ms;
            let truncated_ms = truncated_ms.and_then(|ms| u64::try_from(ms).ok());
            let truncated = truncated_ms.map(Duration::from_millis);
            !self.is_current(&index)
                || truncated.is_some_and(|at| self.now() < at + TRUNCATED_LATELY)
        })
    }

    /// Whether an index keeps all columns that the schema wants it to keep.
    pub(crate) fn keeps_all(&self, index: &IndexHandle) -> bool {
        let database = self.database.get();
        database.is_none_or(|database| database.keeps_all(&index.identity))
    }

    /// The identity of an index with the present names of its columns, as a search gives them.
    pub(crate) fn identity_now<'i>(&self, index: &'i IndexHandle) -> Cow<'i, IndexIdentity> {
        match self.renamed(index) {
            Some(renamed) => Cow::Owned(renamed),
            None => Cow::Borrowed(&index.identity),
        }
    }

    fn renamed(&self, index: &IndexHandle) -> Option<IndexIdentity> {
        self.database.get()?.renamed(&index.identity)
    }

    /// Whether the schema still has that very index.
    fn is_current(&self, index: &IndexHandle) -> bool {
        let database = self.database.get();
        database.is_none_or(|database| database.is_current(&index.identity))
    }

    /// Adds an index, in place of any other of its name.
    pub(crate) fn insert(&self, index: Arc<IndexHandle>) {
        self.indexes.rcu(|indexes| {
            let mut indexes = Registry::clone(indexes);
            indexes.insert(index.identity.name.clone(), index.clone());
            indexes
        });
        self.news.send_replace(());
    }

    /// Adds an index that takes the place of the one of its name once it serves.
    pub(crate) fn insert_replacement(&self, index: Arc<IndexHandle>) {
        let name = index.identity.name.clone();
        self.replacements().insert(name, index);
    }

    /// Whether an index is being built to take the place of another.
    pub(crate) fn is_replacement(&self, index: &Arc<IndexHandle>) -> bool {
        let beside = self.replacements();
        let of_name = beside.get(&index.identity.name);
        of_name.is_some_and(|of_name| Arc::ptr_eq(of_name, index))
    }

    fn replacements(&self) -> MutexGuard<'_, Registry> {
        self.replacements
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes an index and its series.
    pub(crate) fn remove(&self, name: &IndexName) {
        self.replacements().remove(name);
        self.indexes.rcu(|indexes| {
            let mut indexes = Registry::clone(indexes);
            indexes.remove(name);
            indexes
        });
        self.metrics.forget(name, &self.readers);
        self.change(|node| {
            node.initial.remove(name);
        });
        self.news.send_replace(());
    }

    /// Notes the part of the ring that the scan of an index has covered, in per cent.
    pub(crate) fn progressed(&self, index: &IndexHandle, per_cent: f64) {
        index.set_progress(per_cent);
        self.news.send_replace(());
    }

    /// Marks an index as complete.
    pub(crate) fn serving(&self, index: &IndexHandle) {
        index.set_progress(100.0);
        index.set_state(IndexState::Serving);
        let mut beside = self.replacements();
        let name = &index.identity.name;
        if beside
            .get(name)
            .is_some_and(|of_name| std::ptr::eq(Arc::as_ptr(of_name), index))
            && let Some(index) = beside.remove(name)
        {
            self.insert(index);
        }
        drop(beside);
        self.change(|node| {
            node.initial.remove(&index.identity.name);
        });
        self.news.send_replace(());
    }

    /// Sets whether there is a session to the database.
    pub(crate) fn set_connected(&self, connected: bool) {
        self.change(|node| {
            node.started = true;
            node.connected = connected;
        });
    }

    /// Sets whether the database is Apache Cassandra with gateways.
    pub(crate) fn set_behind_gateways(&self, is_behind: bool) {
        self.behind_gateways.store(is_behind, Ordering::Relaxed);
    }

    /// Whether the database is Apache Cassandra with gateways.
    pub(crate) fn is_behind_gateways(&self) -> bool {
        self.behind_gateways.load(Ordering::Relaxed)
    }

    /// Notes that the first discovery is complete. The service then serves once all indexes that
    /// are known now serve.
    pub(crate) fn first_discovery(&self) {
        let building = self.indexes.load();
        self.change(|node| {
            if !node.discovered {
                node.discovered = true;
                node.initial = building
                    .values()
                    .filter(|index| index.state() != IndexState::Serving)
                    .map(|index| index.identity.name.clone())
                    .collect();
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut ServiceState)) {
        let mut node = self.node();
        change(&mut node);
        let status = node.status();
        self.status.send_if_modified(|before| {
            let changed = *before != status;
            if changed {
                tracing::info!(?status, "the status of the index service changed");
            }
            *before = status;
            changed
        });
    }

    fn node(&self) -> MutexGuard<'_, ServiceState> {
        self.node.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The route of a search.
pub(crate) struct RoutedSearch {
    /// The index that answers.
    pub index: Arc<IndexHandle>,
    /// The index that the request names.
    pub requested: Arc<IndexHandle>,
    /// The identity of the index that answers, if columns of its key have got other names.
    renamed: Option<Box<IndexIdentity>>,
}

impl RoutedSearch {
    /// The identity of the index that answers, with the present names of its columns.
    pub(crate) fn identity(&self) -> &IndexIdentity {
        self.renamed.as_deref().unwrap_or(&self.index.identity)
    }
}

/// The reason why none of some indexes can answer a search that needs these columns.
fn unsuited(serving: &[Cow<'_, IndexIdentity>], needed: &SearchRequirements<'_>) -> String {
    let in_any = |has: &dyn Fn(&IndexIdentity) -> bool| serving.iter().any(|index| has(index));
    let mut columns: Vec<&str> = needed.columns.clone();
    columns.sort_unstable();
    let not_kept = |column: &&str| !in_any(&|index| index.keeps(column));
    if let Some(column) = columns.into_iter().find(not_kept) {
        return UnsupportedRestriction::Column(column.to_owned()).to_string();
    }
    let not_stored = |column: &&String| !in_any(&|index| index.returns(column));
    if let Some(column) = needed.returned.iter().find(not_stored) {
        return UnsupportedRestriction::Returned(column.clone()).to_string();
    }
    match in_any(&|index| needed.are_in(index)) {
        true => {
            "Global ANN query is not supported when only a local vector index is available: \
                 restrict each column of the index's key by = or IN"
        }
        false => {
            "no index on the column has all columns that the search restricts and returns: \
                  name them all in one index"
        }
    }
    .to_owned()
}

/// A sort key that puts time-based UUIDs in the order of their time.
fn version_order(version: Option<Uuid>) -> Option<(u64, Uuid)> {
    version.map(|version| {
        let time = version.get_timestamp().map_or(0, |time| {
            let (seconds, nanoseconds) = time.to_unix();
            seconds * 10_000_000 + u64::from(nanoseconds) / 100
        });
        (time, version)
    })
}
