//! A running index service, which takes over other settings when it is told to.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use store::{ListenerOptions, Listeners, StartError, Store, StoreHandle};
use store_api::types::NodeStatus;
use store_api::{Stores, Tokens};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior};

use super::{Host, Settings, StoreSettings};
use crate::exit::Failure;
use crate::open_files;

/// Makes the limits of connections fit the limit of open files.
fn fit(listeners: &mut [ListenerOptions]) {
    open_files::fit_connections(listeners.iter_mut().map(|it| &mut it.connections_max));
}

/// An index service whose HTTP addresses are bound, but which has not started.
pub struct Bound {
    settings: Settings,
    listeners: Listeners,
    hang_up: Signal,
}

impl Bound {
    /// Binds the addresses, and catches SIGHUP from now on.
    pub async fn bind(mut settings: Settings) -> anyhow::Result<Bound> {
        let hang_up = signal(SignalKind::hangup())?;
        fit(&mut settings.resolved.options.listeners);
        let listeners = Listeners::bind(&settings.resolved.options.listeners).await;
        Ok(Bound {
            listeners: listeners.map_err(failed)?,
            settings,
            hang_up,
        })
    }

    /// The service for searches by a call. It is not available until the service starts.
    pub fn local(&self) -> Stores {
        self.listeners.local().into()
    }

    /// Starts in the process of a gateway that listens on `address`. Its port may have been chosen
    /// only when it was bound.
    pub fn start_in_gateway(mut self, address: SocketAddr) -> anyhow::Result<Service> {
        let Settings { mut host, set, .. } = self.settings;
        if let Host::Gateway(gateway) = &mut host {
            gateway.address = address;
        }
        self.settings = Settings::resolve(host, set)?;
        self.start()
    }

    /// Starts the service. The database need not be up yet.
    pub fn start(self) -> anyhow::Result<Service> {
        let Settings {
            host,
            set,
            mut resolved,
        } = self.settings;
        let tokens = Arc::new(Tokens::new(resolved.tokens));
        resolved.options.doorkeeper = Some(tokens.clone());
        let mut checks = tokio::time::interval(resolved.check_interval);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let store = Store::start_on(self.listeners, resolved.options).map_err(failed)?;
        tracing::info!(http = ?store.addresses(), "the index service listens");
        Ok(Service {
            store,
            tokens,
            host,
            set,
            hang_up: self.hang_up,
            checks,
        })
    }
}

/// A running index service.
pub struct Service {
    store: StoreHandle,
    /// The tokens at its door.
    tokens: Arc<Tokens>,
    host: Host,
    /// The settings in effect.
    set: StoreSettings,
    hang_up: Signal,
    /// The times at which the files are checked.
    checks: Interval,
}

impl Service {
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
        let mut last_failure = None;
        // Reading files and looking up host names may take long. Signals are received meanwhile.
        let mut reading: Option<Reading> = None;
        loop {
            tokio::select! {
                _ = self.hang_up.recv(), if reading.is_none() => {
                    let host = self.host.clone();
                    let settings = tokio::task::spawn_blocking(|| Settings::read(host));
                    reading = Some(Reading { settings, asked_for: true });
                }
                _ = self.checks.tick(), if reading.is_none() => {
                    let (host, set) = (self.host.clone(), self.set.clone());
                    let settings = tokio::task::spawn_blocking(|| Settings::resolve(host, set));
                    reading = Some(Reading { settings, asked_for: false });
                }
                (settings, asked_for) = ended(&mut reading) => {
                    reading = None;
                    match self.reload(settings).await {
                        Ok(()) => {
                            last_failure = None;
                            if asked_for {
                                tracing::info!("settings of the index service read again");
                            }
                        }
                        // A failure is logged once, and not at every check.
                        Err(error) => {
                            if asked_for || last_failure.as_ref() != Some(&error) {
                                tracing::error!(
                                    error,
                                    "the settings of the index service can't be used; all stays as it was"
                                );
                            }
                            last_failure = Some(error);
                        }
                    }
                }
                reached = &mut serves, if !ready => {
                    reached?;
                    ready = true;
                    println!("annulus store is ready: HTTP on {}", self.store.addresses()[0]);
                    std::io::stdout().flush()?;
                }
            }
        }
    }

    /// Puts changes into effect. Returns the reason if everything stays as it was.
    async fn reload(&mut self, settings: Result<Settings, String>) -> Result<(), String> {
        let Settings { set, resolved, .. } = settings?;
        let mut options = resolved.options;
        fit(&mut options.listeners);
        self.store
            .reload(&options.listeners, options.database, options.memory)
            .await
            .map_err(|error| error.to_string())?;
        if self.tokens.replace(resolved.tokens) {
            tracing::info!("the tokens of the index service changed");
        }
        self.set = set;
        Ok(())
    }

    /// Answers the requests in flight, saves the indexes and ends, within the time that the host
    /// gives it.
    pub async fn stop(self) {
        self.store.shutdown().await;
    }
}

/// Settings that are being read.
struct Reading {
    settings: JoinHandle<Result<Settings, Failure>>,
    /// Whether a signal asked for it.
    asked_for: bool,
}

/// Waits for the settings that are being read, and returns them with whether a signal asked for
/// them. Waits for ever if none are being read.
async fn ended(reading: &mut Option<Reading>) -> (Result<Settings, String>, bool) {
    let Some(reading) = reading else {
        return std::future::pending().await;
    };
    let settings = match (&mut reading.settings).await {
        Ok(settings) => settings.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    (settings, reading.asked_for)
}

/// The error for an index service that could not start.
fn failed(error: StartError) -> anyhow::Error {
    match error {
        StartError::Listen { address, source } => Failure::AddressInUse(format!(
            "cannot listen on {address}: {source}; choose another address by uri (VECTOR_STORE_URI) or mtls-uri \
             (VECTOR_STORE_MTLS_URI), or stop what uses it"
        ))
        .into(),
        StartError::IndexDirectory { .. } => Failure::Configuration(format!(
            "{error}; choose another directory by index-dir (ANNULUS_INDEX_DIR), or keep vectors in memory by \
             index-vectors memory (ANNULUS_INDEX_VECTORS)"
        ))
        .into(),
        StartError::Certificates(_) | StartError::DatabaseAuthorities(_) => {
            Failure::Configuration(error.to_string()).into()
        }
    }
}
