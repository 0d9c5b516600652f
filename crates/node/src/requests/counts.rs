//! The counts of statements: how many, how long they took, and the errors, by kind.
//!
//! Counting a statement is a few additions to atomics: it takes no lock and no memory.

use std::time::Duration;

use cql::ast::{OrderByItem, Statement};
use cql::error::ErrorKind;
use cql::wire::Request;
use prometheus::core::Collector;
use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts};

use crate::server::ShedReason;

/// Buckets from 0.1 ms to 10 s.
const LATENCY_BUCKETS_S: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// The kinds of statements by which they are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CountedKind {
    Select,
    Insert,
    Update,
    Delete,
    Batch,
    /// CREATE, ALTER, DROP and TRUNCATE.
    Schema,
    /// A SELECT that is ordered by a search.
    Search,
    Other,
}

impl CountedKind {
    const ALL: [CountedKind; 8] = [
        CountedKind::Select,
        CountedKind::Insert,
        CountedKind::Update,
        CountedKind::Delete,
        CountedKind::Batch,
        CountedKind::Schema,
        CountedKind::Search,
        CountedKind::Other,
    ];

    /// The kind of a request, if its statements make no difference.
    pub fn of_request(request: &Request) -> Option<CountedKind> {
        match request {
            Request::Batch(_) => Some(CountedKind::Batch),
            Request::Prepare { .. } => Some(CountedKind::Other),
            _ => None,
        }
    }

    /// The kind of a statement.
    pub fn of(statement: &Statement) -> CountedKind {
        match statement {
            Statement::Select(select) => {
                let mut orders = select.order_by.iter();
                match orders.all(|order| matches!(order, OrderByItem::Column { .. })) {
                    true => CountedKind::Select,
                    false => CountedKind::Search,
                }
            }
            Statement::Insert(_) => CountedKind::Insert,
            Statement::Update(_) => CountedKind::Update,
            Statement::Delete(_) => CountedKind::Delete,
            Statement::Batch(_) => CountedKind::Batch,
            Statement::Use { .. }
            | Statement::Describe(_)
            | Statement::Role(_)
            | Statement::Unsupported(_) => CountedKind::Other,
            _ => CountedKind::Schema,
        }
    }

    fn name(self) -> &'static str {
        match self {
            CountedKind::Select => "select",
            CountedKind::Insert => "insert",
            CountedKind::Update => "update",
            CountedKind::Delete => "delete",
            CountedKind::Batch => "batch",
            CountedKind::Schema => "schema",
            CountedKind::Search => "search",
            CountedKind::Other => "other",
        }
    }
}

/// The labels for errors.
const ERRORS: [&str; 8] = [
    "invalid",
    "unauthorized",
    "unavailable",
    "timeout",
    "overloaded",
    "failure",
    "server",
    "other",
];

/// The position in [`ERRORS`] of overload.
const OVERLOADED: usize = 4;

/// The position in [`ERRORS`] of a kind of error.
fn error_class(kind: &ErrorKind) -> usize {
    match kind {
        ErrorKind::SyntaxError
        | ErrorKind::Invalid
        | ErrorKind::ConfigError
        | ErrorKind::AlreadyExists { .. }
        | ErrorKind::FunctionFailure { .. } => 0,
        ErrorKind::Unauthorized | ErrorKind::BadCredentials => 1,
        ErrorKind::Unavailable { .. } | ErrorKind::IsBootstrapping => 2,
        ErrorKind::WriteTimeout { .. }
        | ErrorKind::ReadTimeout { .. }
        | ErrorKind::CasWriteUnknown { .. } => 3,
        ErrorKind::Overloaded => OVERLOADED,
        ErrorKind::ReadFailure { .. }
        | ErrorKind::WriteFailure { .. }
        | ErrorKind::TruncateError => 5,
        ErrorKind::ServerError => 6,
        ErrorKind::ProtocolError | ErrorKind::Unprepared { .. } => 7,
    }
}

/// The counts of the statements of a node, those that came by HTTP included.
#[derive(Debug)]
pub(crate) struct CqlRequestCounts {
    requests: [IntCounter; CountedKind::ALL.len()],
    errors: [[IntCounter; ERRORS.len()]; CountedKind::ALL.len()],
    durations: [Histogram; CountedKind::ALL.len()],
    shed_requests: IntCounter,
    shed_memory: IntCounter,
    counters: [IntCounterVec; 3],
    histogram: HistogramVec,
}

impl Default for CqlRequestCounts {
    fn default() -> CqlRequestCounts {
        CqlRequestCounts::new().expect("families with names of constants")
    }
}

