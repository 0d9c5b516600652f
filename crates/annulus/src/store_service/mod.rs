//! `annulus store`: the index service alone, beside a cluster that it is a client of.
//!
//! It takes the place of ScyllaDB's own Vector Store, so it understands that program's environment
//! variables. On SIGHUP all sources of settings and all files that they name are read again; at
//! intervals without it the certificates and passwords alone that the settings in effect name, as a
//! file of settings that is being written, or gone, must not take encryption away. What differs is put
//! into effect without dropping a request, and what can't be used changes nothing.

mod settings;
mod sources;
mod values;

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context;
use store::{StartError, Store, StoreHandle};
use store_api::types::NodeStatus;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::exit::Failure;
use crate::logging;
use crate::open_files;
use crate::stop::Stop;
use settings::Resolved;
pub use settings::StoreSettings;

/// How long threads that still read files or look names up are waited for at the end.
const READING_ENDS_WITHIN: Duration = Duration::from_secs(1);

/// What is in effect, or to be.
struct Settings {
    /// As they were set.
    set: StoreSettings,
    /// With everything that they name.
    resolved: Resolved,
}

impl Settings {
    /// Parses like the command line does, from all sources of settings.
    fn read() -> Result<Settings, Failure> {
        Settings::resolve(sources::read(std::env::args_os().collect())?)
    }

    /// Reads the files that settings name.
    fn resolve(set: StoreSettings) -> Result<Settings, Failure> {
        let resolved = set.clone().resolve()?;
        Ok(Settings { set, resolved })
    }
}

pub fn run() -> anyhow::Result<()> {
    let settings = Settings::read()?;
    let resolved = &settings.resolved;
    logging::start(&resolved.log, resolved.log_format, resolved.colours)?;
    open_files::raise_limit();
    for name in sources::without_effect() {
        tracing::warn!(name, "this variable is set, but has no effect here");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(resolved.async_threads)
        .enable_all()
        .build()
        .context("starting the threads")?;
    let served = runtime.block_on(serve(settings));
    runtime.shutdown_timeout(READING_ENDS_WITHIN);
    served
}

async fn serve(Settings { mut set, resolved }: Settings) -> anyhow::Result<()> {
    let mut stop = Stop::listen()?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut checks = tokio::time::interval(resolved.check_interval);
    checks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);

    let mut store = Store::start(resolved.options).await.map_err(failed)?;
    tracing::info!(http = ?store.addresses(), "listening");
    let mut status = store.status();
    let mut ready = false;
    let mut last_failure = None;
    // Files and names of hosts are read for as long as it takes; signals are heeded meanwhile.
    let mut reading: Option<Reading> = None;
    let signal = loop {
        tokio::select! {
            signal = stop.asked_for() => break signal,
            _ = hang_up.recv(), if reading.is_none() => {
                let settings = tokio::task::spawn_blocking(Settings::read);
                reading = Some(Reading { settings, asked_for: true });
            }
            _ = checks.tick(), if reading.is_none() => {
                let set = set.clone();
                let settings = tokio::task::spawn_blocking(|| Settings::resolve(set));
                reading = Some(Reading { settings, asked_for: false });
            }
            (settings, asked_for) = ended(&mut reading) => {
                reading = None;
                match reload(&mut store, settings).await {
                    Ok(in_effect) => {
                        set = in_effect;
                        last_failure = None;
                        if asked_for {
                            tracing::info!("settings read again");
                        }
                    }
                    // A failure is told once, not at every look.
                    Err(error) => {
                        if asked_for || last_failure.as_ref() != Some(&error) {
                            tracing::error!(error, "the settings can't be used; all stays as it was");
                        }
                        last_failure = Some(error);
                    }
                }
            }
            reached = status.wait_for(|status| *status == NodeStatus::Serving), if !ready => {
                drop(reached.context("the index service ended")?);
                ready = true;
                println!("annulus store is ready: HTTP on {}", store.addresses()[0]);
                std::io::stdout().flush()?;
            }
        }
    };
    tracing::info!(signal, "stopping");
    store.shutdown().await;
    tracing::info!("stopped");
    Ok(())
}

/// Settings that are being read.
struct Reading {
    settings: JoinHandle<Result<Settings, Failure>>,
    /// By a signal.
    asked_for: bool,
}

/// What was read, and whether that was asked for; never, while nothing is being read.
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

/// Puts into effect what has changed; gives back what was set, or why all stays as it was.
async fn reload(
    store: &mut StoreHandle,
    settings: Result<Settings, String>,
) -> Result<StoreSettings, String> {
    let Settings { set, resolved } = settings?;
    let options = resolved.options;
    store
        .reload(&options.listeners, options.database, options.memory)
        .await
        .map_err(|error| error.to_string())?;
    Ok(set)
}

/// The index service could not start.
fn failed(error: StartError) -> anyhow::Error {
    match error {
        StartError::Listen { address, source } => Failure::AddressInUse(format!(
            "cannot listen on {address}: {source}; choose another address with --uri or \
             --mtls-uri, or stop what uses it"
        ))
        .into(),
        StartError::IndexDirectory { .. } => Failure::Configuration(format!(
            "{error}; choose another directory with --index-dir, or keep vectors in memory with \
             --index-vectors memory"
        ))
        .into(),
        StartError::Certificates(_) | StartError::DatabaseAuthorities(_) => {
            Failure::Configuration(error.to_string()).into()
        }
    }
}
