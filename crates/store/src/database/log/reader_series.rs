//! The metric series of a reader of a log, and the counters of its beginnings and ends that tests
//! of the whole service start ([`EventCounters`]).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use prometheus::Gauge;

use crate::counters::EventCounters;
use crate::identity::IndexName;
use crate::metrics::{ReaderMetrics, ServiceMetrics};

/// The series of one reader, a set for each index of its table.
#[derive(Default)]
pub struct ReaderSeries {
    /// The time up to which all streams have been read, in microseconds since the epoch.
    read_up_to_us: AtomicU64,
    /// The number of log rows that were handed over.
    handed_over: AtomicU64,
    series: RwLock<SeriesByIndex>,
}

/// The series by index.
#[derive(Default)]
struct SeriesByIndex {
    of: Vec<IndexReaderSeries>,
    /// Whether the log is being followed.
    is_followed: bool,
}

/// The series of an index.
struct IndexReaderSeries {
    name: IndexName,
    metrics: ReaderMetrics,
    counters: Arc<EventCounters>,
    reader: String,
}

impl IndexReaderSeries {
    /// Counts what happens to the reader, by the names that ScyllaDB's own service has for it.
    fn count(&self, what: &str) {
        let IndexReaderSeries { name, reader, .. } = self;
        self.counters
            .count_named(|| format!("{name}-{reader}-cdc-{what}"));
    }
}

/// The log is followed while it lives.
pub struct FollowedLog<'a>(&'a ReaderSeries);

impl Drop for FollowedLog<'_> {
    fn drop(&mut self) {
        let mut series = self.0.series();
        series.is_followed = false;
        series.of.iter().for_each(|of| of.count("handler-stopped"));
    }
}

impl ReaderSeries {
    /// Creates the series of an index. Returns the gauge for the time up to which the log was read.
    pub fn add(&self, metrics: &ServiceMetrics, name: &IndexName, reader: &str) -> Gauge {
        let added = metrics.reader(name, reader);
        let mut series = self.series();
        if let Some(IndexReaderSeries { metrics: other, .. }) = series.of.first() {
            added.up.set(other.up.get());
            added.last_processed.set(other.last_processed.get());
        }
        let last_processed = added.last_processed.clone();
        let of = IndexReaderSeries {
            name: name.clone(),
            metrics: added,
            counters: metrics.counters().clone(),
            reader: reader.to_owned(),
        };
        of.count("actor-started");
        if series.is_followed {
            of.count("handler-started");
        }
        series.of.push(of);
        last_processed
    }

    /// Stops writing to the series of an index.
    pub fn remove(&self, name: &IndexName) {
        let mut series = self.series();
        let is_followed = series.is_followed;
        series.of.retain(|of| {
            let stays = of.name != *name;
            if !stays {
                if is_followed {
                    of.count("handler-stopped");
                }
                of.count("actor-stopped");
            }
            stays
        });
    }

    /// Notes that the log is followed until the result is dropped.
    pub fn follow(&self) -> FollowedLog<'_> {
        let mut series = self.series();
        series.is_followed = true;
        series.of.iter().for_each(|of| of.count("handler-started"));
        drop(series);
        FollowedLog(self)
    }

    fn series(&self) -> RwLockWriteGuard<'_, SeriesByIndex> {
        self.series.write().unwrap_or_else(PoisonError::into_inner)
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
        series.of.iter().for_each(|of| write(&of.metrics));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexes::tests::identity;

    #[test]
    fn readers_are_counted_as_they_begin_and_end() {
        let metrics = ServiceMetrics::new();
        let counters = metrics.counters();
        let names = ["actor", "handler"]
            .map(|part| ["started", "stopped"].map(|what| format!("ks.i-wide-cdc-{part}-{what}")));
        for name in names.as_flattened() {
            counters.start(name.clone()).unwrap();
        }
        let counted = || {
            names
                .each_ref()
                .map(|of| of.each_ref().map(|name| counters.values()[name]))
        };
        let series = ReaderSeries::default();
        let name = identity("i").name;
        series.add(&metrics, &name, "wide");
        assert_eq!(counted(), [[1, 0], [0, 0]]);
        let followed = series.follow();
        assert_eq!(counted(), [[1, 0], [1, 0]]);
        drop(followed);
        assert_eq!(counted(), [[1, 0], [1, 1]]);
        let followed = series.follow();
        series.remove(&name);
        assert_eq!(counted(), [[1, 1], [2, 2]]);
        series.add(&metrics, &name, "wide");
        assert_eq!(counted(), [[2, 1], [3, 2]]);
        drop(followed);
        assert_eq!(counted(), [[2, 1], [3, 3]]);
    }
}