impl CqlRequestCounts {
    fn new() -> prometheus::Result<CqlRequestCounts> {
        let counter = |name: &str, help: &str, labels: &[&str]| {
            IntCounterVec::new(Opts::new(name, help), labels)
        };
        let requests = counter(
            "annulus_cql_requests_total",
            "Statements answered or refused, by kind; refused before they are read is other",
            &["kind"],
        )?;
        let errors = counter(
            "annulus_cql_errors_total",
            "Statements answered with an error, by kind and by the class of the error",
            &["kind", "error"],
        )?;
        let shed = counter(
            "annulus_cql_shed_total",
            "Statements refused as overloaded: too many requests, or no memory for them",
            &["reason"],
        )?;
        let histogram = HistogramOpts::new(
            "annulus_cql_request_duration_seconds",
            "Time from a statement until its answer is made, by kind",
        );
        let histogram = histogram.buckets(LATENCY_BUCKETS_S.to_vec());
        let histogram = HistogramVec::new(histogram, &["kind"])?;
        let kinds = CountedKind::ALL;
        Ok(CqlRequestCounts {
            requests: kinds.map(|kind| requests.with_label_values(&[kind.name()])),
            errors: kinds
                .map(|kind| ERRORS.map(|error| errors.with_label_values(&[kind.name(), error]))),
            durations: kinds.map(|kind| histogram.with_label_values(&[kind.name()])),
            shed_requests: shed.with_label_values(&["requests"]),
            shed_memory: shed.with_label_values(&["memory"]),
            counters: [requests, errors, shed],
            histogram,
        })
    }

    /// Counts a statement that was answered after this time, with an error or without one.
    pub(super) fn answered(&self, kind: CountedKind, took: Duration, error: Option<&ErrorKind>) {
        let at = kind as usize;
        self.requests[at].inc();
        self.durations[at].observe(took.as_secs_f64());
        if let Some(error) = error {
            self.errors[at][error_class(error)].inc();
        }
    }

    /// Counts a statement that was refused as overloaded.
    pub(super) fn shed(&self, reason: ShedReason) {
        let other = CountedKind::Other as usize;
        match reason {
            ShedReason::Requests => self.shed_requests.inc(),
            ShedReason::Memory | ShedReason::AnswerMemory => self.shed_memory.inc(),
        }
        // The statement itself was counted if only its answer found no memory.
        if reason != ShedReason::AnswerMemory {
            self.requests[other].inc();
            self.errors[other][OVERLOADED].inc();
        }
    }

    /// The families of metrics, for a registry.
    pub(crate) fn families(&self) -> Vec<Box<dyn Collector>> {
        let counters = self.counters.iter();
        let counters = counters.map(|family| Box::new(family.clone()) as Box<dyn Collector>);
        let mut families: Vec<Box<dyn Collector>> = counters.collect();
        families.push(Box::new(self.histogram.clone()));
        families
    }
}

/// The families of metrics of statements, of which none was answered: for pages of a manual.
pub fn statement_families() -> Vec<Box<dyn Collector>> {
    CqlRequestCounts::default().families()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> CountedKind {
        CountedKind::of(&cql::parser::parse_statement(text).unwrap().statement)
    }

    #[test]
    fn statements_have_a_kind() {
        for (text, expected) in [
            ("SELECT * FROM ks.t ORDER BY c DESC", CountedKind::Select),
            (
                "SELECT * FROM ks.t ORDER BY v ANN OF [1, 2] LIMIT 3",
                CountedKind::Search,
            ),
            (
                "SELECT * FROM ks.t ORDER BY BM25(c, 'x') LIMIT 3",
                CountedKind::Search,
            ),
            ("INSERT INTO ks.t (k) VALUES (1)", CountedKind::Insert),
            ("UPDATE ks.t SET v = 1 WHERE k = 1", CountedKind::Update),
            ("DELETE FROM ks.t WHERE k = 1", CountedKind::Delete),
            ("TRUNCATE ks.t", CountedKind::Schema),
            ("DROP TABLE ks.t", CountedKind::Schema),
            ("USE ks", CountedKind::Other),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    #[test]
    fn counts_move_by_what_was_answered() {
        let counts = CqlRequestCounts::default();
        counts.answered(CountedKind::Select, Duration::from_millis(2), None);
        let invalid = Some(&ErrorKind::Invalid);
        counts.answered(CountedKind::Select, Duration::from_millis(2), invalid);
        counts.shed(ShedReason::Requests);
        counts.shed(ShedReason::AnswerMemory);
        let other = CountedKind::Other as usize;
        assert_eq!(counts.requests[CountedKind::Select as usize].get(), 2);
        assert_eq!(counts.errors[CountedKind::Select as usize][0].get(), 1);
        assert_eq!(counts.durations[0].get_sample_count(), 2);
        assert_eq!(counts.requests[other].get(), 1);
        assert_eq!(counts.errors[other][OVERLOADED].get(), 1);
        assert_eq!(counts.shed_requests.get(), 1);
        assert_eq!(counts.shed_memory.get(), 1);
        assert_eq!(counts.families().len(), 4);
    }
}
