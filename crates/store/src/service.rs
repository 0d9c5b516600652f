//! Starting, reloading and stopping the whole service.

use std::fs::DirBuilder;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http_server::{AddedRoutes, Authorizer, MetricsHistory, MetricsRegistry, SessionFacts};
use net::tls::{ServerTls, TlsOptions};
use store_api::InProcessService;
use store_api::types::{Info, NodeStatus};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cluster::{RemoteDatabase, SessionTarget};
use crate::compute::CpuExecutor;
use crate::database::SourceDatabase;
use crate::indexes::IndexEngine;
use crate::maps::IndexMaps;
use crate::memory::ProcessMemory;
use crate::metrics::ServiceMetrics;
use crate::options::{
    ApiSocketOptions, DatabaseOptions, FullVectorPlacement, IndexesOptions, MemoryOptions,
    StoreOptions,
};
use crate::own_state::OwnIndexState;
use crate::present::TimeSource;
use crate::recall_checks::RecallChecks;
use crate::repair::{IndexSchedules, Repairs};
use crate::routes::{ApiState, BoundSocket, InProcessStore, Listening, refresh_gauges, server_tls};
use crate::schema_watch::SchemaWatch;
use crate::scrub::Scrubs;
use crate::search::VectorSearcher;
use crate::snapshot::{LinkedSnapshots, Snapshots};
use crate::start_error::StartError;
use crate::table::TableContext;

/// The index service.
pub struct Store;

/// A running service. Dropping it stops the service without waiting.
pub struct StoreHandle {
    engine: Arc<IndexEngine>,
    api: ApiState,
    /// Checks logins at the listeners that come by a reload, too.
    authorizer: Option<Arc<dyn Authorizer>>,
    listening: Vec<Listening>,
    /// The address and credentials of the database, if it is a cluster.
    cluster: Option<watch::Sender<SessionTarget>>,
    memory: watch::Sender<MemoryOptions>,
    snapshots: Arc<Snapshots>,
    /// The token that ends everything but the listeners.
    cancel: CancellationToken,
    tasks: TaskTracker,
    shutdown_timeout: Duration,
}

/// The bound sockets of the HTTP API, and the store for a node in the same process. They exist
/// before the service starts, so that an embedding process can announce their addresses.
pub struct ApiListeners {
    bound: Vec<BoundSocket>,
    addresses: Vec<SocketAddr>,
    local: Arc<InProcessStore>,
    authorizer: Option<Arc<dyn Authorizer>>,
    of_database: Option<AddedRoutes>,
    of_process: Vec<AddedRoutes>,
    session: Option<SessionFacts>,
}

impl ApiListeners {
    /// Binds all listeners, or none.
    ///
    /// # Errors
    /// If an address can't be bound, or a certificate can't be used.
    pub async fn bind(listeners: &[ApiSocketOptions]) -> Result<ApiListeners, StartError> {
        let mut bound = Vec::new();
        let mut addresses = Vec::new();
        for options in listeners {
            let listener = BoundSocket::bind(options.clone()).await?;
            addresses.push(listener.address());
            bound.push(listener);
        }
        Ok(ApiListeners {
            bound,
            addresses,
            local: Arc::default(),
            authorizer: None,
            of_database: None,
            of_process: Vec::new(),
            session: None,
        })
    }

    /// Has this value check the requests to all listeners of the service, also to those that come
    /// by [`StoreHandle::reload`]. Without it everybody is let in.
    pub fn set_authorizer(&mut self, authorizer: Arc<dyn Authorizer>) {
        self.authorizer = Some(authorizer);
    }

    /// Serves these routes of the database in the same process, too.
    pub fn add_routes(&mut self, routes: AddedRoutes) {
        self.of_database = Some(routes);
    }

    /// Serves these routes of the process around the service, too.
    pub fn add_routes_of_process(&mut self, routes: AddedRoutes) {
        self.of_process.push(routes);
    }

    /// Has browsers log in, and tells their page these facts about the process.
    pub fn set_session_facts(&mut self, facts: SessionFacts) {
        self.session = Some(facts);
    }

    /// Accepts connections from now on, and answers `/health/live` and `/health/ready`. All else is
    /// refused until the service starts, which may be long after.
    pub fn answer_health(&mut self) {
        self.bound.iter_mut().for_each(BoundSocket::answer_health);
    }

    /// The addresses of the listeners, in the order of the options.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The service for a node in the same process. It is not available until the service starts.
    pub fn local(&self) -> Arc<impl InProcessService + use<>> {
        self.local.clone()
    }
}

