//! The counts of HTTP requests and connections of this process, of all its listeners.
//!
//! Counting a request is a few additions to atomics: it takes no lock and no memory.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use prometheus::{Histogram, HistogramOpts, IntCounter, IntGauge};

use crate::metrics::MetricsRegistry;

/// Buckets from 0.1 ms to 10 s.
const LATENCY_BUCKETS_S: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// The classes of statuses, as the label `status` shows them.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The counts of HTTP in this process.
#[derive(Debug)]
pub struct HttpTraffic {
    requests: [IntCounter; CLASSES.len()],
    durations: Histogram,
    open: IntGauge,
    opened: IntCounter,
    given_way: IntCounter,
}

static OF_PROCESS: LazyLock<HttpTraffic> = LazyLock::new(HttpTraffic::new);

impl HttpTraffic {
    /// The counts of all listeners of the process.
    pub fn of_process() -> &'static HttpTraffic {
        &OF_PROCESS
    }

    fn new() -> HttpTraffic {
        let counter = || IntCounter::new("count", "A count").expect("a valid name");
        let options = HistogramOpts::new(
            "annulus_http_request_duration_seconds",
            "Time from the head of an HTTP request until the head of its answer",
        );
        let options = options.buckets(LATENCY_BUCKETS_S.to_vec());
        HttpTraffic {
            requests: CLASSES.map(|_| counter()),
            durations: Histogram::with_opts(options).expect("valid buckets"),
            open: IntGauge::new("open", "A gauge").expect("a valid name"),
            opened: counter(),
            given_way: counter(),
        }
    }

    /// Counts a request that was answered with this status after this time.
    pub(crate) fn answered(&self, status: u16, took: Duration) {
        let class = usize::from(status / 100).saturating_sub(1);
        self.requests[class.min(CLASSES.len() - 1)].inc();
        self.durations.observe(took.as_secs_f64());
    }

    /// Counts a connection as open until the result is dropped.
    pub(crate) fn connection_opened(&'static self) -> OpenConnectionCount {
        self.opened.inc();
        self.open.inc();
        OpenConnectionCount(self)
    }

    /// Counts a silent connection that is closed to make room for another.
    pub(crate) fn connection_gave_way(&self) {
        self.given_way.inc();
    }

    /// Connections that are open.
    pub fn open_connections(&self) -> u64 {
        self.open.get().unsigned_abs()
    }

    /// Connections that were opened since the start.
    pub fn opened_connections(&self) -> u64 {
        self.opened.get()
    }

    /// Silent connections that were closed to make room for others.
    pub fn connections_given_way(&self) -> u64 {
        self.given_way.get()
    }

    /// Shows the counts of requests, those of connections not.
    pub fn show(&'static self, metrics: &MetricsRegistry) {
        let read = move || {
            let requests = CLASSES.iter().zip(&self.requests);
            let requests = requests.map(|(class, count)| (vec![*class], count.get()));
            requests.collect()
        };
        metrics.show_counter(
            "annulus_http_requests_total",
            "HTTP requests that were answered, by the class of the status",
            &["status"],
            Arc::new(read),
        );
        if let Err(error) = metrics.register(Box::new(self.durations.clone())) {
            tracing::debug!(%error, "the times of HTTP requests are not shown");
        }
    }
}

/// A connection that is counted as open.
pub(crate) struct OpenConnectionCount(&'static HttpTraffic);

impl Drop for OpenConnectionCount {
    fn drop(&mut self) {
        self.0.open.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_the_class_of_their_status() {
        let traffic: &'static HttpTraffic = Box::leak(Box::new(HttpTraffic::new()));
        let metrics = MetricsRegistry::default();
        traffic.show(&metrics);
        for status in [200, 204, 404, 503, 999] {
            traffic.answered(status, Duration::from_micros(700));
        }
        let text = metrics.text().unwrap();
        for line in [
            r#"annulus_http_requests_total{status="1xx"} 0"#,
            r#"annulus_http_requests_total{status="2xx"} 2"#,
            r#"annulus_http_requests_total{status="4xx"} 1"#,
            r#"annulus_http_requests_total{status="5xx"} 2"#,
            r#"annulus_http_request_duration_seconds_bucket{le="0.0005"} 0"#,
            r#"annulus_http_request_duration_seconds_bucket{le="0.001"} 5"#,
        ] {
            assert!(text.lines().any(|said| said == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_connection_is_open_until_it_ends() {
        let traffic: &'static HttpTraffic = Box::leak(Box::new(HttpTraffic::new()));
        let first = traffic.connection_opened();
        let second = traffic.connection_opened();
        drop(first);
        assert_eq!(traffic.open_connections(), 1);
        assert_eq!(traffic.opened_connections(), 2);
        drop(second);
        assert_eq!(traffic.open_connections(), 0);
    }
}
