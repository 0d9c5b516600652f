//! The committer's work for a statement grows no faster than what the statement reads and writes.
//!
//! All other writes wait while the committer works. So the worst statement of each kind is driven
//! on large collections, and the elements that the committer goes over are counted, while another
//! client reads and writes single rows. A merge of each element by itself would go over a thousand
//! times as many.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use crate::fixture::Fixture;

/// Elements of each collection that is there, and of each statement.
const ELEMENTS: usize = 1_000;
/// The passes over the elements of the row and of the statement that a statement may take.
const PASSES: usize = 12;

/// Items made of numbers, in one text.
fn joined(
    numbers: impl Iterator<Item = usize>,
    between: &str,
    item: impl Fn(usize) -> String,
) -> String {
    numbers.map(item).collect::<Vec<_>>().join(between)
}

fn numbers(from: usize) -> String {
    joined(from..from + ELEMENTS, ", ", |i| i.to_string())
}

fn entries(from: usize) -> String {
    joined(from..from + ELEMENTS, ", ", |i| format!("{i}: {}", i % 7))
}

fn batch(kind: &str, statement: impl Fn(usize) -> String) -> String {
    let statements = joined(0..ELEMENTS, "; ", statement);
    format!("BEGIN {kind} BATCH {statements}; APPLY BATCH")
}

/// A database with a row of large collections, whose elements are the numbers from `ELEMENTS` on.
fn fixture(more: &[&str]) -> Fixture {
    let n = ELEMENTS;
    let (all, map) = (numbers(n), entries(n));
    let row = format!("INSERT INTO t (k, n, s, m, l) VALUES (1, 0, {{{all}}}, {{{map}}}, [{all}])");
    let statics = format!("INSERT INTO p (k, s) VALUES (1, {{{all}}})");
    let fields = joined(0..100, ", ", |i| format!("f{i} int"));
    let of_type = format!("CREATE TYPE wide ({fields})");
    let counters = joined(0..100, ", ", |i| format!("c{i} counter"));
    let of_counters = format!("CREATE TABLE c (k int PRIMARY KEY, {counters})");
    let tables = [
        "CREATE TABLE point (k int PRIMARY KEY, v int)",
        "CREATE TABLE t (k int PRIMARY KEY, n int, s set<int>, m map<int, int>, l list<int>)",
        "CREATE TABLE p (k int, c int, v int, s set<int> static, PRIMARY KEY (k, c))",
        &of_type,
        "CREATE TABLE w (k int PRIMARY KEY, u wide)",
        &of_counters,
    ];
    let rows = [&row[..], &statics];
    Fixture::new().with(&tables).with(more).with(&rows)
}

/// Runs a statement while another client reads and writes, and returns the elements that the
/// committer went over.
fn work_of(f: &Fixture, statement: &str) -> usize {
    /// Ends the other client, also if the statement fails.
    struct Over<'a>(&'a AtomicBool);
    impl Drop for Over<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let is_over = AtomicBool::new(false);
    let points = AtomicUsize::new(0);
    let before = f.database.storage.statistics().elements_worked_on;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let at = points.fetch_add(1, Ordering::Relaxed);
                f.run(&format!("INSERT INTO point (k, v) VALUES ({at}, {at})"));
                let read = f.rows(&format!("SELECT v FROM point WHERE k = {at}"));
                assert_eq!(read, [at.to_string()]);
            }
        });
        let _over = Over(&is_over);
        f.run(statement);
    });
    let after = f.database.storage.statistics().elements_worked_on;
    // Rows of single points have a column or two.
    let of_points = points.load(Ordering::Relaxed) as u64 * 8;
    usize::try_from((after - before).saturating_sub(of_points)).unwrap()
}

fn check(f: &Fixture, kind: &str, statement: &str) {
    let work = work_of(f, statement);
    let bound = PASSES * 4 * ELEMENTS;
    assert!(
        work <= bound,
        "{kind}: {work} elements, not {bound} at most"
    );
}

#[test]
fn changes_of_collections_go_over_them_a_few_times() {
    let n = ELEMENTS;
    let set = |change: String| format!("UPDATE t SET {change} WHERE k = 1");
    let statements = [
        (
            "smaller elements of a set",
            set(format!("s = s + {{{}}}", numbers(0))),
        ),
        (
            "other elements of a set",
            set(format!("s = {{{}}}", numbers(3 * n))),
        ),
        (
            "all elements less",
            set(format!("s = s - {{{}}}", numbers(n))),
        ),
        (
            "other keys of a map",
            set(format!("m = {{{}}}", entries(0))),
        ),
        (
            "more keys of a map",
            set(format!("m = m + {{{}}}", entries(0))),
        ),
        (
            "keys of a map, one by one and backwards",
            set(joined((0..n).rev(), ", ", |i| format!("m[{i}] = 1"))),
        ),
        (
            "keys of a map that go, one by one",
            format!(
                "DELETE {} FROM t WHERE k = 1",
                joined(n..2 * n, ", ", |i| format!("m[{i}]"))
            ),
        ),
        (
            "elements before a list",
            set(format!("l = [{}] + l", numbers(0))),
        ),
        (
            "elements behind a list",
            set(format!("l = l + [{}]", numbers(0))),
        ),
        (
            "values out of a list",
            set(format!("l = l - [{}]", numbers(n))),
        ),
        (
            "elements of a list by their positions",
            set(joined(0..n, ", ", |i| format!("l[{i}] = 1"))),
        ),
        (
            "elements of a list that go by their positions",
            format!(
                "DELETE {} FROM t WHERE k = 1",
                joined(0..n, ", ", |_| "l[0]".to_owned())
            ),
        ),
        ("an int beside collections", set("n = 1".to_owned())),
        (
            "a row of JSON",
            format!("INSERT INTO t JSON '{{\"k\": 1, \"l\": [{}]}}'", numbers(0)),
        ),
        ("a row that goes", "DELETE FROM t WHERE k = 1".to_owned()),
    ];
    for (kind, statement) in statements {
        check(&fixture(&[]), kind, &statement);
    }
}

