//! The metrics of the storage, read when they are requested.

use std::sync::Arc;

use http_server::{MetricsRegistry, ReadValues};
use storage::{EngineFigures, Statistics, Storage, WriteAvailability};

use super::single;

/// Reads of the storage, each of which takes a moment.
#[derive(Clone)]
pub struct StorageReadings {
    /// The figures of the storage.
    pub statistics: Arc<dyn Fn() -> Statistics + Send + Sync>,
    /// The figures of its engine.
    pub engine: Arc<dyn Fn() -> EngineFigures + Send + Sync>,
    /// Whether it takes writes.
    pub is_writable: Arc<dyn Fn() -> bool + Send + Sync>,
}

impl StorageReadings {
    /// The readings of an open storage.
    pub fn of(storage: &Storage) -> StorageReadings {
        let (statistics, engine) = (storage.clone(), storage.clone());
        let health = storage.clone();
        StorageReadings {
            statistics: Arc::new(move || statistics.statistics()),
            engine: Arc::new(move || engine.engine_figures()),
            is_writable: Arc::new(move || health.health() == WriteAvailability::Writable),
        }
    }

    /// A number of the storage, to be read at any time.
    fn statistic(&self, value: fn(&Statistics) -> u64) -> impl Fn() -> u64 + Send + Sync + use<> {
        let read = self.statistics.clone();
        move || value(&read())
    }

    /// A number of its engine, to be read at any time.
    fn figure(&self, value: fn(&EngineFigures) -> u64) -> impl Fn() -> u64 + Send + Sync + use<> {
        let read = self.engine.clone();
        move || value(&read())
    }

    /// Memory of the storage by owner, for [`super::show_memory`].
    pub fn memory(&self) -> Vec<(&'static str, super::ReadNumber)> {
        let buffers = self.statistic(|figures| figures.write_buffer_bytes);
        let resident = self.statistic(|figures| figures.resident_bytes);
        vec![
            (
                "block_cache",
                Arc::new(self.figure(|figures| figures.cache_bytes)),
            ),
            ("write_buffers", Arc::new(buffers)),
            ("resident_tables", Arc::new(resident)),
        ]
    }
}

/// Shows the storage among the metrics.
pub fn show_storage(metrics: &MetricsRegistry, readings: &StorageReadings) {
    show_writes(metrics, readings);
    show_files(metrics, readings);
    show_buffers(metrics, readings);
    show_reads(metrics, readings);
    show_compaction(metrics, readings);
    show_cache(metrics, readings);
}

fn show_writes(metrics: &MetricsRegistry, readings: &StorageReadings) {
    metrics.show_counter(
        "annulus_storage_writes_total",
        "Writes in all batches of the committer",
        &[],
        single(readings.statistic(|figures| figures.writes)),
    );
    metrics.show_counter(
        "annulus_storage_commits_total",
        "Batches of the committer, failed ones included",
        &[],
        single(readings.statistic(|figures| figures.batches)),
    );
    metrics.show_counter_values(
        "annulus_storage_commit_seconds_total",
        "Time of all batches of the committer",
        &[],
        seconds(readings.statistic(|figures| figures.commit_micros)),
    );
    metrics.show_counter(
        "annulus_storage_written_bytes_total",
        "Bytes of keys and values handed to the journal, before compaction",
        &[],
        single(readings.figure(|figures| figures.written_bytes)),
    );
    metrics.show_counter(
        "annulus_storage_expired_rows_total",
        "Rows that were deleted as the time in their TTL column had come",
        &[],
        single(readings.statistic(|figures| figures.rows_expired)),
    );
    let is_writable = readings.is_writable.clone();
    metrics.show_gauge(
        "annulus_storage_writable",
        "0 while writes are refused, as the disk is full or failed",
        &[],
        single(move || u64::from(is_writable())),
    );
}

fn show_files(metrics: &MetricsRegistry, readings: &StorageReadings) {
    metrics.show_gauge(
        "annulus_storage_size_bytes",
        "Bytes of all files of rows",
        &[],
        single(readings.statistic(|figures| figures.disk_bytes)),
    );
    metrics.show_gauge(
        "annulus_storage_journals",
        "Journals on the disk",
        &[],
        single(readings.figure(|figures| figures.journals)),
    );
    metrics.show_gauge(
        "annulus_storage_journal_bytes",
        "Bytes of the journals",
        &[],
        single(readings.figure(|figures| figures.journal_bytes)),
    );
    metrics.show_gauge(
        "annulus_storage_replayed_bytes",
        "Bytes of journals that the start had to replay",
        &[],
        single(readings.statistic(|figures| figures.replayed_bytes)),
    );
}

