//! Statements that are refused, and the texts of their errors.

use bytes::Bytes;
use cql::error::ErrorKind;
use node::statement::{BoundValue, ExecutionParameters};

use crate::fixture::{Fixture, int, ints};

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (k int, a int, b int, s int static, v int, l list<int>, f \
         frozen<list<int>>, st set<int>, m map<int, int>, e vector<float, 3>, PRIMARY KEY (k, a, \
         b))",
        "CREATE TABLE names (k text PRIMARY KEY, v int)",
        "CREATE TABLE pair (x int, y int, v int, PRIMARY KEY ((x, y)))",
    ])
}

/// Checks that each statement is refused as invalid, with its message.
fn are_refused(statements: &[(&str, &str)]) {
    let f = fixture();
    for (cql, message) in statements {
        let error = f.execute(cql, ExecutionParameters::default()).unwrap_err();
        assert_eq!(error.message, *message, "{cql}");
        assert_eq!(error.kind, ErrorKind::Invalid, "{cql}");
    }
}

#[test]
fn inserts_that_cannot_be_prepared() {
    are_refused(&[
        (
            "INSERT INTO nothing (k) VALUES (1)",
            "table nothing does not exist",
        ),
        (
            "INSERT INTO nowhere.t (k) VALUES (1)",
            "keyspace nowhere does not exist",
        ),
        (
            "INSERT INTO t (k, a) VALUES (1)",
            "Unmatched column names/values",
        ),
        (
            "INSERT INTO t (k, x) VALUES (1, 2)",
            "Undefined column name x in table ks.t",
        ),
        (
            "INSERT INTO t (k, a, k) VALUES (1, 2, 3)",
            "The column names contains duplicates: k",
        ),
        (
            "INSERT INTO t (a, b) VALUES (1, 2)",
            "Some partition key parts are missing: k",
        ),
        (
            "INSERT INTO pair (v) VALUES (1)",
            "Some partition key parts are missing: x, y",
        ),
        (
            "INSERT INTO t (k, b, v) VALUES (1, 2, 3)",
            "Some clustering keys are missing: a",
        ),
        (
            "INSERT INTO t (k) VALUES (1)",
            "Some clustering keys are missing: a, b",
        ),
        (
            "INSERT INTO t (k, s, v) VALUES (1, 2, 3)",
            "Some clustering keys are missing: a, b",
        ),
        (
            "INSERT INTO t (k, a, b, v) VALUES (1, 2, 3, 'x')",
            "Invalid STRING constant (x) for \"v\" of type int",
        ),
        (
            "INSERT INTO t (k, a, b, e) VALUES (1, 2, 3, [1, 2])",
            "Invalid vector literal for e of type vector<float, 3>; expected 3 elements, but \
             given 2",
        ),
        (
            "INSERT INTO t (k, a, b) VALUES (1, 2, 3) USING TTL 630720001",
            "ttl is too large. requested (630720001) maximum (630720000)",
        ),
        (
            "INSERT INTO t (k, a, b) VALUES (1, 2, 3) USING TTL -1",
            "A TTL must be greater or equal to 0, but was -1",
        ),
        (
            "INSERT INTO t JSON '{}'",
            "Invalid null value in condition for column k",
        ),
    ]);
}

#[test]
fn conditions_that_cannot_be_are_refused() {
    are_refused(&[
        (
            "INSERT INTO names (k) VALUES ('x') IF NOT EXISTS USING TIMESTAMP 1",
            "Cannot provide custom timestamp for conditional updates",
        ),
        (
            "UPDATE t USING TIMESTAMP 5 SET v = 1 WHERE k = 1 AND a = 1 AND b = 1 IF v = 2",
            "Cannot provide custom timestamp for conditional updates",
        ),
        (
            "UPDATE t SET v = 1 WHERE k = 1 AND a = 1 AND b = 1 IF a = 2",
            "PRIMARY KEY column 'a' cannot have IF conditions",
        ),
        (
            "UPDATE t SET v = 1 WHERE k = 1 AND a = 1 AND b = 1 IF v > null",
            "Invalid comparison with null for operator \">\"",
        ),
        (
            "UPDATE t SET v = 1 WHERE k = 1 AND a = 1 AND b IN (1, 2) IF v = 2",
            "IN on the clustering key columns is not supported with conditional updates",
        ),
        (
            "DELETE FROM names WHERE k IN ('x', 'y') IF EXISTS",
            "IN on the partition key is not supported with conditional deletions",
        ),
        (
            "DELETE FROM t WHERE k = 1 IF EXISTS",
            "DELETE statements must restrict all PRIMARY KEY columns with equality relations in \
             order to delete non static columns",
        ),
    ]);
}

