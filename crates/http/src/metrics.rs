//! One registry of metrics, and the one place where their text is made.
//!
//! Each part of a program registers its families. Counts that somebody else keeps are read when
//! metrics are requested.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use prometheus::core::Collector;
use prometheus::{Registry, TextEncoder};

use crate::foreign_metrics::{ForeignCounter, ForeignGauge, ReadCounts};
use crate::refusal::RequestRefusal;

/// The type of the text.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metric families of a program. Cheap to clone; clones share them.
#[derive(Clone, Debug, Default)]
pub struct MetricsRegistry {
    families: Registry,
}

impl MetricsRegistry {
    /// Adds families.
    ///
    /// # Errors
    /// If there is a family of that name already.
    pub fn register(&self, families: Box<dyn Collector>) -> prometheus::Result<()> {
        self.families.register(families)
    }

    /// Shows a counter whose counts somebody else keeps, too. Only the first of a name counts.
    pub fn show_counter(&self, name: &str, help: &str, labels: &[&str], read: ReadCounts) {
        let shown = ForeignCounter::new(name, help, labels, read)
            .and_then(|counter| self.register(Box::new(counter)));
        if let Err(error) = shown {
            tracing::debug!(%error, name, "a counter is not shown");
        }
    }

    /// Shows a gauge whose value somebody else keeps, too. Only the first of a name counts.
    pub fn show_gauge(&self, name: &str, help: &str, labels: &[&str], read: ReadCounts) {
        let shown = ForeignGauge::new(name, help, labels, read)
            .and_then(|gauge| self.register(Box::new(gauge)));
        if let Err(error) = shown {
            tracing::debug!(%error, name, "a gauge is not shown");
        }
    }

    /// Writes all series in the text format 0.0.4.
    ///
    /// # Errors
    /// If a family has no valid form.
    pub fn text(&self) -> prometheus::Result<String> {
        TextEncoder::new().encode_to_string(&self.families.gather())
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
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

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
}