impl Store {
    /// Binds the listeners of the options and starts. The database need not be up yet: the service
    /// waits for it, and its status says so.
    ///
    /// # Errors
    /// If a listener, the database's authorities or the directory for indexes can't be used.
    pub async fn start(options: StoreOptions) -> Result<StoreHandle, StartError> {
        let listeners = ApiListeners::bind(&options.listeners).await?;
        Store::start_on(listeners, options)
    }

    /// Starts on listeners that are bound already, and ignores those of the options.
    ///
    /// # Errors
    /// If the database's authorities or the directory for indexes can't be used.
    pub fn start_on(bound: ApiListeners, options: StoreOptions) -> Result<StoreHandle, StartError> {
        let target = SessionTarget::new(options.database.clone())?;
        let (cluster, targets) = watch::channel(target);
        let readers = options.cdc.readers.clone();
        let names = readers.iter().map(|reader| reader.name.clone()).collect();
        let engine = Arc::new(IndexEngine::new(ServiceMetrics::new(), names));
        let cancel = CancellationToken::new();
        let interval = options.discovery_interval;
        let (database, keep_open) = RemoteDatabase::new(
            targets,
            engine.clone(),
            readers,
            interval,
            options.full_text_indexes,
            cancel.clone(),
        );
        let mut handle = begin(bound, options, Arc::new(database), engine, cancel)?;
        handle.tasks.spawn(keep_open);
        handle.cluster = Some(cluster);
        Ok(handle)
    }

    /// Starts with a database in the same process. The options about the address of the database
    /// and the polling of its schema have no effect then.
    ///
    /// # Errors
    /// If the directory for indexes can't be used.
    pub fn start_with(
        bound: ApiListeners,
        database: Arc<dyn SourceDatabase>,
        options: StoreOptions,
    ) -> Result<StoreHandle, StartError> {
        let engine = Arc::new(IndexEngine::new(
            ServiceMetrics::new(),
            database.log_readers(),
        ));
        engine.set_connected(true);
        begin(bound, options, database, engine, CancellationToken::new())
    }
}

/// Starts everything but the task that keeps the session to a cluster open.
#[expect(
    clippy::too_many_lines,
    reason = "wiring: each part is made once and handed to those that use it"
)]
fn begin(
    bound: ApiListeners,
    options: StoreOptions,
    database: Arc<dyn SourceDatabase>,
    engine: Arc<IndexEngine>,
    cancel: CancellationToken,
) -> Result<StoreHandle, StartError> {
    prepare(&options.indexes)?;
    engine.set_database(database.clone());
    engine.metrics().show_counts(&options.turns, &options.tasks);
    options.maintenance.show(engine.metrics().registry());
    let compute = CpuExecutor::new(options.turns, options.inline_searches_within);
    let tasks = TaskTracker::new();
    let work = options.tasks;
    let repairs = Repairs::new(
        database.clone(),
        work.clone(),
        tasks.clone(),
        options.repair.clone(),
        cancel.clone(),
    );
    let schedules = IndexSchedules::open(
        &options.indexes.directory,
        options.repair.schedule,
        options.repair.behind_gateways,
        TimeSource::of(database.clock()),
    );

    let scrubs = Scrubs::new(
        database.clone(),
        options.indexes.directory.clone(),
        options.scrub,
        work.clone(),
        tasks.clone(),
        cancel.clone(),
    );

    let (memory, memory_options) = watch_memory(options.memory, &engine, &tasks, &cancel);
    let searches = VectorSearcher::new(
        engine.clone(),
        compute.clone(),
        options.filter_values_max,
        options.when_short,
        options.slow_searches,
    );
    let maps = IndexMaps::new(
        searches.clone(),
        memory.clone(),
        work.clone(),
        tasks.clone(),
        cancel.clone(),
    );
    let history = MetricsHistory::new(engine.metrics().registry().clone());
    let api = ApiState {
        engine: engine.clone(),
        history: history.clone(),
        searches,
        maps,
        work: work.clone(),
        repairs: repairs.clone(),
        schedules: schedules.clone(),
        scrubs: scrubs.clone(),
        maintenance: options.maintenance,
        info: Arc::new(Info {
            service: options.service,
            version: options.version,
            engine: concat!("annulus-", env!("CARGO_PKG_VERSION")).to_owned(),
        }),
        internals: options.internals,
        of_database: bound.of_database,
        of_process: bound.of_process,
        session: bound.session,
    };
    let recall_checks = RecallChecks::new(
        engine.clone(),
        api.searches.clone(),
        work.clone(),
        options.recall_checks,
    );
    bound.local.open(api.clone());
    let authorizer = bound.authorizer;
    let listening = bound.bound.into_iter();
    let listening = listening.map(|bound| bound.serve(api.clone(), authorizer.clone()));
    let listening = listening.collect();

    let snapshots = Arc::new(Snapshots::new(&options.snapshots, &options.indexes));
    let (damaged, damaged_receiver) = mpsc::channel(1);
    let (interrupted, interrupted_receiver) = mpsc::channel(1);
    let schema_watch = SchemaWatch::new(
        TableContext {
            database,
            engine: engine.clone(),
            compute,
            cdc: options.cdc,
            scan: options.scan,
            indexes: options.indexes,
            snapshots: snapshots.clone(),
            damaged,
            interrupted,
            memory,
            tasks: tasks.clone(),
            work,
            repairs: repairs.clone(),
        },
        damaged_receiver,
        interrupted_receiver,
        cancel.clone(),
    );
    spawn(&tasks, &cancel, {
        let engine = engine.clone();
        async move { schedules.run(repairs, engine).await }
    });
    spawn(
        &tasks,
        &cancel,
        async move { scrubs.run_by_schedule().await },
    );
    spawn(&tasks, &cancel, recall_checks.run());
    spawn(&tasks, &cancel, schema_watch.run());
    let sampled = engine.clone();
    spawn(&tasks, &cancel, async move {
        let now_s = || {
            refresh_gauges(&sampled);
            i64::from(sampled.now_s())
        };
        history.run(now_s).await;
    });
    Ok(StoreHandle {
        engine,
        api,
        authorizer,
        listening,
        cluster: None,
        memory: memory_options,
        snapshots,
        cancel,
        tasks,
        shutdown_timeout: options.shutdown_timeout,
    })
}