#[test]
fn batches_on_one_row_go_over_it_a_few_times() {
    let statements = [
        (
            "an element each",
            batch("", |i| format!("UPDATE t SET s = s + {{{i}}} WHERE k = 1")),
        ),
        (
            "a position of a list each",
            batch("", |i| format!("UPDATE t SET l[{i}] = 1 WHERE k = 1")),
        ),
        (
            "two positions of a list each",
            batch("", |i| {
                format!("DELETE l[0], l[{}] FROM t WHERE k = 1", i / 2)
            }),
        ),
        (
            "a value of a list each",
            batch("", |i| {
                format!("UPDATE t SET l = l - [{}] WHERE k = 1", ELEMENTS + i)
            }),
        ),
        (
            "a static element each",
            batch("", |i| format!("UPDATE p SET s = s + {{{i}}} WHERE k = 1")),
        ),
        (
            "a row beside a static set each",
            batch("", |i| {
                format!("INSERT INTO p (k, c, v) VALUES (1, {i}, 1)")
            }),
        ),
        (
            "a range each",
            batch("", |i| {
                format!("DELETE FROM p WHERE k = 1 AND c > {i} AND c < {}", i + 2)
            }),
        ),
        (
            "a field of a user type each",
            batch("", |i| {
                format!("UPDATE w SET u.f{} = {i} WHERE k = 1", i % 100)
            }),
        ),
        (
            "a counter each",
            batch("COUNTER", |i| {
                format!("UPDATE c SET c{} = c{} + 1 WHERE k = 1", i % 100, i % 100)
            }),
        ),
        (
            "conditions on a set",
            batch("", |i| {
                let element = ELEMENTS + i;
                format!("UPDATE t SET n = {i} WHERE k = 1 IF s CONTAINS {element}")
            }),
        ),
        (
            "conditions on keys and positions",
            batch("", |i| {
                let key = ELEMENTS + i;
                format!(
                    "UPDATE t SET n = 1 WHERE k = 1 IF m[{key}] = {} AND l[{i}] = {key}",
                    key % 7
                )
            }),
        ),
    ];
    for (kind, statement) in statements {
        check(&fixture(&[]), kind, &statement);
    }
}

#[test]
fn indexes_and_logs_of_collections_go_over_them_a_few_times() {
    let indexed = [
        "CREATE INDEX ON t (s)",
        "CREATE INDEX ON t (KEYS(m))",
        "CREATE INDEX ON t (l)",
        "CREATE INDEX ON t (n)",
    ];
    let logged = [
        "ALTER TABLE t WITH cdc = {'enabled': true, 'preimage': 'full', 'postimage': true}",
        "ALTER TABLE p WITH cdc = {'enabled': true, 'preimage': true, 'postimage': true}",
    ];
    for more in [&indexed[..], &logged[..]] {
        let statements = [
            ("an int", "UPDATE t SET n = 1 WHERE k = 1".to_owned()),
            (
                "an element",
                "UPDATE t SET s = s + {1} WHERE k = 1".to_owned(),
            ),
            (
                "all elements",
                format!(
                    "UPDATE t SET s = {{{}}}, l = [{}] WHERE k = 1",
                    numbers(0),
                    numbers(0)
                ),
            ),
            (
                "an element each",
                batch("", |i| {
                    format!("UPDATE t SET s = s + {{{i}}}, l = l + [{i}] WHERE k = 1")
                }),
            ),
            (
                "a row each",
                batch("", |i| {
                    format!("INSERT INTO p (k, c, v) VALUES (1, {i}, 1)")
                }),
            ),
        ];
        for (kind, statement) in statements {
            check(&fixture(more), kind, &statement);
        }
    }
}

#[test]
fn an_int_beside_an_indexed_set_costs_a_pass_over_its_bytes() {
    let f = fixture(&["CREATE INDEX ON t (s)", "CREATE INDEX ON t (VALUES(m))"]);
    let work = work_of(&f, "UPDATE t SET n = 1 WHERE k = 1");
    // Each element is passed once, where the columns of the row are found.
    assert!(work <= 3 * ELEMENTS + 100, "{work}");
}
