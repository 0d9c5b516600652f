//! The log of slow statements: lines of the log, and the newest of them for
//! `system_views.slow_queries`. A node and a gateway have one each. An index service has one for
//! its searches, which it describes itself.
//!
//! A statement is slow if its answer takes longer than a threshold. Literals are replaced in its
//! text, so that no value can be read here. At most some statements a second are logged; the others
//! are counted.

#![warn(clippy::unwrap_used)]

use std::borrow::Cow;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clock::{Clock, SystemClock};
use cql::parser::without_literals;
use parking_lot::Mutex;
use traces::RequestId;
use uuid::Uuid;

/// The most statements that a log remembers by default. With the bounds of their texts they take
/// some MiB.
const REMEMBERED: usize = 1_000;

/// The most bytes of a statement's text.
const TEXT_BYTES_MAX: usize = 2 << 10;

/// The most bytes of a plan.
const PLAN_BYTES_MAX: usize = 1 << 10;

/// The sign in a plan for the rest of a long term.
const CUT: &str = "...";

/// The most tables of a batch that its text names.
const BATCH_TABLES_MAX: usize = 8;

/// The options of the log of slow statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowQueryOptions {
    /// The time beyond which a statement is slow; `None` for no log.
    pub threshold: Option<Duration>,
    /// The most statements that are logged in a second.
    pub a_second: u32,
    /// The most of those that are remembered; 0 where no table shows them.
    pub remembered: usize,
}

impl Default for SlowQueryOptions {
    fn default() -> SlowQueryOptions {
        SlowQueryOptions {
            threshold: Some(Duration::from_millis(500)),
            a_second: 10,
            remembered: REMEMBERED,
        }
    }
}

/// The slow statements of a server.
#[derive(Debug, Default)]
pub struct SlowQueries {
    options: SlowQueryOptions,
    count: AtomicU64,
    recent: Mutex<RecentQueries>,
}

#[derive(Debug, Default)]
struct RecentQueries {
    /// The oldest comes first.
    entries: VecDeque<Arc<SlowQuery>>,
    /// The present second, since the epoch, and the slow statements in it.
    second: (i64, u32),
}

/// A statement that was carried out, as its request knows it.
#[derive(Debug)]
pub struct ExecutedStatement<'a> {
    /// The id by which a table shows it.
    pub id: Uuid,
    /// The address of the client.
    pub client: SocketAddr,
    /// The role that the client has logged in as, if the server knows it.
    pub role: Option<&'a str>,
    /// The keyspace of names without one.
    pub keyspace: Option<Cow<'a, str>>,
    /// The text, or its beginning.
    pub text: Cow<'a, str>,
    /// The plan of a search.
    pub plan: Option<String>,
}

/// A slow statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowQuery {
    /// The id by which a table shows it.
    pub id: Uuid,
    /// The beginning of the statement. Microseconds since the epoch.
    pub started_at_micros: i64,
    /// The time until the answer. Microseconds.
    pub duration_micros: i64,
    /// The address of the client.
    pub client: SocketAddr,
    /// The role that the client has logged in as.
    pub role: Option<String>,
    /// The keyspace of names without one.
    pub keyspace: Option<String>,
    /// The text without its literals.
    pub statement: String,
    /// The plan of a search, without literals.
    pub plan: Option<String>,
    /// The id of the request over HTTP.
    pub request_id: Option<String>,
}

impl SlowQueries {
    /// A log with these options.
    #[must_use]
    pub fn new(options: SlowQueryOptions) -> SlowQueries {
        SlowQueries {
            options,
            ..SlowQueries::default()
        }
    }

    /// The number of slow statements so far, also of those that are not logged.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// A log for which nothing is slow.
    #[must_use]
    pub fn never() -> SlowQueries {
        SlowQueries::new(SlowQueryOptions {
            threshold: None,
            ..SlowQueryOptions::default()
        })
    }

    /// The remembered statements, the oldest first.
    #[must_use]
    pub fn entries(&self) -> Vec<Arc<SlowQuery>> {
        self.recent.lock().entries.iter().cloned().collect()
    }

    /// The beginning of a statement; `None` if there is no log.
    #[must_use]
    pub fn begin(&self) -> Option<Instant> {
        self.options.threshold.map(|_| Instant::now())
    }

