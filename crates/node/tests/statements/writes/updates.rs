//! UPDATE: rows that need no INSERT, IN on keys, statics.

use node::statement::{BoundValue, ExecutionParameters};

use crate::fixture::{Fixture, int, ints};

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int, c int, s int static, v int, w int, PRIMARY KEY (k, c))",
        "CREATE TABLE wide (k int, a int, b int, v int, PRIMARY KEY (k, a, b))",
    ])
}

#[test]
fn an_update_makes_a_row_that_lives_by_its_values() {
    let f = fixture().with(&["UPDATE t SET v = 1 WHERE k = 1 AND c = 1"]);
    assert_eq!(f.rows("SELECT k, c, v FROM t"), ["1 | 1 | 1"]);
    f.run("UPDATE t SET v = null WHERE k = 1 AND c = 1");
    assert!(f.rows("SELECT * FROM t").is_empty());
}

#[test]
fn keys_may_be_lists() {
    let f = fixture().with(&["UPDATE t SET v = 5 WHERE k IN (1, 2, 1) AND c IN (1, 2)"]);
    assert_eq!(
        f.rows("SELECT k, c, v FROM t"),
        ["1 | 1 | 5", "1 | 2 | 5", "2 | 1 | 5", "2 | 2 | 5"]
    );
    let parameters = ExecutionParameters {
        values: vec![int(6), ints(&[1, 2]), ints(&[])],
        ..ExecutionParameters::default()
    };
    f.execute("UPDATE t SET v = ? WHERE k IN ? AND c IN ?", parameters)
        .unwrap();
    assert_eq!(f.rows("SELECT v FROM t WHERE k = 1"), ["5", "5"]);
}

#[test]
fn tuples_name_clustering_columns_together() {
    let f = fixture().with(&[
        "UPDATE wide SET v = 1 WHERE k = 0 AND (a, b) = (1, 2)",
        "UPDATE wide SET v = 2 WHERE k = 0 AND (a, b) IN ((3, 4), (5, 6))",
        "UPDATE wide SET v = 3 WHERE k = 0 AND a = 7 AND (b) = (8)",
    ]);
    assert_eq!(
        f.rows("SELECT a, b, v FROM wide"),
        ["1 | 2 | 1", "3 | 4 | 2", "5 | 6 | 2", "7 | 8 | 3"]
    );
}

#[test]
fn statics_need_the_partition_alone() {
    let f = fixture().with(&[
        "UPDATE t SET s = 9 WHERE k = 1",
        "UPDATE t SET s = 8, v = 1 WHERE k = 2 AND c = 1",
    ]);
    assert_eq!(
        f.rows("SELECT k, c, s, v FROM t"),
        ["1 | null | 9 | null", "2 | 1 | 8 | 1"]
    );
}

#[test]
fn an_unset_value_leaves_the_column_as_it_is() {
    let f = fixture().with(&["INSERT INTO t (k, c, v, w) VALUES (1, 1, 1, 1)"]);
    let parameters = ExecutionParameters {
        values: vec![BoundValue::Unset, int(2)],
        ..ExecutionParameters::default()
    };
    f.execute(
        "UPDATE t SET v = ?, w = ? WHERE k = 1 AND c = 1",
        parameters,
    )
    .unwrap();
    assert_eq!(f.rows("SELECT v, w FROM t"), ["1 | 2"]);
    let nothing = ExecutionParameters {
        values: vec![BoundValue::Unset],
        ..ExecutionParameters::default()
    };
    f.execute("UPDATE t SET v = ? WHERE k = 5 AND c = 5", nothing)
        .unwrap();
    assert_eq!(f.rows("SELECT k FROM t"), ["1"]);
}
