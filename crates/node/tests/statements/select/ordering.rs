//! ORDER BY on clustering columns.

use node::statement::ExecutionParameters;

use crate::fixture::Fixture;

fn fixture() -> Fixture {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int, a int, b int, PRIMARY KEY (p, a, b)) WITH CLUSTERING ORDER BY (a DESC, b ASC)",
    ]);
    for (p, a, b) in [
        (1, 1, 1),
        (1, 1, 2),
        (1, 2, 1),
        (2, 1, 3),
        (2, 3, 1),
        (3, 2, 2),
    ] {
        fixture.run(&format!("INSERT INTO t (p, a, b) VALUES ({p}, {a}, {b})"));
    }
    fixture
}

#[test]
fn rows_come_in_the_order_asked_for() {
    let fixture = fixture();
    let cases: &[(&str, &str)] = &[
        ("p = 1", "121 111 112"),
        ("p = 1 ORDER BY a DESC", "121 111 112"),
        ("p = 1 ORDER BY a ASC", "112 111 121"),
        ("p = 1 ORDER BY a ASC, b DESC", "112 111 121"),
        ("p = 1 AND a = 1 ORDER BY b DESC", "112 111"),
        ("p = 1 AND a = 1 ORDER BY a ASC, b DESC", "112 111"),
        ("p = 1 AND a >= 1 ORDER BY a LIMIT 2", "112 111"),
        ("p = 1 AND a IN (1, 2) ORDER BY a", "112 111 121"),
        ("p IN (2, 1, 3) ORDER BY a DESC", "231 121 322 111 112 213"),
        ("p IN (2, 1, 3) ORDER BY a ASC", "112 111 213 121 322 231"),
        ("p IN (2, 1, 3) ORDER BY a ASC LIMIT 3", "112 111 213"),
        (
            "p IN (2, 1) ORDER BY a ASC PER PARTITION LIMIT 1",
            "112 213",
        ),
    ];
    for (condition, expected) in cases {
        // PER PARTITION LIMIT follows ORDER BY in the text of a statement.
        let rows = fixture.rows(&format!("SELECT p, a, b FROM t WHERE {condition}"));
        let rows: Vec<String> = rows.iter().map(|row| row.replace(" | ", "")).collect();
        assert_eq!(rows.join(" "), *expected, "{condition}");
    }
}

#[test]
fn groups_of_several_partitions_are_cut_by_limit() {
    let fixture = fixture();
    let cases: &[(&str, &str)] = &[
        ("GROUP BY p, a ORDER BY a DESC LIMIT 3", "231 121 322"),
        ("GROUP BY p, a ORDER BY a ASC LIMIT 2", "112 213"),
        (
            "GROUP BY p, a, b ORDER BY a ASC, b DESC LIMIT 3",
            "213 112 111",
        ),
        (
            "GROUP BY p, a, b ORDER BY a ASC PER PARTITION LIMIT 1 LIMIT 2",
            "112 213",
        ),
    ];
    for (clauses, expected) in cases {
        let rows = fixture.rows(&format!(
            "SELECT p, a, b FROM t WHERE p IN (2, 1, 3) {clauses}"
        ));
        let rows: Vec<String> = rows.iter().map(|row| row.replace(" | ", "")).collect();
        assert_eq!(rows.join(" "), *expected, "{clauses}");
    }
}

#[test]
fn merged_partitions_are_not_paged() {
    let fixture = fixture();
    let page = |cql: &str, page_size| {
        let parameters = ExecutionParameters {
            page_size: Some(page_size),
            ..ExecutionParameters::default()
        };
        fixture.page(cql, parameters)
    };
    let error = page("SELECT b FROM t WHERE p IN (1, 2) ORDER BY a", 2)
        .err()
        .unwrap();
    assert_eq!(
        error.message,
        "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either remove \
         the ORDER BY or the IN and sort client side, or disable paging for this query"
    );
    let whole = page("SELECT a FROM t WHERE p IN (1, 2) ORDER BY a LIMIT 2", 2).unwrap();
    assert_eq!(whole.rows, ["1", "1"]);
    assert!(whole.paging_state.is_none());
    assert_eq!(
        fixture.paged("SELECT a FROM t WHERE p IN (1) ORDER BY a", &[], 1),
        ["1", "1", "2"]
    );
}