    /// Notes that a statement is done that began then. Only a slow one is described.
    pub fn end<'a>(
        &self,
        began: Option<Instant>,
        describe: impl FnOnce() -> ExecutedStatement<'a>,
    ) {
        if let Some(began) = began {
            self.took(began.elapsed(), describe);
        }
    }

    /// Whether a statement that took so long is slow.
    #[must_use]
    pub fn is_slow(&self, took: Duration) -> bool {
        let threshold = self.options.threshold;
        threshold.is_some_and(|threshold| took >= threshold)
    }

    /// Counts a statement that took so long, if it is slow. Whether it is to be logged.
    #[must_use]
    pub fn is_logged(&self, took: Duration) -> bool {
        self.is_slow(took) && self.is_counted_and_sampled(SystemClock.now_micros())
    }

    /// Notes that a statement took so long. Only a slow one is described.
    pub fn took<'a>(&self, took: Duration, describe: impl FnOnce() -> ExecutedStatement<'a>) {
        if self.is_slow(took) {
            self.note(took, SystemClock.now_micros(), describe);
        }
    }

    fn note<'a>(
        &self,
        took: Duration,
        now_micros: i64,
        describe: impl FnOnce() -> ExecutedStatement<'a>,
    ) {
        if !self.is_counted_and_sampled(now_micros) {
            return;
        }
        let executed = describe();
        let duration_micros = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
        let of_request = RequestId::current();
        let slow = Arc::new(SlowQuery {
            id: executed.id,
            started_at_micros: now_micros.saturating_sub(duration_micros),
            duration_micros,
            client: executed.client,
            role: executed.role.map(str::to_owned),
            keyspace: executed.keyspace.map(Cow::into_owned),
            statement: without_literals(&executed.text, TEXT_BYTES_MAX),
            plan: executed.plan.map(|plan| of_plan(&plan)),
            request_id: of_request.map(|id| id.to_string()),
        });
        log(&slow);
        let mut recent = self.recent.lock();
        recent.entries.push_back(slow);
        if recent.entries.len() > self.options.remembered {
            recent.entries.pop_front();
        }
    }

    /// Counts a slow statement. Whether it is logged, as few were in its second.
    fn is_counted_and_sampled(&self, now_micros: i64) -> bool {
        self.count.fetch_add(1, Ordering::Relaxed);
        let second = now_micros / 1_000_000;
        let mut recent = self.recent.lock();
        let (present, taken) = &mut recent.second;
        if *present != second {
            (*present, *taken) = (second, 0);
        }
        *taken += 1;
        *taken <= self.options.a_second
    }
}

/// The part of a statement's text that the log shows.
#[must_use]
pub fn beginning(text: &str) -> &str {
    match text.floor_char_boundary(TEXT_BYTES_MAX) {
        end if end < text.len() => whole_terms(&text[..end]),
        _ => text,
    }
}

/// The beginning of a text that is cut, without its last term: a part of a UUID is not recognised
/// as a literal.
fn whole_terms(cut: &str) -> &str {
    let is_between = |sign: char| sign.is_whitespace() || ",()[]{}<>=".contains(sign);
    let mut signs = cut.char_indices().rev();
    let end = signs.find(|(_, sign)| is_between(*sign));
    end.map_or("", |(at, sign)| &cut[..at + sign.len_utf8()])
}

/// The text by which the log shows a batch: the tables that it writes to, each by its keyspace and
/// its name.
#[must_use]
pub fn batch_text<'a>(tables: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut names: Vec<String> = Vec::new();
    for (keyspace, table) in tables {
        let name = format!("{keyspace}.{table}");
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() == BATCH_TABLES_MAX {
            break;
        }
    }
    format!("BEGIN BATCH ON {}", names.join(", "))
}

/// A plan on one line, without literals. It ends where the first text of a literal begins: plans
/// show texts without doubled quotes and cut long ones, so that their ends can't be recognised. A
/// line in which a long term is cut ends before that term.
fn of_plan(plan: &str) -> String {
    let text_at = [plan.find('\''), plan.find("$$")]
        .into_iter()
        .flatten()
        .min();
    let before_text = text_at.map_or(plan, |at| &plan[..at]);
    let lines = before_text.lines().map(|line| match line.find(CUT) {
        None => without_literals(line, PLAN_BYTES_MAX),
        Some(at) => without_literals(whole_terms(&line[..at]), PLAN_BYTES_MAX) + CUT,
    });
    let mut shown = lines.collect::<Vec<_>>().join("; ");
    if text_at.is_some() {
        shown.push_str(" ?...");
    }
    shown.truncate(shown.floor_char_boundary(PLAN_BYTES_MAX));
    shown
}

