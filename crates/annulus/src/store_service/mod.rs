//! The index service as an operator runs it: alone beside a cluster that it is a client of (`annulus store`), or in the
//! process of a gateway (`annulus gateway --with-store`).
//!
//! It takes the place of ScyllaDB's own Vector Store, so it understands that program's environment
//! variables. On SIGHUP all sources of settings and all files that they name are read again; at
//! intervals without it the certificates and passwords alone that the settings in effect name, as a
//! file of settings that is being written, or gone, must not take encryption away. What differs is put
//! into effect without dropping a request, and what can't be used changes nothing.

mod host;
mod running;
mod settings;
mod sources;
mod values;

use std::time::Duration;

use anyhow::Context;

use crate::exit::Failure;
use crate::logging;
use crate::open_files;
use crate::stop::Stop;
pub use host::{Asks, Host, OfGateway};
pub use running::Bound;
use settings::Resolved;
pub use settings::StoreSettings;
pub use values::Size;

/// How long threads that still read files or look names up are waited for at the end.
pub const READING_ENDS_WITHIN: Duration = Duration::from_secs(1);

/// What is in effect, or to be.
#[derive(Debug)]
pub struct Settings {
    host: Host,
    /// As they were set.
    set: StoreSettings,
    /// With everything that they name, and where they are silent as the host has it.
    resolved: Resolved,
}

impl Settings {
    /// Reads all sources of settings, and the files that they name.
    pub fn read(host: Host) -> Result<Settings, Failure> {
        let set = sources::read(&host)?;
        Settings::resolve(host, set)
    }

    /// Reads the files that settings name.
    fn resolve(host: Host, set: StoreSettings) -> Result<Settings, Failure> {
        let mut resolved = host.complete(set.clone())?.resolve()?;
        host.adjust(&mut resolved.options);
        Ok(Settings {
            host,
            set,
            resolved,
        })
    }

    /// Tells the log of variables that are set in vain.
    pub fn warn_of_those_without_effect(&self) {
        for name in sources::without_effect(&self.host) {
            tracing::warn!(name, "this variable is set, but has no effect here");
        }
    }
}

/// `annulus store`.
pub fn run() -> anyhow::Result<()> {
    // Behind the program and the subcommand.
    let flags = std::env::args_os().skip(2).collect();
    let settings = Settings::read(Host::Alone(flags))?;
    let resolved = &settings.resolved;
    logging::start(&resolved.log, resolved.log_format, resolved.colours)?;
    open_files::raise_limit();
    settings.warn_of_those_without_effect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(resolved.async_threads)
        .enable_all()
        .build()
        .context("starting the threads")?;
    let served = runtime.block_on(serve(settings));
    runtime.shutdown_timeout(READING_ENDS_WITHIN);
    served
}

async fn serve(settings: Settings) -> anyhow::Result<()> {
    let mut stop = Stop::listen()?;
    let mut service = Bound::bind(settings).await?.start()?;
    let outcome = tokio::select! {
        signal = stop.asked_for() => Ok(signal),
        ended = service.keep(std::future::ready(Ok(()))) => ended.map(|never| match never {}),
    };
    if let Ok(signal) = outcome {
        tracing::info!(signal, "stopping");
    }
    service.stop().await;
    tracing::info!("stopped");
    outcome.map(|_| ())
}
