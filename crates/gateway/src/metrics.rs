//! The metrics of a gateway, in the text form that Prometheus scrapes.

use std::fmt::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cql::error::ErrorKind;

/// The kinds of requests, by what the gateway does with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request that passes to the node as it came.
    Passed,
    /// A request whose text is changed or whose answer is added to.
    Overlaid,
    /// A write to a table with a vector index.
    Write,
    /// A TRUNCATE of a table with a vector index.
    Truncate,
    /// A nearest-neighbour query.
    Ann,
    /// A poll of a change log that is not passed on at once, or another request that is answered
    /// from memory.
    Poll,
    /// A request that the gateway answers with an error.
    Refused,
}

impl Kind {
    const ALL: [Kind; 7] = [
        Kind::Passed,
        Kind::Overlaid,
        Kind::Write,
        Kind::Truncate,
        Kind::Ann,
        Kind::Poll,
        Kind::Refused,
    ];

    fn label(self) -> &'static str {
        match self {
            Kind::Passed => "passed",
            Kind::Overlaid => "overlaid",
            Kind::Write => "write",
            Kind::Truncate => "truncate",
            Kind::Ann => "ann",
            Kind::Poll => "poll",
            Kind::Refused => "refused",
        }
    }
}

/// The labels for refused requests, by the kind of the error.
const REFUSALS: [&str; 5] = [
    "overloaded",
    "is_bootstrapping",
    "unprepared",
    "invalid",
    "other",
];

/// The position in [`REFUSALS`] of a kind of error.
fn refusal(kind: &ErrorKind) -> usize {
    match kind {
        ErrorKind::Overloaded => 0,
        ErrorKind::IsBootstrapping => 1,
        ErrorKind::Unprepared { .. } => 2,
        ErrorKind::Invalid | ErrorKind::SyntaxError | ErrorKind::ConfigError => 3,
        _ => 4,
    }
}

/// The upper bounds of the latency buckets. Milliseconds.
const BOUNDS_MS: [u64; 13] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000,
];

/// A histogram of latencies.
#[derive(Debug, Default)]
struct Latencies {
    /// The count of each bucket, and as the last one the count of latencies beyond all bounds.
    counts: [AtomicU64; BOUNDS_MS.len() + 1],
    /// The sum of all latencies. Microseconds.
    sum_micros: AtomicU64,
}

impl Latencies {
    /// Adds a latency.
    fn took(&self, time: Duration) {
        let at = BOUNDS_MS.partition_point(|bound| u128::from(*bound) < time.as_millis());
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Writes the histogram under a name.
    fn write(&self, name: &str, help: &str, out: &mut String) -> fmt::Result {
        head(out, name, help, "histogram")?;
        let mut count = 0;
        for (bound, of_bucket) in BOUNDS_MS.iter().zip(&self.counts) {
            count += of_bucket.load(Ordering::Relaxed);
            let seconds = *bound as f64 / 1e3;
            writeln!(out, "{name}_bucket{{le=\"{seconds}\"}} {count}")?;
        }
        count += self.counts[BOUNDS_MS.len()].load(Ordering::Relaxed);
        writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}")?;
        let sum = self.sum_micros.load(Ordering::Relaxed) as f64 / 1e6;
        writeln!(out, "{name}_sum {sum}\n{name}_count {count}")
    }
}

/// The counters of a gateway.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Requests by [`Kind`].
    requests: [AtomicU64; Kind::ALL.len()],
    /// Refused requests by [`REFUSALS`].
    refusals: [AtomicU64; REFUSALS.len()],
    /// Writes whose log rows came late.
    late_log_rows: AtomicU64,
    /// Latencies of writes to tables with a vector index.
    writes: Latencies,
    /// Latencies of nearest-neighbour queries.
    searches: Latencies,
    /// Nearest-neighbour queries that were answered without rows.
    without_rows: AtomicU64,
}

/// Values that are read when metrics are asked for.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    /// Open connections of clients.
    pub(crate) connections: usize,
    /// Whether writes to tables with a vector index are refused now.
    pub(crate) refuses_writes: bool,
    /// The time by which the node's clock is certainly ahead of this gateway's; negative if it is
    /// behind. Microseconds.
    pub(crate) node_clock: Option<i64>,
    /// For each other gateway its address, and the time by which its clock is certainly ahead of
    /// this gateway's. Microseconds.
    pub(crate) gateway_clocks: Vec<(String, i64)>,
}

