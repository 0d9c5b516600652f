//! ORDER BY on clustering columns.

use node::query::Parameters;

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
        ("p = 1 AND a = 1 ORDER BY a DESC, b DESC", "112 111"),
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
        // PER PARTITION LIMIT stands behind ORDER BY.
        let rows = fixture.rows(&format!("SELECT p, a, b FROM t WHERE {condition}"));
        let rows: Vec<String> = rows.iter().map(|row| row.replace(" | ", "")).collect();
        assert_eq!(rows.join(" "), *expected, "{condition}");
    }
}

#[test]
fn merged_partitions_are_not_paged() {
    let fixture = fixture();
    let page = |cql: &str, page_size| {
        let parameters = Parameters {
            page_size: Some(page_size),
            ..Parameters::default()
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