/// Runs a task of the service until the service ends.
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

/// Begins to watch the memory of the process. The sender changes the limit.
fn watch_memory(
    options: MemoryOptions,
    engine: &IndexEngine,
    tasks: &TaskTracker,
    cancel: &CancellationToken,
) -> (Arc<ProcessMemory>, watch::Sender<MemoryOptions>) {
    let memory = Arc::new(ProcessMemory::of_process(&options));
    // The first measurement comes before the first index is opened, which claims memory.
    memory.refresh(&options);
    let (sender, receiver) = watch::channel(options);
    let metrics = engine.metrics().clone();
    let watched = memory.clone();
    spawn(tasks, cancel, async move {
        watched.watch(receiver, metrics).await;
    });
    (memory, sender)
}

/// Creates the directory for the files of indexes, if they keep vectors in files, and tries it with
/// a file. An unusable directory then shows now, not when the first row comes.
fn prepare(indexes: &IndexesOptions) -> Result<(), StartError> {
    if indexes.vectors == FullVectorPlacement::Memory {
        return Ok(());
    }
    let directory = &indexes.directory;
    // Only its owner may enter, as it contains vectors and keys.
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .and_then(|()| tempfile::tempfile_in(directory))
        .map(drop)
        .map_err(|source| StartError::IndexDirectory {
            directory: directory.clone(),
            source,
        })
}

impl StoreHandle {
    /// The metrics that the API shows. The process around the service may add families to them.
    pub fn metrics(&self) -> &MetricsRegistry {
        self.engine.metrics().registry()
    }

    /// The bytes that all indexes have to hold in memory, to be read at any time.
    pub fn index_bytes(&self) -> impl Fn() -> u64 + Send + Sync + use<> {
        let metrics = self.engine.metrics().clone();
        move || metrics.index_bytes()
    }

    /// The state that the service has of its own, for those who copy it.
    pub fn own_state(&self) -> OwnIndexState {
        OwnIndexState::new(self.engine.clone(), self.snapshots.clone())
    }

