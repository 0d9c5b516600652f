//! A counter of the process around the service, which is read when metrics are asked for.

use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounterVec, Opts};

/// Reads counts that only rise, each with the values of its labels.
pub type ReadCounts = Arc<dyn Fn() -> Vec<(Vec<&'static str>, u64)> + Send + Sync>;

/// A counter whose counts somebody else keeps.
pub struct ForeignCounter {
    counter: IntCounterVec,
    read: ReadCounts,
}

impl ForeignCounter {
    /// The counter of this name, with these labels.
    pub fn new(
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
