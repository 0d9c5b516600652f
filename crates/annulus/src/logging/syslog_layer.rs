//! Events as records of syslog, for a receiver or for stderr.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::Arc;

use clock::{Clock, SystemClock};
use traces::RequestId;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::line_queue::LineQueue;
use super::syslog_record::{APP_NAME, DAEMON, SyslogRecord, severity};

/// The names of threads that serve connections begin so, and end with their number.
const SHARD_THREADS: [&str; 2] = ["worker-", "reactor-"];

/// The place of records.
pub enum SyslogOutput {
    /// Lines of RFC 5424 on stderr.
    Stderr,
    /// Records of RFC 5424 for a receiver over the network.
    Network(Arc<LineQueue>),
    /// Records for a socket of this machine.
    Local(Arc<LineQueue>),
}

/// Writes each event as a record.
pub struct SyslogLayer {
    output: SyslogOutput,
    host: String,
    process: u32,
}

impl SyslogLayer {
    /// A layer of this process.
    pub fn new(output: SyslogOutput) -> SyslogLayer {
        let name = rustix::system::uname();
        SyslogLayer {
            output,
            host: name.nodename().to_string_lossy().into_owned(),
            process: std::process::id(),
        }
    }
}

impl<S: Subscriber> Layer<S> for SyslogLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut text = EventText::default();
        event.record(&mut text);
        let message = message(shard(), metadata.target(), text, RequestId::current());
        let record = SyslogRecord {
            facility: DAEMON,
            severity: severity(*metadata.level()),
            at_micros: SystemClock.now_micros(),
            host: &self.host,
            app: APP_NAME,
            process: Some(self.process),
            message_id: None,
            message: &message,
        };
        match &self.output {
            SyslogOutput::Stderr => {
                let line = record.rfc5424() + "\n";
                // There is nowhere to report an error of stderr to.
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
            SyslogOutput::Network(lines) => lines.push(record.rfc5424()),
            SyslogOutput::Local(lines) => lines.push(record.local()),
        }
    }
}

/// The message of a record: a fixed head, the text of the event, and its fields.
fn message(shard: u32, target: &str, text: EventText, request: Option<RequestId>) -> String {
    let EventText { message, fields } = text;
    let mut line = format!("[shard {shard}] {} - {message}{fields}", module(target));
    if let Some(id) = request {
        line.push_str(" request_id=");
        line.push_str(&id.to_string());
    }
    line
}

/// The module of an event: the part of the program that its target begins with. There are few of
/// them, so that one can be the label of a series.
fn module(target: &str) -> &str {
    target.split("::").next().unwrap_or(target)
}

/// The number of this thread among those that serve connections; 0 for all others.
fn shard() -> u32 {
    thread_local! {
        static SHARD: Cell<Option<u32>> = const { Cell::new(None) };
    }
    SHARD.with(|known| {
        known.get().unwrap_or_else(|| {
            let shard = std::thread::current().name().map_or(0, shard_of);
            known.set(Some(shard));
            shard
        })
    })
}

/// The number in the name of a thread.
fn shard_of(name: &str) -> u32 {
    let mut begins = SHARD_THREADS.iter();
    let number = begins.find_map(|begin| name.strip_prefix(*begin)?.parse().ok());
    number.unwrap_or(0)
}

/// The message of an event, and its other fields as ` name=value`.
#[derive(Default)]
struct EventText {
    message: String,
    fields: String,
}

impl EventText {
    fn put(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        let written = match field.name() {
            "message" => self.message.write_fmt(value),
            name => write!(self.fields, " {name}={value}"),
        };
        debug_assert!(written.is_ok(), "a String takes any text");
    }
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() == "message" {
            true => self.put(field, format_args!("{value}")),
            false => self.put(field, format_args!("{value:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn a_line_begins_with_its_shard_and_its_module() {
        let text = || EventText {
            message: "Large cell in shop.t".to_owned(),
            fields: " bytes=7".to_owned(),
        };
        assert_eq!(
            message(3, "large_data", text(), None),
            "[shard 3] large_data - Large cell in shop.t bytes=7"
        );
        let id = RequestId::of("abc-1");
        assert_eq!(
            message(0, "store::feed::log", text(), id),
            "[shard 0] store - Large cell in shop.t bytes=7 request_id=abc-1"
        );
    }

    #[test]
    fn threads_of_connections_have_numbers() {
        for (name, shard) in [
            ("worker-3", 3),
            ("reactor-12", 12),
            ("reactor-1-blocking", 0),
            ("main", 0),
        ] {
            assert_eq!(shard_of(name), shard, "{name}");
        }
    }

    #[test]
    fn events_become_records_with_their_fields() {
        let lines = Arc::new(LineQueue::default());
        let layer = SyslogLayer::new(SyslogOutput::Local(Arc::clone(&lines)));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(target: "large_data", column = "c", bytes = 7, "Large cell in {}", "k.t");
            tracing::error!(target: "store::feed", "no session");
        });
        let process = std::process::id();
        let next = || lines.pop(Duration::ZERO).expect("a record");
        assert_eq!(
            next(),
            format!(
                "<28>annulus[{process}]: [shard 0] large_data - Large cell in k.t column=\"c\" bytes=7"
            )
        );
        assert_eq!(
            next(),
            format!("<27>annulus[{process}]: [shard 0] store - no session")
        );
    }
}
