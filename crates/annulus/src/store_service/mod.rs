//! The index service as an operator runs it: by itself next to a cluster (`annulus store`), or in
//! the process of a gateway (`annulus gateway --with-store`).
//!
//! The service takes the place of ScyllaDB's own Vector Store, so it understands that program's
//! environment variables. On SIGHUP it reads all sources of settings again, and all files that they
//! name. At intervals it reads only the certificates and passwords that the settings in effect
//! name, as a settings file that is missing or only half written must not switch encryption off.
//! Changes take effect without dropping a request: a new listener, certificate or database session
//! is ready before the former one goes. Settings that can't be used change nothing. The tokens are
//! apart from them: neither waits until the other's files are mended.

mod host;
mod reread;
mod running;
mod settings;
mod sources;
mod values;

use std::time::Duration;

use anyhow::Context;
use web_console::SettingLine;

use crate::exit::ProcessFailure;
use crate::logging;
use crate::notify;
use crate::open_files;
use crate::runtime_threads;
use crate::stop::TerminationSignals;
pub use host::{ClientTlsPolicy, EnclosingGateway, ServiceHost};
pub use running::BoundIndexService;
use settings::EffectiveStoreSettings;
pub use settings::StoreSettings;

/// The time to wait at the end for threads that still read files or look up names.
pub const READING_ENDS_WITHIN: Duration = Duration::from_secs(1);

/// Settings of an index service, with everything that follows from them.
#[derive(Debug)]
pub struct IndexServiceSettings {
    host: ServiceHost,
    /// The settings as they were set.
    set: StoreSettings,
    /// The settings with the host's values for those that are not set, and with the files that they
    /// name.
    resolved: EffectiveStoreSettings,
    /// All settings as the console shows them, if the sources were read.
    shown: Option<Vec<SettingLine>>,
}

impl IndexServiceSettings {
    /// Reads all sources of settings, and the files that they name, but for the tokens.
    pub fn read(host: ServiceHost) -> Result<IndexServiceSettings, ProcessFailure> {
        let set = sources::read(&host)?;
        let shown = sources::shown(&host)?;
        let settings = IndexServiceSettings::resolve(host, set)?;
        Ok(IndexServiceSettings {
            shown: Some(shown),
            ..settings
        })
    }

    /// Reads the files that settings name, but for the tokens.
    fn resolve(
        host: ServiceHost,
        set: StoreSettings,
    ) -> Result<IndexServiceSettings, ProcessFailure> {
        let mut resolved = host.complete(set.clone())?.resolve()?;
        host.adjust(&mut resolved.options);
        Ok(IndexServiceSettings {
            host,
            set,
            resolved,
            shown: None,
        })
    }

    /// Logs a warning for each variable that is set and has no effect.
    pub fn warn_of_those_without_effect(&self) {
        for name in sources::without_effect(&self.host) {
            tracing::warn!(name, "this variable is set, but has no effect here");
        }
    }
}

/// Runs `annulus store`.
pub fn run() -> anyhow::Result<()> {
    // The first two arguments are the program and the subcommand.
    let flags = std::env::args_os().skip(2).collect();
    let settings = IndexServiceSettings::read(ServiceHost::Alone(flags))?;
    let resolved = &settings.resolved;
    let receiver = resolved.log_syslog.as_ref();
    logging::start(
        &resolved.log,
        resolved.log_format,
        receiver,
        resolved.colours,
    )?;
    open_files::raise_limit();
    settings.warn_of_those_without_effect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(resolved.async_threads)
        .thread_name_fn(runtime_threads::names(resolved.async_threads))
        .enable_all()
        .build()
        .context("starting the threads")?;
    let served = runtime.block_on(serve(settings));
    runtime.shutdown_timeout(READING_ENDS_WITHIN);
    logging::flush();
    served
}

async fn serve(settings: IndexServiceSettings) -> anyhow::Result<()> {
    let mut stop = TerminationSignals::listen()?;
    let mut service = BoundIndexService::bind(settings).await?.start()?;
    let outcome = tokio::select! {
        signal = stop.received() => Ok(signal),
        ended = service.keep(std::future::ready(Ok(()))) => ended.map(|never| match never {}),
    };
    if let Ok(signal) = outcome {
        tracing::info!(signal, "stopping");
    }
    notify::stopping();
    service.stop().await;
    tracing::info!("stopped");
    outcome.map(|_| ())
}