#[test]
fn settings_that_cannot_be_prepared() {
    are_refused(&[
        (
            "UPDATE t SET k = 1 WHERE k = 1",
            "PRIMARY KEY part k found in SET part",
        ),
        (
            "UPDATE t SET x = 1 WHERE k = 1",
            "Undefined column name x in table ks.t",
        ),
        (
            "UPDATE t SET v = v + 1 WHERE k = 1 AND a = 1 AND b = 1",
            "Invalid operation (v = v + 1) for non counter column v",
        ),
        (
            "UPDATE t SET f = f + [1] WHERE k = 1 AND a = 1 AND b = 1",
            "Invalid operation (f = f + [1]) for frozen collection column f",
        ),
        (
            "UPDATE t SET f[0] = 1 WHERE k = 1 AND a = 1 AND b = 1",
            "Invalid operation (f[0] = 1) for frozen collection column f",
        ),
        (
            "UPDATE t SET st[0] = 1 WHERE k = 1 AND a = 1 AND b = 1",
            "Invalid operation (st[0] = 1) for set column st",
        ),
        (
            "UPDATE t SET e[0] = 1 WHERE k = 1 AND a = 1 AND b = 1",
            "Invalid operation (e[0] = 1) for non collection column e",
        ),
        (
            "UPDATE t SET st = {1} + st WHERE k = 1 AND a = 1 AND b = 1",
            "Invalid operation (st = ... + st) for non list column st",
        ),
    ]);
}

#[test]
fn rows_that_an_update_cannot_name() {
    are_refused(&[
        (
            "UPDATE t SET v = 1 WHERE x = 1",
            "Undefined column name x in table ks.t",
        ),
        (
            "UPDATE t SET v = 1 WHERE a = 1 AND b = 1",
            "Some partition key parts are missing: k",
        ),
        (
            "UPDATE t SET v = 1 WHERE k = 1 AND a = 1",
            "Some clustering keys are missing: b",
        ),
        (
            "UPDATE t SET s = 1 WHERE k = 1 AND a = 1 AND b = 1",
            "Invalid restrictions on clustering columns since the UPDATE statement modifies only \
             static columns",
        ),
        (
            "UPDATE t SET v = 1 WHERE k = 1 AND a = 1 AND b = 1 AND v = 2",
            "Non PRIMARY KEY columns found in where clause: v",
        ),
        (
            "UPDATE t SET v = 1 WHERE k = 1 AND a = 1 AND b > 1",
            "Slice restrictions are not supported on the clustering columns in UPDATE statements",
        ),
        (
            "UPDATE t SET v = 1 WHERE k > 1 AND a = 1 AND b = 1",
            "Only EQ and IN relation are supported on the partition key (unless you use the \
             token() function) for UPDATE statements",
        ),
    ]);
}

