//! `annulus serve`: storage, CQL node and index service in one process.
//!
//! The index service calls the storage ([`embedded::Embedded`]), and the node calls the index
//! service ([`store::ApiListeners::local`]). So the requests that users send to the listeners can
//! starve neither of them.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use backup_tasks::ClientWork;
use clap::Args;
use client_memory::MemoryBudget;
use cpu_scheduler::CpuScheduler;
use embedded::Embedded;
use http_server::MaintenanceMode;
use net::tls::{TlsClients, TlsOptions};
use node::guardrails::PartitionWalks;
use node::{
    CqlListenerOptions, HttpLogins, HttpTablesOptions, InternalExecutor, Node, NodeOptions,
};
use rustls::ServerConfig;
use slow_statements::SlowQueries;
use storage::{Storage, StorageOptions};
use store::{
    BytesToCome, IndexesOptions, MemoryOptions, StartError, Store, StoreHandle, StoreOptions,
};
use store_api::types::NodeStatus;
use tasks::TaskRegistry;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::audit_log;
use crate::backups::ProcessBackups;
use crate::core_dumps;
use crate::embedder_settings::embed_service;
use crate::exit::ProcessFailure;
use crate::heap;
use crate::logging;
use crate::metrics::{CertificateEnds, show_serve};
use crate::notify;
use crate::open_files;
use crate::renewal::{FileFaultLog, RereadSchedule};
use crate::role::FirstSuperuser;
use crate::runtime_threads;
use crate::serve_console::ServeConsole;
use crate::settings::{ListenerTls, ResolvedSettings, Settings};
use crate::settings_file;
use crate::shown_settings;
use crate::stop::{HangUpSignal, TerminationSignals};

/// The longest time that requests in flight may go on after a signal. The rest of the stop takes
/// less than what is left of ten seconds.
const STOP_GRACE: Duration = Duration::from_secs(4);

#[derive(Args, Debug)]
pub struct ServeArguments {
    /// TOML file with any of these settings, by their long names
    #[arg(long, env = "ANNULUS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: Settings,
}

/// Runs `annulus serve`.
pub fn run(arguments: ServeArguments) -> anyhow::Result<()> {
    let file = match &arguments.config {
        Some(path) => settings_file::read(path)?,
        None => Settings::default(),
    };
    let given = arguments.settings;
    let mut settings = given.clone().or(file.clone()).resolve()?;
    settings.shown = shown_settings::shown(&settings, &given, &file);
    let receiver = settings.log_syslog.as_ref();
    logging::start(&settings.log, settings.log_format, receiver, true)?;
    open_files::raise_limit();
    if settings.login {
        core_dumps::switch_off();
    }
    if settings.insecure {
        warn_of_insecurity(&settings);
    }
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let served = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name_fn(runtime_threads::names(workers))
        .enable_all()
        .build()
        .context("starting the threads")?
        .block_on(serve(settings));
    logging::flush();
    served
}

fn warn_of_insecurity(settings: &ResolvedSettings) {
    let clients = settings.tls.as_ref().map(|tls| &tls.options.clients);
    let text = match clients {
        None if settings.login => {
            "--insecure: passwords and rows cross the network in clear; set --tls-cert-path, or listen on 127.0.0.1"
        }
        Some(_) if settings.login => return,
        None => {
            "--insecure: whoever reaches this address can read and change everything, and nothing is encrypted; put a \
             firewall before it, or listen on 127.0.0.1"
        }
        Some(TlsClients::Anyone) => {
            "--insecure: whoever reaches this address can read and change everything, as TLS asks clients for no \
             certificate; set --tls-client-ca-cert-path, put a firewall before it, or listen on 127.0.0.1"
        }
        Some(TlsClients::SignedBy(_)) => {
            "--insecure: whoever reaches this address with a certificate of the client authorities can read and change \
             everything"
        }
    };
    tracing::warn!(listen = %settings.listen, "{text}");
}

