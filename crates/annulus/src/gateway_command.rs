//! `annulus gateway`: a CQL server before a node of Apache Cassandra, optionally with the index
//! service in its process.
//!
//! That index service is the one of `annulus store` ([`store_service`]), and still a client of the
//! gateway over sockets. Only the searches of `ANN OF` reach it by a call
//! ([`store_api::IndexServices::Local`]). It stops before the gateway, which is its database.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, Command};
use credentials::files;
use gateway::{Gateway, GatewayOptions};
use net::reactors::ReactorPool;
use net::tls::{RenewableClient, ServerTls};
use slow_statements::SlowQueries;
use tokio::net::TcpStream;
use web_console::{SettingLine, SettingLines};

use crate::core_dumps;
use crate::exit::ProcessFailure;
use crate::gateway_settings::{GatewaySettings, ResolvedGatewaySettings};
use crate::gateway_tls::{CassandraCertificates, GatewayTls};
use crate::heap;
use crate::logging;
use crate::metrics::{
    CertificateEnds, CqlConnections, ProcessMode, show_connections, show_logs, show_process,
};
use crate::notify;
use crate::open_files;
use crate::renewal::{FileFaultLog, RereadSchedule};
use crate::setting_lines;
use crate::settings_file;
use crate::stop::TerminationSignals;
use crate::store_service::{
    self, BoundIndexService, ClientTlsPolicy, EnclosingGateway, READING_ENDS_WITHIN, ServiceHost,
};

/// The longest time that answers in flight may take after a signal. It includes the stop of the
/// index service, which takes half of it at most.
const STOP_GRACE: Duration = Duration::from_secs(8);

/// The interval of attempts to reach Cassandra at the start.
const TRY_EVERY: Duration = Duration::from_secs(1);

#[derive(Args, Debug)]
pub struct GatewayArguments {
    /// TOML file with any of these settings, by their long names
    #[arg(long, env = "ANNULUS_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: GatewaySettings,
}