#[test]
fn rows_that_a_delete_cannot_name() {
    are_refused(&[
        (
            "DELETE FROM t WHERE token(k) = 1",
            "The token function cannot be used in WHERE clauses for DELETE statements",
        ),
        (
            "DELETE FROM t WHERE k = 1 AND k = 2",
            "k cannot be restricted by more than one relation if it includes an Equal",
        ),
        (
            "DELETE FROM t WHERE k = 1 AND k IN (2)",
            "k cannot be restricted by more than one relation if it includes a IN",
        ),
        (
            "DELETE FROM t WHERE k = 1 AND a = 1 AND a > 2",
            "a cannot be restricted by more than one relation if it includes an Equal",
        ),
        (
            "DELETE FROM t WHERE k = 1 AND a > 1 AND a >= 2",
            "More than one restriction was found for the start bound on a",
        ),
        (
            "DELETE FROM t WHERE k = 1 AND a < 1 AND a < 2",
            "More than one restriction was found for the end bound on a",
        ),
        (
            "DELETE FROM t WHERE k = 1 AND b = 1",
            "PRIMARY KEY column \"b\" cannot be restricted as preceding column \"a\" is not \
             restricted",
        ),
        (
            "DELETE FROM t WHERE k = 1 AND a > 1 AND b = 1",
            "Clustering column \"b\" cannot be restricted (preceding column \"a\" is restricted \
             by a non-EQ relation)",
        ),
        (
            "DELETE FROM t WHERE k = 1 AND (b, a) > (1, 2)",
            "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: \
             (b, a)",
        ),
        (
            "DELETE FROM t WHERE k = 1 AND (k, a) > (1, 2)",
            "Multi-column relations can only be applied to clustering columns but was applied to: \
             k",
        ),
        (
            "DELETE FROM t WHERE k = 1 AND a CONTAINS 1",
            "Cannot use DELETE with CONTAINS",
        ),
    ]);
}

#[test]
fn columns_that_cannot_be_deleted() {
    are_refused(&[
        (
            "DELETE v FROM t WHERE k = 1 AND a = 1 AND b > 1",
            "Range deletions are not supported for specific columns",
        ),
        (
            "DELETE v FROM t WHERE k = 1 AND a = 1",
            "Range deletions are not supported for specific columns",
        ),
        (
            "DELETE s FROM t WHERE k = 1 AND a = 1",
            "Invalid restrictions on clustering columns since the DELETE statement modifies only \
             static columns",
        ),
        (
            "DELETE k FROM t WHERE k = 1",
            "Invalid identifier k for deletion (should not be a PRIMARY KEY part)",
        ),
        (
            "DELETE x FROM t WHERE k = 1",
            "Undefined column name x in table ks.t",
        ),
        (
            "DELETE v[0] FROM t WHERE k = 1 AND a = 1 AND b = 1",
            "Invalid deletion operation for non collection column v",
        ),
        (
            "DELETE f[0] FROM t WHERE k = 1 AND a = 1 AND b = 1",
            "Invalid deletion operation for frozen collection column f",
        ),
    ]);
}

#[test]
fn a_column_is_set_once() {
    let f = fixture();
    for (column, settings) in [
        ("v", "v = 1, v = 2"),
        ("l", "l = [1], l = l + [2]"),
        ("l", "l[0] = 1, l = [2]"),
        // The mistake is found before columns are looked up.
        ("k", "k = 1, k = 2"),
        ("x", "x = 1, y = 1, x = 2"),
        ("x", "x.y = 1, x.z = 1, x.y = 2"),
    ] {
        let cql = format!("UPDATE t SET {settings} WHERE k = 1 AND a = 1 AND b = 1");
        let error = f.execute(&cql, ExecutionParameters::default()).unwrap_err();
        assert_eq!(
            error.message,
            format!("Multiple incompatible setting of column {column}")
        );
        assert_eq!(error.kind, ErrorKind::SyntaxError);
    }
    let parts = "UPDATE t SET x[0] = 1, x[0] = 2, x += [3], x.y = 4 WHERE k = 1";
    let error = f
        .execute(parts, ExecutionParameters::default())
        .unwrap_err();
    assert_eq!(error.message, "Undefined column name x in table ks.t");
}

