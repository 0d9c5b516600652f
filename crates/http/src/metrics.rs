//! One registry of metrics, and the one place where their text is made.
//!
//! Each part of a program registers its families. Counts that somebody else keeps are read when
//! metrics are requested. A family that once had another name is shown under both
//! ([`OlderName`]). The registry can describe all its families, of which a page of the manual is
//! made ([`MetricsRegistry::described`]).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prometheus::core::{Collector, Desc};
use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Registry, TextEncoder};

use crate::foreign_metrics::{ForeignFamily, ReadCounts, ReadValues};
use crate::refusal::RequestRefusal;

/// The type of the text.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metric families of a program. Cheap to clone; clones share them.
#[derive(Clone, Default)]
pub struct MetricsRegistry {
    families: Registry,
    known: Arc<Mutex<KnownFamilies>>,
}

/// The families, as far as the registry of the library does not show them.
#[derive(Default)]
struct KnownFamilies {
    collectors: Vec<SharedCollector>,
    older: Vec<OlderName>,
}

/// Another name of a family, from earlier versions or of a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OlderName {
    /// The other name.
    pub older: &'static str,
    /// The name of the family.
    pub now: &'static str,
    /// Whether the other name is one of a contract, and stays. Else it ends with the next version.
    pub stays: bool,
}

/// The labels that have another name in families under their older name: the name now, and then.
const OLDER_LABELS: [(&str, &str); 1] = [("index", "index_name")];

/// A family as a manual describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyDescription {
    /// The name.
    pub name: String,
    /// The type: `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of the labels.
    pub labels: Vec<String>,
    /// The meaning, as the text of the metrics says it.
    pub help: String,
    /// The other name under which the family is shown.
    pub older: Option<OlderName>,
}

/// A collector that the registry of the library and this one share.
#[derive(Clone)]
struct SharedCollector(Arc<dyn Collector>);

impl Collector for SharedCollector {
    fn desc(&self) -> Vec<&Desc> {
        self.0.desc()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.0.collect()
    }
}

impl fmt::Debug for MetricsRegistry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MetricsRegistry").finish()
    }
}

impl MetricsRegistry {
    /// Adds families.
    ///
    /// # Errors
    /// If there is a family of that name already.
    pub fn register(&self, families: Box<dyn Collector>) -> prometheus::Result<()> {
        let shared = SharedCollector(Arc::from(families));
        self.families.register(Box::new(shared.clone()))?;
        self.known().collectors.push(shared);
        Ok(())
    }

    /// Shows families under another name, too.
    pub fn show_older_names(&self, names: &[OlderName]) {
        self.known().older.extend_from_slice(names);
    }

    /// Shows a counter whose counts somebody else keeps, too. Only the first of a name counts.
    pub fn show_counter(&self, name: &str, help: &str, labels: &[&str], read: ReadCounts) {
        let read = move || {
            let counts = read().into_iter();
            let counts = counts.map(|(labels, count)| (owned(&labels), count as f64));
            counts.collect()
        };
        self.show(name, help, labels, MetricType::COUNTER, Arc::new(read));
    }

    /// Shows a gauge whose value somebody else keeps, too. Only the first of a name counts.
    pub fn show_gauge(&self, name: &str, help: &str, labels: &[&str], read: ReadCounts) {
        let read = move || {
            let values = read().into_iter();
            let values = values.map(|(labels, value)| (owned(&labels), value as f64));
            values.collect()
        };
        self.show(name, help, labels, MetricType::GAUGE, Arc::new(read));
    }

    /// Shows a counter whose values are no whole numbers, or whose labels have values that are not
    /// known beforehand. Only the first of a name counts.
    pub fn show_counter_values(&self, name: &str, help: &str, labels: &[&str], read: ReadValues) {
        self.show(name, help, labels, MetricType::COUNTER, read);
    }

    /// Shows a gauge as [`MetricsRegistry::show_counter_values`] shows a counter.
    pub fn show_gauge_values(&self, name: &str, help: &str, labels: &[&str], read: ReadValues) {
        self.show(name, help, labels, MetricType::GAUGE, read);
    }

    fn show(&self, name: &str, help: &str, labels: &[&str], kind: MetricType, read: ReadValues) {
        let shown = ForeignFamily::new(name, help, labels, kind, read)
            .and_then(|family| self.register(Box::new(family)));
        if let Err(error) = shown {
            tracing::debug!(%error, name, "a family of metrics is not shown");
        }
    }

    /// All families that have series, in the order of their names, each under all its names.
    pub fn gather(&self) -> Vec<MetricFamily> {
        let mut families = self.families.gather();
        let older = self.known().older.clone();
        let copies = older.iter().filter_map(|name| {
            let family = families.iter().find(|family| family.name() == name.now)?;
            Some(under_older_name(family, name))
        });
        let copies: Vec<MetricFamily> = copies.collect();
        families.extend(copies);
        families.sort_by(|one, other| one.name().cmp(other.name()));
        families
    }

    /// Describes all families, those without series, too, in the order of their names. Those that
    /// are shown only under an older name are described under the name that they have now.
    pub fn described(&self) -> Vec<FamilyDescription> {
        let known = self.known();
        let (collectors, older) = (known.collectors.clone(), known.older.clone());
        drop(known);
        let mut described = Vec::new();
        for collector in collectors {
            let families = collector.collect();
            for of in collector.desc() {
                let family = families.iter().find(|family| family.name() == of.fq_name);
                let kind = family.map_or(MetricType::UNTYPED, MetricFamily::get_field_type);
                described.push(FamilyDescription {
                    name: of.fq_name.clone(),
                    kind: type_name(kind),
                    labels: of.variable_labels.clone(),
                    help: of.help.clone(),
                    older: older.iter().find(|name| name.now == of.fq_name).copied(),
                });
            }
        }
        described.sort_by(|one, other| one.name.cmp(&other.name));
        described
    }

