//! The metrics that operators scrape. Their names follow one scheme; those of the contract (section
//! 1.9) and of earlier versions are shown, too.
//!
//! The series of an index exist from its discovery until it is dropped. A request with an unknown
//! index name creates no series.

mod older_names;
mod shown_counts;
mod snapshots;
mod texts;

use std::sync::Arc;
use std::time::Duration;

use cpu_scheduler::CpuScheduler;
use http_server::MetricsRegistry;
use prometheus::core::Collector;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts,
};
use snapshots::SnapshotFamilies;
use store_api::SearchCounts;
use store_api::types::SearchPlan;
use tasks::TaskRegistry;
use texts::{TextFamilies, TextMetrics};

use crate::counters::{CountedEvent, EventCounters};
use crate::identity::IndexName;
pub(crate) use snapshots::SnapshotMetrics;

const INDEX: &[&str] = &["keyspace", "index"];
const OPERATION: &[&str] = &["keyspace", "index", "operation"];
const COMPONENT: &[&str] = &["keyspace", "index", "component"];
const PLAN: &[&str] = &["keyspace", "index", "plan"];
const K: &[&str] = &["keyspace", "index", "k"];
const READER: &[&str] = &["keyspace", "index", "reader"];

/// The parts of an index that have to stay in memory: the values of the label `component`. The last
/// four are of all indexes, the others of the structure.
const MEMORY_COMPONENTS: [&str; 10] = [
    // The links between vectors.
    "graph",
    // The codes of vectors.
    "codes",
    // The table of the ids in the structure.
    "ids",
    // Full vectors that are held in memory.
    "vectors",
    // The words of texts: segments that are in no mapped file, and texts that no segment has yet.
    "text",
    // Working memory of searches and changes.
    "workspaces",
    // Changes that searches see and the structure does not have yet.
    "fresh",
    // The rows' primary keys.
    "keys",
    // The values of filter columns.
    "filter_values",
    // The data that decides which reading of a row wins.
    "rows",
];

/// The numbers of rows for which an index reports its recall: the values of the label `k`.
pub(crate) const SAMPLED_KS: [usize; 2] = [10, 100];