async fn serve(settings: ResolvedSettings) -> anyhow::Result<()> {
    let mut stop = TerminationSignals::listen()?;
    let hang_ups = HangUpSignal::listen()?;
    // Storage and index service share the processor, and the list of tasks.
    let turns = CpuScheduler::of_shares(settings.search_threads, settings.shares);
    let tasks = TaskRegistry::default();
    // The storage may read its journals for long. A supervisor of the process sees it then.
    let doors = PendingListeners::open(&settings).await?;
    let storage = open(&settings, turns.clone(), tasks.clone()).await?;
    let started = async {
        let certificate = settings
            .tls
            .clone()
            .map(CertificateReloader::keep)
            .transpose()?;
        let first = match settings.login {
            true => FirstSuperuser::missing(&storage, settings.superuser_file.as_deref())?,
            false => None,
        };
        let clients = ClientWork {
            turns,
            requests: MaintenanceMode::default(),
        };
        let backups =
            ProcessBackups::of_database(&settings, &storage, &tasks, clients.clone()).await?;
        let parts = (clients, tasks, backups);
        let servers = RunningServers::start(&settings, doors, storage.clone(), parts).await?;
        if let Some(first) = first
            && let Err(error) = first.make(&storage).await
        {
            servers.stop().await;
            return Err(error);
        }
        Ok((servers, certificate))
    };
    let (mut servers, certificate) = match started.await {
        Ok(servers) => servers,
        Err(error) => {
            storage.close().await.context("closing the storage")?;
            return Err(error);
        }
    };
    let ready = get_ready(
        &settings,
        servers.addresses(),
        servers.node.local(),
        servers.store.status(),
    );
    let running = async {
        ready.await?;
        std::future::pending().await
    };
    let renewing = async {
        match certificate {
            Some(certificate) => certificate.renew(&mut servers).await,
            None => hang_ups.note_all().await,
        }
    };
    let outcome = tokio::select! {
        signal = stop.received() => Ok(signal),
        failed = running => failed,
        failed = renewing => failed,
    };
    if let Ok(signal) = outcome {
        tracing::info!(signal, "stopping");
    }
    notify::stopping();
    servers.stop().await;
    storage.close().await.context("closing the storage")?;
    tracing::info!("stopped");
    outcome.map(|_| ())
}

async fn open(
    settings: &ResolvedSettings,
    turns: CpuScheduler,
    tasks: TaskRegistry,
) -> anyhow::Result<Storage> {
    let directory = settings.data_dir.clone();
    let options = StorageOptions {
        durability: settings.durability,
        cache_bytes: settings.cache_bytes,
        resident_bytes: settings.resident_bytes,
        write_buffer_bytes: settings.memory.write_buffer_bytes(),
        batch_bytes: settings.memory.batch_bytes(),
        write_rows_bytes: settings.memory.write_rows_bytes(),
        cpu_scheduler: turns,
        tasks,
        ..StorageOptions::default()
    };
    // Recovery reads files, which takes a while.
    let storage = tokio::task::spawn_blocking(move || Storage::open(&directory, options)).await??;
    let journal_bytes = storage.statistics().replayed_bytes;
    tracing::info!(data_dir = %settings.data_dir.display(), journal_bytes, "storage is open");
    Ok(storage)
}

/// The listener of CQL.
fn public_listener(
    settings: &ResolvedSettings,
    memory: MemoryBudget,
) -> Result<CqlListenerOptions, ProcessFailure> {
    let tls = settings.tls.as_ref();
    Ok(CqlListenerOptions {
        memory,
        name: "public",
        address: SocketAddr::new(settings.listen, settings.cql_port),
        requests_max: settings.max_requests,
        tls: tls.map(|tls| for_cql(&tls.options)).transpose()?,
        connection: node::ConnectionOptions {
            frame_body_max: settings.max_frame_bytes,
            ..node::ConnectionOptions::default()
        },
        ..CqlListenerOptions::default()
    })
}