/// Runs `annulus gateway`.
pub fn run(arguments: GatewayArguments) -> anyhow::Result<()> {
    let file: toml::Table = match &arguments.config {
        Some(path) => settings_file::read(path)?,
        None => toml::Table::new(),
    };
    let shown = shown(&file);
    let file = GatewaySettings::of_file(file).with_context(|| {
        let path = arguments.config.as_deref().unwrap_or(Path::new(""));
        format!("configuration file {}", path.display())
    })?;
    let mut settings = arguments.settings.or(file).resolve()?;
    settings.options.settings = SettingLines::new(shown.clone());
    let store = match settings.with_store {
        true => Some(store_service::IndexServiceSettings::read(host(
            &settings,
            arguments.config,
            shown,
        ))?),
        false => None,
    };
    let receiver = settings.log_syslog.as_ref();
    logging::start(&settings.log, settings.log_format, receiver, true)?;
    open_files::raise_limit();
    // The passwords of clients pass through.
    core_dumps::switch_off();
    if let Some(store) = &store {
        store.warn_of_those_without_effect();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the threads")?;
    let served = runtime.block_on(serve(settings, store));
    runtime.shutdown_timeout(READING_ENDS_WITHIN);
    logging::flush();
    served
}

/// The settings as the console shows them.
fn shown(file: &toml::Table) -> Vec<SettingLine> {
    let known = GatewayArguments::augment_args(Command::new("gateway").no_binary_name(true));
    // The first two arguments are the program and the subcommand.
    let matches = known
        .clone()
        .try_get_matches_from(std::env::args_os().skip(2));
    let typed = matches.map(|matches| setting_lines::typed(&known, &matches));
    let sources = [
        (setting_lines::TYPED, typed.unwrap_or_default()),
        (setting_lines::FILE, setting_lines::in_file(file)),
    ];
    setting_lines::lines(&known, &sources)
}

/// The facts about the gateway that an index service in this process needs.
fn host(
    settings: &ResolvedGatewaySettings,
    file: Option<PathBuf>,
    shown: Vec<SettingLine>,
) -> ServiceHost {
    ServiceHost::Gateway(EnclosingGateway {
        file,
        shown,
        address: settings.options.address,
        memory: settings.memory,
        maintenance: settings.options.maintenance.clone(),
        asks: match &settings.tls_for_clients {
            None => ClientTlsPolicy::Nothing,
            Some(_) if settings.tls.tls_client_ca_cert_path.is_some() => {
                ClientTlsPolicy::Certificate
            }
            Some(_) => ClientTlsPolicy::Tls,
        },
    })
}

/// Runs the gateway until a signal. `store` are the settings of the index service, if it runs in
/// this process.
async fn serve(
    settings: ResolvedGatewaySettings,
    store: Option<store_service::IndexServiceSettings>,
) -> anyhow::Result<()> {
    let mut stop = TerminationSignals::listen()?;
    let mut options = GatewayOptions {
        reactors: ReactorPool::start(settings.async_threads).context("starting the threads")?,
        ..settings.options
    };
    open_files::fit_gateway_connections(&mut options.connections_max, store.is_some());
    let cassandra = options.cassandra.clone();
    tokio::spawn(heap::keep_trimmed(vec![options.memory.clone()]));
    warn_of_insecure_or_hidden_listeners(&options);
    let mut bound = None;
    if let Some(settings) = store {
        let of_store = bound.insert(BoundIndexService::bind(settings).await?);
        options.stores = of_store.local();
    }
    let slow_queries = options.slow_queries.clone();
    let gateway = Gateway::start(options).await.map_err(in_use)?;
    log_addresses(&gateway, &cassandra);
    let ends = show_metrics(&gateway, slow_queries);
    // The gateway, which is the database of the index service, listens now.
    let started = bound.map(|bound| bound.start_in_gateway(gateway.address()));
    let mut store = match started.transpose() {
        Ok(store) => store,
        Err(error) => {
            gateway.stop(STOP_GRACE).await;
            return Err(error);
        }
    };
    let certificates = CredentialReloader {
        settings: settings.tls,
        for_clients: settings.tls_for_clients,
        for_cassandra: settings.tls_for_cassandra,
        tokens: settings.token_file,
        check_interval: settings.check_interval,
        ends,
    };
    certificates.note_ends();
    let ready = get_ready(&gateway, &cassandra);
    let running = async {
        match &mut store {
            Some(store) => store.keep(ready).await,
            None => {
                ready.await?;
                notify::ready(&format!("CQL on {}", gateway.address()));
                std::future::pending().await
            }
        }
    };
    let outcome = tokio::select! {
        signal = stop.received() => Ok(signal),
        ended = running => ended.map(|never| match never {}),
        failed = certificates.keep(&gateway) => failed,
    };
    if let Ok(signal) = outcome {
        tracing::info!(signal, "stopping");
    }
    notify::stopping();
    let began = Instant::now();
    // The index service stops first, as it is a client of the gateway.
    if let Some(store) = store {
        store.stop().await;
    }
    if !gateway
        .stop(STOP_GRACE.saturating_sub(began.elapsed()))
        .await
    {
        tracing::warn!("some requests were still unanswered when their time was up");
    }
    outcome.map(|_| ())
}

/// The failure of a gateway that can't listen.
fn in_use(error: impl std::fmt::Display) -> ProcessFailure {
    ProcessFailure::AddressInUse(format!(
        "{error}; choose another port with --cql-port (or --metrics-listen), or stop what uses it"
    ))
}

/// Shows the process and its log among the metrics of the gateway. Returns the ends of
/// certificates, which are among them.
fn show_metrics(gateway: &Gateway, slow_queries: Arc<SlowQueries>) -> CertificateEnds {
    let metrics = gateway.metrics();
    let connections = gateway.connections();
    let read = move || {
        let (open, opened, gave_way) = connections();
        CqlConnections {
            open,
            opened,
            full: 0,
            gave_way,
        }
    };
    show_connections(metrics, Some(Arc::new(read)));
    show_process(metrics, ProcessMode::Gateway, gateway.readiness());
    show_logs(metrics, slow_queries);
    let ends = CertificateEnds::default();
    ends.show(metrics);
    ends
}

/// Logs where the gateway listens.
fn log_addresses(gateway: &Gateway, cassandra: &impl std::fmt::Display) {
    tracing::info!(cql = %gateway.address(), %cassandra, "listening");
    if let Some(address) = gateway.metrics_address() {
        tracing::info!(%address, "metrics are at http://{address}/metrics");
    }
}

/// The certificates and tokens in effect, which are read again at intervals and on SIGHUP.
struct CredentialReloader {
    settings: GatewayTls,
    /// The certificate for clients that is in effect.
    for_clients: Option<ServerTls>,
    for_cassandra: Option<(CassandraCertificates, RenewableClient)>,
    /// The file of tokens.
    tokens: Option<PathBuf>,
    check_interval: Duration,
    /// The ends of the certificates, which the metrics show.
    ends: CertificateEnds,
}

impl CredentialReloader {
    /// Notes the ends of the certificates in effect.
    fn note_ends(&self) {
        self.ends.clear();
        if let Some(tls) = &self.for_clients {
            self.ends.note_options(&tls.options);
        }
        if let Some((certificates, _)) = &self.for_cassandra {
            let in_use = certificates.in_use();
            in_use.for_each(|certificates| self.ends.note(certificates));
        }
    }

    /// Reads the files again and again, and puts changes into effect. A file that can't be used
    /// changes nothing. Ends only if signals can't be received.
    async fn keep(mut self, gateway: &Gateway) -> anyhow::Result<&'static str> {
        let mut checks = RereadSchedule::start(self.check_interval)?;
        let mut of_clients = FileFaultLog::of("the certificate for clients");
        let mut of_cassandra = FileFaultLog::of("the certificates for Cassandra");
        let mut of_tokens = FileFaultLog::of_tokens();
        loop {
            let asked_for = checks.next().await;
            let settings = self.settings.clone();
            let tokens = self.tokens.clone();
            let read = move || {
                let tokens = tokens.as_deref().map(files::tokens).transpose();
                let tokens = tokens.map_err(ProcessFailure::from);
                (settings.for_clients(), settings.for_cassandra(), tokens)
            };
            let (clients, cassandra, tokens) = tokio::task::spawn_blocking(read).await?;
            let renewed = clients.map(|read| self.renew_for_clients(read, gateway));
            of_clients.report(renewed, asked_for);
            let renewed = cassandra.and_then(|read| self.renew_for_cassandra(read));
            of_cassandra.report(renewed, asked_for);
            self.note_ends();
            let renewed = tokens.map(|read| gateway.renew_tokens(read));
            of_tokens.report(renewed, asked_for);
        }
    }

    /// Puts another certificate into effect. Returns whether there was one.
    fn renew_for_clients(&mut self, read: Option<ServerTls>, gateway: &Gateway) -> bool {
        match &read {
            Some(tls) if read != self.for_clients => {
                let before = self.for_clients.as_ref().map(|tls| &tls.options.clients);
                let other_rules = before != Some(&tls.options.clients);
                gateway.renew_client_tls(tls.config.clone(), other_rules);
                self.for_clients = read;
                true
            }
            _ => false,
        }
    }

    /// Puts other certificates into effect. Returns whether there were any.
    fn renew_for_cassandra(
        &mut self,
        read: Option<CassandraCertificates>,
    ) -> Result<bool, ProcessFailure> {
        match (read, &mut self.for_cassandra) {
            (Some(read), Some((in_effect, client))) if read != *in_effect => {
                read.renew(client)?;
                *in_effect = read;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

fn warn_of_insecure_or_hidden_listeners(options: &gateway::GatewayOptions) {
    if !options.address.ip().is_loopback() && options.client_tls.is_none() {
        tracing::warn!(
            "without --tls-cert-path passwords and rows cross the network as they are; listen on \
             127.0.0.1 beside the application, or trust the network"
        );
    }
    let other_ports = |gateway: &std::net::SocketAddr| {
        options.address.port() != 0 && gateway.port() != options.address.port()
    };
    for gateway in options.ring.gateways().filter(other_ports) {
        tracing::warn!(
            %gateway,
            "drivers that read system.peers and not peers_v2 know one port only and won't see this gateway: let all listen on one port"
        );
    }
}

/// Waits until Cassandra can be reached and the definitions of vector indexes are known, and then
/// prints that the gateway is ready.
async fn get_ready(gateway: &Gateway, cassandra: &str) -> anyhow::Result<()> {
    let mut told = false;
    while let Err(error) = TcpStream::connect(cassandra).await {
        if !told {
            tracing::warn!(cassandra, %error, "Cassandra can't be reached yet and is tried again");
            told = true;
        }
        tokio::time::sleep(TRY_EVERY).await;
    }
    gateway.ready().await;
    println!(
        "annulus gateway is ready: CQL on {}, Cassandra at {cassandra}",
        gateway.address()
    );
    std::io::stdout().flush()?;
    Ok(())
}
