//! The simulation can fail: mechanisms that are broken on purpose are found.

use crate::{Broken, run};

/// Number of seeds within which a broken mechanism shows.
const SEEDS: u64 = 200;

/// The message of the first seed that fails.
fn found(broken: Broken) -> String {
    let failures = (1..=SEEDS).filter_map(|seed| run(seed, broken).failure);
    let mut failures = failures.take(1);
    failures
        .next()
        .unwrap_or_else(|| panic!("{broken:?} is not found in {SEEDS} seeds"))
}

#[test]
fn a_disk_that_returns_wrong_data_is_found() {
    let failure = found(Broken::DiskLies);
    let is_of_rows = failure.contains("table") || failure.contains("schema");
    assert!(is_of_rows, "{failure}");
}

#[test]
fn time_that_is_forgotten_is_found() {
    found(Broken::TimeIsForgotten);
}

#[test]
fn a_log_that_is_not_read_is_found() {
    let failure = found(Broken::LogIsNotRead);
    assert!(failure.contains("index"), "{failure}");
}

#[test]
fn values_that_are_not_read_again_are_found() {
    let failure = found(Broken::ValuesAreNotReadAgain);
    assert!(failure.contains("a wrong answer"), "{failure}");
}

#[test]
fn rows_that_are_not_read_again_are_found() {
    let failure = found(Broken::RowsAreNotReadAgain);
    let is_of_searches = failure.contains("index") || failure.contains("a wrong answer");
    assert!(is_of_searches, "{failure}");
}
