//! The metric families of a gateway, which the registry of metrics gathers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http_server::OlderName;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};

use super::{BOUNDS_MS, GaugeReadings, LatencyHistogram, REFUSALS, RequestClass, RequestCounters};

/// A family: a name, a help text, a label at most, and a type.
struct MetricDefinition {
    name: &'static str,
    help: &'static str,
    label: Option<&'static str>,
    kind: MetricType,
}

const REQUESTS: MetricDefinition = MetricDefinition {
    name: "annulus_gateway_requests_total",
    help: "Requests of clients, by what the gateway does with them",
    label: Some("kind"),
    kind: MetricType::COUNTER,
};

const REFUSED: MetricDefinition = MetricDefinition {
    name: "annulus_gateway_refusals_total",
    help: "Requests that the gateway itself has refused, by the kind of the error",
    label: Some("error"),
    kind: MetricType::COUNTER,
};

const LATE_LOG_ROWS: MetricDefinition = MetricDefinition {
    name: "annulus_gateway_late_log_rows_total",
    help: "Writes whose log rows came late and were written again",
    label: None,
    kind: MetricType::COUNTER,
};

const WRITES: MetricDefinition = MetricDefinition {
    name: "annulus_gateway_write_duration_seconds",
    help: "How long writes to tables with a vector index took",
    label: None,
    kind: MetricType::HISTOGRAM,
};

const SEARCHES: MetricDefinition = MetricDefinition {
    name: "annulus_gateway_search_duration_seconds",
    help: "How long queries by searches took, for vectors or for words",
    label: None,
    kind: MetricType::HISTOGRAM,
};

const WITHOUT_ROWS: MetricDefinition = MetricDefinition {
    name: "annulus_gateway_without_rows_total",
    help: "Nearest-neighbour queries that were answered from the index, without rows",
    label: None,
    kind: MetricType::COUNTER,
};

const CONNECTIONS: MetricDefinition = MetricDefinition {
    name: "annulus_gateway_connections",
    help: "Connections of clients",
    label: None,
    kind: MetricType::GAUGE,
};

const GIVEN_WAY: MetricDefinition = MetricDefinition {
    name: "annulus_gateway_connections_given_way_total",
    help: "Connections of clients that had not begun, and gave way to others",
    label: None,
    kind: MetricType::COUNTER,
};

const REFUSES_WRITES: MetricDefinition = MetricDefinition {
    name: "annulus_gateway_refuses_writes",
    help: "1 while writes to tables with a vector index are refused: the clock is wrong, or the cluster can't be told that this gateway lives",
    label: None,
    kind: MetricType::GAUGE,
};

const CLOCK_DIFFERENCE: MetricDefinition = MetricDefinition {
    name: "annulus_gateway_clock_difference_seconds",
    help: "Time by which another clock is certainly ahead of this gateway's, negative if it is behind",
    label: Some("of"),
    kind: MetricType::GAUGE,
};

const ALL: [&MetricDefinition; 10] = [
    &REQUESTS,
    &REFUSED,
    &LATE_LOG_ROWS,
    &WRITES,
    &SEARCHES,
    &WITHOUT_ROWS,
    &CONNECTIONS,
    &GIVEN_WAY,
    &REFUSES_WRITES,
    &CLOCK_DIFFERENCE,
];

/// The names of earlier versions, which end with the next one.
const OLDER: [(&str, &MetricDefinition); ALL.len()] = [
    ("gateway_requests_total", &REQUESTS),
    ("gateway_refusals_total", &REFUSED),
    ("gateway_late_log_rows_total", &LATE_LOG_ROWS),
    ("gateway_write_seconds", &WRITES),
    ("gateway_ann_seconds", &SEARCHES),
    ("gateway_ann_without_rows_total", &WITHOUT_ROWS),
    ("gateway_connections", &CONNECTIONS),
    ("gateway_connections_given_way_total", &GIVEN_WAY),
    ("gateway_refuses_writes", &REFUSES_WRITES),
    ("gateway_clock_difference_seconds", &CLOCK_DIFFERENCE),
];

/// The other names of the families.
pub(crate) fn older_names() -> Vec<OlderName> {
    let names = OLDER.iter();
    let names = names.map(|(older, family)| OlderName {
        older,
        now: family.name,
        stays: false,
    });
    names.collect()
}

/// Reads the values that are only known when metrics are requested.
type ReadGauges = Box<dyn Fn() -> GaugeReadings + Send + Sync>;

/// The families with the counts and values of the moment at which they are requested.
pub(crate) struct RequestFamilies {
    metrics: Arc<RequestCounters>,
    read: ReadGauges,
    descriptions: Vec<Desc>,
}