/// If a column is restricted to one value, a direction that reverses it reverses the columns behind
/// it, as in Cassandra.
#[test]
fn a_column_with_one_value_reverses_those_behind_it() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE up (dev int, day int, ts int, PRIMARY KEY (dev, day, ts))",
        "CREATE TABLE down (dev int, day int, ts int, PRIMARY KEY (dev, day, ts)) WITH CLUSTERING ORDER BY (day DESC, ts DESC)",
    ]);
    for table in ["up", "down"] {
        for ts in 0..5 {
            fixture.run(&format!(
                "INSERT INTO {table} (dev, day, ts) VALUES (1, 1, {ts})"
            ));
        }
    }
    let cases: &[(&str, &str)] = &[
        ("day = 1 ORDER BY day DESC LIMIT 2", "4 3"),
        ("day = 1 ORDER BY day ASC LIMIT 2", "0 1"),
        ("day = 1 AND ts IN (1, 3, 0) ORDER BY day DESC", "3 1 0"),
        ("day = 1 AND ts > 1 ORDER BY day DESC", "4 3 2"),
        ("day = 1 AND ts > 1 ORDER BY day ASC", "2 3 4"),
        ("day = 1 ORDER BY day DESC, ts DESC LIMIT 1", "4"),
        ("day IN (1) ORDER BY ts DESC LIMIT 2", "4 3"),
        ("day IN (1) ORDER BY ts ASC LIMIT 2", "0 1"),
        ("(day) IN ((1)) ORDER BY ts DESC LIMIT 2", "4 3"),
        ("day = 1 ORDER BY ts ASC, ts DESC LIMIT 2", "4 3"),
        ("day = 1 ORDER BY day ASC, ts DESC, day DESC LIMIT 2", "4 3"),
    ];
    for table in ["up", "down"] {
        for (condition, expected) in cases {
            let cql = format!("SELECT ts FROM {table} WHERE dev = 1 AND {condition}");
            assert_eq!(fixture.rows(&cql).join(" "), *expected, "{cql}");
        }
        for refused in [
            "day = 1 ORDER BY day ASC, ts DESC",
            "day IN (1, 2) ORDER BY ts DESC",
        ] {
            let cql = format!("SELECT ts FROM {table} WHERE dev = 1 AND {refused}");
            assert!(
                fixture.page(&cql, ExecutionParameters::default()).is_err(),
                "{cql}"
            );
        }
    }
}

/// A partition with static columns only has no clustering values, which lie before all values on
/// disk.
#[test]
fn a_row_of_static_columns_only_is_last_against_the_disk() {
    for (table_order, ordering, expected) in [
        ("ASC", "b ASC, c ASC", "3 1 2"),
        ("ASC", "b DESC, c DESC", "2 1 3"),
        ("DESC", "b DESC, c DESC", "3 2 1"),
        ("DESC", "b ASC, c ASC", "1 2 3"),
    ] {
        let fixture = Fixture::new().with(&[
            &format!(
                "CREATE TABLE t (a int, b int, c int, s int STATIC, PRIMARY KEY (a, b, c)) WITH CLUSTERING ORDER BY (b {table_order}, c {table_order})"
            ),
            "INSERT INTO t (a, b, c) VALUES (1, 1, 1)",
            "INSERT INTO t (a, b, c) VALUES (2, 2, 2)",
            "INSERT INTO t (a, s) VALUES (3, 3)",
        ]);
        let cql = format!("SELECT a FROM t WHERE a IN (1, 2, 3) ORDER BY {ordering}");
        assert_eq!(
            fixture.rows(&cql).join(" "),
            expected,
            "{table_order}: {cql}"
        );
    }
}
