//! Static columns: shown with every row, and alone where a partition has no rows.

use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (p int, c int, s text static, v int, PRIMARY KEY (p, c))",
        "INSERT INTO t (p, s) VALUES (1, 'only')",
        "INSERT INTO t (p, s) VALUES (2, 'shared')",
        "INSERT INTO t (p, c, v) VALUES (2, 1, 10)",
        "INSERT INTO t (p, c, v) VALUES (2, 2, 20)",
        "INSERT INTO t (p, c, v) VALUES (3, 1, 30)",
    ])
}

#[test]
fn static_columns_are_shown_as_in_cassandra() {
    let fixture = fixture();
    let cases: &[(&str, &[&str])] = &[
        (
            "SELECT p, c, s, v FROM t WHERE p = 1",
            &["1 | null | 'only' | null"],
        ),
        ("SELECT s FROM t WHERE p = 1", &["'only'"]),
        (
            "SELECT p, c, s, v FROM t WHERE p = 2",
            &["2 | 1 | 'shared' | 10", "2 | 2 | 'shared' | 20"],
        ),
        ("SELECT p, c, s FROM t WHERE p = 3", &["3 | 1 | null"]),
        ("SELECT p, c FROM t WHERE p = 1 AND c > 0", &[]),
        (
            "SELECT p, c FROM t WHERE p = 1 AND v > 0 ALLOW FILTERING",
            &[],
        ),
        (
            "SELECT p, c FROM t WHERE s = 'shared' ALLOW FILTERING",
            &["2 | 1", "2 | 2"],
        ),
        (
            "SELECT p, c FROM t WHERE s = 'only' ALLOW FILTERING",
            &["1 | null"],
        ),
        ("SELECT DISTINCT p, s FROM t WHERE p = 2", &["2 | 'shared'"]),
        ("SELECT DISTINCT p, s FROM t WHERE p = 1", &["1 | 'only'"]),
        (
            "SELECT DISTINCT s FROM t WHERE p IN (1, 2, 3)",
            &["'only'", "'shared'", "null"],
        ),
        ("SELECT count(*) FROM t", &["4"]),
        ("SELECT count(v) FROM t", &["3"]),
        (
            "SELECT p, c FROM t WHERE p = 1 ORDER BY c DESC",
            &["1 | null"],
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(fixture.rows(query), *expected, "{query}");
    }
    let mut distinct = fixture.rows("SELECT DISTINCT p, s FROM t");
    distinct.sort();
    assert_eq!(distinct, ["1 | 'only'", "2 | 'shared'", "3 | null"]);
}

#[test]
fn rows_live_on_their_marker_and_on_their_cells() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int, c int, v int, PRIMARY KEY (p, c))",
        "INSERT INTO t (p, c) VALUES (1, 1)",
        "UPDATE t SET v = 2 WHERE p = 1 AND c = 2",
        "UPDATE t SET v = 3 WHERE p = 1 AND c = 3",
        "UPDATE t SET v = null WHERE p = 1 AND c = 3",
        "INSERT INTO t (p, c, v) VALUES (1, 4, 4)",
        "UPDATE t SET v = null WHERE p = 1 AND c = 4",
        "INSERT INTO t (p, c, v) VALUES (1, 5, 5)",
        "DELETE FROM t WHERE p = 1 AND c = 5",
    ]);
    assert_eq!(
        fixture.rows("SELECT c, v FROM t WHERE p = 1"),
        ["1 | null", "2 | 2", "4 | null"]
    );
}