/// Buckets from 0.1 ms to 10 s.
const LATENCY_BUCKETS_S: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// Buckets from 50 ms to 300 s, with two finer ones below for a database in the same process.
const LAG_BUCKETS_S: &[f64] = &[
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// All metric families of the service.
#[derive(Clone)]
pub struct ServiceMetrics {
    registry: MetricsRegistry,
    counters: Arc<EventCounters>,
    request_latency: HistogramVec,
    index_size: IntGaugeVec,
    index_memory: IntGaugeVec,
    index_mapped: IntGaugeVec,
    index_modified: IntCounterVec,
    indexing_lag: HistogramVec,
    behind: GaugeVec,
    changes_waiting: IntGaugeVec,
    tending: IntGaugeVec,
    dead_entries: IntGaugeVec,
    maintenance_debt: IntGaugeVec,
    recall_estimate: GaugeVec,
    walk_width: GaugeVec,
    recall: GaugeVec,
    recall_measured: IntGaugeVec,
    rows_rejected: IntCounterVec,
    rows_without_room: IntGaugeVec,
    write_time_regressions: IntCounterVec,
    searches_refused: IntCounterVec,
    unknown_keys: IntCounterVec,
    searches: IntCounterVec,
    searches_short: IntCounterVec,
    memory_used: IntGaugeVec,
    memory_limit: IntGaugeVec,
    clock_lead: GaugeVec,
    scans: IntCounterVec,
    scanned_rows: IntCounterVec,
    snapshots: SnapshotFamilies,
    texts: TextFamilies,
    cdc_reader_up: IntGaugeVec,
    cdc_handler_errors: IntCounterVec,
    cdc_reader_restarts: IntCounterVec,
    cdc_last_processed: GaugeVec,
}

/// The series of one index.
#[derive(Clone)]
pub struct IndexMetrics {
    /// The counters that tests start.
    pub counters: Arc<EventCounters>,
    /// The time from a request to its answer.
    pub request_latency: Histogram,
    /// The number of searches by plan, in the order of [`SearchPlan::ALL`].
    searches: [IntCounter; SearchPlan::ALL.len()],
    /// The number of answers that may lack rows, as the index has had no room for some.
    pub short: IntCounter,
    /// The number of rows in the index.
    pub size: IntGauge,
    /// The bytes that the index takes.
    pub memory: MemoryMetrics,
    /// The number of rows that were inserted.
    pub inserted: IntCounter,
    /// The number of rows whose vector changed.
    pub updated: IntCounter,
    /// The number of rows that were removed.
    pub removed: IntCounter,
    /// The time from the timestamp of a log row until its change is searchable.
    pub lag: Histogram,
    /// The seconds by which the index lags the writes of its table; NaN while not known.
    pub behind: Gauge,
    /// The number of changes that searches see and the graph does not have yet.
    pub waiting: IntGauge,
    /// 1 while there is work that changes have left to do in the graph.
    pub tending: IntGauge,
    /// The number of entries of removed and changed rows that still take room.
    pub dead: IntGauge,
    /// The number of entries that the work in the background has still to look at.
    pub debt: IntGauge,
    /// The recall that samples have shown, for each of [`SAMPLED_KS`].
    pub recall: [RecallMetrics; SAMPLED_KS.len()],
    /// The number of vectors that can't be indexed.
    pub rejected: IntCounter,
    /// The number of rows that wait for room in memory or on the disk.
    pub without_room: IntGauge,
    /// The number of rows that were read with an older vector than before, as replicas disagree.
    pub regressions: IntCounter,
    /// The number of scans of the table.
    pub scans: IntCounter,
    /// The number of rows that scans have read.
    pub scanned_rows: IntCounter,
    /// The series of the index's snapshots.
    pub snapshots: SnapshotMetrics,
    /// The series of an index on texts.
    pub texts: TextMetrics,
}

/// The bytes that an index takes.
#[derive(Clone)]
pub struct MemoryMetrics {
    /// The bytes that have to stay in memory, in the order of the components.
    pinned: [IntGauge; MEMORY_COMPONENTS.len()],
    /// Full vectors in a mapped file, whose pages the system may take back.
    pub mapped: IntGauge,
}

impl MemoryMetrics {
    /// Sets the bytes of one of the components that have to stay in memory.
    pub fn set(&self, component: &str, bytes: usize) {
        let mut gauges = MEMORY_COMPONENTS.iter().zip(&self.pinned);
        let gauge = gauges.find(|(name, _)| **name == component);
        debug_assert!(gauge.is_some(), "{component} is no component");
        if let Some((_, gauge)) = gauge {
            gauge.set(bytes as i64);
        }
    }
}

/// The recall of an index for one number of rows.
#[derive(Clone)]
pub struct RecallMetrics {
    /// The share of the nearest rows that walks have found of samples; NaN while not known.
    pub estimate: Gauge,
    /// The width of walks, as a multiple of the default one.
    pub width: Gauge,
}

/// The series of one index and one reader of its table's log.
#[derive(Clone)]
pub struct ReaderMetrics {
    /// 1 while the reader runs.
    pub up: IntGauge,
    /// The number of log rows that couldn't be understood.
    pub handler_errors: IntCounter,
    /// The number of times that the reader was started again.
    pub restarts: IntCounter,
    /// The time up to which all streams were read, in seconds since the epoch.
    pub last_processed: Gauge,
}

impl IndexMetrics {
    /// Counts a search that was answered by this plan.
    pub fn searched(&self, plan: SearchPlan) {
        if let Some(counter) = self.searches.get(plan as usize) {
            counter.inc();
        }
    }
}

impl Default for ServiceMetrics {
    fn default() -> ServiceMetrics {
        ServiceMetrics::new()
    }
}

impl ServiceMetrics {
    /// Registers all families, without series.
    #[expect(
        clippy::too_many_lines,
        reason = "one table: each series with its help text"
    )]
    pub fn new() -> ServiceMetrics {
        let registry = MetricsRegistry::default();
        registry.show_older_names(&older_names::all());
        ServiceMetrics {
            searches: counter(
                &registry,
                "annulus_index_searches_total",
                "Searches answered, by the way in which they were done",
                PLAN,
            ),
            counters: Arc::default(),
            request_latency: histogram(
                &registry,
                "annulus_index_request_duration_seconds",
                "Latency of index requests",
                LATENCY_BUCKETS_S,
            ),
            index_size: gauge(&registry, "annulus_index_rows", "Rows in the index", INDEX),
            index_memory: gauge(
                &registry,
                "annulus_index_memory_bytes",
                "Memory that the index can't do without",
                COMPONENT,
            ),
            index_mapped: gauge(
                &registry,
                "annulus_index_mapped_bytes",
                "Vectors in a mapped file: in memory as far as there is room",
                INDEX,
            ),
            index_modified: counter(
                &registry,
                "annulus_index_changes_total",
                "Changes of the index",
                OPERATION,
            ),
            indexing_lag: histogram(
                &registry,
                "annulus_index_change_lag_seconds",
                "Time from the timestamp of a log row until it is indexed",
                LAG_BUCKETS_S,
            ),
            behind: registered(
                &registry,
                GaugeVec::new(
                    Opts::new(
                        "annulus_index_lag_seconds",
                        "Age of the oldest write that searches of the index don't see",
                    ),
                    INDEX,
                ),
            ),
            changes_waiting: gauge(
                &registry,
                "annulus_index_waiting_changes",
                "Changes that searches measure one by one until the graph has them",
                INDEX,
            ),
            tending: gauge(
                &registry,
                "annulus_index_tending",
                "1 while the graph is mended and renewed after changes",
                INDEX,
            ),
            dead_entries: gauge(
                &registry,
                "annulus_index_dead_entries",
                "Entries of removed and changed rows that still take room",
                INDEX,
            ),
            maintenance_debt: gauge(
                &registry,
                "annulus_index_debt_entries",
                "Entries that the work in the background has still to look at",
                INDEX,
            ),
            recall_estimate: registered(
                &registry,
                GaugeVec::new(
                    Opts::new(
                        "annulus_index_recall_estimate_ratio",
                        "Share of the k nearest rows that walks have found of samples",
                    ),
                    K,
                ),
            ),
            walk_width: registered(
                &registry,
                GaugeVec::new(
                    Opts::new(
                        "annulus_index_walk_width_ratio",
                        "Width of walks for k rows, as a multiple of the default one",
                    ),
                    K,
                ),
            ),
            recall: registered(
                &registry,
                GaugeVec::new(
                    Opts::new(
                        "annulus_index_recall_ratio",
                        "Share of the ten nearest rows that searches found in the last check",
                    ),
                    INDEX,
                ),
            ),
            recall_measured: gauge(
                &registry,
                "annulus_index_recall_timestamp_seconds",
                "The time of the last check of the recall",
                INDEX,
            ),
            rows_rejected: counter(
                &registry,
                "annulus_index_rejected_rows_total",
                "Rows read whose vector can't be indexed",
                INDEX,
            ),
            rows_without_room: gauge(
                &registry,
                "annulus_index_unplaced_rows",
                "Rows that wait for room in memory or on the disk",
                INDEX,
            ),
            write_time_regressions: counter(
                &registry,
                "annulus_index_regressions_total",
                "Rows read with an older vector than before",
                INDEX,
            ),
            searches_refused: from_the_start(
                counter(
                    &registry,
                    "annulus_search_shed_total",
                    "Searches refused, by reason: too many at once, too late, the index is behind, or short",
                    &["reason"],
                ),
                &["admission", "behind", "deadline", "short"],
            ),
            searches_short: counter(
                &registry,
                "annulus_index_short_answers_total",
                "Answers that may lack rows, as the index has had no room for some",
                INDEX,
            ),
            unknown_keys: counter(
                &registry,
                "annulus_http_unknown_keys_total",
                "Keys of searches that were left unread, as they are not known",
                &[],
            ),
            memory_used: gauge(
                &registry,
                "annulus_memory_used_bytes",
                "Memory of the process that the system can't take back",
                &[],
            ),
            memory_limit: gauge(
                &registry,
                "annulus_memory_limit_bytes",
                "The use of memory at which new rows wait",
                &[],
            ),
            clock_lead: registered(
                &registry,
                GaugeVec::new(
                    Opts::new(
                        "annulus_clock_lead_seconds",
                        "The time by which the database is ahead of this machine's clock, which was set back",
                    ),
                    &[],
                ),
            ),
            scans: counter(
                &registry,
                "annulus_index_scans_total",
                "Scans of the table for the index",
                INDEX,
            ),
            scanned_rows: counter(
                &registry,
                "annulus_index_scanned_rows_total",
                "Rows read by scans of the table for the index",
                INDEX,
            ),
            snapshots: SnapshotFamilies::new(&registry),
            texts: TextFamilies::new(&registry),
            cdc_reader_up: gauge(
                &registry,
                "annulus_index_reader_up",
                "1 while the log is followed",
                READER,
            ),
            cdc_handler_errors: counter(
                &registry,
                "annulus_index_reader_errors_total",
                "Log rows that couldn't be understood",
                READER,
            ),
            cdc_reader_restarts: counter(
                &registry,
                "annulus_index_reader_restarts_total",
                "Starts of a log reader after its end",
                READER,
            ),
            cdc_last_processed: registered(
                &registry,
                GaugeVec::new(
                    Opts::new(
                        "annulus_index_reader_timestamp_seconds",
                        "The time up to which all streams of the log were read",
                    ),
                    READER,
                ),
            ),
            registry,
        }
    }

    /// The series of an index, created if need be.
    pub fn index(&self, name: &IndexName) -> IndexMetrics {
        let labels = [name.keyspace.as_str(), name.index.as_str()];
        let modified = |operation| {
            self.index_modified
                .with_label_values(&[labels[0], labels[1], operation])
        };
        let memory = |component| {
            self.index_memory
                .with_label_values(&[labels[0], labels[1], component])
        };
        let searches = SearchPlan::ALL.map(|plan| {
            self.searches
                .with_label_values(&[labels[0], labels[1], plan.name()])
        });
        let recall = SAMPLED_KS.map(|k| {
            let labels = [labels[0], labels[1], &k.to_string()];
            RecallMetrics {
                estimate: self.recall_estimate.with_label_values(&labels),
                width: self.walk_width.with_label_values(&labels),
            }
        });
        IndexMetrics {
            searches,
            counters: self.counters.clone(),
            request_latency: self.request_latency.with_label_values(&labels),
            short: self.searches_short.with_label_values(&labels),
            size: self.index_size.with_label_values(&labels),
            memory: MemoryMetrics {
                pinned: MEMORY_COMPONENTS.map(memory),
                mapped: self.index_mapped.with_label_values(&labels),
            },
            inserted: modified("insert"),
            updated: modified("update"),
            removed: modified("remove"),
            lag: self.indexing_lag.with_label_values(&labels),
            behind: self.behind.with_label_values(&labels),
            waiting: self.changes_waiting.with_label_values(&labels),
            tending: self.tending.with_label_values(&labels),
            dead: self.dead_entries.with_label_values(&labels),
            debt: self.maintenance_debt.with_label_values(&labels),
            recall,
            rejected: self.rows_rejected.with_label_values(&labels),
            without_room: self.rows_without_room.with_label_values(&labels),
            regressions: self.write_time_regressions.with_label_values(&labels),
            scans: self.scans.with_label_values(&labels),
            scanned_rows: self.scanned_rows.with_label_values(&labels),
            snapshots: self.snapshots.index(&labels),
            texts: self.texts.index(labels),
        }
    }

    /// The series of an index and a reader, created if need be.
    pub fn reader(&self, name: &IndexName, reader: &str) -> ReaderMetrics {
        let labels = [name.keyspace.as_str(), name.index.as_str(), reader];
        ReaderMetrics {
            up: self.cdc_reader_up.with_label_values(&labels),
            handler_errors: self.cdc_handler_errors.with_label_values(&labels),
            restarts: self.cdc_reader_restarts.with_label_values(&labels),
            last_processed: self.cdc_last_processed.with_label_values(&labels),
        }
    }

    /// Counts a search that was refused. The reason is `admission` if more came than are taken in
    /// at a time, `deadline` if the search could not have begun in time, or `behind` if the index
    /// lacked acknowledged writes until then, or `short` if the answer might have lacked rows.
    pub fn search_refused(&self, reason: &str) {
        self.searches_refused.with_label_values(&[reason]).inc();
        self.counters.count(CountedEvent::Refusal, 1);
    }

    /// Counts a key of a search that was left unread, as it is not known.
    pub fn unknown_key(&self) {
        self.unknown_keys.with_label_values(&[] as &[&str]).inc();
    }

    /// The counters that tests start.
    pub fn counters(&self) -> &Arc<EventCounters> {
        &self.counters
    }

    /// Sets the memory that the process takes, and the limit for it.
    pub fn set_memory(&self, used_bytes: u64, limit_bytes: u64) {
        for (family, bytes) in [
            (&self.memory_used, used_bytes),
            (&self.memory_limit, limit_bytes),
        ] {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            family.with_label_values::<&str>(&[]).set(bytes);
        }
    }

    /// Removes the series of an index. Values that are still set on old handles are lost.
    pub fn forget(&self, name: &IndexName, readers: &[String]) {
        let labels = [name.keyspace.as_str(), name.index.as_str()];
        // Removing a series that a family doesn't have is an error, and harmless.
        let _ = self.request_latency.remove_label_values(&labels);
        let _ = self.searches_short.remove_label_values(&labels);
        let _ = self.index_size.remove_label_values(&labels);
        let _ = self.index_mapped.remove_label_values(&labels);
        let _ = self.indexing_lag.remove_label_values(&labels);
        let _ = self.behind.remove_label_values(&labels);
        let _ = self.changes_waiting.remove_label_values(&labels);
        let _ = self.tending.remove_label_values(&labels);
        let _ = self.dead_entries.remove_label_values(&labels);
        let _ = self.maintenance_debt.remove_label_values(&labels);
        let _ = self.recall.remove_label_values(&labels);
        let _ = self.recall_measured.remove_label_values(&labels);
        let _ = self.rows_rejected.remove_label_values(&labels);
        let _ = self.rows_without_room.remove_label_values(&labels);
        let _ = self.write_time_regressions.remove_label_values(&labels);
        let _ = self.scans.remove_label_values(&labels);
        let _ = self.scanned_rows.remove_label_values(&labels);
        self.snapshots.forget(&labels);
        self.texts.forget(&labels);
        for component in MEMORY_COMPONENTS {
            let labels = [labels[0], labels[1], component];
            let _ = self.index_memory.remove_label_values(&labels);
        }
        for k in SAMPLED_KS {
            let labels = [labels[0], labels[1], &k.to_string()];
            let _ = self.recall_estimate.remove_label_values(&labels);
            let _ = self.walk_width.remove_label_values(&labels);
        }
        for operation in ["insert", "update", "remove"] {
            let labels = [labels[0], labels[1], operation];
            let _ = self.index_modified.remove_label_values(&labels);
        }
        for plan in SearchPlan::ALL {
            let labels = [labels[0], labels[1], plan.name()];
            let _ = self.searches.remove_label_values(&labels);
        }
        for reader in readers {
            let labels = [labels[0], labels[1], reader.as_str()];
            let _ = self.cdc_reader_up.remove_label_values(&labels);
            let _ = self.cdc_handler_errors.remove_label_values(&labels);
            let _ = self.cdc_reader_restarts.remove_label_values(&labels);
            let _ = self.cdc_last_processed.remove_label_values(&labels);
        }
    }

    /// Sets the time by which the database's clock is ahead of the machine's clock.
    pub fn set_clock_lead(&self, lead: Duration) {
        let series = self.clock_lead.with_label_values::<&str>(&[]);
        series.set(lead.as_secs_f64());
    }

    /// Shows the turns on the processor and the tasks, too, and the searches of the process. Only
    /// the first call counts.
    pub fn show_counts(&self, turns: &CpuScheduler, tasks: &TaskRegistry) {
        shown_counts::show_turns(&self.registry, turns);
        shown_counts::show_tasks(&self.registry, tasks);
        for families in SearchCounts::of_process().families() {
            if let Err(error) = self.registry.register(families) {
                tracing::debug!(%error, "the counts of searches are not shown");
            }
        }
    }

    /// Sets the recall of an index that was measured at this time, in seconds since the epoch.
    pub fn set_recall(&self, name: &IndexName, recall: f64, now_s: u32) {
        let labels = [name.keyspace.as_str(), name.index.as_str()];
        self.recall.with_label_values(&labels).set(recall);
        let measured = self.recall_measured.with_label_values(&labels);
        measured.set(i64::from(now_s));
    }

    /// The bytes that all indexes have to hold in memory.
    pub fn index_bytes(&self) -> u64 {
        let families = self.index_memory.collect();
        let series = families.iter().flat_map(|family| family.get_metric());
        let bytes: f64 = series.map(|series| series.get_gauge().get_value()).sum();
        bytes as u64
    }

    /// The registry of all families, to which other parts of the program add theirs.
    pub fn registry(&self) -> &MetricsRegistry {
        &self.registry
    }
}

