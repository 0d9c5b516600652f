//! The counts of searches in this process: by CQL, and by the HTTP API.
//!
//! Counting a search is a few additions to atomics: it takes no lock and no memory.

use std::sync::LazyLock;
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Result as FamilyResult,
};

/// Buckets from 0.1 ms to 10 s.
const LATENCY_BUCKETS_S: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

const KIND: &[&str] = &["kind"];

/// The kinds of searches, by what they rank rows by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedSearch {
    /// By one vector.
    Vector,
    /// By one query of words.
    Text,
    /// By several searches.
    Hybrid,
}

impl CountedSearch {
    /// Every kind.
    pub const ALL: [CountedSearch; 3] = [
        CountedSearch::Vector,
        CountedSearch::Text,
        CountedSearch::Hybrid,
    ];

    /// The name, as metrics show it.
    pub fn name(self) -> &'static str {
        match self {
            CountedSearch::Vector => "vector",
            CountedSearch::Text => "text",
            CountedSearch::Hybrid => "hybrid",
        }
    }
}

/// The counts of searches.
#[derive(Debug)]
pub struct SearchCounts {
    families: SearchFamilies,
    requests: [IntCounter; CountedSearch::ALL.len()],
    errors: [IntCounter; CountedSearch::ALL.len()],
    short: [IntCounter; CountedSearch::ALL.len()],
    refilled: [IntCounter; CountedSearch::ALL.len()],
    durations: [Histogram; CountedSearch::ALL.len()],
}

#[derive(Debug)]
struct SearchFamilies {
    counters: [IntCounterVec; 4],
    durations: HistogramVec,
}

static OF_PROCESS: LazyLock<SearchCounts> =
    LazyLock::new(|| SearchCounts::new().expect("families with names of constants"));

impl SearchCounts {
    /// The counts of all searches of the process.
    pub fn of_process() -> &'static SearchCounts {
        &OF_PROCESS
    }

    fn new() -> FamilyResult<SearchCounts> {
        let counter = |name, help| IntCounterVec::new(Opts::new(name, help), KIND);
        let requests = counter(
            "annulus_search_requests_total",
            "Searches by CQL and by the HTTP API, those included that failed",
        )?;
        let errors = counter(
            "annulus_search_errors_total",
            "Searches that were answered with an error",
        )?;
        let short = counter(
            "annulus_search_short_total",
            "Searches whose answer may lack rows: an index had no room for some, or named too few that match",
        )?;
        let refilled = counter(
            "annulus_search_refilled_total",
            "Searches that requested more neighbours, as rows named before were deleted or did not match",
        )?;
        let durations = HistogramOpts::new("annulus_search_duration_seconds", "Time of searches");
        let durations = durations.buckets(LATENCY_BUCKETS_S.to_vec());
        let durations = HistogramVec::new(durations, KIND)?;
        let of_kinds = |family: &IntCounterVec| {
            CountedSearch::ALL.map(|kind| family.with_label_values(&[kind.name()]))
        };
        Ok(SearchCounts {
            requests: of_kinds(&requests),
            errors: of_kinds(&errors),
            short: of_kinds(&short),
            refilled: of_kinds(&refilled),
            durations: CountedSearch::ALL.map(|kind| durations.with_label_values(&[kind.name()])),
            families: SearchFamilies {
                counters: [requests, errors, short, refilled],
                durations,
            },
        })
    }

    /// Counts a search that was answered, or failed, after this time.
    pub fn answered(&self, kind: CountedSearch, took: Duration, is_error: bool) {
        self.requests[kind as usize].inc();
        self.durations[kind as usize].observe(took.as_secs_f64());
        if is_error {
            self.errors[kind as usize].inc();
        }
    }

    /// Counts a search whose answer may lack rows.
    pub fn was_short(&self, kind: CountedSearch) {
        self.short[kind as usize].inc();
    }

    /// Counts a search that requests more neighbours, once for each search.
    pub fn was_refilled(&self, kind: CountedSearch) {
        self.refilled[kind as usize].inc();
    }

    /// The families of metrics, for a registry.
    pub fn families(&self) -> Vec<Box<dyn Collector>> {
        let counters = self.families.counters.iter();
        let counters = counters.map(|family| Box::new(family.clone()) as Box<dyn Collector>);
        let mut families: Vec<Box<dyn Collector>> = counters.collect();
        families.push(Box::new(self.families.durations.clone()));
        families
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_are_counted_by_their_kind() {
        let counts = SearchCounts::new().unwrap();
        counts.answered(CountedSearch::Vector, Duration::from_millis(3), false);
        counts.answered(CountedSearch::Hybrid, Duration::from_millis(3), true);
        counts.was_short(CountedSearch::Text);
        counts.was_refilled(CountedSearch::Vector);
        let of = |counters: &[IntCounter; 3]| [0, 1, 2].map(|at| counters[at].get());
        assert_eq!(of(&counts.requests), [1, 0, 1]);
        assert_eq!(of(&counts.errors), [0, 0, 1]);
        assert_eq!(of(&counts.short), [0, 1, 0]);
        assert_eq!(of(&counts.refilled), [1, 0, 0]);
        assert_eq!(counts.durations[0].get_sample_count(), 1);
        assert_eq!(counts.families().len(), 5);
    }
}
