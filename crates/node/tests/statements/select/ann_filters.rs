//! Nearest-neighbour queries with a WHERE clause, against an index service with canned answers.

use node::statement::BoundValue;
use serde_json::{Value, json};
use store_api::StoreClient;

use super::fake_store::FakeStore;
use crate::fixture::{Fixture, int, text};

const NEAREST: &str = "ORDER BY v ANN OF [1, 0] LIMIT 3";

/// A table with a column for each way to filter: `f` is declared, `m`, `s` and `o` aren't, but for
/// `st`, which is static.
fn shop(stores: StoreClient) -> Fixture {
    Fixture::with_stores(stores).with(&[
        "CREATE TABLE t (p int, c int, d int, f text, g list<int>, m map<text, text>, o int, st int static, v vector<float, 2>, PRIMARY KEY (p, c, d))",
        "CREATE CUSTOM INDEX i ON t (v, f, st) USING 'vector_index'",
        "INSERT INTO t (p, st) VALUES (1, 5)",
        "INSERT INTO t (p, c, d, f, o, m, g, v) VALUES (1, 1, 1, 'a', 1, {'k': 'x'}, [7], [1, 0])",
        "INSERT INTO t (p, c, d, f, o, m, g, v) VALUES (1, 2, 1, 'b', 2, {'k': 'y'}, [8], [0.9, 0.1])",
        "INSERT INTO t (p, c, d, f, o, m, v) VALUES (2, 1, 1, 'a', 1, {'l': 'x'}, [0.5, 0.5])",
        "INSERT INTO t (p, c, d, f, o, v) VALUES (2, 2, 1, 'b', 2, [0, 1])",
        "INSERT INTO t (p, c, d, f, o) VALUES (3, 1, 1, 'a', 1)",
    ])
}

/// The answer of an index that names these rows, and one that the table has no more.
fn names(keys: &[(i32, i32)]) -> String {
    let column = |of: fn(&(i32, i32)) -> i32| keys.iter().map(of).collect::<Vec<_>>();
    let zeros = vec![0; keys.len()];
    json!({
        "primary_keys": {"p": column(|key| key.0), "c": column(|key| key.1), "d": vec![1; keys.len()]},
        "distances": zeros,
        "similarity_scores": zeros,
    })
    .to_string()
}

const ALL: &[(i32, i32)] = &[(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)];

/// Runs a query whose rows an index names whatever it was asked, and returns the rows and the
/// restrictions that it was sent.
fn asked(
    fixture: &Fixture,
    store: &FakeStore,
    clause: &str,
    bound: &[BoundValue],
) -> (Vec<String>, Value) {
    let query = format!("SELECT p, c FROM t {clause}");
    let rows = match bound {
        [] => fixture.rows(&query),
        bound => fixture.bound(&query, bound),
    };
    let body: Value = serde_json::from_str(&store.last_request().1).unwrap();
    (rows, body["filter"].clone())
}