/// The listeners before their servers run.
struct PendingListeners {
    public: CqlListenerOptions,
    /// The HTTP API, which answers whether the process lives.
    http: store::ApiListeners,
}

impl PendingListeners {
    async fn open(settings: &ResolvedSettings) -> anyhow::Result<PendingListeners> {
        let shares = settings.memory.shares();
        let http = SocketAddr::new(settings.listen, settings.http_port);
        let tls = settings.tls.as_ref().map(|tls| &tls.options);
        let mut http = store::ApiSocketOptions {
            names: settings.http_hosts.clone(),
            tls: tls.cloned(),
            tls_alone: true,
            ..store::ApiSocketOptions::new(http).with_memory(shares, 1)
        };
        // The other halves are for the routes of tables.
        http.bodies_bytes_max /= 2;
        http.answer_bytes_max /= 2;
        let memory = MemoryBudget::new(shares.cql);
        tokio::spawn(heap::keep_trimmed(vec![memory.clone()]));
        let mut public = public_listener(settings, memory)?;
        open_files::fit_connections([&mut public.connections_max, &mut http.connections_max]);
        let mut http = store::ApiListeners::bind(&[http]).await.map_err(failed)?;
        http.answer_health();
        if let Some(address) = http.addresses().first() {
            tracing::info!(http = %address, "health is answered");
        }
        Ok(PendingListeners { public, http })
    }
}

/// The running servers: the node and the index service.
struct RunningServers {
    node: Node,
    /// Walks over the partitions.
    walks: JoinHandle<()>,
    store: StoreHandle,
    certificates: CertificateEnds,
    backups: ProcessBackups,
    console: ServeConsole,
    cql: SocketAddr,
    http: SocketAddr,
}

impl RunningServers {
    async fn start(
        settings: &ResolvedSettings,
        doors: PendingListeners,
        storage: Storage,
        (clients, tasks, mut backups): (ClientWork, TaskRegistry, ProcessBackups),
    ) -> anyhow::Result<RunningServers> {
        let mut listeners = doors.http;
        let [http] = listeners.addresses()[..] else {
            anyhow::bail!("the index service has one listener");
        };
        let embed = embed_service(settings.embedder.as_ref())?;
        let audit = settings.audit.clone().map(audit_log::open).transpose()?;
        let client_memory = doors.public.memory.clone();
        let (turns, maintenance) = (clients.turns, clients.requests);
        let node = Node::start(
            storage.clone(),
            listeners.local(),
            NodeOptions {
                listeners: vec![doors.public],
                prepared_bytes_max: settings.memory.shares().prepared as u64,
                data_center: settings.datacenter.clone(),
                login: settings.login,
                settings: settings.shown.clone(),
                guardrails: settings.guardrails.clone(),
                maintenance: maintenance.clone(),
                slow_queries: Arc::new(SlowQueries::new(settings.slow_queries)),
                audit: audit.clone(),
                timeouts: settings.timeouts,
            },
        )
        .await
        .map_err(|error| in_use(error.address, "--cql-port", &error.source))?;
        let [cql] = node.addresses()[..] else {
            anyhow::bail!("the node has one listener");
        };

        let walks = walks(settings, &storage, &tasks);
        if settings.login || audit.is_some() {
            let access = Arc::clone(&node.database().access);
            let logins = HttpLogins::new(storage.clone(), access, audit);
            listeners.set_authorizer(Arc::new(logins));
        }
        let shares = settings.memory.shares();
        let of_tables = node.http_tables(HttpTablesOptions::new(http, shares));
        listeners.add_routes(of_tables.routes());
        listeners.add_routes_of_process(backups.tasks().routes());
        let console = ServeConsole::add(&mut listeners, settings, (&node, cql), (&embed, &tasks));
        let options = StoreOptions {
            maintenance,
            ..of_store(settings, http, turns, tasks, storage.clone())
        };
        let store =
            match Store::start_with(listeners, Arc::new(Embedded::new(storage.clone())), options) {
                Ok(store) => store,
                Err(error) => {
                    node.stop(STOP_GRACE).await;
                    return Err(failed(error));
                }
            };
        backups.begin(&store);
        show_serve(settings, &store, &node, (&storage, client_memory));
        let certificates = show_certificates(settings, &store);
        tracing::info!(%cql, %http, tls = settings.tls.is_some(), "listening");
        Ok(RunningServers {
            node,
            walks: tokio::spawn(walks.run()),
            store,
            certificates,
            backups,
            console,
            cql,
            http,
        })
    }

    fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.cql, self.http)
    }

    /// Uses another certificate for connections from now on. If there are `other_rules` for
    /// certificates of clients, present connections end.
    fn renew_tls(&mut self, options: &TlsOptions, other_rules: bool) -> Result<(), ProcessFailure> {
        let for_cql = for_cql(options)?;
        let renewed = self.store.renew_tls(options);
        renewed.map_err(|error| ProcessFailure::Configuration(error.to_string()))?;
        self.node.renew_tls(&for_cql, other_rules);
        self.certificates.note_options(options);
        Ok(())
    }

    /// Stops the index service first, so that its last snapshots are taken while nothing else
    /// stops.
    async fn stop(self) {
        self.walks.abort();
        self.console.stop().await;
        self.backups.stop().await;
        self.store.shutdown().await;
        if !self.node.stop(STOP_GRACE).await {
            tracing::warn!("some requests were still unanswered when their time was up");
        }
    }
}

/// Shows the ends of certificates among the metrics.
fn show_certificates(settings: &ResolvedSettings, store: &StoreHandle) -> CertificateEnds {
    let certificates = CertificateEnds::default();
    certificates.show(store.metrics());
    if let Some(tls) = &settings.tls {
        certificates.note_options(&tls.options);
    }
    certificates
}

/// The configuration of a CQL listener with this certificate.
fn for_cql(options: &TlsOptions) -> Result<Arc<ServerConfig>, ProcessFailure> {
    let config = net::tls::server(options, &[]);
    config.map_err(|error| ProcessFailure::Configuration(error.to_string()))
}

/// The certificate in effect, which is read again at intervals and on SIGHUP.
struct CertificateReloader {
    tls: ListenerTls,
    checks: RereadSchedule,
}

impl CertificateReloader {
    /// Catches SIGHUP from now on.
    fn keep(tls: ListenerTls) -> anyhow::Result<CertificateReloader> {
        Ok(CertificateReloader {
            checks: RereadSchedule::start(tls.check_interval).context("receiving signals")?,
            tls,
        })
    }

    /// Reads the files again and again, and puts changes into effect. A file that can't be used
    /// changes nothing. Ends only with a failure.
    async fn renew(mut self, servers: &mut RunningServers) -> anyhow::Result<&'static str> {
        let mut failures = FileFaultLog::of("the certificate");
        loop {
            let asked_for = self.checks.next().await;
            let tls = self.tls.clone();
            // A file may be on a disk that does not answer.
            let read = tokio::task::spawn_blocking(move || tls.read()).await?;
            let renewed = read.and_then(|read| match read {
                Some(options) if options != self.tls.options => {
                    let other_rules = options.clients != self.tls.options.clients;
                    servers.renew_tls(&options, other_rules)?;
                    self.tls.options = options;
                    Ok(true)
                }
                _ => Ok(false),
            });
            if asked_for && matches!(renewed, Ok(false)) {
                tracing::info!("the certificate was read again, and is as it was");
            }
            failures.report(renewed, asked_for);
        }
    }
}

/// The walks over the partitions of all tables.
fn walks(settings: &ResolvedSettings, storage: &Storage, tasks: &TaskRegistry) -> PartitionWalks {
    PartitionWalks {
        storage: storage.clone(),
        guardrails: settings.guardrails.clone(),
        tasks: tasks.clone(),
        interval: settings.partition_walk_interval,
    }
}

