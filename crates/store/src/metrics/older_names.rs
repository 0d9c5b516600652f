//! The names that families had before the naming scheme, and those of the contract, which stay.

use http_server::OlderName;

/// The names of the contract (section 1.9).
const OF_CONTRACT: [(&str, &str); 10] = [
    (
        "request_latency_seconds",
        "annulus_index_request_duration_seconds",
    ),
    ("index_size", "annulus_index_rows"),
    ("index_modified", "annulus_index_changes_total"),
    ("indexing_lag_seconds", "annulus_index_change_lag_seconds"),
    ("cdc_reader_up", "annulus_index_reader_up"),
    (
        "cdc_handler_errors_total",
        "annulus_index_reader_errors_total",
    ),
    (
        "cdc_reader_restarts_total",
        "annulus_index_reader_restarts_total",
    ),
    (
        "cdc_last_processed_timestamp_seconds",
        "annulus_index_reader_timestamp_seconds",
    ),
    ("fts_index_size_bytes", "annulus_text_size_bytes"),
    ("fts_segment_count", "annulus_text_segments"),
];

/// The names of earlier versions, which end with the next one.
const OF_EARLIER: [(&str, &str); 30] = [
    ("index_behind_seconds", "annulus_index_lag_seconds"),
    ("index_memory_bytes", "annulus_index_memory_bytes"),
    ("index_mapped_bytes", "annulus_index_mapped_bytes"),
    ("index_changes_waiting", "annulus_index_waiting_changes"),
    ("index_tending", "annulus_index_tending"),
    ("index_dead_entries", "annulus_index_dead_entries"),
    ("index_maintenance_debt", "annulus_index_debt_entries"),
    (
        "index_recall_estimate",
        "annulus_index_recall_estimate_ratio",
    ),
    ("index_walk_width", "annulus_index_walk_width_ratio"),
    (
        "index_rows_rejected_total",
        "annulus_index_rejected_rows_total",
    ),
    ("index_rows_without_room", "annulus_index_unplaced_rows"),
    (
        "index_write_time_regressions_total",
        "annulus_index_regressions_total",
    ),
    ("searches_refused_total", "annulus_search_shed_total"),
    ("searches_short_total", "annulus_index_short_answers_total"),
    ("searches_total", "annulus_index_searches_total"),
    (
        "request_keys_unknown_total",
        "annulus_http_unknown_keys_total",
    ),
    ("memory_used_bytes", "annulus_memory_used_bytes"),
    ("memory_limit_bytes", "annulus_memory_limit_bytes"),
    ("clock_lead_seconds", "annulus_clock_lead_seconds"),
    ("index_scans_total", "annulus_index_scans_total"),
    (
        "index_scanned_rows_total",
        "annulus_index_scanned_rows_total",
    ),
    (
        "index_snapshot_timestamp_seconds",
        "annulus_index_snapshot_timestamp_seconds",
    ),
    (
        "index_snapshot_position_seconds",
        "annulus_index_snapshot_position_timestamp_seconds",
    ),
    ("index_snapshot_failing", "annulus_index_snapshot_failing"),
    (
        "index_snapshot_failures_total",
        "annulus_index_snapshot_failures_total",
    ),
    (
        "index_vectors_unverified_bytes",
        "annulus_index_unverified_bytes",
    ),
    ("turns_running", "annulus_scheduler_running_turns"),
    ("turns_waiting", "annulus_scheduler_waiting_turns"),
    ("turns_given_total", "annulus_scheduler_given_turns_total"),
    (
        "turns_held_seconds_total",
        "annulus_scheduler_held_seconds_total",
    ),
];

/// All other names of families, each with the name that the family has now.
pub(super) fn all() -> Vec<OlderName> {
    let of_contract = OF_CONTRACT.iter().map(|pair| (pair, true));
    let of_earlier = OF_EARLIER.iter().map(|pair| (pair, false));
    let all = of_contract.chain(of_earlier);
    all.map(|(&(older, now), stays)| OlderName { older, now, stays })
        .collect()
}
