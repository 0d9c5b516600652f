//! DELETE: columns, rows, ranges and partitions.

use crate::fixture::Fixture;

const ROWS: [&str; 9] = ["11", "12", "13", "21", "22", "23", "31", "32", "33"];

/// An empty table with two clustering columns in this order.
fn table(order: &str) -> Fixture {
    Fixture::new().with(&[&format!(
        "CREATE TABLE t (k int, a int, b int, s int static, v int, PRIMARY KEY (k, a, b)) WITH \
         CLUSTERING ORDER BY ({order})"
    )])
}

/// Fills a partition with nine rows (a, b), from three values of each column.
fn fill(f: &Fixture, k: usize) {
    let inserts: Vec<String> = ROWS
        .iter()
        .map(|row| {
            let (a, b) = row.split_at(1);
            format!("INSERT INTO t (k, a, b, s, v) VALUES ({k}, {a}, {b}, 7, {row});")
        })
        .collect();
    f.run(&format!("BEGIN BATCH {} APPLY BATCH", inserts.join(" ")));
}

fn fixture(order: &str) -> Fixture {
    let f = table(order);
    fill(&f, 0);
    f
}

fn left(f: &Fixture, k: usize) -> Vec<String> {
    let mut rows = f.rows(&format!("SELECT v FROM t WHERE k = {k}"));
    rows.sort();
    rows
}

#[test]
fn ranges_are_deleted_whatever_the_order() {
    for order in [
        "a ASC, b ASC",
        "a DESC, b DESC",
        "a ASC, b DESC",
        "a DESC, b ASC",
    ] {
        let f = table(order);
        let cases = [
            ("a = 2 AND b = 2", &["22"][..]),
            ("a = 2", &["21", "22", "23"]),
            ("a > 2", &["31", "32", "33"]),
            ("a >= 2", &["21", "22", "23", "31", "32", "33"]),
            ("a < 2", &["11", "12", "13"]),
            ("a > 1 AND a < 3", &["21", "22", "23"]),
            ("a = 1 AND b > 1", &["12", "13"]),
            ("a = 1 AND b >= 2 AND b <= 2", &["12"]),
            ("(a, b) > (2, 2)", &["23", "31", "32", "33"]),
            ("(a, b) >= (2, 2) AND (a, b) < (3, 2)", &["22", "23", "31"]),
            ("(a, b) > (1, 1) AND (a, b) <= (1, 3)", &["12", "13"]),
            ("(a, b) > (1, 2) AND (a) < (3)", &["13", "21", "22", "23"]),
            ("a IN (1, 3)", &["11", "12", "13", "31", "32", "33"]),
            ("a IN (1, 3) AND b < 3", &["11", "12", "31", "32"]),
            ("(a, b) IN ((1, 1), (3, 3))", &["11", "33"]),
            ("a > 3 AND a < 1", &[]),
            ("a IN ()", &[]),
        ];
        for (k, (condition, deleted)) in cases.into_iter().enumerate() {
            fill(&f, k);
            f.run(&format!("DELETE FROM t WHERE k = {k} AND {condition}"));
            let expected: Vec<&str> = ROWS
                .into_iter()
                .filter(|row| !deleted.contains(row))
                .collect();
            assert_eq!(left(&f, k), expected, "{condition} with {order}");
        }
    }
}

#[test]
fn a_partition_goes_with_its_statics() {
    let f = fixture("a ASC, b ASC").with(&["DELETE FROM t WHERE k IN (0, 1)"]);
    assert!(f.rows("SELECT * FROM t").is_empty());
}

#[test]
fn columns_are_deleted_from_rows_that_stay() {
    let f = fixture("a ASC, b ASC").with(&[
        "DELETE v FROM t WHERE k = 0 AND a = 1 AND b IN (1, 2)",
        "DELETE s FROM t WHERE k = 0",
        "DELETE FROM t WHERE k = 0 AND a > 1",
    ]);
    assert_eq!(
        f.rows("SELECT a, b, s, v FROM t"),
        [
            "1 | 1 | null | null",
            "1 | 2 | null | null",
            "1 | 3 | null | 13"
        ]
    );
}

#[test]
fn a_table_without_clustering_columns_has_one_row_a_partition() {
    let f = Fixture::new().with(&[
        "CREATE TABLE one (k int PRIMARY KEY, v int)",
        "INSERT INTO one (k, v) VALUES (1, 1)",
        "INSERT INTO one (k, v) VALUES (2, 2)",
        "DELETE FROM one WHERE k = 1",
    ]);
    assert_eq!(f.rows("SELECT * FROM one"), ["2 | 2"]);
}

#[test]
fn truncate_empties_a_table() {
    let f = fixture("a ASC, b ASC").with(&["TRUNCATE t"]);
    assert!(f.rows("SELECT * FROM t").is_empty());
    f.run("INSERT INTO t (k, a, b) VALUES (1, 1, 1)");
    assert_eq!(f.rows("SELECT k FROM t"), ["1"]);
}
