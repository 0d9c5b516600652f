//! Counters and gauges of the process around the service, read when metrics are requested.

use std::collections::HashMap;
use std::sync::Arc;

use prometheus::core::{Collector, Desc};
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

/// Reads counts, each with the values of its labels. Those of a counter only rise.
pub type ReadCounts = Arc<dyn Fn() -> Vec<(Vec<&'static str>, u64)> + Send + Sync>;

/// Reads values, each with the values of its labels. Those of a counter only rise.
pub type ReadValues = Arc<dyn Fn() -> Vec<(Vec<String>, f64)> + Send + Sync>;

/// A counter or a gauge whose values somebody else keeps.
pub(crate) struct ForeignFamily {
    description: Desc,
    kind: MetricType,
    read: ReadValues,
}

impl ForeignFamily {
    /// The family of this name and type, with these labels.
    pub(crate) fn new(
        name: &str,
        help: &str,
        labels: &[&str],
        kind: MetricType,
        read: ReadValues,
    ) -> prometheus::Result<ForeignFamily> {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        let (name, help) = (name.to_owned(), help.to_owned());
        Ok(ForeignFamily {
            description: Desc::new(name, help, labels, HashMap::new())?,
            kind,
            read,
        })
    }

    /// A series with these values of its labels.
    fn series(&self, labels: Vec<String>, value: f64) -> Metric {
        let names = self.description.variable_labels.iter();
        let mut pairs: Vec<LabelPair> = names
            .zip(labels)
            .map(|(name, value)| {
                let mut pair = LabelPair::default();
                pair.set_name(name.clone());
                pair.set_value(value);
                pair
            })
            .collect();
        pairs.sort_by(|one, other| one.name().cmp(other.name()));
        let mut series = Metric::default();
        series.set_label(pairs);
        if self.kind == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            series.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            series.set_gauge(gauge);
        }
        series
    }
}

impl Collector for ForeignFamily {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.description]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let values = (self.read)().into_iter();
        let values = values.map(|(labels, value)| self.series(labels, value));
        let mut family = MetricFamily::default();
        family.set_name(self.description.fq_name.clone());
        family.set_help(self.description.help.clone());
        family.set_field_type(self.kind);
        family.set_metric(values.collect());
        vec![family]
    }
}
