//! The metrics of a gateway.

mod families;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cql::error::ErrorKind;
use http_server::MetricsRegistry;

pub(crate) use families::{RequestFamilies, older_names};

/// The kinds of requests, by what the gateway does with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestClass {
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

impl RequestClass {
    const ALL: [RequestClass; 7] = [
        RequestClass::Passed,
        RequestClass::Overlaid,
        RequestClass::Write,
        RequestClass::Truncate,
        RequestClass::Ann,
        RequestClass::Poll,
        RequestClass::Refused,
    ];

    fn label(self) -> &'static str {
        match self {
            RequestClass::Passed => "passed",
            RequestClass::Overlaid => "overlaid",
            RequestClass::Write => "write",
            RequestClass::Truncate => "truncate",
            RequestClass::Ann => "ann",
            RequestClass::Poll => "poll",
            RequestClass::Refused => "refused",
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
struct LatencyHistogram {
    /// The count of each bucket, and as the last one the count of latencies beyond all bounds.
    counts: [AtomicU64; BOUNDS_MS.len() + 1],
    /// The sum of all latencies. Microseconds.
    sum_micros: AtomicU64,
}

impl LatencyHistogram {
    /// Adds a latency.
    fn took(&self, time: Duration) {
        let at = BOUNDS_MS.partition_point(|bound| u128::from(*bound) < time.as_millis());
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }
}

/// The counters of a gateway.
#[derive(Debug, Default)]
pub(crate) struct RequestCounters {
    /// Requests by [`RequestClass`].
    requests: [AtomicU64; RequestClass::ALL.len()],
    /// Refused requests by [`REFUSALS`].
    refusals: [AtomicU64; REFUSALS.len()],
    /// Writes whose log rows came late.
    late_log_rows: AtomicU64,
    /// Latencies of writes to tables with a vector index.
    writes: LatencyHistogram,
    /// Latencies of nearest-neighbour queries.
    searches: LatencyHistogram,
    /// Nearest-neighbour queries that were answered without rows.
    without_rows: AtomicU64,
    /// Connections that were accepted.
    opened: AtomicU64,
    /// Connections that had not begun, and gave way to others.
    given_way: AtomicU64,
}

/// Values that are read when metrics are requested.
#[derive(Debug, Default)]
pub(crate) struct GaugeReadings {
    /// Open connections of clients.
    pub(crate) connections: usize,
    /// Whether writes to tables with a vector index are refused now.
    pub(crate) refuses_writes: bool,
    /// The time by which the node's clock is certainly ahead of this gateway's; negative if it
    /// lags. Microseconds.
    pub(crate) node_clock: Option<i64>,
    /// For each other gateway its address, and the time by which its clock is certainly ahead of
    /// this gateway's. Microseconds.
    pub(crate) gateway_clocks: Vec<(String, i64)>,
}

impl RequestCounters {
    /// Counts a request.
    pub(crate) fn request(&self, kind: RequestClass) {
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

    /// Counts a connection that was accepted.
    pub(crate) fn connection_opened(&self) {
        self.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// The connections that were accepted, and those that gave way to others.
    pub(crate) fn connections(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.opened), read(&self.given_way))
    }

    /// Counts a connection that had not begun and gave way to another.
    pub(crate) fn connection_gave_way(&self) {
        self.given_way.fetch_add(1, Ordering::Relaxed);
    }
}

/// A registry with the families that only gateways have, without a request: for pages of a
/// manual.
///
/// # Panics
/// If a name is none, which a test rules out.
pub fn described() -> MetricsRegistry {
    let registry = MetricsRegistry::default();
    let families = RequestFamilies::new(Arc::default(), GaugeReadings::default);
    let families = families.expect("families with names of constants");
    let registered = registry.register(Box::new(families));
    registered.expect("families that are registered once");
    registry.show_older_names(&older_names());
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counted_values_are_reported() {
        let metrics = RequestCounters::default();
        metrics.request(RequestClass::Write);
        metrics.request(RequestClass::Write);
        metrics.refused(&ErrorKind::IsBootstrapping);
        metrics.log_rows_late();
        metrics.write_took(Duration::from_millis(2));
        metrics.write_took(Duration::from_millis(3));
        metrics.search_took(Duration::from_secs(60));
        metrics.answered_without_rows();
        metrics.connection_gave_way();
        let read = || GaugeReadings {
            connections: 3,
            refuses_writes: true,
            node_clock: Some(-1_500_000),
            gateway_clocks: vec![("10.0.0.2:9043".to_owned(), 250_000)],
        };
        let families = RequestFamilies::new(Arc::new(metrics), read).unwrap();
        let registry = MetricsRegistry::default();
        registry.register(Box::new(families)).unwrap();
        registry.show_older_names(&older_names());
        let text = registry.text().unwrap();
        for line in [
            "# TYPE gateway_requests_total counter",
            "annulus_gateway_requests_total{kind=\"write\"} 2",
            "annulus_gateway_search_duration_seconds_count 1",
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
            "gateway_connections_given_way_total 1",
            "gateway_refuses_writes 1",
            "gateway_clock_difference_seconds{of=\"node\"} -1.5",
            "gateway_clock_difference_seconds{of=\"10.0.0.2:9043\"} 0.25",
        ] {
            assert!(text.lines().any(|said| said == line), "{line}\n{text}");
        }
    }
}
