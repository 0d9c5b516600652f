//! A running index service, which takes over other settings on request.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use backup_tasks::ClientWork;
use http_server::{HttpTraffic, TokenAuthorizer, TokenSet};
use store::{ApiListeners, ApiSocketOptions, StartError, Store, StoreHandle, StoreOptions};
use store_api::IndexServices;
use store_api::types::NodeStatus;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior};
use web_console::SettingLines;

use super::reread::{ReloadedSettings, SettingSources};
use super::{IndexServiceSettings, ServiceHost, StoreSettings};
use crate::backups::ProcessBackups;
use crate::embedder_settings::embed_service;
use crate::exit::ProcessFailure;
use crate::metrics::{
    CertificateEnds, ProcessMode, show_connections, show_disks, show_logs, show_memory,
    show_process,
};
use crate::notify;
use crate::open_files;
use crate::renewal::FileFaultLog;

/// Makes the limits of connections fit the limit of open files.
fn fit(listeners: &mut [ApiSocketOptions]) {
    open_files::fit_connections(listeners.iter_mut().map(|it| &mut it.connections_max));
}

/// Shows the process among the metrics of the service. Returns the ends of certificates, which are
/// among them.
fn show_metrics(store: &StoreHandle, directory: PathBuf) -> CertificateEnds {
    let metrics = store.metrics();
    show_memory(metrics, vec![("indexes", Arc::new(store.index_bytes()))]);
    show_disks(metrics, vec![("index", directory)]);
    show_connections(metrics, None);
    HttpTraffic::of_process().show(metrics);
    let status = store.status();
    show_process(metrics, ProcessMode::Store, move || {
        *status.borrow() == NodeStatus::Serving
    });
    let certificates = CertificateEnds::default();
    certificates.show(metrics);
    certificates
}

/// Notes the certificates of the listeners, in place of those before.
fn note_certificates(certificates: &CertificateEnds, listeners: &[ApiSocketOptions]) {
    certificates.clear();
    let options = listeners
        .iter()
        .filter_map(|listener| listener.tls.as_ref());
    options.for_each(|options| certificates.note_options(options));
}

/// An index service whose HTTP addresses are bound, but which has not started.
pub struct BoundIndexService {
    settings: IndexServiceSettings,
    tokens: Option<TokenSet>,
    listeners: ApiListeners,
    hang_up: Signal,
}

impl BoundIndexService {
    /// Reads the tokens, binds the addresses, and catches SIGHUP from now on.
    pub async fn bind(mut settings: IndexServiceSettings) -> anyhow::Result<BoundIndexService> {
        let tokens = settings.set.tokens()?;
        let hang_up = signal(SignalKind::hangup())?;
        fit(&mut settings.resolved.options.listeners);
        let listeners = ApiListeners::bind(&settings.resolved.options.listeners).await;
        Ok(BoundIndexService {
            listeners: listeners.map_err(failed)?,
            settings,
            tokens,
            hang_up,
        })
    }

    /// The service for searches by a call. It is not available until the service starts.
    pub fn local(&self) -> IndexServices {
        self.listeners.local().into()
    }

    /// Starts in the process of a gateway that listens on `address`. Its port may have been chosen
    /// only when it was bound.
    pub fn start_in_gateway(mut self, address: SocketAddr) -> anyhow::Result<IndexService> {
        let IndexServiceSettings {
            mut host,
            set,
            shown,
            ..
        } = self.settings;
        if let ServiceHost::Gateway(gateway) = &mut host {
            gateway.address = address;
        }
        self.settings = IndexServiceSettings {
            shown,
            ..IndexServiceSettings::resolve(host, set)?
        };
        self.start()
    }