fn show_buffers(metrics: &MetricsRegistry, readings: &StorageReadings) {
    metrics.show_gauge(
        "annulus_storage_write_buffer_bytes",
        "Memory of rows that wait to be written out, of all tables",
        &[],
        single(readings.statistic(|figures| figures.write_buffer_bytes)),
    );
    metrics.show_gauge(
        "annulus_storage_write_buffer_limit_bytes",
        "The bound for the memory of rows that wait to be written out",
        &[],
        single(readings.figure(|figures| figures.write_buffer_limit_bytes)),
    );
    metrics.show_gauge(
        "annulus_storage_waiting_flushes",
        "Tables of rows in memory that wait to be written out",
        &[],
        single(readings.figure(|figures| figures.waiting_flushes)),
    );
    metrics.show_gauge(
        "annulus_storage_waiting_sweeps",
        "Deletions of partitions and ranges whose rows are still on the disk",
        &[],
        single(readings.statistic(|figures| figures.sweeps_waiting)),
    );
}

fn show_reads(metrics: &MetricsRegistry, readings: &StorageReadings) {
    metrics.show_counter(
        "annulus_storage_looked_up_rows_total",
        "Rows that were looked up by their keys",
        &[],
        single(readings.statistic(|figures| figures.rows_looked_up)),
    );
    metrics.show_counter(
        "annulus_storage_passed_versions_total",
        "Overwritten versions and deleted keys that reads had to pass",
        &[],
        single(readings.statistic(|figures| figures.versions_passed)),
    );
}

fn show_compaction(metrics: &MetricsRegistry, readings: &StorageReadings) {
    metrics.show_gauge(
        "annulus_compaction_running",
        "Compactions that run",
        &[],
        single(readings.figure(|figures| figures.compactions_running)),
    );
    metrics.show_counter(
        "annulus_compaction_completed_total",
        "Compactions that were completed",
        &[],
        single(readings.figure(|figures| figures.compactions_completed)),
    );
    metrics.show_counter_values(
        "annulus_compaction_seconds_total",
        "Time of all compactions",
        &[],
        seconds(readings.figure(|figures| figures.compaction_micros)),
    );
}

fn show_cache(metrics: &MetricsRegistry, readings: &StorageReadings) {
    let read = |value: fn(&EngineFigures) -> u64| {
        let read = readings.figure(value);
        Arc::new(move || vec![(vec!["block"], read())])
    };
    metrics.show_gauge(
        "annulus_cache_used_bytes",
        "Bytes in a cache",
        &["cache"],
        read(|figures| figures.cache_bytes),
    );
    metrics.show_gauge(
        "annulus_cache_limit_bytes",
        "The bound for the bytes in a cache",
        &["cache"],
        read(|figures| figures.cache_limit_bytes),
    );
    metrics.show_counter(
        "annulus_cache_hits_total",
        "Lookups in a cache that found what they looked for",
        &["cache"],
        read(|figures| figures.cache_hits),
    );
    metrics.show_counter(
        "annulus_cache_misses_total",
        "Lookups in a cache that did not find what they looked for",
        &["cache"],
        read(|figures| figures.cache_misses),
    );
}

/// Reads microseconds as seconds.
fn seconds(read_micros: impl Fn() -> u64 + Send + Sync + 'static) -> ReadValues {
    Arc::new(move || vec![(Vec::new(), read_micros() as f64 / 1e6)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_storage_is_shown_as_it_is_now() {
        let metrics = MetricsRegistry::default();
        let readings = StorageReadings {
            statistics: Arc::new(|| Statistics {
                writes: 12,
                commit_micros: 1_500_000,
                ..Statistics::default()
            }),
            engine: Arc::new(|| EngineFigures {
                cache_hits: 3,
                ..EngineFigures::default()
            }),
            is_writable: Arc::new(|| false),
        };
        show_storage(&metrics, &readings);
        let text = metrics.text().unwrap();
        for line in [
            "annulus_storage_writes_total 12",
            "annulus_storage_commit_seconds_total 1.5",
            "annulus_storage_writable 0",
            r#"annulus_cache_hits_total{cache="block"} 3"#,
        ] {
            assert!(text.lines().any(|said| said == line), "{line}\n{text}");
        }
        assert_eq!(readings.memory().len(), 3);
    }
}
