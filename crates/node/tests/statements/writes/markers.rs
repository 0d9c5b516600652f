//! Bind markers as drivers are told of them: their specs, and the markers that make the partition
//! key.

use crate::fixture::Fixture;

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (a int, b text, c int, v vector<float, 3>, PRIMARY KEY ((a, b), c))",
    ])
}

#[test]
fn markers_are_named_after_their_places() {
    let f = fixture();
    for (cql, expected) in [
        (
            "INSERT INTO t (v, c, b, a) VALUES (?, ?, ?, ?)",
            &["v vector<float, 3>", "c int", "b text", "a int"][..],
        ),
        (
            "UPDATE t SET v = :v WHERE a = :a AND b IN ? AND c IN (?, 1)",
            &["v vector<float, 3>", "a int", "in(b) list<text>", "c int"],
        ),
        (
            "DELETE FROM t USING TIMESTAMP ? WHERE a = ? AND b = 'x' AND (c) > ?",
            &["[timestamp] bigint", "a int", "(c) frozen<tuple<int>>"],
        ),
        (
            "DELETE FROM t WHERE a = 1 AND b = 'x' AND (c) > (?) AND (c) <= (?)",
            &["c int", "c int"],
        ),
        (
            "UPDATE t SET v = ? WHERE a = (?) AND b = ? AND (c) IN ((?), ?)",
            &[
                "v vector<float, 3>",
                "a int",
                "b text",
                "c int",
                "(c) frozen<tuple<int>>",
            ],
        ),
        (
            "DELETE FROM t WHERE a = 1 AND b = ? AND c > ? AND c <= ?",
            &["b text", "c int", "c int"],
        ),
    ] {
        assert_eq!(f.variables(cql), expected, "{cql}");
    }
}

#[test]
fn the_partition_key_is_known_if_markers_make_it_all() {
    let f = fixture();
    for (cql, expected) in [
        (
            "INSERT INTO t (v, c, b, a) VALUES (?, ?, ?, ?)",
            &[3, 2][..],
        ),
        ("INSERT INTO t (v, c, b, a) VALUES (?, ?, ?, 1)", &[]),
        (
            "UPDATE t SET v = ? WHERE b = ? AND a = ? AND c = 1",
            &[2, 1],
        ),
        ("DELETE FROM t WHERE a = ? AND b IN ?", &[]),
        ("DELETE FROM t WHERE a = ? AND b = ?", &[0, 1]),
    ] {
        let plan = f.plan(cql).unwrap();
        assert_eq!(plan.partition_key_variables(), expected, "{cql}");
    }
}