/// The options of the index service with this listener.
fn of_store(
    settings: &ResolvedSettings,
    http: SocketAddr,
    turns: CpuScheduler,
    tasks: TaskRegistry,
    storage: Storage,
) -> StoreOptions {
    let indexes = IndexesOptions {
        directory: settings.index_dir.clone(),
        vectors: settings.index_vectors,
        ..IndexesOptions::default()
    };
    StoreOptions {
        service: "annulus".to_owned(),
        turns,
        tasks,
        snapshots: settings.snapshots,
        repair: settings.repair.clone(),
        scrub: settings.scrub,
        recall_checks: settings.recall_checks,
        memory: MemoryOptions {
            limit_bytes: settings.memory.bytes,
            to_come: Some(BytesToCome::new(move || storage.bytes_to_come())),
            give_back: heap::give_back,
            ..MemoryOptions::default()
        },
        inline_searches_within: settings.inline_searches_within,
        filter_values_max: settings.filter_values_max,
        internals: settings.internals,
        ..StoreOptions::embedded(http, indexes)
    }
}

/// The error for an index service that could not start.
fn failed(error: StartError) -> anyhow::Error {
    match error {
        StartError::Listen { address, source } => in_use(address, "--http-port", &source).into(),
        StartError::IndexDirectory { .. } => ProcessFailure::Configuration(format!(
            "{error}; choose another directory with --index-dir, or keep vectors in memory with \
             --index-vectors memory"
        ))
        .into(),
        StartError::Certificates(_) | StartError::DatabaseAuthorities(_) => {
            ProcessFailure::Configuration(error.to_string()).into()
        }
    }
}

fn in_use(address: SocketAddr, flag: &str, error: &std::io::Error) -> ProcessFailure {
    ProcessFailure::AddressInUse(format!(
        "cannot listen on {address}: {error}; choose another port with {flag}, or stop what uses it"
    ))
}

/// Waits until the index service serves, loads the sample, and then prints that the server is
/// ready.
async fn get_ready(
    settings: &ResolvedSettings,
    (cql, http): (SocketAddr, SocketAddr),
    database: InternalExecutor,
    mut status: watch::Receiver<NodeStatus>,
) -> anyhow::Result<()> {
    status
        .wait_for(|status| *status == NodeStatus::Serving)
        .await
        .context("the index service ended")?;
    load_sample(settings, (cql, http), &database).await?;
    let under_tls = match settings.tls {
        Some(_) => ", both under TLS",
        None => "",
    };
    println!("annulus is ready: CQL on {cql}, HTTP on {http}{under_tls}");
    std::io::stdout().flush()?;
    notify::ready(&format!("CQL on {cql}, HTTP on {http}{under_tls}"));
    Ok(())
}

/// Loads the sample that the settings name, if they do.
#[cfg(feature = "sample")]
async fn load_sample(
    settings: &ResolvedSettings,
    (cql, http): (SocketAddr, SocketAddr),
    database: &InternalExecutor,
) -> anyhow::Result<()> {
    use crate::sample::{ClientEndpoints, load_movies};
    use crate::settings::SampleName;

    let Some(SampleName::Movies) = settings.sample else {
        return Ok(());
    };
    let doors = ClientEndpoints {
        cql,
        http,
        login: settings.login,
        tls: settings.tls.is_some(),
    };
    load_movies(database, doors, &settings.data_dir)
        .await
        .context("loading the film sample")
}

/// Loads nothing. The settings of a build without samples name none.
#[cfg(not(feature = "sample"))]
#[expect(clippy::unused_async, reason = "as the one that loads a sample")]
async fn load_sample(
    _: &ResolvedSettings,
    _: (SocketAddr, SocketAddr),
    _: &InternalExecutor,
) -> anyhow::Result<()> {
    Ok(())
}