#[test]
fn values_that_cannot_be_written() {
    let f = fixture();
    let text = |length: usize| BoundValue::Value(Bytes::from(vec![b'x'; length]));
    let insert = "INSERT INTO t (k, a, b, v) VALUES (?, ?, ?, 1)";
    let names = "INSERT INTO names (k) VALUES (?)";
    let wrong_int = || BoundValue::Value(Bytes::from_static(&[0; 8]));
    for (cql, values, message) in [
        (
            insert,
            vec![BoundValue::Null, int(1), int(1)],
            "Invalid null value in condition for column k",
        ),
        (
            insert,
            vec![int(1), BoundValue::Null, int(1)],
            "Invalid null value in condition for column a",
        ),
        (
            insert,
            vec![int(1), int(1), BoundValue::Unset],
            "Invalid unset value for column b",
        ),
        (
            insert,
            vec![int(1), int(1), wrong_int()],
            "Invalid value for b: a value of type int takes 4 bytes, got 8",
        ),
        (names, vec![text(0)], "Key may not be empty"),
        (
            names,
            vec![text(65_536)],
            "Key length of 65536 is longer than maximum of 65535",
        ),
        (
            "UPDATE t SET e = ? WHERE k = 1 AND a = 1 AND b = 1",
            vec![BoundValue::Value(Bytes::from_static(&[0; 8]))],
            "Invalid value for e: a vector<float, 3> takes exactly 3 elements of 4 bytes, got 2 \
             elements",
        ),
        (
            "DELETE FROM t WHERE k IN ?",
            vec![BoundValue::Unset],
            "Invalid unset value for in(k)",
        ),
        (
            "DELETE FROM t WHERE k = 1 AND a > ?",
            vec![BoundValue::Null],
            "Invalid null value in condition for column a",
        ),
    ] {
        assert_eq!(f.refused(cql, &values), message, "{cql}");
    }
}

#[test]
fn the_keys_of_all_in_lists_together_are_bounded() {
    let f = fixture();
    let list = |count: i32| ints(&(0..count).collect::<Vec<_>>());
    for (cql, values, message) in [
        (
            "DELETE FROM t WHERE k IN ? AND a IN ?",
            vec![list(101), list(100)],
            "The IN restrictions name 10100 keys, more than the 10000 that one statement may \
             write to",
        ),
        (
            "UPDATE t SET e = [1, 2, 3] WHERE k IN ? AND a IN ? AND b = 1",
            vec![list(10_000), list(10_000)],
            "The IN restrictions name 100000000 keys, more than the 10000 that one statement may \
             write to",
        ),
        (
            "UPDATE t SET e = [1, 2, 3] WHERE k IN ? AND a IN ? AND b = 1 IF EXISTS",
            vec![list(10_000), list(10_000)],
            "IN on the partition key is not supported with conditional updates",
        ),
    ] {
        assert_eq!(f.refused(cql, &values), message, "{cql}");
    }
}

#[test]
fn a_vector_without_a_distance_is_taken_only_while_no_index_has_to_hold_it() {
    let f = Fixture::new().with(&["CREATE TABLE v (k int PRIMARY KEY, e vector<float, 2>)"]);
    let senseless = [f32::NAN, f32::INFINITY].map(f32::to_be_bytes).concat();
    let bound = |k| ExecutionParameters {
        values: vec![int(k), BoundValue::Value(Bytes::from(senseless.clone()))],
        ..ExecutionParameters::default()
    };
    let insert = "INSERT INTO v (k, e) VALUES (?, ?)";
    f.execute(insert, bound(1)).unwrap();
    f.run("INSERT INTO v (k, e) VALUES (2, [1, -Infinity])");
    assert_eq!(
        f.rows("SELECT e FROM v WHERE k IN (1, 2)"),
        ["[NaN, Infinity]", "[1.0, -Infinity]"]
    );
    f.run("CREATE CUSTOM INDEX i ON v (e) USING 'vector_index'");
    let refused = "Invalid value for e: element 0 of a vector<float, 2> is NaN: the elements of a vector that is \
                   indexed or searched by must be finite numbers, as no distance to anything else is defined";
    assert_eq!(f.execute(insert, bound(3)).unwrap_err().message, refused);
    for cql in [
        "UPDATE v SET e = [NaN, 1] WHERE k = 3",
        "INSERT INTO v (k, e) VALUES (3, [NaN, 1]) IF NOT EXISTS",
        "BEGIN BATCH INSERT INTO v (k, e) VALUES (3, [NaN, 1]); APPLY BATCH",
    ] {
        let error = f.execute(cql, ExecutionParameters::default()).unwrap_err();
        assert_eq!(error.message, refused, "{cql}");
    }
    f.run("DROP INDEX i");
    f.execute(insert, bound(3)).unwrap();
}
