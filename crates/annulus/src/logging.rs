//! Logs on stderr, one fact a line.

use std::io::IsTerminal;

use clap::ValueEnum;
use serde::Deserialize;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::exit::ProcessFailure;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

/// The module that logs warnings of nodes, which are left out unless the filter names the driver.
/// The driver logs every warning that a node sends with an answer, and Cassandra warns twice a
/// second of the statement by which the CDC library looks for new nodes.
const NODES_WARNINGS: &str = "scylla::network::connection";

/// Starts logging.
///
/// `filter` is a level (`info`) or a list of directives (`info,store=debug`). `colours` allows
/// colours on a terminal.
pub fn start(filter: &str, format: LogFormat, colours: bool) -> anyhow::Result<()> {
    let filter = log_filter(filter)?;
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(colours && std::io::stderr().is_terminal());
    let subscriber = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Text => subscriber.with(lines).init(),
        LogFormat::Json => subscriber.with(lines.json()).init(),
    }
    Ok(())
}

/// Parses a filter of levels by target. `EnvFilter` would also know spans, which this program does
/// not have, and takes a library of regular expressions to build.
fn log_filter(filter: &str) -> anyhow::Result<Targets> {
    let wrong = |problem: &str| {
        ProcessFailure::Configuration(format!(
            "log filter {filter:?}: {problem}; write a level such as info, or store=debug,info"
        ))
    };
    // Such a part would be the name of a target.
    if filter.contains('[') {
        return Err(wrong("it names a span, and spans are not logged").into());
    }
    // An empty part would be all targets.
    let parts: Vec<&str> = filter.split(',').filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return Ok(Targets::new().with_default(LevelFilter::ERROR));
    }
    let parsed = parts.join(",").parse::<Targets>();
    let parsed = parsed.map_err(|error| wrong(&error.to_string()))?;
    let mut levels = parsed
        .iter()
        .map(|(_, level)| level)
        .chain(parsed.default_level());
    if levels.any(|level| level >= LevelFilter::WARN) && !filter.contains("scylla") {
        return Ok(parsed.with_target(NODES_WARNINGS, LevelFilter::ERROR));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_nodes_are_left_out_unless_the_driver_is_named() {
        let shown = |filter: &str| log_filter(filter).unwrap().to_string();
        let without = format!("{NODES_WARNINGS}=error");
        assert!(shown("info").contains(&without));
        assert!(shown("store=debug,warn").contains(&without));
        assert!(!shown("info,scylla=debug").contains(&without));
        assert_eq!(shown("off"), "off");
        assert_eq!(shown("error"), "error");
    }

    #[test]
    fn a_filter_has_levels_and_targets() {
        let filter = log_filter("warn,,store=DEBUG,").unwrap();
        assert!(filter.would_enable("store::feed", &tracing::Level::DEBUG));
        assert!(!filter.would_enable("node", &tracing::Level::INFO));
        assert!(filter.would_enable("node", &tracing::Level::WARN));
        let empty = log_filter("").unwrap();
        assert!(empty.would_enable("node", &tracing::Level::ERROR));
        assert!(!empty.would_enable("node", &tracing::Level::WARN));
        assert!(log_filter("store=loud").is_err());
        assert!(log_filter("store[search]=debug").is_err());
    }
}
