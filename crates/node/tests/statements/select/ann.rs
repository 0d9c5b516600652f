//! Nearest-neighbour queries against an index service with canned answers.

use cql::error::ErrorKind;
use node::statement::{BoundValue, ExecutionParameters};
use store_api::StoreClient;

use super::fake_store::FakeStore;
use crate::fixture::{Fixture, int, text, vector};

const PAGING_WARNING: &str =
    "Paging is not supported for Vector Search queries. The entire result set has been returned.";

fn films(stores: StoreClient) -> Fixture {
    Fixture::with_stores(stores).with(&[
        "CREATE TABLE films (id int PRIMARY KEY, title text, v vector<float, 3>, other vector<float, 3>, n int)",
        "CREATE CUSTOM INDEX films_v ON films (v) USING 'vector_index'",
        "INSERT INTO films (id, title, v) VALUES (1, 'one', [1, 0, 0])",
        "INSERT INTO films (id, title, v) VALUES (2, 'two', [0, 1, 0])",
        "INSERT INTO films (id, title, v) VALUES (3, 'three', [0, 0, 1])",
        "INSERT INTO films (id, title) VALUES (4, 'no vector')",
    ])
}

fn answer(ids: &[i32]) -> String {
    let scores: Vec<String> = (0..ids.len())
        .map(|n| format!("{}", 1.0 - n as f32 / 100.0))
        .collect();
    format!(
        "{{\"primary_keys\":{{\"id\":{ids:?}}},\"distances\":[{0}],\"similarity_scores\":[{0}]}}",
        scores.join(",")
    )
}

#[test]
fn rows_come_in_the_order_of_the_candidates() {
    let (store, client) = FakeStore::start();
    let films = films(client);
    store.answer(200, &answer(&[3, 1]));
    let queries = [
        "SELECT title FROM films ORDER BY v ANN OF [0, 0.5, 1] LIMIT 2",
        "SELECT title FROM films ORDER BY ANN(v, [0, 0.5, 1]) LIMIT 2",
        "SELECT title FROM films ORDER BY v ANN OF [0, 0.5, 1] LIMIT 2 ALLOW FILTERING",
    ];
    for query in queries {
        assert_eq!(films.rows(query), ["'three'", "'one'"], "{query}");
        let (path, body) = store.last_request();
        assert_eq!(path, "/api/v1/indexes/ks/films_v/ann");
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            body,
            serde_json::json!({"vector": [0.0, 0.5, 1.0], "limit": 2})
        );
    }
    let bound = "SELECT id, similarity_cosine(v, ?) FROM films ORDER BY v ANN OF ? LIMIT ?";
    assert_eq!(
        films.variables(bound),
        [
            "[selection] vector<float, 3>",
            "v vector<float, 3>",
            "[limit] int"
        ]
    );
    let query = vector(&[0.0, 0.0, 2.0]);
    assert_eq!(
        films.bound(bound, &[query.clone(), query, int(5)]),
        ["3 | 1.0", "1 | 0.5"]
    );
}

#[test]
fn an_exact_search_is_asked_for() {
    let (store, client) = FakeStore::start();
    let films = films(client);
    store.answer(200, &answer(&[3, 1]));
    let order = "ORDER BY v ANN OF [0, 0.5, 1] LIMIT 2";
    let exact = |query: &str| {
        assert_eq!(films.rows(query), ["'three'", "'one'"], "{query}");
        let body: serde_json::Value = serde_json::from_str(&store.last_request().1).unwrap();
        body["exact"].as_bool().unwrap_or(false)
    };
    for (query, is_exact) in [
        (
            format!("SELECT title FROM films {order} WITH ann_options = {{'exact': true}}"),
            true,
        ),
        (
            format!(
                "SELECT title FROM films WHERE id < 9 {order} ALLOW FILTERING WITH ann_options = {{'exact': 'true'}} BYPASS CACHE"
            ),
            true,
        ),
        (
            format!("SELECT title FROM films {order} WITH ann_options = {{'exact': false}}"),
            false,
        ),
        (format!("SELECT title FROM films {order}"), false),
    ] {
        assert_eq!(exact(&query), is_exact, "{query}");
    }
    let bound =
        "SELECT id FROM films ORDER BY v ANN OF ? LIMIT ? WITH ann_options = {'exact': true}";
    let rows = films.bound(bound, &[vector(&[0.0, 0.0, 2.0]), int(5)]);
    assert_eq!(rows, ["3", "1"]);
    assert!(store.last_request().1.contains("\"exact\":true"));
    // The rows that are asked for in place of others are the nearest for sure, too.
    store.answer(200, &answer(&[9, 3]));
    films.rows(&bound.replace("v ANN OF ? LIMIT ?", "v ANN OF [1, 1, 1] LIMIT 2"));
    assert!(store.last_request().1.contains("\"exact\":true"));
}

