//! The metrics of `annulus serve`, which the registry of its index service has.

use std::sync::Arc;

use client_memory::MemoryBudget;
use http_server::{HttpTraffic, MetricsRegistry, OlderName, ReadCounts};
use node::guardrails::Guardrails;
use node::{CounterValues, LiveCounters, Node};
use prometheus::core::Collector;
use slow_statements::SlowQueries;
use storage::Storage;
use store::StoreHandle;
use store_api::types::NodeStatus;

use super::{
    CqlConnections, ProcessMode, StorageReadings, show_connections, show_disks, show_memory,
    show_process, show_storage,
};
use crate::logging;
use crate::settings::ResolvedSettings;

/// The names of families in earlier versions, which end with the next one.
const OLDER_NAMES: [(&str, &str); 4] = [
    (
        "cql_connections_given_way_total",
        "annulus_cql_connections_given_way_total",
    ),
    (
        "guardrail_violations_total",
        "annulus_cql_guardrail_violations_total",
    ),
    ("rows_expired_total", "annulus_storage_expired_rows_total"),
    ("write_buffer_bytes", "annulus_storage_write_buffer_bytes"),
];

/// Shows what listeners of CQL have taken in, sent and refused among the metrics.
pub fn show_listeners(
    metrics: &MetricsRegistry,
    total: Arc<dyn Fn() -> CounterValues + Send + Sync>,
) {
    let read = |value: fn(&CounterValues) -> u64| -> ReadCounts {
        let total = total.clone();
        Arc::new(move || vec![(Vec::new(), value(&total()))])
    };
    metrics.show_counter(
        "annulus_cql_connections_given_way_total",
        "Connections of CQL clients that had not begun, and gave way to others",
        &[],
        read(|values| values.connections_given_way),
    );
    metrics.show_counter(
        "annulus_cql_received_bytes_total",
        "Bytes received from CQL clients",
        &[],
        read(|values| values.bytes_read),
    );
    metrics.show_counter(
        "annulus_cql_sent_bytes_total",
        "Bytes sent to CQL clients",
        &[],
        read(|values| values.bytes_written),
    );
    metrics.show_counter(
        "annulus_cql_panics_total",
        "Statements that failed by a bug",
        &[],
        read(|values| values.panics),
    );
    let connections = move || {
        let values = total();
        CqlConnections {
            open: values.connections_open,
            opened: values.connections_accepted,
            full: values.connections_refused,
            gave_way: values.connections_given_way,
        }
    };
    show_connections(metrics, Some(Arc::new(connections)));
}

/// The sums of the counters of all listeners.
fn sum_of(counters: &LiveCounters) -> CounterValues {
    let mut sum = CounterValues::default();
    for (_, values) in counters.values() {
        sum.connections_open += values.connections_open;
        sum.connections_accepted += values.connections_accepted;
        sum.connections_refused += values.connections_refused;
        sum.connections_given_way += values.connections_given_way;
        sum.panics += values.panics;
        sum.bytes_read += values.bytes_read;
        sum.bytes_written += values.bytes_written;
    }
    sum
}

/// Shows the storage, the node and the process among the metrics of the index service.
pub fn show_serve(
    settings: &ResolvedSettings,
    store: &StoreHandle,
    node: &Node,
    (storage, clients): (&Storage, MemoryBudget),
) {
    let metrics = store.metrics();
    metrics.show_older_names(&older_names());
    let readings = StorageReadings::of(storage);
    show_storage(metrics, &readings);
    let of_node = node.statement_families().into_iter();
    let of_storage = storage.sync_durations().into_iter();
    let of_storage = of_storage.map(|family| Box::new(family) as Box<dyn Collector>);
    for families in of_node.chain(of_storage) {
        if let Err(error) = metrics.register(families) {
            tracing::debug!(%error, "a family of metrics is not shown");
        }
    }
    let mut owners = readings.memory();
    owners.push(("cql_clients", Arc::new(move || clients.used() as u64)));
    owners.push(("indexes", Arc::new(store.index_bytes())));
    show_memory(metrics, owners);
    let directories = [
        ("data", settings.data_dir.clone()),
        ("index", settings.index_dir.clone()),
    ];
    show_disks(metrics, directories.to_vec());
    show_guardrails(metrics, Arc::clone(&settings.guardrails));
    show_logs(metrics, Arc::clone(node.database().system.slow_queries()));
    let counters = node.live_counters();
    show_listeners(metrics, Arc::new(move || sum_of(&counters)));
    HttpTraffic::of_process().show(metrics);
    let status = store.status();
    show_process(metrics, ProcessMode::Serve, move || {
        *status.borrow() == NodeStatus::Serving
    });
}

/// Shows what the log is about among the metrics: slow statements, and lines that were dropped.
pub fn show_logs(metrics: &MetricsRegistry, slow_queries: Arc<SlowQueries>) {
    logging::show_dropped(metrics);
    metrics.show_counter(
        "annulus_slow_queries_total",
        "Statements, and searches of an index service, slower than --slow-query-threshold",
        &[],
        Arc::new(move || vec![(Vec::new(), slow_queries.count())]),
    );
}

/// The names of families in earlier versions.
pub fn older_names() -> [OlderName; OLDER_NAMES.len()] {
    OLDER_NAMES.map(|(older, now)| OlderName {
        older,
        now,
        stays: false,
    })
}

/// Shows the violations of guardrails among the metrics.
pub fn show_guardrails(metrics: &MetricsRegistry, guardrails: Arc<Guardrails>) {
    let large = Arc::clone(&guardrails);
    let read_large = move || {
        let counts = large.large_data_counts().into_iter();
        counts
            .map(|(kind, count)| (vec![kind.name()], count))
            .collect()
    };
    metrics.show_counter(
        "annulus_large_data_total",
        "Large partitions, rows, cells and collections that were seen",
        &["kind"],
        Arc::new(read_large),
    );
    let read = move || {
        let counts = guardrails.counts().into_iter();
        let counts = counts.flat_map(|(guardrail, warned, refused)| {
            let name = guardrail.name();
            [
                (vec![name, "warned"], warned),
                (vec![name, "refused"], refused),
            ]
        });
        counts.collect()
    };
    metrics.show_counter(
        "annulus_cql_guardrail_violations_total",
        "Violations of guardrails, by what came of them",
        &["guardrail", "outcome"],
        Arc::new(read),
    );
}