impl RequestFamilies {
    /// The families of these counters. `read` gives the other values.
    ///
    /// # Errors
    /// If a name is none, which a test rules out.
    pub(crate) fn new(
        metrics: Arc<RequestCounters>,
        read: impl Fn() -> GaugeReadings + Send + Sync + 'static,
    ) -> prometheus::Result<RequestFamilies> {
        let descriptions = ALL.iter().map(|family| family.description());
        Ok(RequestFamilies {
            metrics,
            read: Box::new(read),
            descriptions: descriptions.collect::<prometheus::Result<_>>()?,
        })
    }
}

impl Collector for RequestFamilies {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let metrics = &self.metrics;
        let gauges = (self.read)();
        let requests = RequestClass::ALL.iter().zip(&metrics.requests);
        let requests = requests.map(|(kind, count)| REQUESTS.counted(Some(kind.label()), count));
        let refused = REFUSALS.iter().zip(&metrics.refusals);
        let refused = refused.map(|(error, count)| REFUSED.counted(Some(*error), count));
        let of_node = gauges.node_clock.map(|ahead| ("node", ahead));
        let of_gateways = gauges.gateway_clocks.iter();
        let of_gateways = of_gateways.map(|(address, ahead)| (address.as_str(), *ahead));
        let clocks = of_node.into_iter().chain(of_gateways).map(|(of, micros)| {
            let seconds = micros as f64 / 1e6;
            CLOCK_DIFFERENCE.measured(Some(of), seconds)
        });
        let refuses_writes = f64::from(u8::from(gauges.refuses_writes));
        vec![
            REQUESTS.of(requests.collect()),
            REFUSED.of(refused.collect()),
            LATE_LOG_ROWS.of(vec![LATE_LOG_ROWS.counted(None, &metrics.late_log_rows)]),
            WRITES.of(vec![metrics.writes.metric()]),
            SEARCHES.of(vec![metrics.searches.metric()]),
            WITHOUT_ROWS.of(vec![WITHOUT_ROWS.counted(None, &metrics.without_rows)]),
            CONNECTIONS.of(vec![CONNECTIONS.measured(None, gauges.connections as f64)]),
            GIVEN_WAY.of(vec![GIVEN_WAY.counted(None, &metrics.given_way)]),
            REFUSES_WRITES.of(vec![REFUSES_WRITES.measured(None, refuses_writes)]),
            CLOCK_DIFFERENCE.of(clocks.collect()),
        ]
    }
}

impl MetricDefinition {
    fn description(&self) -> prometheus::Result<Desc> {
        let labels = self.label.into_iter().map(str::to_owned);
        let (name, help) = (self.name.to_owned(), self.help.to_owned());
        Desc::new(name, help, labels.collect(), HashMap::new())
    }

    /// The family with these series.
    fn of(&self, series: Vec<Metric>) -> MetricFamily {
        let mut family = MetricFamily::default();
        family.set_name(self.name.to_owned());
        family.set_help(self.help.to_owned());
        family.set_field_type(self.kind);
        family.set_metric(series);
        family
    }

    /// A series with this value of the label, and no count yet.
    fn series(&self, value: Option<&str>) -> Metric {
        let labels = self.label.zip(value).map(|(name, value)| {
            let mut label = LabelPair::default();
            label.set_name(name.to_owned());
            label.set_value(value.to_owned());
            label
        });
        let mut series = Metric::default();
        series.set_label(labels.into_iter().collect());
        series
    }

    fn counted(&self, label: Option<&str>, count: &AtomicU64) -> Metric {
        let mut counter = Counter::default();
        counter.set_value(count.load(Ordering::Relaxed) as f64);
        let mut series = self.series(label);
        series.set_counter(counter);
        series
    }

    fn measured(&self, label: Option<&str>, value: f64) -> Metric {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        let mut series = self.series(label);
        series.set_gauge(gauge);
        series
    }
}

impl LatencyHistogram {
    /// The histogram as it is now.
    fn metric(&self) -> Metric {
        let mut count = 0;
        let buckets = BOUNDS_MS.iter().zip(&self.counts).map(|(bound, within)| {
            count += within.load(Ordering::Relaxed);
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound as f64 / 1e3);
            bucket.set_cumulative_count(count);
            bucket
        });
        let buckets = buckets.collect();
        count += self.counts[BOUNDS_MS.len()].load(Ordering::Relaxed);
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets);
        histogram.set_sample_count(count);
        histogram.set_sample_sum(self.sum_micros.load(Ordering::Relaxed) as f64 / 1e6);
        let mut series = Metric::default();
        series.set_histogram(histogram);
        series
    }
}