#[test]
fn an_answer_that_may_not_be_exact_is_none() {
    let (store, client) = FakeStore::start();
    let films = films(client);
    store.answer(200, &answer(&[3, 1]));
    store.knows_no_exact_searches();
    let query = "SELECT id FROM films ORDER BY v ANN OF [1, 1, 1] LIMIT 2";
    assert_eq!(films.rows(query), ["3", "1"]);
    assert_eq!(
        films.refused(
            &format!("{query} WITH ann_options = {{'exact': true}}"),
            &[]
        ),
        "Vector Store does not know exact searches: upgrade the index service, or leave 'exact' out"
    );
}

#[test]
fn options_that_make_no_sense_are_named() {
    let order = "ORDER BY v ANN OF [1, 2, 3] LIMIT 3";
    let with = |options: &str| format!("SELECT * FROM films {order} WITH {options}");
    for (query, fragment) in [
        (
            with("ann_options = {'beam': 10}"),
            "Unknown ANN option: 'beam'. The one that there is: 'exact'",
        ),
        (with("ann_options = {'rerank_k': 10}"), "is not supported"),
        (
            with("ann_options = {'exact': 'yes'}"),
            "Expected true or false, but found: yes",
        ),
        (
            with("ann_options = {'exact': true, 'exact': true}"),
            "Multiple definition for key 'exact'",
        ),
        (
            with("ann_options = 'exact'"),
            "It should be a map, such as {'exact': true}",
        ),
        (
            with("included_indexes = 'films_v'"),
            "Unknown property 'included_indexes': WITH of a SELECT takes ann_options and hybrid_options",
        ),
        (
            "SELECT * FROM films WITH ann_options = {'exact': true}".to_owned(),
            "for queries with ORDER BY ... ANN OF",
        ),
        (
            "SELECT * FROM films WHERE id = 1 WITH ann_options = {}".to_owned(),
            "for queries with ORDER BY ... ANN OF",
        ),
    ] {
        refuses(&[(&query, fragment)]);
    }
}

#[test]
fn rows_that_are_gone_are_left_out() {
    let (store, client) = FakeStore::start();
    let films = films(client);
    store.answer(200, &answer(&[9, 3, 4, 2]));
    films.run("DELETE v FROM films WHERE id = 2");
    assert_eq!(
        films.rows("SELECT id FROM films ORDER BY v ANN OF [1, 1, 1] LIMIT 4"),
        ["3"]
    );
    store.answer(200, &answer(&[]));
    assert!(
        films
            .rows("SELECT id FROM films ORDER BY v ANN OF [1, 1, 1] LIMIT 4")
            .is_empty()
    );
}

