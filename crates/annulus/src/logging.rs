//! Logs on stderr, one fact a line.

use std::io::IsTerminal;

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::exit::Failure;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// A directive that leaves out warnings of nodes, unless the filter names the driver. The driver
/// logs every warning that a node sends with an answer, and Cassandra warns twice a second of the
/// statement by which the CDC library looks for new nodes.
const WITHOUT_NODES_WARNINGS: &str = "scylla::network::connection=error";

/// Starts logging.
///
/// `filter` is a level (`info`) or a list of directives (`info,store=debug`). `colours` allows
/// colours on a terminal.
pub fn start(filter: &str, format: LogFormat, colours: bool) -> anyhow::Result<()> {
    let filter = env_filter(filter)?;
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

fn env_filter(filter: &str) -> anyhow::Result<EnvFilter> {
    let mut parsed = EnvFilter::try_new(filter).map_err(|error| {
        Failure::Configuration(format!(
            "log filter {filter:?}: {error}; write a level such as info, or store=debug,info"
        ))
    })?;
    let shows_warnings = parsed
        .max_level_hint()
        .is_some_and(|level| level >= LevelFilter::WARN);
    if shows_warnings && !filter.contains("scylla") {
        parsed = parsed.add_directive(WITHOUT_NODES_WARNINGS.parse()?);
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_nodes_are_left_out_unless_the_driver_is_named() {
        let shown = |filter: &str| env_filter(filter).unwrap().to_string();
        assert!(shown("info").contains(WITHOUT_NODES_WARNINGS));
        assert!(shown("store=debug,warn").contains(WITHOUT_NODES_WARNINGS));
        assert!(!shown("info,scylla=debug").contains(WITHOUT_NODES_WARNINGS));
        assert_eq!(shown("off"), "off");
        assert_eq!(shown("error"), "error");
        assert!(env_filter("store=loud").is_err());
    }
}
