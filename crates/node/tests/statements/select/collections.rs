//! Collections: assembled from their cells, searched, and taken apart by key.

use crate::fixture::{Fixture, int, text};

fn fixture() -> Fixture {
    Fixture::new().with(&[
        "CREATE TABLE t (p int PRIMARY KEY, l list<int>, s set<int>, m map<text, int>, fl frozen<list<int>>, \
         fs frozen<set<text>>, fm frozen<map<int, text>>, v vector<float, 2>, tu tuple<int, text>)",
        "INSERT INTO t (p, l, s, m, fl, fs, fm, v, tu) VALUES (1, [3, 1, 3], {5, -1}, {'b': 2, 'a': 1}, [9, 8], \
         {'y', 'x'}, {2: 'two', 1: 'one'}, [0.5, -1], (7, 'seven'))",
        "INSERT INTO t (p, l, s, m) VALUES (2, [], {}, {})",
        "INSERT INTO t (p, l, s, m, fl) VALUES (3, [1], {1}, {'a': 7}, [])",
        "UPDATE t SET l = l + [4], s = s - {1}, m['c'] = 3 WHERE p = 3",
    ])
}

#[test]
fn collections_are_assembled_in_the_order_of_their_type() {
    let fixture = fixture();
    assert_eq!(
        fixture.rows("SELECT p, l, s, m FROM t WHERE p IN (1, 2, 3)"),
        [
            "1 | [3, 1, 3] | {-1, 5} | {'a': 1, 'b': 2}",
            "2 | null | null | null",
            "3 | [1, 4] | null | {'a': 7, 'c': 3}",
        ]
    );
    assert_eq!(
        fixture.rows("SELECT fl, fs, fm, v, tu FROM t WHERE p IN (1, 3)"),
        [
            "[9, 8] | {'x', 'y'} | {1: 'one', 2: 'two'} | [0.5, -1.0] | (7, 'seven')",
            "[] | null | null | null | null",
        ]
    );
}

#[test]
fn elements_are_found_and_selected() {
    let fixture = fixture();
    let cases: &[(&str, &[&str])] = &[
        ("SELECT p FROM t WHERE l CONTAINS 3 ALLOW FILTERING", &["1"]),
        (
            "SELECT p FROM t WHERE l CONTAINS 1 AND l CONTAINS 4 ALLOW FILTERING",
            &["3"],
        ),
        (
            "SELECT p FROM t WHERE s CONTAINS -1 ALLOW FILTERING",
            &["1"],
        ),
        ("SELECT p FROM t WHERE m CONTAINS 7 ALLOW FILTERING", &["3"]),
        (
            "SELECT p FROM t WHERE m CONTAINS KEY 'b' ALLOW FILTERING",
            &["1"],
        ),
        ("SELECT p FROM t WHERE m['a'] = 7 ALLOW FILTERING", &["3"]),
        ("SELECT p FROM t WHERE m['z'] = 7 ALLOW FILTERING", &[]),
        (
            "SELECT p FROM t WHERE fl CONTAINS 8 ALLOW FILTERING",
            &["1"],
        ),
        (
            "SELECT p FROM t WHERE fs CONTAINS 'x' ALLOW FILTERING",
            &["1"],
        ),
        (
            "SELECT p FROM t WHERE fm CONTAINS 'two' ALLOW FILTERING",
            &["1"],
        ),
        (
            "SELECT p FROM t WHERE fm CONTAINS KEY 2 ALLOW FILTERING",
            &["1"],
        ),
        (
            "SELECT p FROM t WHERE fs = {'x', 'y'} ALLOW FILTERING",
            &["1"],
        ),
        ("SELECT p FROM t WHERE fl = [] ALLOW FILTERING", &["3"]),
        (
            "SELECT p FROM t WHERE tu = (7, 'seven') ALLOW FILTERING",
            &["1"],
        ),
        ("SELECT m['a'], m['z'] FROM t WHERE p = 1", &["1 | null"]),
        (
            "SELECT s[5], s[6], fs['y'], fm[2] FROM t WHERE p = 1",
            &["5 | null | 'y' | 'two'"],
        ),
        ("SELECT m['a'] FROM t WHERE p = 2", &["null"]),
    ];
    for (query, expected) in cases {
        assert_eq!(fixture.rows(query), *expected, "{query}");
    }
    assert_eq!(
        fixture.bound("SELECT m[?] FROM t WHERE p = ?", &[text("b"), int(1)]),
        ["2"]
    );
    assert_eq!(
        fixture.bound(
            "SELECT p FROM t WHERE m[?] = ? ALLOW FILTERING",
            &[text("a"), int(1)]
        ),
        ["1"]
    );
}

#[test]
fn frozen_collections_serve_as_clustering_columns() {
    let fixture = Fixture::new().with(&[
        "CREATE TABLE t (p int, c frozen<set<int>>, PRIMARY KEY (p, c))",
        "INSERT INTO t (p, c) VALUES (1, {2, 1})",
        "INSERT INTO t (p, c) VALUES (1, {3})",
    ]);
    assert_eq!(
        fixture.rows("SELECT c FROM t WHERE p = 1 AND c = {1, 2}"),
        ["{1, 2}"]
    );
    assert_eq!(
        fixture.rows("SELECT c FROM t WHERE p = 1 AND c CONTAINS 3 ALLOW FILTERING"),
        ["{3}"]
    );
    assert_eq!(
        fixture.refused("SELECT c FROM t WHERE p = 1 AND c CONTAINS 3", &[]),
        "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering"
    );
}
