//! `annulus store`: the index service alone, beside a cluster that it is a client of.
//!
//! It takes the place of ScyllaDB's own Vector Store, so it understands that program's environment
//! variables. On SIGHUP, and at intervals without it, all sources of settings and all files that
//! they name are read again; what differs is put into effect without dropping a request, and what
//! can't be used changes nothing.

mod settings;
mod sources;
mod values;

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context;
use store::{StartError, Store, StoreHandle};
use store_api::types::NodeStatus;
use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Failure;
use crate::logging;
use settings::Resolved;
pub use settings::StoreSettings;

/// Parses like the command line does, from all sources of settings.
fn read_settings() -> Result<Resolved, Failure> {
    sources::read(std::env::args_os().collect())?.resolve()
}

pub fn run() -> anyhow::Result<()> {
    let settings = read_settings()?;
    logging::start(&settings.log, settings.log_format, settings.colours)?;
    for name in sources::without_effect() {
        tracing::warn!(name, "this variable is set, but has no effect here");
    }
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.async_threads)
        .enable_all()
        .build()
        .context("starting the threads")?
        .block_on(serve(settings))
}

async fn serve(settings: Resolved) -> anyhow::Result<()> {
    // Asked for before anything else, so that a signal during the start does no harm.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut checks = tokio::time::interval(settings.check_interval.max(Duration::from_millis(1)));
    checks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);

    let mut store = Store::start(settings.options).await.map_err(failed)?;
    tracing::info!(http = ?store.addresses(), "listening");
    let mut status = store.status();
    let mut ready = false;
    let mut last_failure = None;
    let signal = loop {
        tokio::select! {
            _ = interrupt.recv() => break "SIGINT",
            _ = terminate.recv() => break "SIGTERM",
            _ = hang_up.recv() => {
                last_failure = None;
                if reload(&mut store, &mut last_failure).await {
                    tracing::info!("settings read again");
                }
            }
            _ = checks.tick() => {
                reload(&mut store, &mut last_failure).await;
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

/// Puts into effect what has changed. A failure is told once, not at every look.
async fn reload(store: &mut StoreHandle, last_failure: &mut Option<String>) -> bool {
    // Files and names of hosts are read for as long as it takes.
    let settings = tokio::task::spawn_blocking(read_settings).await;
    let error = match settings {
        Ok(Ok(Resolved { options, .. })) => {
            let reloaded = store.reload(&options.listeners, options.database, options.memory);
            match reloaded.await {
                Ok(()) => {
                    *last_failure = None;
                    return true;
                }
                Err(error) => error.to_string(),
            }
        }
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    if last_failure.as_ref() != Some(&error) {
        tracing::error!(error, "the settings can't be used; all stays as it was");
    }
    *last_failure = Some(error);
    false
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
