//! Logs: on stderr, one fact a line, and for a receiver of syslog.
//!
//! Lines of syslog have a fixed head, `[shard N] module - `, which the readers of logs make labels
//! of. A receiver that is away holds up nothing: see [`line_queue`].

mod line_queue;
mod receiver;
mod request_ids;
mod syslog_layer;
mod syslog_record;

use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use http_server::MetricsRegistry;
use serde::Deserialize;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Layer, Layered, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::exit::ProcessFailure;
use line_queue::LineQueue;
pub use receiver::SyslogReceiver;
use request_ids::WithRequestId;
use syslog_layer::{SyslogLayer, SyslogOutput};

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    #[default]
    Text,
    Json,
    Syslog,
}

/// The module that logs warnings of nodes, which are left out unless the filter names the driver.
/// The driver logs every warning that a node sends with an answer, and Cassandra warns twice a
/// second of the statement by which the CDC library looks for new nodes.
const NODES_WARNINGS: &str = "scylla::network::connection";

/// The longest time that the end of the process waits until the receiver has the last lines.
const LAST_LINES_WITHIN: Duration = Duration::from_secs(1);

/// The lines for the receiver of this process.
static LINES: OnceLock<Arc<LineQueue>> = OnceLock::new();

/// The events that the filter lets pass.
type FilteredRegistry = Layered<Targets, Registry>;

/// Starts logging.
///
/// `filter` is a level (`info`) or a list of directives (`info,store=debug`). Lines go to stderr in
/// `format`, and to the receiver of syslog if there is one. `colours` allows colours on a terminal.
///
/// # Errors
/// If the filter can't be read, or a thread can't be started.
pub fn start(
    filter: &str,
    format: LogFormat,
    receiver: Option<&SyslogReceiver>,
    colours: bool,
) -> anyhow::Result<()> {
    let filter = log_filter(filter)?;
    let mut outputs = vec![on_stderr(format, colours)];
    if let Some(receiver) = receiver {
        let lines = Arc::new(LineQueue::default());
        receiver::deliver(Arc::clone(&lines), receiver.clone()).context("starting the threads")?;
        let _ = LINES.set(Arc::clone(&lines));
        let output = match receiver {
            SyslogReceiver::Tcp(_) | SyslogReceiver::Udp(_) => SyslogOutput::Network(lines),
            SyslogReceiver::Unix(_) => SyslogOutput::Local(lines),
        };
        outputs.push(SyslogLayer::new(output).boxed());
    }
    let subscriber = tracing_subscriber::registry().with(filter);
    subscriber.with(outputs).init();
    Ok(())
}

/// The lines on stderr.
fn on_stderr(format: LogFormat, colours: bool) -> Box<dyn Layer<FilteredRegistry> + Send + Sync> {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(colours && std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => lines.map_event_format(WithRequestId::text).boxed(),
        LogFormat::Json => lines.json().map_event_format(WithRequestId::json).boxed(),
        LogFormat::Syslog => SyslogLayer::new(SyslogOutput::Stderr).boxed(),
    }
}

/// The number of lines that were dropped, as the receiver of syslog was away.
fn dropped_lines() -> u64 {
    LINES.get().map_or(0, |lines| lines.dropped())
}

/// Shows the lines that were dropped among the metrics.
pub fn show_dropped(metrics: &MetricsRegistry) {
    metrics.show_counter(
        "annulus_log_dropped_total",
        "Lines of the log that the receiver of syslog was away for",
        &[],
        Arc::new(|| vec![(Vec::new(), dropped_lines())]),
    );
}

/// Waits a moment until the receiver of syslog has all lines. A receiver that is away is not waited
/// for.
pub fn flush() {
    if let Some(lines) = LINES.get() {
        lines.flush(LAST_LINES_WITHIN);
    }
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