    /// Starts the service. The database need not be up yet.
    pub fn start(self) -> anyhow::Result<IndexService> {
        let IndexServiceSettings {
            host,
            set,
            resolved,
            shown,
        } = self.settings;
        let embed = embed_service(resolved.embedder.as_ref())?;
        let shown = SettingLines::new(host.shown(shown.unwrap_or_default()));
        let tokens = Arc::new(TokenAuthorizer::new(self.tokens));
        let mut listeners = self.listeners;
        listeners.set_authorizer(tokens.clone());
        let mut checks = tokio::time::interval(resolved.check_interval);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (listening, directory) = (
            resolved.options.listeners.clone(),
            resolved.options.indexes.directory.clone(),
        );
        let mut backups = backups(&resolved.options);
        if let Some(backups) = &backups {
            listeners.add_routes_of_process(backups.tasks().routes());
        }
        for routes in [embed.routes(), shown.routes()] {
            listeners.add_routes_of_process(routes);
        }
        listeners.set_session_facts(host.session_facts(backups.is_some(), embed.has_server()));
        let slow_searches = Arc::clone(&resolved.options.slow_searches);
        let store = Store::start_on(listeners, resolved.options).map_err(failed)?;
        if let Some(backups) = &mut backups {
            backups.begin(&store);
        }
        let certificates = show_metrics(&store, directory);
        note_certificates(&certificates, &listening);
        show_logs(store.metrics(), slow_searches);
        tracing::info!(http = ?store.addresses(), "the index service listens");
        Ok(IndexService {
            store,
            certificates,
            backups,
            tokens,
            host,
            set,
            shown,
            hang_up: self.hang_up,
            checks,
            of_settings: FileFaultLog::of("the settings of the index service"),
            of_tokens: FileFaultLog::of_tokens(),
        })
    }
}

/// The backups of an index service. One that can't use its directory has none, and goes on.
fn backups(options: &StoreOptions) -> Option<ProcessBackups> {
    let directory = options.indexes.directory.clone();
    let clients = ClientWork {
        turns: options.turns.clone(),
        requests: options.maintenance.clone(),
    };
    match ProcessBackups::of_index_service(directory, options.tasks.clone(), clients) {
        Ok(backups) => Some(backups),
        Err(error) => {
            tracing::warn!(%error, "this service has no backups, as it has no directory for them");
            None
        }
    }
}

/// A running index service.
pub struct IndexService {
    store: StoreHandle,
    certificates: CertificateEnds,
    /// The backups of what the service has of its own, if it keeps files.
    backups: Option<ProcessBackups>,
    /// The tokens that it admits requests by.
    tokens: Arc<TokenAuthorizer>,
    host: ServiceHost,
    /// The settings in effect.
    set: StoreSettings,
    /// All settings as the console shows them.
    shown: SettingLines,
    hang_up: Signal,
    /// The times at which the files are checked.
    checks: Interval,
    /// The faults of the settings and their files at the last check.
    of_settings: FileFaultLog,
    /// Those of the file of tokens.
    of_tokens: FileFaultLog,
}

