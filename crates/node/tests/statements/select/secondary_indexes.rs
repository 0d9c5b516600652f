//! SELECT by secondary indexes: whatever an index finds, a scan that filters finds, too.

use std::cell::Cell;

use cql::error::ErrorKind;
use node::statement::{BoundValue, ExecutionParameters};
use proptest::prelude::*;
use storage::clock::{Clock, ManualClock, SystemClock};
use test_support::blocking::eventually;

use crate::fixture::{Fixture, int, text};

/// The names of two tables with the same rows. Only the first has indexes.
const TWINS: [&str; 2] = ["indexed", "plain"];

const COLUMNS: &str = "p int, q int, a int, b int, s int static, v int, w int, d decimal, f double, n text, ci text, \
     u uuid, tu timeuuid, bo boolean, m map<text, int>, mk map<text, int>, me map<text, int>, l list<int>, \
     st set<text>, fl frozen<list<int>>, x int, PRIMARY KEY ((p, q), a, b)";

const INDEXES: &[&str] = &[
    "q",
    "b",
    "s",
    "v",
    "w",
    "d",
    "f",
    "n",
    "u",
    "tu",
    "bo",
    "VALUES(m)",
    "KEYS(mk)",
    "ENTRIES(me)",
    "l",
    "st",
    "FULL(fl)",
];

/// A generator of numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn uuid(number: u64) -> String {
    format!("0000000{number}-0000-4000-8000-000000000000")
}

fn timeuuid(number: u64) -> String {
    format!("0000000{number}-29bb-11e5-b345-feff819cdc9f")
}

/// The value of a column with a number.
fn literal(column: &str, number: u64) -> String {
    match column {
        "d" => format!("{number}.{}0", number % 2 * 5),
        "f" => format!("{number}.5"),
        "n" | "ci" | "mk" | "st" => format!("'{}'", ["a", "B", "b", "", "Ä", "é"][number as usize]),
        "u" => uuid(number),
        "tu" => timeuuid(number),
        "bo" => number.is_multiple_of(2).to_string(),
        "fl" => format!("[{number}]"),
        _ => number.to_string(),
    }
}

/// One write of any kind, with TABLE for the table.
fn write(numbers: &mut Numbers) -> String {
    let (p, q) = (numbers.below(3), numbers.below(3));
    let (a, b) = (numbers.below(4), numbers.below(4));
    let row = format!("p = {p} AND q = {q} AND a = {a} AND b = {b}");
    let column =
        ["v", "w", "d", "f", "n", "ci", "u", "tu", "bo", "fl", "x"][numbers.below(11) as usize];
    let value = literal(column, numbers.below(6));
    let using = match numbers.below(8) {
        0 => "USING TTL 100 ",
        1 => "USING TIMESTAMP 1000 ",
        _ => "",
    };
    let (key, element) = (literal("mk", numbers.below(6)), numbers.below(4));
    match numbers.below(40) {
        0 => format!("DELETE FROM TABLE WHERE {row}"),
        1 => format!("DELETE FROM TABLE WHERE p = {p} AND q = {q} AND a = {a}"),
        2 if numbers.below(3) == 0 => format!("DELETE FROM TABLE WHERE p = {p} AND q = {q}"),
        3 => format!("DELETE {column} FROM TABLE WHERE {row}"),
        4..6 => format!("UPDATE TABLE {using}SET s = {element} WHERE p = {p} AND q = {q}"),
        6 => format!("DELETE s FROM TABLE WHERE p = {p} AND q = {q}"),
        7..10 => {
            format!("UPDATE TABLE {using}SET m[{key}] = {element}, l = l + [{element}] WHERE {row}")
        }
        10..13 => format!(
            "UPDATE TABLE {using}SET mk[{key}] = {element}, st = st + {{{key}}} WHERE {row}"
        ),
        13..16 => format!("UPDATE TABLE {using}SET me[{key}] = {element} WHERE {row}"),
        16 => format!("DELETE m[{key}], mk[{key}], me[{key}] FROM TABLE WHERE {row}"),
        17 => format!("UPDATE TABLE SET st = st - {{{key}}}, l = l - [{element}] WHERE {row}"),
        18..22 => format!(
            "INSERT INTO TABLE (p, q, a, b, v) VALUES ({p}, {q}, {a}, {b}, {element}) {using}"
        ),
        _ => format!("UPDATE TABLE {using}SET {column} = {value} WHERE {row}"),
    }
}

