//! Counters and gauges of the process around the service, read when metrics are requested.

use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounterVec, IntGaugeVec, Opts};

/// Reads counts, each with the values of its labels. Those of a counter only rise.
pub type ReadCounts = Arc<dyn Fn() -> Vec<(Vec<&'static str>, u64)> + Send + Sync>;

/// A counter whose counts somebody else keeps.
pub(crate) struct ForeignCounter {
    counter: IntCounterVec,
    read: ReadCounts,
}

impl ForeignCounter {
    /// The counter of this name, with these labels.
    pub(crate) fn new(
        name: &str,
        help: &str,
        labels: &[&str],
        read: ReadCounts,
    ) -> prometheus::Result<ForeignCounter> {
        Ok(ForeignCounter {
            counter: IntCounterVec::new(Opts::new(name, help), labels)?,
            read,
        })
    }
}

impl Collector for ForeignCounter {
    fn desc(&self) -> Vec<&Desc> {
        self.counter.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.counter.reset();
        for (labels, count) in (self.read)() {
            self.counter.with_label_values(&labels).inc_by(count);
        }
        self.counter.collect()
    }
}

/// A gauge whose value somebody else keeps.
pub(crate) struct ForeignGauge {
    gauge: IntGaugeVec,
    read: ReadCounts,
}

impl ForeignGauge {
    /// The gauge of this name, with these labels.
    pub(crate) fn new(
        name: &str,
        help: &str,
        labels: &[&str],
        read: ReadCounts,
    ) -> prometheus::Result<ForeignGauge> {
        Ok(ForeignGauge {
            gauge: IntGaugeVec::new(Opts::new(name, help), labels)?,
            read,
        })
    }
}

impl Collector for ForeignGauge {
    fn desc(&self) -> Vec<&Desc> {
        self.gauge.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.gauge.reset();
        for (labels, value) in (self.read)() {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            self.gauge.with_label_values(&labels).set(value);
        }
        self.gauge.collect()
    }
}
