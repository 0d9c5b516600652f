//! Aggregates over rows.

use node::statement::ExecutionParameters;

use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (p int, c int, i int, d decimal, x double, t text, PRIMARY KEY (p, c))",
        "INSERT INTO t (p, c, i, d, x, t) VALUES (1, 1, 5, 1.5, 0.5, 'b')",
        "INSERT INTO t (p, c, i, d, x, t) VALUES (1, 2, -3, 2.25, 1.5, 'a')",
        "INSERT INTO t (p, c, i) VALUES (1, 3, 2000000000)",
        "INSERT INTO t (p, c) VALUES (2, 1)",
    ])
}

#[test]
fn aggregates_are_computed() {
    let fixture = fixture();
    let cases: &[(&str, &[&str])] = &[
        ("SELECT count(*) FROM t", &["4"]),
        ("SELECT count(1) FROM t WHERE p = 1", &["3"]),
        ("SELECT count(i), count(d), count(t) FROM t", &["3 | 2 | 2"]),
        (
            "SELECT min(i), max(i), min(t), max(t) FROM t",
            &["-3 | 2000000000 | 'a' | 'b'"],
        ),
        (
            "SELECT sum(d), avg(d), sum(x), avg(x) FROM t",
            &["3.75 | 1.88 | 2.0 | 1.0"],
        ),
        ("SELECT avg(i) FROM t WHERE p = 1", &["666666667"]),
        ("SELECT sum(cast(i as bigint)) FROM t", &["2000000002"]),
        ("SELECT max(writetime(i)) FROM t WHERE p = 2", &["null"]),
        (
            "SELECT count(*), min(i), sum(i), avg(i), p FROM t WHERE p = 9",
            &["0 | null | 0 | 0 | null"],
        ),
        ("SELECT c, max(c), p FROM t WHERE p = 1", &["1 | 3 | 1"]),
        ("SELECT cast(count(*) as text) FROM t", &["'4'"]),
        ("SELECT count(*) FROM t LIMIT 1", &["4"]),
        ("SELECT count(*) FROM t WHERE i > 0 ALLOW FILTERING", &["2"]),
        ("SELECT count(*) FROM t WHERE p IN (1, 2)", &["4"]),
    ];
    for (query, expected) in cases {
        assert_eq!(fixture.rows(query), *expected, "{query}");
    }
}

#[test]
fn an_aggregate_ignores_the_page_size() {
    let fixture = fixture();
    let parameters = ExecutionParameters {
        page_size: Some(1),
        ..ExecutionParameters::default()
    };
    let page = fixture.page("SELECT count(*) FROM t", parameters).unwrap();
    assert_eq!(page.rows, ["4"]);
    assert!(page.paging_state.is_none());
    assert_eq!(
        page.warnings,
        ["Aggregation query used without partition key"]
    );
}

#[test]
fn a_sum_out_of_range_is_refused() {
    let fixture = fixture();
    fixture.run("INSERT INTO t (p, c, i) VALUES (1, 4, 2000000000)");
    assert_eq!(
        fixture.refused("SELECT sum(i) FROM t", &[]),
        "the sum is out of range of type int; cast the argument to a wider type"
    );
}