/// The twins after some writes, half of which were done before there were indexes.
fn twins(writes: usize) -> Fixture {
    let clock = ManualClock::new(SystemClock.now_micros());
    let fixture = Fixture::at(clock.clone());
    for table in TWINS {
        fixture.run(&format!("CREATE TABLE {table} ({COLUMNS})"));
    }
    let mut numbers = Numbers(7);
    for done in 0..writes {
        if done == writes / 2 {
            for target in INDEXES {
                fixture.run(&format!(
                    "CREATE CUSTOM INDEX ON indexed ({target}) USING 'StorageAttachedIndex'"
                ));
            }
            // Values with a TTL until now are dead, those from now on live.
            clock.advance_seconds(200);
        }
        let write = write(&mut numbers);
        for table in TWINS {
            fixture.run(&write.replace("TABLE", table));
        }
    }
    await_indexes(&fixture, "SELECT p FROM indexed WHERE v = 1");
    fixture
}

/// Waits until the indexes that a query needs are built.
fn await_indexes(fixture: &Fixture, query: &str) {
    eventually("the indexes are built", || {
        let refused = fixture.page(query, ExecutionParameters::default()).err();
        if let Some(error) = &refused {
            let is_expected = matches!(error.kind, ErrorKind::ReadFailure { .. });
            assert!(is_expected, "{query}: {error}");
        }
        refused.is_none()
    });
}

/// A relation on each kind of column, or two.
fn relation() -> impl Strategy<Value = String> {
    let compared = prop::sample::select(vec!["q", "b", "s", "v", "w", "d", "f", "x", "a", "tu"]);
    let equal = prop::sample::select(vec!["n", "u", "bo", "fl", "v", "w", "s", "q", "b"]);
    let number = 0..6_u64;
    let operator = prop::sample::select(vec!["=", "<", "<=", ">", ">="]);
    prop_oneof![
        (compared, operator, number.clone()).prop_map(|(column, operator, number)| format!(
            "{column} {operator} {}",
            literal(column, number)
        )),
        (equal, number.clone())
            .prop_map(|(column, number)| format!("{column} = {}", literal(column, number))),
        (
            prop::sample::select(vec!["v", "w", "b"]),
            number.clone(),
            0..3_u64
        )
            .prop_map(|(column, low, width)| format!(
                "{column} >= {low} AND {column} < {}",
                low + width
            )),
        number
            .clone()
            .prop_map(|number| format!("m CONTAINS {number}")),
        number
            .clone()
            .prop_map(|number| format!("l CONTAINS {number}")),
        number
            .clone()
            .prop_map(|number| format!("mk CONTAINS KEY {}", literal("mk", number))),
        number
            .clone()
            .prop_map(|number| format!("st CONTAINS {}", literal("st", number))),
        (number.clone(), number.clone())
            .prop_map(|(key, value)| format!("me[{}] = {value}", literal("mk", key))),
        (number.clone(), number).prop_map(|(one, other)| format!("v IN ({one}, {other})")),
    ]
}

/// A WHERE clause, with other clauses behind it.
fn query() -> impl Strategy<Value = String> {
    let keys = prop_oneof![
        4 => Just(String::new()),
        1 => (0..3, 0..3).prop_map(|(p, q)| format!("p = {p} AND q = {q} AND ")),
        1 => any::<i64>().prop_map(|token| format!("token(p, q) > {token} AND ")),
        1 => any::<i64>().prop_map(|token| format!("token(p, q) <= {token} AND ")),
        1 => (0..3).prop_map(|p| format!("p = {p} AND ")),
    ];
    let limits = prop::sample::select(vec![
        "",
        "",
        "LIMIT 5",
        "PER PARTITION LIMIT 1",
        "PER PARTITION LIMIT 2 LIMIT 7",
    ]);
    (keys, prop::collection::vec(relation(), 1..4), limits)
        .prop_map(|(keys, relations, limits)| format!("{keys}{} {limits}", relations.join(" AND ")))
}

