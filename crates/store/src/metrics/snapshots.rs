//! The metrics of snapshots.

use http_server::MetricsRegistry;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

use super::{INDEX, counter, gauge};

/// The metric families of snapshots.
#[derive(Clone)]
pub(super) struct SnapshotFamilies {
    taken: IntGaugeVec,
    position: IntGaugeVec,
    failing: IntGaugeVec,
    failures: IntCounterVec,
    unverified: IntGaugeVec,
}

/// The snapshot series of one index.
#[derive(Clone)]
pub struct SnapshotMetrics {
    /// The time at which the last snapshot was taken or confirmed, in seconds since the epoch; 0 if
    /// this process took none.
    pub taken_s: IntGauge,
    /// The time up to which the last snapshot covers the log, in seconds since the epoch.
    pub position_s: IntGauge,
    /// 1 while the index can't be saved.
    pub failing: IntGauge,
    /// The number of snapshots that could not be taken.
    pub failures: IntCounter,
    /// The bytes of full vectors from a snapshot that have yet to be verified.
    pub unverified: IntGauge,
}

impl SnapshotFamilies {
    /// Registers the families, without series.
    pub(super) fn new(registry: &MetricsRegistry) -> SnapshotFamilies {
        let gauge = |name, help| gauge(registry, name, help, INDEX);
        SnapshotFamilies {
            taken: gauge(
                "annulus_index_snapshot_timestamp_seconds",
                "The time of the last snapshot",
            ),
            position: gauge(
                "annulus_index_snapshot_position_timestamp_seconds",
                "The time up to which the last snapshot covers the log",
            ),
            failing: gauge(
                "annulus_index_snapshot_failing",
                "1 while the index can't be saved",
            ),
            unverified: gauge(
                "annulus_index_unverified_bytes",
                "Vectors from a snapshot that have yet to be verified",
            ),
            failures: counter(
                registry,
                "annulus_index_snapshot_failures_total",
                "Snapshots that could not be taken",
                INDEX,
            ),
        }
    }

    /// The series of an index, created if need be. `labels` are its keyspace and its name.
    pub(super) fn index(&self, labels: &[&str; 2]) -> SnapshotMetrics {
        SnapshotMetrics {
            taken_s: self.taken.with_label_values(labels),
            position_s: self.position.with_label_values(labels),
            failing: self.failing.with_label_values(labels),
            failures: self.failures.with_label_values(labels),
            unverified: self.unverified.with_label_values(labels),
        }
    }

    /// Removes the series of an index. Removing a series that a family doesn't have is an error,
    /// and harmless.
    pub(super) fn forget(&self, labels: &[&str; 2]) {
        for family in [&self.taken, &self.position, &self.failing, &self.unverified] {
            let _ = family.remove_label_values(labels);
        }
        let _ = self.failures.remove_label_values(labels);
    }
}