    /// The addresses of the API, one for each listener of the options, in their order.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listening.iter().map(Listening::address).collect()
    }

    /// Goes over to other listeners, certificates, credentials, another database or memory limit,
    /// without dropping a request. If any of it can't be used, nothing changes.
    ///
    /// A listener that stays where it is keeps its budgets. The rest of the options takes effect at
    /// the next start.
    ///
    /// # Errors
    /// If an address can't be bound, or certificates can't be used.
    pub async fn reload(
        &mut self,
        listeners: &[ApiSocketOptions],
        database: DatabaseOptions,
        memory: MemoryOptions,
    ) -> Result<(), StartError> {
        let target = SessionTarget::new(database)?;
        let next = self.next_listeners(listeners).await?;
        // Nothing fails from here on.
        let mut before: Vec<_> = self.listening.drain(..).map(Some).collect();
        for next in next {
            match next {
                ReloadedListener::Stays { at, tls, names } => {
                    let mut listening = before[at].take().expect("claimed once");
                    listening.set_tls(tls);
                    listening.set_names(&names);
                    self.listening.push(listening);
                }
                ReloadedListener::Comes(bound) => {
                    tracing::info!(address = %bound.address(), "listening");
                    let listening = bound.serve(self.api.clone(), self.authorizer.clone());
                    self.listening.push(listening);
                }
            }
        }
        for gone in before.into_iter().flatten() {
            tracing::info!(address = %gone.address(), "no longer listening");
        }
        if let Some(cluster) = &self.cluster {
            set(cluster, target);
        }
        set(&self.memory, memory);
        Ok(())
    }

    /// Uses another certificate at the listeners that have one, without dropping a request. If the
    /// rules for clients change, present connections end once their requests are answered.
    ///
    /// # Errors
    /// If the certificate can't be used. Then nothing changes.
    pub fn renew_tls(&mut self, options: &TlsOptions) -> Result<(), StartError> {
        let tls = server_tls(Some(options))?;
        for listening in self.listening.iter_mut().filter(|it| it.has_tls()) {
            listening.set_tls(tls.clone());
        }
        Ok(())
    }

    /// Binds the listeners that are new, and checks all certificates.
    async fn next_listeners(
        &self,
        options: &[ApiSocketOptions],
    ) -> Result<Vec<ReloadedListener>, StartError> {
        let mut unclaimed: Vec<usize> = (0..self.listening.len()).collect();
        let mut next = Vec::new();
        for options in options {
            let is_at = |at: &usize| self.listening[*at].configured_address() == options.address;
            next.push(match unclaimed.iter().position(is_at) {
                Some(claimed) => ReloadedListener::Stays {
                    at: unclaimed.remove(claimed),
                    tls: server_tls(options.tls.as_ref())?,
                    names: options.names.clone(),
                },
                None => {
                    ReloadedListener::Comes(Box::new(BoundSocket::bind(options.clone()).await?))
                }
            });
        }
        Ok(next)
    }

    /// Links the snapshots of all indexes to `<target>/indexes/snapshots`, on the file system of
    /// the directory for indexes. Indexes that have changed are saved first, if that takes no more
    /// than half a minute.
    ///
    /// A copy of the data directory has these links from before the copy of the tables. Then the
    /// position of each snapshot is in the copied logs.
    ///
    /// # Errors
    /// If a file can't be linked: the target is on another file system, say. Links that were made
    /// stay.
    pub async fn link_snapshots(&self, target: &Path) -> io::Result<LinkedSnapshots> {
        self.own_state().link_snapshots(target).await
    }

    /// A receiver for the status of the service and its changes.
    pub fn status(&self) -> watch::Receiver<NodeStatus> {
        self.engine.watch_status()
    }

    /// Closes the listeners, answers the requests in flight, saves the indexes and ends everything,
    /// within the time that the options allow. An index that is not saved by then keeps its earlier
    /// snapshot. A node in the same process ([`ApiListeners::local`]) may go on searching until it
    /// stops itself.
    pub async fn shutdown(self) {
        self.listening.iter().for_each(Listening::stop);
        let requests = async {
            for listening in &self.listening {
                listening.stopped().await;
            }
        };
        let all = async {
            tokio::join!(requests, self.snapshots.stop());
            self.cancel.cancel();
            self.tasks.close();
            self.tasks.wait().await;
        };
        if tokio::time::timeout(self.shutdown_timeout, all)
            .await
            .is_err()
        {
            tracing::warn!("requests in flight, or snapshots, were cut off");
        }
    }
}

/// The future of one listener after a reload.
enum ReloadedListener {
    /// The listener with number `at` stays, with this certificate and these names.
    Stays {
        at: usize,
        tls: Option<ServerTls>,
        names: Vec<String>,
    },
    Comes(Box<BoundSocket>),
}

/// Sends a value, if it differs from the one before.
fn set<T: PartialEq>(told: &watch::Sender<T>, value: T) {
    told.send_if_modified(|before| {
        let changed = *before != value;
        *before = value;
        changed
    });
}

impl Drop for StoreHandle {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_for_indexes_is_made_or_refused() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        let in_files = |directory| IndexesOptions {
            directory,
            ..IndexesOptions::default()
        };
        let directory = parent.path().join("made").join("indexes");
        prepare(&in_files(directory.clone())).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
        let mode = fs::metadata(directory).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);

        let refused = in_files(file.join("indexes"));
        let error = prepare(&refused).unwrap_err().to_string();
        assert!(error.contains(&*file.to_string_lossy()), "{error}");
        let in_memory = IndexesOptions {
            vectors: FullVectorPlacement::Memory,
            ..refused
        };
        prepare(&in_memory).unwrap();
    }
}
