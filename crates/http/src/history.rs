//! The values that the main metrics had in the last hours, in a ring in memory.
//!
//! A console shows them without a server of Prometheus. A sample is taken at an interval, and
//! nothing is done in between. The ring has a bound: [`SERIES_MAX`] series of [`SAMPLES`] values,
//! 8 bytes each, which is 2.8 MiB at most. Series beyond that are left out.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use prometheus::proto::{Metric, MetricFamily, MetricType};
use serde_json::{Map, Value, json};

use crate::metrics::{MetricsRegistry, value_of};

/// The time between two samples.
const STEP: Duration = Duration::from_secs(15);

/// The samples that are remembered: those of six hours.
const SAMPLES: usize = 6 * 3600 / 15;

/// The most series that are remembered.
const SERIES_MAX: usize = 256;

/// The families that are remembered. Of a histogram the number and the sum of its values are, under
/// the names of the family with `_count` and `_sum`.
pub const MAIN_FAMILIES: [&str; 25] = [
    "annulus_compaction_running",
    "annulus_connection_open",
    "annulus_cql_errors_total",
    "annulus_cql_request_duration_seconds",
    "annulus_cql_requests_total",
    "annulus_cql_shed_total",
    "annulus_disk_free_bytes",
    "annulus_disk_size_bytes",
    "annulus_gateway_requests_total",
    "annulus_gateway_search_duration_seconds",
    "annulus_gateway_write_duration_seconds",
    "annulus_http_requests_total",
    "annulus_index_lag_seconds",
    "annulus_index_recall_ratio",
    "annulus_index_rows",
    "annulus_memory_bytes",
    "annulus_memory_limit_bytes",
    "annulus_memory_used_bytes",
    "annulus_process_cpu_seconds_total",
    "annulus_process_resident_bytes",
    "annulus_search_duration_seconds",
    "annulus_search_requests_total",
    "annulus_search_shed_total",
    "annulus_storage_size_bytes",
    "annulus_task_running",
];

/// The values of the main metrics in the last hours. Cheap to clone; clones share them.
#[derive(Clone, Debug)]
pub struct MetricsHistory {
    metrics: MetricsRegistry,
    ring: Arc<Mutex<HistoryRing>>,
}

/// The name of a series, and its labels in the order of their names.
type SeriesName = (String, Vec<(String, String)>);

#[derive(Debug, Default)]
struct HistoryRing {
    /// The times of the samples, in seconds since the epoch.
    times: VecDeque<i64>,
    /// The values of each series up to the last sample; NaN where it had none.
    series: HashMap<SeriesName, VecDeque<f64>>,
}

impl MetricsHistory {
    /// An empty history of these metrics.
    pub fn new(metrics: MetricsRegistry) -> MetricsHistory {
        MetricsHistory {
            metrics,
            ring: Arc::default(),
        }
    }

    /// Takes samples until it is dropped. `now_s` says the time, in seconds since the epoch.
    pub async fn run(&self, now_s: impl Fn() -> i64 + Send + Sync) {
        let mut due = tokio::time::interval(STEP);
        due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            due.tick().await;
            self.sample(now_s());
        }
    }

    /// Takes a sample at this time, in seconds since the epoch.
    pub fn sample(&self, now_s: i64) {
        let families = self.metrics.gather();
        let families = families.iter();
        let mut values = HashMap::new();
        for family in families.filter(|family| MAIN_FAMILIES.contains(&family.name())) {
            put_values(family, &mut values);
        }
        self.ring().add(now_s, values);
    }

    /// Answers a request for the history of a metric, whose query is `name=NAME&seconds=N`. Without
    /// a name the answer lists the names.
    pub fn answer(&self, uri: &Uri) -> Response {
        let (mut name, mut seconds) = (None, None);
        for pair in uri.query().unwrap_or_default().split('&') {
            match pair.split_once('=') {
                Some(("name", value)) => name = Some(value),
                Some(("seconds", value)) => seconds = Some(value),
                _ => {}
            }
        }
        let ring = self.ring();
        let Some(name) = name else {
            return json_answer(StatusCode::OK, &json!({ "names": ring.names() }));
        };
        let seconds = match seconds.map(str::parse::<i64>) {
            None => i64::MAX,
            Some(Ok(seconds)) if seconds > 0 => seconds,
            Some(_) => {
                let error = json!({ "error": "seconds must be a whole number above 0" });
                return json_answer(StatusCode::BAD_REQUEST, &error);
            }
        };
        match ring.history(name, seconds) {
            Some(history) => json_answer(StatusCode::OK, &history),
            None => {
                let error = format!(
                    "no history of {name:?}; a request without a name lists those that have one"
                );
                json_answer(StatusCode::NOT_FOUND, &json!({ "error": error }))
            }
        }
    }

    fn ring(&self) -> MutexGuard<'_, HistoryRing> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HistoryRing {
    fn add(&mut self, now_s: i64, mut values: HashMap<SeriesName, f64>) {
        self.times.push_back(now_s);
        let is_full = self.times.len() > SAMPLES;
        if is_full {
            self.times.pop_front();
        }
        for (name, remembered) in &mut self.series {
            remembered.push_back(values.remove(name).unwrap_or(f64::NAN));
            if remembered.len() > SAMPLES {
                remembered.pop_front();
            }
        }
        // A series that has ended is forgotten once none of its values is left.
        self.series
            .retain(|_, remembered| remembered.iter().any(|value| !value.is_nan()));
        for (name, value) in values {
            if self.series.len() == SERIES_MAX {
                break;
            }
            self.series.insert(name, VecDeque::from([value]));
        }
    }

    /// The names of the series, each once.
    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.series.keys().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The values of all series of a name in the last seconds; `None` if there is none.
    fn history(&self, name: &str, seconds: i64) -> Option<Value> {
        let since = self.times.back()?.saturating_sub(seconds);
        let mut of_name: Vec<_> = self.series.iter().filter(|(of, _)| of.0 == name).collect();
        of_name.sort_unstable_by_key(|(series, _)| *series);
        if of_name.is_empty() {
            return None;
        }
        let series = of_name.into_iter().map(|((_, labels), values)| {
            let labels = labels.iter();
            let labels: Map<String, Value> = labels
                .map(|(label, value)| (label.clone(), Value::from(value.as_str())))
                .collect();
            // The last value of each series is of the last sample.
            let times = self.times.iter().skip(self.times.len() - values.len());
            let points = times.zip(values).filter(|(time, _)| **time > since);
            let points: Vec<Value> = points.map(|(time, value)| json!([time, value])).collect();
            json!({ "labels": labels, "points": points })
        });
        Some(json!({
            "name": name,
            "step_seconds": STEP.as_secs(),
            "series": series.collect::<Vec<_>>(),
        }))
    }
}