#[test]
fn indexes_and_scans_find_the_same_rows() {
    let fixture = twins(1500);
    let by_index = Cell::new(0);
    let config = ProptestConfig::with_cases(400);
    proptest!(config, |(
        query in query(),
        page_size in 1..30_usize,
        columns in prop::sample::select(vec!["p, q, a, b, s, v", "count(*)", "p, q"]),
    )| {
        let on = |table: &str, end: &str| format!("SELECT {columns} FROM {table} WHERE {query} {end}");
        let scan = on("plain", "ALLOW FILTERING");
        let Ok(scanned) = fixture.page(&scan, ExecutionParameters::default()) else {
            // Relations that can't stand together.
            let lookup = on("indexed", "ALLOW FILTERING");
            prop_assert!(fixture.page(&lookup, ExecutionParameters::default()).is_err());
            return Ok(());
        };
        for end in ["ALLOW FILTERING", ""] {
            let lookup = on("indexed", end);
            match fixture.page(&lookup, ExecutionParameters::default()) {
                Ok(found) => {
                    prop_assert_eq!(&found.rows, &scanned.rows, "{}", lookup);
                    prop_assert_eq!(&fixture.paged(&lookup, &[], page_size), &scanned.rows, "{} by {}", lookup, page_size);
                    let goes_by_index = fixture.explain(&lookup).contains("rows by index");
                    by_index.set(by_index.get() + usize::from(goes_by_index));
                }
                Err(error) => prop_assert!(end.is_empty() && error.message.contains("ALLOW FILTERING"), "{}: {}", lookup, error),
            }
        }
    });
    let by_index = by_index.get();
    assert!(by_index > 100, "only {by_index} queries went by an index");
}

/// Types that can be indexed, each with values in their order.
const OF_TYPES: &[(&str, [&str; 3])] = &[
    ("ascii", ["'B'", "'a'", "'b'"]),
    ("bigint", ["-9", "0", "9223372036854775807"]),
    ("boolean", ["false", "false", "true"]),
    ("date", ["'1969-12-31'", "'1970-01-01'", "'2024-02-29'"]),
    ("decimal", ["-1.50", "1.5", "1E+3"]),
    ("double", ["-0.5", "0.0", "Infinity"]),
    ("float", ["-0.5", "0.25", "NaN"]),
    ("inet", ["'9.0.0.1'", "'10.0.0.1'", "'::1'"]),
    ("int", ["-1", "0", "7"]),
    ("smallint", ["-1", "0", "7"]),
    ("text", ["''", "'a'", "'Ä'"]),
    ("time", ["'00:00:00'", "'01:02:03'", "'23:59:59.999'"]),
    ("timestamp", ["'1960-01-01'", "0", "'2024-02-29'"]),
    (
        "timeuuid",
        [
            "00000001-29bb-11e5-b345-feff819cdc9f",
            "00000001-29bb-11e5-b346-feff819cdc9f",
            "00000000-29bb-12e5-b345-feff819cdc9f",
        ],
    ),
    ("tinyint", ["-1", "0", "7"]),
    (
        "uuid",
        [
            "00000000-0000-4000-8000-000000000001",
            "00000000-0000-4000-8000-000000000002",
            "10000000-0000-1000-8000-000000000000",
        ],
    ),
    (
        "varint",
        ["-99999999999999999999", "0", "99999999999999999999"],
    ),
    ("frozen<list<int>>", ["[]", "[1]", "[1, 2]"]),
    (
        "frozen<map<text, int>>",
        ["{}", "{'a': 1}", "{'a': 1, 'b': 2}"],
    ),
    (
        "frozen<tuple<int, text>>",
        ["(1, 'a')", "(1, 'b')", "(2, null)"],
    ),
];

#[test]
fn every_operator_finds_its_rows_of_every_type() {
    for (cql_type, values) in OF_TYPES {
        let target = match cql_type.contains("list") || cql_type.contains("map") {
            true => "FULL(v)",
            false => "v",
        };
        let fixture = Fixture::new().with(&[
            &format!("CREATE TABLE indexed (k int PRIMARY KEY, v {cql_type})"),
            &format!("CREATE TABLE plain (k int PRIMARY KEY, v {cql_type})"),
            &format!("CREATE CUSTOM INDEX ON indexed ({target}) USING 'sai'"),
            "INSERT INTO indexed (k) VALUES (99)",
        ]);
        await_indexes(
            &fixture,
            &format!("SELECT k FROM indexed WHERE v = {}", values[0]),
        );
        for (k, value) in values.iter().cycle().take(9).enumerate() {
            for table in TWINS {
                fixture.run(&format!("INSERT INTO {table} (k, v) VALUES ({k}, {value})"));
            }
        }
        let has_ranges = !["ascii", "text", "boolean", "uuid"].contains(cql_type)
            && !cql_type.starts_with("frozen");
        for value in *values {
            for operator in ["=", "<", "<=", ">", ">="] {
                let relation = format!("v {operator} {value}");
                let scan = format!("SELECT k FROM plain WHERE {relation} ALLOW FILTERING");
                let lookup = format!("SELECT k FROM indexed WHERE {relation}");
                if operator == "=" || has_ranges {
                    let plan = fixture.explain(&lookup);
                    assert!(plan.contains("rows by index"), "{cql_type}: {plan}");
                    assert_eq!(
                        fixture.rows(&lookup),
                        fixture.rows(&scan),
                        "{cql_type}: {relation}"
                    );
                } else {
                    assert!(
                        fixture
                            .refused(&lookup, &[])
                            .ends_with("use ALLOW FILTERING")
                    );
                }
                let either = format!("{lookup} ALLOW FILTERING");
                assert_eq!(
                    fixture.rows(&either),
                    fixture.rows(&scan),
                    "{cql_type}: {relation}"
                );
            }
        }
    }
}

