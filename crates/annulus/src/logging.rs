//! Logs: to stderr, one line a fact.

use std::io::IsTerminal;

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;

use crate::exit::Failure;

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// Starts logging.
///
/// `filter` is a level (`info`) or a list of directives (`info,store=debug`).
/// `colours`: whether a terminal gets them.
pub fn start(filter: &str, format: LogFormat, colours: bool) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter).map_err(|error| {
        Failure::Configuration(format!(
            "log filter {filter:?}: {error}; write a level such as info, or store=debug,info"
        ))
    })?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(colours && std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => subscriber.init(),
        LogFormat::Json => subscriber.json().init(),
    }
    Ok(())
}