/// Puts the values of a family to the others.
fn put_values(family: &MetricFamily, values: &mut HashMap<SeriesName, f64>) {
    let (name, kind) = (family.name(), family.get_field_type());
    for series in family.get_metric() {
        let labels = labels_of(series);
        if kind == MetricType::HISTOGRAM {
            let histogram = series.get_histogram();
            let count = histogram.get_sample_count() as f64;
            values.insert((format!("{name}_count"), labels.clone()), count);
            values.insert((format!("{name}_sum"), labels), histogram.get_sample_sum());
        } else if let Some(value) = value_of(series, kind) {
            values.insert((name.to_owned(), labels), value);
        }
    }
}

fn labels_of(series: &Metric) -> Vec<(String, String)> {
    let labels = series.get_label().iter();
    labels
        .map(|label| (label.name().to_owned(), label.value().to_owned()))
        .collect()
}

fn json_answer(status: StatusCode, body: &Value) -> Response {
    let format = [(axum::http::header::CONTENT_TYPE, "application/json")];
    (status, format, body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use http_body_util::BodyExt;

    use super::*;

    fn history() -> (MetricsHistory, Arc<AtomicU64>) {
        let metrics = MetricsRegistry::default();
        let used = Arc::new(AtomicU64::new(0));
        let read = used.clone();
        let read = move || vec![(Vec::new(), read.load(Ordering::Relaxed))];
        metrics.show_gauge("annulus_memory_used_bytes", "Used", &[], Arc::new(read));
        metrics.show_gauge(
            "annulus_other_bytes",
            "Other",
            &[],
            Arc::new(|| vec![(vec![], 1)]),
        );
        (MetricsHistory::new(metrics), used)
    }

    async fn answer(history: &MetricsHistory, query: &str) -> (StatusCode, Value) {
        let uri: Uri = format!("/api/v1/metrics/history{query}").parse().unwrap();
        let answer = history.answer(&uri);
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    #[tokio::test]
    async fn the_last_values_are_answered() {
        let (history, used) = history();
        for value in 1..=4_u64 {
            used.store(value, Ordering::Relaxed);
            history.sample(1_000 + 15 * value.cast_signed());
        }
        let names = answer(&history, "").await;
        let expected = json!({ "names": ["annulus_memory_used_bytes"] });
        assert_eq!(names, (StatusCode::OK, expected));
        let asked = "?name=annulus_memory_used_bytes&seconds=30";
        let (status, found) = answer(&history, asked).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(found["step_seconds"], 15);
        let points = json!([[1_045, 3.0], [1_060, 4.0]]);
        assert_eq!(found["series"], json!([{ "labels": {}, "points": points }]));
        assert_eq!(answer(&history, "?name=annulus_other_bytes").await.0, 404);
        let asked = "?name=annulus_memory_used_bytes&seconds=-1";
        assert_eq!(answer(&history, asked).await.0, 400);
    }

    #[test]
    fn the_ring_has_a_bound() {
        let mut ring = HistoryRing::default();
        let name = |number: usize| (format!("series_{number}"), Vec::new());
        for sample in 0..SAMPLES + 10 {
            let values = (0..2 * SERIES_MAX).map(|number| (name(number), 1.0));
            let values = if sample < 2 {
                values.collect()
            } else {
                HashMap::new()
            };
            ring.add(sample as i64, values);
            assert!(ring.series.len() <= SERIES_MAX);
            assert!(ring.times.len() <= SAMPLES);
        }
        assert_eq!(ring.times.len(), SAMPLES);
        // Those that ended are forgotten, and make room for others.
        assert_eq!(ring.series.len(), 0);
    }
}