fn log(slow: &SlowQuery) {
    let SlowQuery {
        duration_micros,
        client,
        keyspace,
        statement,
        plan,
        ..
    } = slow;
    let duration_ms = duration_micros / 1_000;
    let keyspace = keyspace.as_deref().unwrap_or_default();
    let plan = plan.as_deref().unwrap_or_default();
    tracing::info!(target: "slow_query", duration_ms, client = %client.ip(), keyspace, plan, "{statement}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn executed(text: &str) -> ExecutedStatement<'_> {
        ExecutedStatement {
            id: Uuid::nil(),
            client: SocketAddr::from(([127, 0, 0, 1], 5)),
            role: Some("app"),
            keyspace: None,
            text: Cow::Borrowed(text),
            plan: Some("select a from k.t\nindex k.i, 10 rows".to_owned()),
        }
    }

    fn log_of(threshold: Option<Duration>) -> SlowQueries {
        log_that_remembers(threshold, REMEMBERED)
    }

    fn log_that_remembers(threshold: Option<Duration>, remembered: usize) -> SlowQueries {
        SlowQueries::new(SlowQueryOptions {
            threshold,
            a_second: 3,
            remembered,
        })
    }

    #[test]
    fn a_slow_statement_is_shown_without_its_literals() {
        let log = log_of(Some(Duration::ZERO));
        let text = "SELECT a FROM k.t WHERE a = 'ann' ORDER BY v ANN OF [1, 2] LIMIT 10";
        log.end(log.begin(), || executed(text));
        let [slow] = &log.entries()[..] else {
            panic!("one statement");
        };
        assert_eq!(
            slow.statement,
            "SELECT a FROM k.t WHERE a = ? ORDER BY v ANN OF [?...] LIMIT ?"
        );
        assert_eq!(
            slow.plan.as_deref(),
            Some("select a from k.t; index k.i, ? rows")
        );
        assert_eq!(slow.role.as_deref(), Some("app"));
        assert_eq!(log.count(), 1);
    }

    #[test]
    fn a_plan_ends_where_a_text_begins() {
        for text in ["one\nsecret'", "it's secret'", "sec...", "$$secret$$"] {
            let plan = format!("index k.i\nfilter a > 3 and b = '{text}\nfilter c = 4");
            assert_eq!(of_plan(&plan), "index k.i; filter a > ? and b = ?...");
        }
    }

    #[test]
    fn a_term_that_is_cut_is_not_shown() {
        let ids = "8f14e45f-ceea-467f-a9c7-3c1b3f3f3f3f, 1679091c-5a88-4faf-8afb";
        assert_eq!(
            of_plan(&format!("filter ids = {{{ids}...\nindex k.i")),
            "filter ids = {?,...; index k.i"
        );
        let long = format!(
            "{}IN (1679091c-5a88-4faf-8afb",
            " ".repeat(TEXT_BYTES_MAX - 24)
        );
        let shown = beginning(&long).trim_start();
        assert_eq!(shown, "IN (");
    }

    #[test]
    fn quick_statements_are_not_described() {
        for log in [SlowQueries::never(), log_of(Some(Duration::from_hours(1)))] {
            assert!(!log.is_logged(Duration::from_secs(1)));
            log.end(log.begin(), || panic!("it is not slow"));
            assert_eq!((log.count(), log.entries().len()), (0, 0));
        }
    }

    #[test]
    fn the_log_has_bounds() {
        let log = log_of(Some(Duration::ZERO));
        let second = 1_000_000;
        for number in 0..10 {
            log.note(Duration::from_secs(1), second + number, || {
                executed("SELECT 1")
            });
        }
        assert_eq!((log.count(), log.entries().len()), (10, 3));
        for number in 2..2 + 2 * REMEMBERED as i64 {
            log.note(Duration::from_secs(1), number * second, || {
                executed("SELECT 1")
            });
        }
        let entries = log.entries();
        assert_eq!(entries.len(), REMEMBERED);
        let last = entries.last().map(|slow| slow.started_at_micros);
        assert_eq!(last, Some(2 * REMEMBERED as i64 * second));
    }

    #[test]
    fn statements_that_others_describe_are_counted_and_bounded_too() {
        let log = log_of(Some(Duration::from_secs(1)));
        assert!(!log.is_logged(Duration::from_millis(999)));
        // Some of three seconds at most.
        let logged = (0..20).filter(|_| log.is_logged(Duration::from_secs(1)));
        assert!((3..=9).contains(&logged.count()));
        assert_eq!(log.count(), 20);
    }

    #[test]
    fn a_log_without_a_table_remembers_nothing() {
        let log = log_that_remembers(Some(Duration::ZERO), 0);
        log.took(Duration::from_secs(1), || executed("SELECT 1"));
        assert_eq!((log.count(), log.entries().len()), (1, 0));
    }

    #[test]
    fn a_batch_is_shown_by_its_tables() {
        let tables = [("shop", "one"), ("shop", "two"), ("shop", "one")];
        assert_eq!(batch_text(tables), "BEGIN BATCH ON shop.one, shop.two");
        let names: Vec<String> = (0..20).map(|number| format!("t{number}")).collect();
        let text = batch_text(names.iter().map(|name| ("shop", name.as_str())));
        assert!(text.ends_with("shop.t7"), "{text}");
    }

    #[test]
    fn a_text_is_shown_up_to_its_bound() {
        let text = "\u{e9} ".repeat(TEXT_BYTES_MAX);
        let shown = beginning(&text);
        assert!(shown.ends_with(' '), "{shown}");
        assert!((TEXT_BYTES_MAX - 3..=TEXT_BYTES_MAX).contains(&shown.len()));
        assert_eq!(beginning("SELECT 1"), "SELECT 1");
    }
}