impl IndexService {
    /// Prints that the service is ready once it serves, and puts changes of the settings into
    /// effect. Ends only with the service.
    ///
    /// `ahead` has to be done before the service prints that it is ready.
    pub async fn keep(
        &mut self,
        ahead: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<Infallible> {
        let mut status = self.store.status();
        let serves = async {
            ahead.await?;
            let reached = status.wait_for(|status| *status == NodeStatus::Serving);
            reached.await.map(drop).context("the index service ended")
        };
        tokio::pin!(serves);
        let mut ready = false;
        // Reading files and looking up host names may take long. Signals are received meanwhile.
        let mut reading: Option<PendingReload> = None;
        loop {
            tokio::select! {
                _ = self.hang_up.recv(), if reading.is_none() => {
                    reading = Some(self.read(SettingSources::All));
                }
                _ = self.checks.tick(), if reading.is_none() => {
                    reading = Some(self.read(SettingSources::InEffect));
                }
                (reread, asked_for) = ended(&mut reading) => {
                    reading = None;
                    self.reload(reread, asked_for).await;
                }
                reached = &mut serves, if !ready => {
                    reached?;
                    ready = true;
                    let http = self.store.addresses()[0];
                    println!("annulus store is ready: HTTP on {http}");
                    std::io::stdout().flush()?;
                    // Of a gateway with an index service, too: it is ready before.
                    notify::ready(&format!("HTTP on {http}"));
                }
            }
        }
    }

    /// Begins to read settings and files.
    fn read(&self, from: SettingSources) -> PendingReload {
        let (host, set) = (self.host.clone(), self.set.clone());
        PendingReload {
            reread: tokio::task::spawn_blocking(move || ReloadedSettings::read(host, set, from)),
            asked_for: from == SettingSources::All,
        }
    }

    /// Puts changes into effect: first the tokens, so that one that is withdrawn is so whatever
    /// becomes of the rest. Logs what can't be used.
    async fn reload(&mut self, reread: Result<ReloadedSettings, ProcessFailure>, asked_for: bool) {
        let (tokens, settings) = match reread {
            Ok(reread) => {
                let tokens = reread.tokens.map(|tokens| {
                    self.set.token_file = reread.token_file;
                    self.tokens.replace(tokens)
                });
                (tokens, reread.settings)
            }
            Err(failure) => (Ok(false), Err(failure)),
        };
        self.of_tokens.report(tokens, asked_for);
        let changed = match settings {
            Ok(settings) => self.change(settings).await,
            Err(failure) => Err(failure),
        };
        if changed.is_ok() && asked_for {
            tracing::info!("settings of the index service read again");
        }
        self.of_settings.report(changed.map(|()| false), asked_for);
    }

    /// Puts other settings into effect, but for the tokens. If they can't be used, everything stays
    /// as it was.
    async fn change(&mut self, settings: IndexServiceSettings) -> Result<(), ProcessFailure> {
        let IndexServiceSettings {
            set,
            resolved,
            shown,
            ..
        } = settings;
        let mut options = resolved.options;
        fit(&mut options.listeners);
        self.store
            .reload(&options.listeners, options.database, options.memory)
            .await
            .map_err(|error| ProcessFailure::Configuration(error.to_string()))?;
        note_certificates(&self.certificates, &options.listeners);
        self.set = set;
        if let Some(shown) = shown {
            self.shown.replace(self.host.shown(shown));
        }
        Ok(())
    }

    /// Answers the requests in flight, saves the indexes and ends, within the time that the host
    /// gives it.
    pub async fn stop(self) {
        if let Some(backups) = self.backups {
            backups.stop().await;
        }
        self.store.shutdown().await;
    }
}

/// Settings that are being read.
struct PendingReload {
    reread: JoinHandle<ReloadedSettings>,
    /// Whether a signal requested it.
    asked_for: bool,
}

/// Waits for the settings that are being read, and returns them with whether a signal requested
/// them. Waits for ever if none are being read.
async fn ended(
    reading: &mut Option<PendingReload>,
) -> (Result<ReloadedSettings, ProcessFailure>, bool) {
    let Some(reading) = reading else {
        return std::future::pending().await;
    };
    let reread = (&mut reading.reread).await;
    let reread = reread.map_err(|error| ProcessFailure::Configuration(error.to_string()));
    (reread, reading.asked_for)
}

/// The error for an index service that could not start.
fn failed(error: StartError) -> anyhow::Error {
    match error {
        StartError::Listen { address, source } => ProcessFailure::AddressInUse(format!(
            "cannot listen on {address}: {source}; choose another address by uri (VECTOR_STORE_URI) or mtls-uri \
             (VECTOR_STORE_MTLS_URI), or stop what uses it"
        ))
        .into(),
        StartError::IndexDirectory { .. } => ProcessFailure::Configuration(format!(
            "{error}; choose another directory by index-dir (ANNULUS_INDEX_DIR), or keep vectors in memory by \
             index-vectors memory (ANNULUS_INDEX_VECTORS)"
        ))
        .into(),
        StartError::Certificates(_) | StartError::DatabaseAuthorities(_) => {
            ProcessFailure::Configuration(error.to_string()).into()
        }
    }
}
