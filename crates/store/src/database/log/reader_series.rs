//! The metric series of a reader of a log.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use prometheus::Gauge;

use crate::identity::IndexName;
use crate::metrics::{Metrics, ReaderMetrics};

/// The series of one reader, a set for each index of its table.
#[derive(Default)]
pub struct ReaderSeries {
    /// The time up to which all streams have been read, in microseconds since the epoch.
    read_up_to_us: AtomicU64,
    /// The number of log rows that were handed over.
    handed_over: AtomicU64,
    series: RwLock<Vec<(IndexName, ReaderMetrics)>>,
}

impl ReaderSeries {
    /// Creates the series of an index. Returns the gauge for the time up to which the log was read.
    pub fn add(&self, metrics: &Metrics, name: &IndexName, reader: &str) -> Gauge {
        let added = metrics.reader(name, reader);
        let mut series = self.series.write().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, other)) = series.first() {
            added.up.set(other.up.get());
            added.last_processed.set(other.last_processed.get());
        }
        let last_processed = added.last_processed.clone();
        series.push((name.clone(), added));
        last_processed
    }

    /// Stops writing to the series of an index.
    pub fn remove(&self, name: &IndexName) {
        self.series
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(other, _)| other != name);
    }

    /// Sets the time up to which all streams have been read, as a time since the epoch.
    pub fn set_read_up_to(&self, time: Duration) {
        let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.read_up_to_us.store(time_us, Ordering::Relaxed);
        self.each(|metrics| metrics.last_processed.set(time.as_secs_f64()));
    }

    /// Counts a log row that was handed over.
    pub fn hand_over(&self) {
        self.handed_over.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of log rows that were handed over.
    pub fn handed_over(&self) -> u64 {
        self.handed_over.load(Ordering::Relaxed)
    }

    /// The time up to which all streams have been read, as a time since the epoch.
    pub fn read_up_to(&self) -> Duration {
        Duration::from_micros(self.read_up_to_us.load(Ordering::Relaxed))
    }

    /// Writes to the series of all indexes.
    pub fn each(&self, write: impl Fn(&ReaderMetrics)) {
        let series = self.series.read().unwrap_or_else(PoisonError::into_inner);
        series.iter().for_each(|(_, metrics)| write(metrics));
    }
}