    /// Writes all series in the text format 0.0.4.
    ///
    /// # Errors
    /// If a family has no valid form.
    pub fn text(&self) -> prometheus::Result<String> {
        TextEncoder::new().encode_to_string(&self.gather())
    }

    /// The answer to a request for all metrics.
    ///
    /// # Errors
    /// If a family has no valid form.
    pub fn answer(&self) -> Result<Response, RequestRefusal> {
        let text = self.text();
        let text = text.map_err(|error| RequestRefusal::Internal(error.to_string()))?;
        let format = HeaderValue::from_static(TEXT);
        Ok(([(CONTENT_TYPE, format)], text).into_response())
    }

    fn known(&self) -> MutexGuard<'_, KnownFamilies> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A copy of a family under its older name.
fn under_older_name(family: &MetricFamily, name: &OlderName) -> MetricFamily {
    let mut copy = family.clone();
    copy.set_name(name.older.to_owned());
    let end = match name.stays {
        true => String::new(),
        false => format!(" (ends with the next version: {})", name.now),
    };
    copy.set_help(format!("{}{end}", family.help()));
    for series in copy.mut_metric() {
        let mut labels = series.take_label();
        for label in &mut labels {
            let older = OLDER_LABELS.iter().find(|(now, _)| label.name() == *now);
            if let Some((_, older)) = older {
                label.set_name((*older).to_owned());
            }
        }
        series.set_label(sorted(labels));
    }
    copy
}

/// Labels in the order in which a series has them.
fn sorted(mut labels: Vec<LabelPair>) -> Vec<LabelPair> {
    labels.sort_by(|one, other| one.name().cmp(other.name()));
    labels
}

fn owned(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|&label| label.to_owned()).collect()
}

fn type_name(kind: MetricType) -> &'static str {
    match kind {
        MetricType::COUNTER => "counter",
        MetricType::GAUGE => "gauge",
        MetricType::HISTOGRAM => "histogram",
        MetricType::SUMMARY => "summary",
        MetricType::UNTYPED => "untyped",
    }
}

/// The value of a series of a counter or a gauge.
pub(crate) fn value_of(series: &Metric, kind: MetricType) -> Option<f64> {
    match kind {
        MetricType::COUNTER => Some(series.get_counter().get_value()),
        MetricType::GAUGE => Some(series.get_gauge().get_value()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use prometheus::{IntGaugeVec, Opts};

    use super::*;

    #[test]
    fn foreign_counts_are_read_when_they_are_requested() {
        let metrics = MetricsRegistry::default();
        let count = Arc::new(AtomicU64::new(1));
        let read = count.clone();
        let read = move || vec![(vec!["a"], read.load(Ordering::Relaxed))];
        metrics.show_counter("seen_total", "Seen", &["kind"], Arc::new(read));
        metrics.show_gauge("open", "Open", &[], Arc::new(|| vec![(Vec::new(), 3)]));
        count.store(2, Ordering::Relaxed);
        let text = "# HELP open Open\n# TYPE open gauge\nopen 3\n\
                    # HELP seen_total Seen\n# TYPE seen_total counter\nseen_total{kind=\"a\"} 2\n";
        assert_eq!(metrics.text().unwrap(), text);
        // Another one of the same name is left out.
        metrics.show_gauge("open", "Open", &[], Arc::new(|| vec![(Vec::new(), 4)]));
        assert_eq!(metrics.text().unwrap(), text);
    }

    #[test]
    fn a_family_is_shown_under_its_older_name_too() {
        let metrics = MetricsRegistry::default();
        let rows = Opts::new("annulus_index_rows", "Rows");
        let rows = IntGaugeVec::new(rows, &["keyspace", "index"]).unwrap();
        metrics.register(Box::new(rows.clone())).unwrap();
        let older = OlderName {
            older: "index_size",
            now: "annulus_index_rows",
            stays: true,
        };
        metrics.show_older_names(&[older]);
        // A family without series has none under the older name, either.
        assert_eq!(metrics.text().unwrap(), "");
        rows.with_label_values(&["ks", "idx"]).set(7);
        let text = metrics.text().unwrap();
        for line in [
            r#"annulus_index_rows{index="idx",keyspace="ks"} 7"#,
            r#"index_size{index_name="idx",keyspace="ks"} 7"#,
            "# TYPE index_size gauge",
        ] {
            assert!(text.lines().any(|said| said == line), "{line}\n{text}");
        }
    }

    #[test]
    fn families_without_series_are_described_too() {
        let metrics = MetricsRegistry::default();
        let rows = IntGaugeVec::new(Opts::new("rows", "Rows"), &["keyspace"]).unwrap();
        metrics.register(Box::new(rows)).unwrap();
        metrics.show_counter(
            "seen_total",
            "Seen",
            &[],
            Arc::new(|| vec![(Vec::new(), 1)]),
        );
        let described = metrics.described();
        let shown: Vec<_> = described
            .iter()
            .map(|family| (family.name.as_str(), family.kind, family.labels.len()))
            .collect();
        assert_eq!(shown, [("rows", "gauge", 1), ("seen_total", "counter", 0)]);
        assert_eq!(described[0].help, "Rows");
    }
}