#[test]
fn relations_on_columns_that_the_index_keeps_are_sent() {
    let (store, client) = FakeStore::start();
    let shop = shop(client);
    store.answer(200, &names(ALL));
    for (relations, sent, rows) in [
        (
            "p = 1",
            json!([{"type": "==", "lhs": "p", "rhs": 1}]),
            &["1 | 1", "1 | 2"][..],
        ),
        (
            "p IN (2, 3)",
            json!([{"type": "IN", "lhs": "p", "rhs": [2, 3]}]),
            &["2 | 1", "2 | 2"],
        ),
        (
            "c >= 2",
            json!([{"type": ">=", "lhs": "c", "rhs": 2}]),
            &["1 | 2", "2 | 2"],
        ),
        (
            "(c, d) > (1, 1)",
            json!([{"type": "()>()", "lhs": ["c", "d"], "rhs": [1, 1]}]),
            &["1 | 2", "2 | 2"],
        ),
        (
            "(c, d) IN ((1, 1), (5, 5))",
            json!([{"type": "()IN()", "lhs": ["c", "d"], "rhs": [[1, 1], [5, 5]]}]),
            &["1 | 1", "2 | 1"],
        ),
        (
            "f = 'a'",
            json!([{"type": "==", "lhs": "f", "rhs": "a"}]),
            &["1 | 1", "2 | 1"],
        ),
        (
            "f > 'a' AND p = 2",
            json!([{"type": ">", "lhs": "f", "rhs": "a"}, {"type": "==", "lhs": "p", "rhs": 2}]),
            &["2 | 2"],
        ),
        (
            "st = 5",
            json!([{"type": "==", "lhs": "st", "rhs": 5}]),
            &["1 | 1", "1 | 2"],
        ),
        (
            "token(p) <= 9223372036854775807",
            json!([{"type": "TOKEN<=", "lhs": ["p"], "rhs": i64::MAX}]),
            &["1 | 1", "1 | 2", "2 | 1"],
        ),
    ] {
        let (found, filter) = asked(&shop, &store, &format!("WHERE {relations} {NEAREST}"), &[]);
        let expected = json!({"restrictions": sent, "allow_filtering": true});
        assert_eq!(filter, expected, "{relations}");
        assert_eq!(found, rows, "{relations}");
    }
    let bound = format!("WHERE f = ? {NEAREST}");
    let (found, filter) = asked(&shop, &store, &bound, &[text("b")]);
    assert_eq!(
        filter["restrictions"],
        json!([{"type": "==", "lhs": "f", "rhs": "b"}])
    );
    assert_eq!(found, ["1 | 2", "2 | 2"]);
    let null = shop.refused(&format!("SELECT p FROM t {bound}"), &[BoundValue::Null]);
    assert_eq!(null, "Unsupported null value for column f");
}

#[test]
fn other_columns_need_allow_filtering_and_are_checked_on_rows() {
    let (store, client) = FakeStore::start();
    let shop = shop(client);
    store.answer(200, &names(ALL));
    for (relation, column, rows) in [
        ("o = 1", "o", &["1 | 1", "2 | 1"][..]),
        ("o IN (2, 9)", "o", &["1 | 2", "2 | 2"]),
        ("m['k'] = 'y'", "m", &["1 | 2"]),
        ("m CONTAINS 'x'", "m", &["1 | 1", "2 | 1"]),
        ("m CONTAINS KEY 'k'", "m", &["1 | 1", "1 | 2"]),
        ("g CONTAINS 8", "g", &["1 | 2"]),
    ] {
        let query = format!("SELECT p FROM t WHERE {relation} {NEAREST}");
        let refused = shop.refused(&query, &[]);
        assert!(
            refused.starts_with(&format!("Column {column} ")),
            "{refused}"
        );
        assert!(
            refused.contains("declare it as a filter column"),
            "{refused}"
        );
        let clause = format!("WHERE {relation} {NEAREST} ALLOW FILTERING");
        let (found, filter) = asked(&shop, &store, &clause, &[]);
        assert_eq!(filter, Value::Null, "{relation}");
        assert_eq!(found, rows, "{relation}");
    }
    let both = format!("WHERE f = 'a' AND o = 1 {NEAREST} ALLOW FILTERING");
    let (found, filter) = asked(&shop, &store, &both, &[]);
    assert_eq!(
        filter["restrictions"],
        json!([{"type": "==", "lhs": "f", "rhs": "a"}])
    );
    assert_eq!(found, ["1 | 1", "2 | 1"]);
}

#[test]
fn a_column_with_a_vector_index_is_no_column_to_filter_by() {
    let (_store, client) = FakeStore::start();
    let shop = shop(client).with(&[
        "ALTER TABLE t ADD w vector<float, 2>",
        "CREATE CUSTOM INDEX j ON t (w) USING 'vector_index'",
    ]);
    let query = format!("SELECT p FROM t WHERE w = [3, 4] {NEAREST}");
    let refused = shop.refused(&query, &[]);
    assert!(refused.starts_with("Column w "), "{refused}");
    let refused = shop.refused(&format!("{query} ALLOW FILTERING"), &[]);
    assert_eq!(refused, "Vector indexes only support ANN queries");
}