#[test]
fn markers_take_the_place_of_values() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (k int PRIMARY KEY, v int, n text, me map<text, int>)",
        "CREATE CUSTOM INDEX ON t (v) USING 'sai'",
        "CREATE CUSTOM INDEX ON t (n) USING 'sai'",
        "CREATE CUSTOM INDEX ON t (ENTRIES(me)) USING 'sai'",
        "INSERT INTO t (k, v, n, me) VALUES (1, 10, 'a', {'x': 1})",
        "INSERT INTO t (k, v, n, me) VALUES (2, 20, 'a', {'x': 2})",
    ]);
    await_indexes(
        &fixture,
        "SELECT k FROM t WHERE v = 1 AND n = 'a' AND me['x'] = 1",
    );
    let of_both = "SELECT k FROM t WHERE v > ? AND v < ? AND n = ?";
    assert_eq!(fixture.variables(of_both), ["v int", "v int", "n text"]);
    assert_eq!(fixture.bound(of_both, &[int(5), int(15), text("a")]), ["1"]);
    assert!(
        fixture
            .bound(of_both, &[int(15), int(5), text("a")])
            .is_empty()
    );
    let of_entry = "SELECT k FROM t WHERE me[?] = ?";
    assert_eq!(fixture.bound(of_entry, &[text("x"), int(2)]), ["2"]);
    for (value, message) in [
        (BoundValue::Null, "Unsupported null value for column v"),
        (BoundValue::Unset, "Unsupported unset value for column v"),
    ] {
        assert_eq!(
            fixture.refused("SELECT k FROM t WHERE v = ?", &[value]),
            message
        );
    }
}

#[test]
fn texts_are_found_in_any_case_where_the_index_has_them_so() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (k int PRIMARY KEY, n text, tags set<text>, x int)",
        "CREATE CUSTOM INDEX ON t (n) USING 'sai' WITH OPTIONS = {'case_sensitive': 'false'}",
        "CREATE CUSTOM INDEX ON t (tags) USING 'sai' WITH OPTIONS = {'case_sensitive': 'false'}",
        "INSERT INTO t (k, n, tags, x) VALUES (1, 'Straße', {'A', 'b'}, 1)",
        "INSERT INTO t (k, n, tags, x) VALUES (2, 'STRASSE', {'a'}, 1)",
        "INSERT INTO t (k, n, tags, x) VALUES (3, 'straße', {'c'}, 2)",
    ]);
    await_indexes(
        &fixture,
        "SELECT k FROM t WHERE n = '' AND tags CONTAINS ''",
    );
    for (relations, rows) in [
        ("n = 'STRAßE'", &["1", "3"][..]),
        ("n = 'strasse'", &["2"]),
        ("n = 'STRAßE' AND x = 1 ALLOW FILTERING", &["1"]),
        ("k = 3 AND n = 'STRAßE'", &["3"]),
        ("tags CONTAINS 'A'", &["1", "2"]),
        ("tags CONTAINS 'A' AND tags CONTAINS 'B'", &["1"]),
        // These are not served by the index.
        ("n IN ('STRASSE', 'strasse') ALLOW FILTERING", &["2"]),
        ("n < 'T' ALLOW FILTERING", &["1", "2"]),
    ] {
        assert_eq!(
            fixture.rows(&format!("SELECT k FROM t WHERE {relations}")),
            rows,
            "{relations}"
        );
    }
}