impl Metrics {
    /// Counts a request.
    pub(crate) fn request(&self, kind: Kind) {
        self.requests[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that the gateway refuses.
    pub(crate) fn refused(&self, error: &ErrorKind) {
        self.refusals[refusal(error)].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a write whose log rows came late and are written again.
    pub(crate) fn log_rows_late(&self) {
        self.late_log_rows.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes how long a write to tables with an index took.
    pub(crate) fn write_took(&self, time: Duration) {
        self.writes.took(time);
    }

    /// Notes how long a search took.
    pub(crate) fn search_took(&self, time: Duration) {
        self.searches.took(time);
    }

    /// Counts a nearest-neighbour query that was answered without rows.
    pub(crate) fn answered_without_rows(&self) {
        self.without_rows.fetch_add(1, Ordering::Relaxed);
    }

    /// All metrics in the text form of Prometheus.
    pub(crate) fn text(&self, gauges: &Gauges) -> String {
        let mut out = String::new();
        // Writing to a String never fails.
        let _ = self.write(gauges, &mut out);
        out
    }

    fn write(&self, gauges: &Gauges, out: &mut String) -> fmt::Result {
        let name = "gateway_requests_total";
        head(
            out,
            name,
            "Requests of clients, by what the gateway does with them",
            "counter",
        )?;
        for (kind, count) in Kind::ALL.iter().zip(&self.requests) {
            let count = count.load(Ordering::Relaxed);
            writeln!(out, "{name}{{kind=\"{}\"}} {count}", kind.label())?;
        }
        let name = "gateway_refusals_total";
        head(
            out,
            name,
            "Requests that the gateway itself has refused, by the kind of the error",
            "counter",
        )?;
        for (error, count) in REFUSALS.iter().zip(&self.refusals) {
            let count = count.load(Ordering::Relaxed);
            writeln!(out, "{name}{{error=\"{error}\"}} {count}")?;
        }
        counter(
            out,
            "gateway_late_log_rows_total",
            "Writes whose log rows came late and were written again",
            &self.late_log_rows,
        )?;
        self.writes.write(
            "gateway_write_seconds",
            "How long writes to tables with a vector index took",
            out,
        )?;
        self.searches.write(
            "gateway_ann_seconds",
            "How long nearest-neighbour queries took",
            out,
        )?;
        counter(
            out,
            "gateway_ann_without_rows_total",
            "Nearest-neighbour queries that were answered from the index, without rows",
            &self.without_rows,
        )?;
        let name = "gateway_connections";
        head(out, name, "Connections of clients", "gauge")?;
        writeln!(out, "{name} {}", gauges.connections)?;
        let name = "gateway_refuses_writes";
        head(
            out,
            name,
            "1 while writes to tables with a vector index are refused: the clock is wrong, or the cluster can't be told that this gateway lives",
            "gauge",
        )?;
        writeln!(out, "{name} {}", u8::from(gauges.refuses_writes))?;
        let name = "gateway_clock_difference_seconds";
        head(
            out,
            name,
            "Time by which another clock is certainly ahead of this gateway's, negative if it is behind",
            "gauge",
        )?;
        if let Some(difference) = gauges.node_clock {
            writeln!(out, "{name}{{of=\"node\"}} {}", difference as f64 / 1e6)?;
        }
        for (address, difference) in &gauges.gateway_clocks {
            let difference = *difference as f64 / 1e6;
            writeln!(out, "{name}{{of=\"{}\"}} {difference}", escaped(address))?;
        }
        Ok(())
    }
}

fn counter(out: &mut String, name: &str, help: &str, count: &AtomicU64) -> fmt::Result {
    head(out, name, help, "counter")?;
    writeln!(out, "{name} {}", count.load(Ordering::Relaxed))
}

fn head(out: &mut String, name: &str, help: &str, kind: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn escaped(label: &str) -> String {
    label
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_told() {
        let metrics = Metrics::default();
        metrics.request(Kind::Write);
        metrics.request(Kind::Write);
        metrics.refused(&ErrorKind::IsBootstrapping);
        metrics.log_rows_late();
        metrics.write_took(Duration::from_millis(2));
        metrics.write_took(Duration::from_millis(3));
        metrics.search_took(Duration::from_secs(60));
        metrics.answered_without_rows();
        let text = metrics.text(&Gauges {
            connections: 3,
            refuses_writes: true,
            node_clock: Some(-1_500_000),
            gateway_clocks: vec![("10.0.0.2:9043".to_owned(), 250_000)],
        });
        for line in [
            "# TYPE gateway_requests_total counter",
            "gateway_requests_total{kind=\"write\"} 2",
            "gateway_requests_total{kind=\"ann\"} 0",
            "gateway_refusals_total{error=\"is_bootstrapping\"} 1",
            "gateway_late_log_rows_total 1",
            "gateway_write_seconds_bucket{le=\"0.001\"} 0",
            "gateway_write_seconds_bucket{le=\"0.002\"} 1",
            "gateway_write_seconds_bucket{le=\"0.005\"} 2",
            "gateway_write_seconds_sum 0.005",
            "gateway_write_seconds_count 2",
            "gateway_ann_seconds_bucket{le=\"10\"} 0",
            "gateway_ann_seconds_bucket{le=\"+Inf\"} 1",
            "gateway_ann_without_rows_total 1",
            "gateway_connections 3",
            "gateway_refuses_writes 1",
            "gateway_clock_difference_seconds{of=\"node\"} -1.5",
            "gateway_clock_difference_seconds{of=\"10.0.0.2:9043\"} 0.25",
        ] {
            assert!(text.lines().any(|said| said == line), "{line}\n{text}");
        }
    }
}
