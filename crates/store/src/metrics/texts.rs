//! The metric families of indexes on texts (contract, section 1.9).

use std::sync::OnceLock;

use http_server::MetricsRegistry;
use prometheus::{IntGauge, IntGaugeVec};

use super::{INDEX, gauge};

/// The families of indexes on texts.
#[derive(Clone)]
pub(super) struct TextFamilies {
    size_bytes: IntGaugeVec,
    segment_count: IntGaugeVec,
}

/// The series of one index. They exist once the index is known to be one on texts.
#[derive(Clone)]
pub struct TextMetrics {
    families: TextFamilies,
    labels: [String; 2],
    /// The gauges of the size and of the segments.
    gauges: OnceLock<[IntGauge; 2]>,
}

impl TextFamilies {
    /// Registers the families.
    pub(super) fn new(registry: &MetricsRegistry) -> TextFamilies {
        TextFamilies {
            size_bytes: gauge(
                registry,
                "annulus_text_size_bytes",
                "Bytes of the segments of a full-text index",
                INDEX,
            ),
            segment_count: gauge(
                registry,
                "annulus_text_segments",
                "Segments of a full-text index",
                INDEX,
            ),
        }
    }

    /// The series of an index, which don't exist yet.
    pub(super) fn index(&self, labels: [&str; 2]) -> TextMetrics {
        TextMetrics {
            families: self.clone(),
            labels: labels.map(str::to_owned),
            gauges: OnceLock::new(),
        }
    }

    /// Removes the series of an index.
    pub(super) fn forget(&self, labels: &[&str; 2]) {
        // An index of another class has none.
        let _ = self.size_bytes.remove_label_values(labels);
        let _ = self.segment_count.remove_label_values(labels);
    }
}

impl TextMetrics {
    /// Sets the bytes of all segments and their number.
    pub fn set(&self, size_bytes: u64, segments: usize) {
        let [size, count] = self.gauges.get_or_init(|| {
            let labels = self.labels.each_ref().map(String::as_str);
            let TextFamilies {
                size_bytes,
                segment_count,
            } = &self.families;
            [size_bytes, segment_count].map(|family| family.with_label_values(&labels))
        });
        size.set(i64::try_from(size_bytes).unwrap_or(i64::MAX));
        count.set(segments as i64);
    }
}

#[cfg(test)]
mod tests {
    use crate::identity::IndexName;
    use crate::metrics::ServiceMetrics;

    #[test]
    fn only_indexes_on_texts_have_the_series() {
        let metrics = ServiceMetrics::new();
        let name = IndexName {
            keyspace: "ks".into(),
            index: "idx".into(),
        };
        let index = metrics.index(&name);
        let shown = || metrics.registry().text().unwrap();
        assert!(!shown().contains("fts_"));
        index.texts.set(7, 2);
        let series = r#"fts_segment_count{index_name="idx",keyspace="ks"} 2"#;
        assert!(shown().contains(series), "{}", shown());
        metrics.forget(&name, &[]);
        assert!(!shown().contains("fts_"));
    }
}