/// Pages with writes between them: each row that stays is in the answer, none is twice.
#[test]
fn rows_that_stay_come_once_whatever_is_written_between_pages() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int, c int, s int static, v int, w int, PRIMARY KEY (p, c))",
        "CREATE CUSTOM INDEX ON t (v) USING 'sai'",
        "CREATE CUSTOM INDEX ON t (w) USING 'sai'",
        "CREATE CUSTOM INDEX ON t (s) USING 'sai'",
    ]);
    let set = |p: u64, c: u64, v: u64| {
        fixture.run(&format!(
            "INSERT INTO t (p, c, v, w) VALUES ({p}, {c}, {v}, {v})"
        ));
    };
    for p in 0..20 {
        fixture.run(&format!("INSERT INTO t (p, s) VALUES ({p}, 1)"));
        for c in 0..10 {
            set(p, c, 1);
        }
    }
    await_indexes(&fixture, "SELECT p FROM t WHERE v = 1 AND w = 1 AND s = 1");
    let mut numbers = Numbers(3);
    for query in [
        "v = 1",
        "v >= 1 AND v < 2",
        "v = 1 AND w = 1",
        "s = 1",
        "s = 1 AND v = 1",
    ] {
        for page_size in [1, 7, 64] {
            let (mut seen, mut paging_state) = (Vec::new(), None);
            loop {
                let parameters = ExecutionParameters {
                    page_size: Some(page_size),
                    paging_state: paging_state.take(),
                    ..ExecutionParameters::default()
                };
                let query = format!("SELECT p, c FROM t WHERE {query}");
                let page = fixture.page(&query, parameters).unwrap();
                seen.extend(page.rows);
                // Rows with c < 5 stay as they are. Others leave the answer and come back.
                for _ in 0..8 {
                    let (p, c) = (numbers.below(20), 5 + numbers.below(10));
                    match numbers.below(3) {
                        0 => fixture.run(&format!("DELETE FROM t WHERE p = {p} AND c = {c}")),
                        v => set(p, c, v),
                    }
                }
                match page.paging_state {
                    Some(state) => paging_state = Some(state),
                    None => break,
                }
            }
            let stay = (0..20).flat_map(|p| (0..5).map(move |c| format!("{p} | {c}")));
            for row in stay {
                let times = seen.iter().filter(|one| **one == row).count();
                assert_eq!(times, 1, "{query} by {page_size}: {row}");
            }
            let count = seen.len();
            seen.sort();
            seen.dedup();
            assert_eq!(
                seen.len(),
                count,
                "{query} by {page_size}: a row came twice"
            );
        }
    }
}

/// More rows than one pass over a range keeps, and more than it may read.
#[test]
fn ranges_of_many_rows_are_read_by_passes_or_scanned() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int, c int, v int, w int, PRIMARY KEY (p, c))",
        "CREATE CUSTOM INDEX ON t (v) USING 'sai'",
        "CREATE CUSTOM INDEX ON t (w) USING 'sai'",
    ]);
    const ROWS: usize = 20_000;
    for p in 0..20 {
        for from in (0..1000).step_by(250) {
            let rows: Vec<String> = (from..from + 250)
                .map(|c| {
                    format!(
                        "INSERT INTO t (p, c, v, w) VALUES ({p}, {c}, {}, {});",
                        c % 100,
                        c % 7
                    )
                })
                .collect();
            let rows = rows.join(" ");
            fixture.run(&format!("BEGIN UNLOGGED BATCH {rows} APPLY BATCH"));
        }
    }
    await_indexes(&fixture, "SELECT p FROM t WHERE v = 1 AND w = 1");
    let count =
        |relations: &str| fixture.rows(&format!("SELECT count(*) FROM t WHERE {relations}"));
    assert_eq!(count("v >= 0"), [ROWS.to_string()]);
    assert_eq!(count("v >= 50"), [(ROWS / 2).to_string()]);
    assert_eq!(count("v >= 50 AND w <= 7"), [(ROWS / 2).to_string()]);
    let all = fixture.rows("SELECT p, c FROM t");
    assert_eq!(
        fixture.paged("SELECT p, c FROM t WHERE v >= 0", &[], 3_000),
        all
    );
    let some = fixture.rows("SELECT p, c FROM t WHERE v = 5 AND w = 3 ALLOW FILTERING");
    let plain: Vec<&String> = all
        .iter()
        .filter(|row| {
            let c: usize = row.split(" | ").nth(1).unwrap().parse().unwrap();
            c % 100 == 5 && c % 7 == 3
        })
        .collect();
    assert_eq!(some.iter().collect::<Vec<_>>(), plain);
}