#[test]
fn whole_keys_and_partitions_that_the_index_cant_filter_are_read_at_once() {
    let (store, client) = FakeStore::start();
    let shop = shop(client);
    for (clause, rows) in [
        (
            "WHERE p = 1 AND c IN (1, 2) AND d = 1",
            &["1 | 1", "1 | 2"][..],
        ),
        ("WHERE p IN (1, 2) AND o = 2", &["1 | 2", "2 | 2"]),
        ("WHERE p = 3 AND o = 1", &[]),
        ("WHERE p = 2 AND m['l'] = 'x'", &["2 | 1"]),
    ] {
        let query = format!("SELECT p, c FROM t {clause} {NEAREST} ALLOW FILTERING");
        assert_eq!(shop.rows(&query), rows, "{clause}");
    }
    assert_eq!(store.requests(), 0);
}

/// The index names as many rows as one answer may have, and none of them passes the filter.
#[test]
fn rows_that_the_index_never_reaches_are_found_by_a_scan() {
    let (store, client) = FakeStore::start();
    let shop = shop(client);
    store.answer_by(200, |body| {
        let body: Value = serde_json::from_str(body).unwrap();
        let limit = body["limit"].as_u64().unwrap() as usize;
        names(&vec![(9, 9); limit])
    });
    for (clause, rows) in [
        ("WHERE o = 2", &["1 | 2", "2 | 2"][..]),
        ("WHERE f = 'a'", &["1 | 1", "2 | 1"]),
        ("", &["1 | 1", "1 | 2", "2 | 1"]),
    ] {
        let query = format!("SELECT p, c FROM t {clause} {NEAREST} ALLOW FILTERING");
        let page = shop
            .page(&query, node::statement::ExecutionParameters::default())
            .unwrap();
        assert_eq!(page.rows, rows, "{clause}");
        assert!(page.warnings.is_empty());
    }
    assert_eq!(
        shop.bound(
            "SELECT c FROM t WHERE o = ? ORDER BY v ANN OF [0, 1] LIMIT 1 ALLOW FILTERING",
            &[int(1)]
        ),
        ["1"]
    );
}

#[test]
fn a_column_with_an_index_of_its_own_counts_as_named() {
    let (store, client) = FakeStore::start();
    let shop = shop(client).with(&[
        "CREATE CUSTOM INDEX ON t (o) USING 'sai'",
        "CREATE CUSTOM INDEX ON t (ENTRIES(m)) USING 'sai'",
    ]);
    store.answer(200, &names(ALL));
    for (relation, sent) in [
        ("o = 1", json!([{"type": "==", "lhs": "o", "rhs": 1}])),
        (
            "m['k'] = 'x'",
            json!([{"type": "[]==", "lhs": "m", "key": "k", "rhs": "x"}]),
        ),
    ] {
        let (_, filter) = asked(&shop, &store, &format!("WHERE {relation} {NEAREST}"), &[]);
        assert_eq!(filter["restrictions"], sent, "{relation}");
    }
    // The column is no longer kept once its index is gone.
    shop.run("DROP INDEX t_o_idx");
    let query = format!("SELECT p FROM t WHERE o = 1 {NEAREST}");
    assert!(shop.refused(&query, &[]).contains("ALLOW FILTERING"));
}

#[test]
fn a_column_whose_texts_an_option_makes_alike_is_checked_on_the_rows() {
    let (store, client) = FakeStore::start();
    let shop = Fixture::with_stores(client).with(&[
        "CREATE TABLE t (p int PRIMARY KEY, c int, d int, f text, v vector<float, 2>)",
        "CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'",
        "CREATE CUSTOM INDEX ON t (f) USING 'sai' WITH OPTIONS = {'case_sensitive': 'false'}",
        "INSERT INTO t (p, f, v) VALUES (1, 'a', [1, 0])",
    ]);
    store.answer(
        200,
        &json!({"primary_keys": {"p": [1]}, "distances": [0], "similarity_scores": [0]})
            .to_string(),
    );
    let rows = shop.rows(&format!("SELECT p FROM t WHERE f = 'a' {NEAREST}"));
    assert_eq!(rows, ["1"]);
    let body: Value = serde_json::from_str(&store.last_request().1).unwrap();
    assert!(body["filter"].is_null());
}