#[test]
fn all_rows_are_ranked_where_the_index_has_had_no_room_for_some() {
    let (store, client) = FakeStore::start();
    let films = films(client);
    let short = answer(&[3]).replacen('{', r#"{"short":true,"#, 1);
    store.answer(200, &short);
    for (query, expected) in [
        (
            "SELECT id FROM films ORDER BY v ANN OF [1, 0.5, 0.1] LIMIT 2",
            &["1", "2"][..],
        ),
        (
            "SELECT id FROM films ORDER BY v ANN OF [1, 0.5, 0.1] LIMIT 10",
            &["1", "2", "3"],
        ),
        (
            "SELECT id FROM films WHERE title = 'two' ORDER BY v ANN OF [1, 0, 0] LIMIT 1 ALLOW FILTERING",
            &["2"],
        ),
    ] {
        let asked = store.requests();
        assert_eq!(films.rows(query), expected, "{query}");
        assert_eq!(store.requests(), asked + 1, "{query}");
    }
}

/// The index still holds rows that the table has lost, and the query asks for more neighbours
/// instead.
#[test]
fn rows_that_are_gone_are_made_up_for() {
    let (store, client) = FakeStore::start();
    let films = films(client);
    for id in 100..400 {
        films.run(&format!(
            "INSERT INTO films (id, v) VALUES ({id}, [1, 2, 3])"
        ));
    }
    store.answer_by(200, |body| {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let limit = i32::try_from(body["limit"].as_i64().unwrap()).unwrap();
        answer(&(100..400.min(100 + limit)).collect::<Vec<_>>())
    });
    let nearest = |limit: usize| {
        let query = format!("SELECT id FROM films ORDER BY v ANN OF [1, 2, 3] LIMIT {limit}");
        films.rows(&query)
    };
    assert_eq!(nearest(1), ["100"]);
    films.run("DELETE FROM films WHERE id = 100");
    assert_eq!(nearest(1), ["101"]);
    films.run("DELETE v FROM films WHERE id = 101");
    assert_eq!(nearest(3), ["102", "103", "104"]);
    for id in 103..390 {
        films.run(&format!("DELETE FROM films WHERE id = {id}"));
    }
    let before = store.requests();
    assert_eq!(nearest(3), ["102", "390", "391"]);
    assert!(store.requests() - before < 8);
    // The table has no more rows with a vector.
    assert_eq!(nearest(100).len(), 11);
    let rescored = films.with(&[
        "CREATE CUSTOM INDEX better ON films (v) USING 'vector_index' WITH OPTIONS = {'quantization': 'i8', 'oversampling': '2', 'rescoring': 'true'}",
    ]);
    let query = "SELECT id FROM films ORDER BY v ANN OF [1, 2, 3] LIMIT 5";
    assert_eq!(rescored.rows(query).len(), 5);
}

#[test]
fn more_candidates_than_asked_for_are_cut() {
    let (store, client) = FakeStore::start();
    let films = films(client);
    store.answer(200, &answer(&[3, 2, 1]));
    assert_eq!(
        films.rows("SELECT id FROM films ORDER BY v ANN OF [1, 1, 1] LIMIT 2"),
        ["3", "2"]
    );
}

#[test]
fn quantized_candidates_are_put_in_order_again() {
    let (store, client) = FakeStore::start();
    let films = films(client).with(&[
        "CREATE CUSTOM INDEX better ON films (v) USING 'vector_index' WITH OPTIONS = {'quantization': 'i8', 'oversampling': '1.6', 'rescoring': 'true', 'similarity_function': 'DOT_PRODUCT'}",
    ]);
    store.answer(200, &answer(&[3, 4, 2, 1]));
    assert_eq!(
        films.rows("SELECT id, v FROM films ORDER BY v ANN OF [3, 2, 1] LIMIT 2"),
        ["1 | [1.0, 0.0, 0.0]", "2 | [0.0, 1.0, 0.0]"]
    );
    let (path, body) = store.last_request();
    assert_eq!(path, "/api/v1/indexes/ks/better/ann");
    assert!(body.contains("\"limit\":4"), "{body}");
}

#[test]
fn oversampling_without_rescoring_only_cuts() {
    let (store, client) = FakeStore::start();
    let films = films(client).with(&[
        "CREATE CUSTOM INDEX wide ON films (v) USING 'vector_index' WITH OPTIONS = {'oversampling': '2', 'rescoring': 'true'}",
    ]);
    store.answer(200, &answer(&[3, 2, 1]));
    assert_eq!(
        films.rows("SELECT id FROM films ORDER BY v ANN OF [3, 2, 1] LIMIT 2"),
        ["3", "2"]
    );
    assert!(store.last_request().1.contains("\"limit\":4"));
}

#[test]
fn many_rows_keep_their_order() {
    let (store, client) = FakeStore::start();
    let films = films(client);
    for id in 100..600 {
        films.run(&format!(
            "INSERT INTO films (id, v) VALUES ({id}, [1, 2, 3])"
        ));
    }
    let ids: Vec<i32> = (0..500).map(|n| 100 + n * 377 % 500).collect();
    store.answer(200, &answer(&ids));
    let rows = films.rows("SELECT id FROM films ORDER BY v ANN OF [1, 1, 1] LIMIT 500");
    let expected: Vec<String> = ids.iter().map(i32::to_string).collect();
    assert_eq!(rows, expected);
}

#[test]
fn keys_of_several_columns_are_put_together() {
    let (store, client) = FakeStore::start();
    let fixture = Fixture::with_stores(client).with(&[
        "CREATE TABLE t (p text, q varint, c timestamp, d uuid, v vector<float, 2>, s int static, PRIMARY KEY ((p, q), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)",
        "CREATE CUSTOM INDEX i ON t (v) USING 'vector_index'",
        "INSERT INTO t (p, q, c, d, v) VALUES ('a', 123456789012345678901234567890, '2024-01-02 03:04:05.678+0000', 00112233-4455-6677-8899-aabbccddeeff, [1, 2])",
        "INSERT INTO t (p, q, s) VALUES ('a', 7, 7)",
    ]);
    store.answer(
        200,
        r#"{"primary_keys":{"p":["a","a"],"q":["7","123456789012345678901234567890"],"c":["2024-01-02T03:04:05.678Z","2024-01-02T03:04:05.678Z"],"d":["00112233-4455-6677-8899-aabbccddeeff","00112233-4455-6677-8899-aabbccddeeff"]},"distances":[0,0],"similarity_scores":[1,1]}"#,
    );
    assert_eq!(
        fixture.rows("SELECT p, q, v FROM t ORDER BY v ANN OF [1, 2] LIMIT 5"),
        ["'a' | 123456789012345678901234567890 | [1.0, 2.0]"]
    );
}

#[test]
fn paging_is_warned_of() {
    let (store, client) = FakeStore::start();
    let films = films(client);
    store.answer(200, &answer(&[3, 2, 1]));
    let page = |page_size| {
        let parameters = ExecutionParameters {
            page_size: Some(page_size),
            ..ExecutionParameters::default()
        };
        films
            .page(
                "SELECT id FROM films ORDER BY v ANN OF [1, 1, 1] LIMIT 3",
                parameters,
            )
            .unwrap()
    };
    let short = page(2);
    assert_eq!(short.rows.len(), 3);
    assert_eq!(short.warnings, [PAGING_WARNING]);
    assert!(short.paging_state.is_none());
    assert!(page(3).warnings.is_empty());
}

/// Asserts that each of these queries is refused with a message that contains this.
fn refuses(cases: &[(&str, &str)]) {
    let (_store, client) = FakeStore::start();
    let films = films(client);
    for (query, fragment) in cases {
        let message = films.refused(query, &[]);
        assert!(message.contains(fragment), "{query}: {message}");
    }
}

#[test]
fn wrong_arguments_are_explained() {
    refuses(&[
        (
            "SELECT * FROM films ORDER BY other ANN OF [1, 2, 3] LIMIT 3",
            "ANN ordering by vector requires the column to be indexed",
        ),
        (
            "SELECT * FROM films ORDER BY v ANN OF [1, 2] LIMIT 3",
            "All arguments must have the same vector dimensions",
        ),
        (
            "SELECT * FROM films ORDER BY n ANN OF [1, 2, 3] LIMIT 3",
            "requires a float vector argument",
        ),
        (
            "SELECT * FROM films ORDER BY nope ANN OF [1, 2, 3] LIMIT 3",
            "Unrecognized name nope",
        ),
        (
            "SELECT * FROM films ORDER BY v ANN OF null LIMIT 3",
            "Unsupported null value for column v",
        ),
        (
            "SELECT * FROM films ORDER BY v ANN OF [NaN, 2, 3] LIMIT 3",
            "NaN",
        ),
        (
            "SELECT * FROM films ORDER BY v ANN OF 'text' LIMIT 3",
            "vector<float, 3>",
        ),
    ]);
}

#[test]
fn a_limit_is_needed() {
    refuses(&[
        (
            "SELECT * FROM films ORDER BY v ANN OF [1, 2, 3]",
            "Vector ANN queries must have a limit specified",
        ),
        (
            "SELECT * FROM films ORDER BY v ANN OF [1, 2, 3] LIMIT 1001",
            "requires a LIMIT that is not greater than 1000. LIMIT was 1001",
        ),
        (
            "SELECT * FROM films ORDER BY v ANN OF [1, 2, 3] PER PARTITION LIMIT 1 LIMIT 3",
            "do not support per-partition limits",
        ),
    ]);
}

#[test]
fn aggregates_are_refused() {
    refuses(&[
        (
            "SELECT count(*) FROM films ORDER BY v ANN OF [1, 2, 3] LIMIT 3",
            "cannot be run with aggregation",
        ),
        (
            "SELECT id FROM films GROUP BY id ORDER BY v ANN OF [1, 2, 3] LIMIT 3",
            "cannot be run with aggregation",
        ),
    ]);
}

#[test]
fn other_orderings_are_refused() {
    refuses(&[
        (
            "SELECT * FROM films ORDER BY ANN(v, [1, 2, 3]) DESC LIMIT 3",
            "Descending ANN ordering is not supported",
        ),
        (
            "SELECT * FROM films ORDER BY v ANN OF [1, 2, 3], v ANN OF [1, 2, 3] LIMIT 3",
            "Cannot specify more than one similarity ordering",
        ),
        (
            "SELECT * FROM films ORDER BY v ANN OF [1, 2, 3], id ASC LIMIT 3",
            "ordering does not support any other ordering",
        ),
        (
            "SELECT * FROM films ORDER BY foo(v, [1, 2, 3]) LIMIT 3",
            "Only ANN() and BM25() are supported as scoring functions in ORDER BY",
        ),
        (
            "SELECT * FROM films ORDER BY ANN(v, [1, 2, 3]), BM25(title, 'x') LIMIT 3",
            "BM25 and ANN cannot be combined in the same query",
        ),
    ]);
}

#[test]
fn other_restrictions_are_refused() {
    refuses(&[
        (
            "SELECT * FROM films WHERE v = [1, 2, 3]",
            "Vector indexes only support ANN queries",
        ),
        (
            "SELECT * FROM films WHERE v = [1, 2, 3] ORDER BY v ANN OF [1, 2, 3] LIMIT 3",
            "Vector indexes only support ANN queries",
        ),
        (
            "SELECT * FROM films WHERE title LIKE 'x' ORDER BY v ANN OF [1, 2, 3] LIMIT 3",
            "title LIKE 'x' can't restrict a Vector ANN query without ALLOW FILTERING",
        ),
        (
            "SELECT * FROM films WHERE title = 'x' ORDER BY v ANN OF [1, 2, 3] LIMIT 3",
            "Column title can't restrict a Vector ANN query",
        ),
        (
            "SELECT * FROM films WHERE nope = 1 ORDER BY v ANN OF [1, 2, 3] LIMIT 3",
            "nope",
        ),
    ]);
}

#[test]
fn wrong_bound_values_are_explained() {
    let (_store, client) = FakeStore::start();
    let films = films(client);
    let bound: Vec<(BoundValue, BoundValue, &str)> = vec![
        (
            BoundValue::Null,
            int(3),
            "Unsupported null value for column v",
        ),
        (
            vector(&[1.0, 2.0]),
            int(3),
            "All arguments must have the same vector dimensions, but found vector<float, 3> and vector<float, 2>",
        ),
        (vector(&[1.0, f32::INFINITY, 0.0]), int(3), "v"),
        (text("x"), int(3), "vector<float, 3>"),
        (
            vector(&[1.0, 2.0, 3.0]),
            int(1_001),
            "requires a LIMIT that is not greater than 1000. LIMIT was 1001",
        ),
        (
            vector(&[1.0, 2.0, 3.0]),
            BoundValue::Unset,
            "Vector ANN queries must have a limit specified",
        ),
    ];
    for (query_vector, limit, fragment) in bound {
        let message = films.refused(
            "SELECT * FROM films ORDER BY v ANN OF ? LIMIT ?",
            &[query_vector, limit],
        );
        assert!(message.contains(fragment), "{message}");
    }
}

#[test]
fn failures_of_the_service_are_told() {
    let query = "SELECT id FROM films ORDER BY v ANN OF [1, 1, 1] LIMIT 3";
    assert_eq!(
        films(StoreClient::disabled()).refused(query, &[]),
        "Vector Store is disabled"
    );
    let (store, client) = FakeStore::start();
    let films = films(client);
    store.answer(404, "missing index: ks.films_v");
    let message = films.refused(query, &[]);
    assert!(
        message.starts_with("Vector Store error: HTTP status 404")
            && message.ends_with("message: missing index: ks.films_v"),
        "{message}"
    );
    // Only at this error code do drivers ask another node, or ask again later.
    store.answer(503, "too many searches in flight");
    let error = films
        .execute(query, ExecutionParameters::default())
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Overloaded);
    assert_eq!(
        error.message,
        "Vector Store error: HTTP status 503 Service Unavailable, message: too many searches in flight"
    );
    store.answer(503, r#"{"reason":"INDEX_BUILDING","message":"12.5% done"}"#);
    let error = films
        .execute(query, ExecutionParameters::default())
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Invalid);
    for body in ["{}", &answer(&[1]).replace("[1]", "[\"x\"]"), "nonsense"] {
        store.answer(200, body);
        assert_eq!(
            films.refused(query, &[]),
            "Vector Store returned an invalid JSON",
            "{body}"
        );
    }
}
