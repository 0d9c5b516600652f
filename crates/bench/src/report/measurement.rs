//! The results as they are written to a file.

use std::collections::BTreeMap;

use annulus_bench::spread::MedianRange;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::load::TrafficResults;

/// A line of a JSON file of results.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResultRecord {
    /// The machine and the command of the records that follow.
    Environment(RunEnvironment),
    /// A result.
    Measurement(Box<Measurement>),
    /// A point of a chart that a script draws.
    Point(ChartPoint),
    /// A record that scripts keep for themselves.
    #[serde(other)]
    Other,
}

/// A point of a chart. All points of a chart have the same title, labels and scales.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ChartPoint {
    /// The title of the chart.
    pub chart: String,
    /// The label of `x`, with its unit.
    pub x_label: String,
    /// The label of `y`, with its unit.
    pub y_label: String,
    /// Whether both scales are logarithms.
    #[serde(default)]
    pub logarithmic: bool,
    /// The name of the line that the point belongs to.
    pub series: String,
    /// The place to the right.
    pub x: f64,
    /// The place upwards.
    pub y: f64,
}

/// The machine that the load came from, and the command.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RunEnvironment {
    /// The time when the command began, in UTC.
    pub time: String,
    /// The version of this program.
    pub version: String,
    /// The command line.
    pub command: String,
    /// The name of the processor.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// The mean number of threads that ran or waited to run on the whole machine over the last 1, 5
    /// and 15 minutes before the command.
    #[serde(default)]
    pub load: Vec<f64>,
    /// The operating system and the version of its kernel.
    pub system: String,
}

/// The results of a load.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Measurement {
    /// The kind of requests: `search`, `insert`.
    pub operation: String,
    /// The server, and the protocol.
    pub target: String,
    /// The series of a chart that it belongs to.
    pub series: String,
    /// The name of the data set.
    pub dataset: String,
    /// The number of rows that a search requests.
    pub k: Option<usize>,
    /// The most requests that are under way at once.
    pub concurrency: usize,
    /// Requests due a second in an open loop.
    pub rate_asked_per_s: Option<f64>,
    /// The number of requests answered.
    pub operations: u64,
    /// Seconds from the first request to the last answer.
    pub seconds: f64,
    /// Requests answered a second.
    pub rate_per_s: f64,
    /// The latencies of the answered requests.
    pub latency_ms: LatencyMs,
    /// How late the pacer of an open loop handed out its requests, sent or not. This is the
    /// generator's own part of `latency_ms`.
    pub pacer_lateness_ms: Option<LatencyMs>,
    /// The mean share of the true neighbours in the measured answers.
    pub recall: Option<f64>,
    /// The number of answers with fewer rows than requested.
    pub short_answers: u64,
    /// The number of failed requests by kind.
    pub errors: BTreeMap<String, u64>,
    /// The number of requests of an open loop that were due but not sent when the time was up.
    pub not_sent: u64,
    /// The number of cores that the client kept busy, of `client_cores`.
    pub client_cpu_cores: f64,
    /// The number of cores that the client may use.
    pub client_cores: usize,
    /// The share of the processor time of the client's machine that a hypervisor gave to others
    /// during the load, if the system reports it.
    pub stolen_share: Option<f64>,
    /// The intervals of the load in order.
    pub moments: Vec<IntervalSample>,
    /// Other figures by their names, which have the unit.
    pub figures: BTreeMap<String, f64>,
}

/// Latencies in milliseconds: the mean, the quantiles by their names, and the longest.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct LatencyMs {
    pub mean: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// An interval of a load.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct IntervalSample {
    /// Seconds from the begin of the load to that of the interval.
    pub second: f64,
    /// Requests answered a second.
    pub rate_per_s: f64,
    /// Median latency.
    pub p50_ms: f64,
    /// The 99th percentile of the latencies.
    pub p99_ms: f64,
}

impl LatencyMs {
    /// The quantiles of times given in nanoseconds; all are 0 if there are no times.
    pub fn of(times: &Histogram<u64>) -> LatencyMs {
        if times.is_empty() {
            return LatencyMs::default();
        }
        let at = |share| times.value_at_quantile(share) as f64 / 1e6;
        LatencyMs {
            mean: times.mean() / 1e6,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: at(1.0),
        }
    }
}

impl Measurement {
    /// The results of a load. The caller fills in the operation, the target and the like.
    pub fn of(measured: &TrafficResults) -> Measurement {
        let seconds = measured.elapsed.as_secs_f64();
        Measurement {
            operations: measured.latencies.len(),
            seconds,
            rate_per_s: measured.rate_per_s(),
            latency_ms: LatencyMs::of(&measured.latencies),
            pacer_lateness_ms: measured.pacer_lateness.as_ref().map(LatencyMs::of),
            recall: measured.recall(),
            short_answers: measured.short_answers,
            errors: measured.errors.clone(),
            not_sent: measured.not_sent,
            client_cpu_cores: measured.cpu_time.as_secs_f64() / seconds.max(f64::MIN_POSITIVE),
            client_cores: std::thread::available_parallelism().map_or(1, usize::from),
            stolen_share: measured.stolen_share,
            moments: measured
                .intervals
                .iter()
                .map(|interval| IntervalSample {
                    second: interval.from.as_secs_f64(),
                    rate_per_s: interval.operations as f64
                        / interval.length.as_secs_f64().max(1e-3),
                    p50_ms: interval.p50.as_secs_f64() * 1e3,
                    p99_ms: interval.p99.as_secs_f64() * 1e3,
                })
                .collect(),
            ..Measurement::default()
        }
    }

    /// The number of failed requests.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Adds the median, the least and the most of the rounds' values as figures. Adds nothing if
    /// there are no values.
    pub fn add_spread(&mut self, name: &str, values: &[f64]) {
        for (which, value) in MedianRange::of(values)
            .into_iter()
            .flat_map(MedianRange::figures)
        {
            self.figures.insert(format!("{name}, {which}"), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_were_written() {
        let measurement = Measurement {
            operation: "search".to_owned(),
            recall: Some(0.5),
            errors: BTreeMap::from([("timeout".to_owned(), 3)]),
            ..Measurement::default()
        };
        let record = ResultRecord::Measurement(Box::new(measurement));
        let line = serde_json::to_string(&record).unwrap();
        assert!(line.contains(r#""type":"measurement""#), "{line}");
        assert_eq!(serde_json::from_str::<ResultRecord>(&line).unwrap(), record);
        // Results from before the lateness of the pacer was recorded can still be read.
        let older = line.replace(r#""pacer_lateness_ms":null,"#, "");
        assert!(older.len() < line.len(), "{line}");
        assert_eq!(
            serde_json::from_str::<ResultRecord>(&older).unwrap(),
            record
        );
    }

    #[test]
    fn lines_of_scripts_are_points_or_their_own_affair() {
        let line = r#"{"type":"point","chart":"c","x_label":"x","y_label":"y","series":"s","x":1,"y":2.5}"#;
        let ResultRecord::Point(point) = serde_json::from_str(line).unwrap() else {
            panic!("it is a point")
        };
        assert_eq!((point.x, point.y, point.logarithmic), (1.0, 2.5, false));
        let other = serde_json::from_str::<ResultRecord>(r#"{"type":"growth","vectors":3}"#);
        assert_eq!(other.unwrap(), ResultRecord::Other);
    }
}
