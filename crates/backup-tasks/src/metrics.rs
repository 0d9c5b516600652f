//! The results of backups among the metrics.

use http_server::MetricsRegistry;
use prometheus::core::{Collector, Desc};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, GaugeVec, IntCounter, IntCounterVec, Opts};

use crate::book::LocationResults;
use crate::service::{BackupRunner, WeakBackupRunner};

/// The label of a location: its text, which has no secrets.
const LOCATION: &[&str] = &["location"];

const MICROS: f64 = 1e6;

impl BackupRunner {
    /// Shows the results among the metrics.
    pub fn show_metrics(&self, metrics: &MetricsRegistry) {
        let shown = BackupFamilies::new(self.downgrade())
            .and_then(|families| metrics.register(Box::new(families)));
        if let Err(error) = shown {
            tracing::error!(%error, "bug: the metrics of backups are not shown");
        }
    }
}

/// The families, read from the book when metrics are requested.
struct BackupFamilies {
    /// The indexes that backups save hold the metrics.
    tasks: WeakBackupRunner,
    last_success: GaugeVec,
    last_attempt: GaugeVec,
    failures: IntCounterVec,
    sent_bytes: IntCounterVec,
    sent_objects: IntCounterVec,
    duration: GaugeVec,
    points: GaugeVec,
    next: GaugeVec,
    running: Gauge,
    restore_failures: IntCounter,
    drill_success: GaugeVec,
    drill_failures: IntCounterVec,
    drill_ok: GaugeVec,
}

fn gauge(name: &str, help: &str) -> prometheus::Result<GaugeVec> {
    GaugeVec::new(Opts::new(name, help), LOCATION)
}

fn counter(name: &str, help: &str) -> prometheus::Result<IntCounterVec> {
    IntCounterVec::new(Opts::new(name, help), LOCATION)
}

impl BackupFamilies {
    fn new(tasks: WeakBackupRunner) -> prometheus::Result<BackupFamilies> {
        Ok(BackupFamilies {
            tasks,
            last_success: gauge(
                "annulus_backup_last_success_timestamp_seconds",
                "Time at which the last backup was complete",
            )?,
            last_attempt: gauge(
                "annulus_backup_last_attempt_timestamp_seconds",
                "Time at which the last backup began",
            )?,
            failures: counter(
                "annulus_backup_failures_total",
                "Backups that have failed since the start",
            )?,
            sent_bytes: counter(
                "annulus_backup_sent_bytes_total",
                "Bytes that complete backups have sent since the start",
            )?,
            sent_objects: counter(
                "annulus_backup_sent_objects_total",
                "Objects that complete backups have sent since the start",
            )?,
            duration: gauge(
                "annulus_backup_duration_seconds",
                "Time that the last complete backup took",
            )?,
            points: gauge(
                "annulus_backup_points",
                "Points in the location after the last backup",
            )?,
            next: gauge(
                "annulus_backup_next_timestamp_seconds",
                "Time of the next backup by schedule",
            )?,
            running: Gauge::new(
                "annulus_backup_running",
                "1 while a backup, a restore or a drill runs",
            )?,
            restore_failures: IntCounter::new(
                "annulus_restore_failures_total",
                "Restores that have failed since the start",
            )?,
            drill_success: gauge(
                "annulus_drill_last_success_timestamp_seconds",
                "Time of the last drill that found no difference",
            )?,
            drill_failures: counter(
                "annulus_drill_failures_total",
                "Drills that have failed since the start",
            )?,
            drill_ok: gauge(
                "annulus_drill_ok",
                "1 if the last drill found no difference, and 0 if it did",
            )?,
        })
    }

    fn collectors(&self) -> [&dyn Collector; 13] {
        [
            &self.last_success,
            &self.last_attempt,
            &self.failures,
            &self.sent_bytes,
            &self.sent_objects,
            &self.duration,
            &self.points,
            &self.next,
            &self.running,
            &self.restore_failures,
            &self.drill_success,
            &self.drill_failures,
            &self.drill_ok,
        ]
    }

    /// Sets all families to what the book says.
    fn refresh(&self) {
        for family in [
            &self.last_success,
            &self.last_attempt,
            &self.duration,
            &self.points,
            &self.next,
            &self.drill_success,
            &self.drill_ok,
        ] {
            family.reset();
        }
        for family in [
            &self.failures,
            &self.sent_bytes,
            &self.sent_objects,
            &self.drill_failures,
        ] {
            family.reset();
        }
        let Some(tasks) = self.tasks.upgrade() else {
            return;
        };
        {
            let book = tasks.book();
            for (location, results) in book.results() {
                self.set(location, results);
            }
            for (location, next) in book.next_backups() {
                set_time(&self.next, location, Some(next));
            }
        }
        self.running.set(f64::from(u8::from(tasks.is_running())));
        self.restore_failures.reset();
        self.restore_failures.inc_by(tasks.restore_failures());
    }

    fn set(&self, location: &str, results: &LocationResults) {
        let label = &[location];
        set_time(&self.last_success, location, results.last_success_micros);
        set_time(&self.last_attempt, location, results.last_attempt_micros);
        set_time(
            &self.drill_success,
            location,
            results.last_drill_success_micros,
        );
        for (family, count) in [
            (&self.failures, results.failures),
            (&self.sent_bytes, results.sent_bytes_total),
            (&self.sent_objects, results.sent_objects_total),
            (&self.drill_failures, results.drill_failures),
        ] {
            family.with_label_values(label).inc_by(count);
        }
        if results.last_success_micros.is_some() {
            let duration = self.duration.with_label_values(label);
            duration.set(results.duration_s);
            let points = self.points.with_label_values(label);
            points.set(results.points as f64);
        }
        if let Some(is_ok) = results.drill_ok() {
            let drill_ok = self.drill_ok.with_label_values(label);
            drill_ok.set(f64::from(u8::from(is_ok)));
        }
    }
}

/// Sets a time in seconds, if there is one.
fn set_time(family: &GaugeVec, location: &str, micros: Option<i64>) {
    if let Some(micros) = micros {
        let gauge = family.with_label_values(&[location]);
        gauge.set(micros as f64 / MICROS);
    }
}

impl Collector for BackupFamilies {
    fn desc(&self) -> Vec<&Desc> {
        let families = self.collectors();
        families.iter().flat_map(|family| family.desc()).collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        self.refresh();
        let families = self.collectors();
        families
            .iter()
            .flat_map(|family| family.collect())
            .collect()
    }
}