/// A registry with all families of the service, and without indexes: for pages of a manual.
pub fn described() -> MetricsRegistry {
    let metrics = ServiceMetrics::new();
    metrics.show_counts(&CpuScheduler::of_threads(1), &TaskRegistry::default());
    metrics.registry
}

fn histogram(registry: &MetricsRegistry, name: &str, help: &str, buckets: &[f64]) -> HistogramVec {
    let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
    registered(registry, HistogramVec::new(options, INDEX))
}

fn gauge(registry: &MetricsRegistry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    registered(registry, IntGaugeVec::new(Opts::new(name, help), labels))
}

/// A family of counters that has these values of its label from the start, so that an alert sees
/// the first rise.
fn from_the_start(family: IntCounterVec, values: &[&str]) -> IntCounterVec {
    for value in values {
        family.with_label_values(&[*value]);
    }
    family
}

fn counter(registry: &MetricsRegistry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels))
}

/// Registers a family. Its name, labels and buckets are constants of this crate, so a test shows
/// that they are valid.
fn registered<F>(registry: &MetricsRegistry, family: prometheus::Result<F>) -> F
where
    F: prometheus::core::Collector + Clone + 'static,
{
    let family = family.expect("a metric family of constants");
    registry
        .register(Box::new(family.clone()))
        .expect("a metric family registered once");
    family
}

#[cfg(test)]
mod tests;
