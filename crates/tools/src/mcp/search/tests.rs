//! Statements of searches, and what is refused.

use std::collections::BTreeMap;

use serde_json::json;

use super::super::catalog::CatalogColumn;
use super::*;

fn index(name: &str, class: &str, target: &str) -> CatalogIndex {
    let options = [("class_name", class), ("target", target)];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    CatalogIndex::of("shop", "Products", name, BTreeMap::from(options))
}

fn table() -> CatalogTable {
    let columns = [
        ("id", "int", "partition_key"),
        ("about", "text", "regular"),
        ("price", "int", "regular"),
        ("v", "vector<float, 2>", "regular"),
        ("w", "vector<float, 3>", "regular"),
    ];
    let columns = columns.map(|(name, cql_type, kind)| CatalogColumn::of(name, cql_type, kind));
    CatalogTable {
        keyspace: "shop".to_owned(),
        name: "Products".to_owned(),
        columns: columns.to_vec(),
        indexes: vec![
            index("by_v", "vector_index", r#"{"tc":"v","fc":["price"]}"#),
            index("by_words", "fulltext_index", "about"),
            index("by_price", "sai", "price"),
        ],
    }
}

fn search(table: &CatalogTable, mut fields: Value) -> Result<BoundSelect, CallFailure> {
    fields["keyspace"] = json!("shop");
    fields["table"] = json!("Products");
    let arguments: SearchToolArguments = serde_json::from_value(fields).unwrap();
    statement(table, &arguments)
}

#[test]
fn a_search_for_neighbours_has_the_score_and_all_columns_but_vectors() {
    let made = search(&table(), json!({"vector": [1, 0.5], "limit": 3})).unwrap();
    assert_eq!(
        made.query,
        "SELECT id, about, price, similarity_cosine(v, ?) AS \"_score\" FROM shop.\"Products\" \
         ORDER BY v ANN OF ? LIMIT 3"
    );
    assert_eq!(made.parameters, [json!([1, 0.5]), json!([1, 0.5])]);
}

#[test]
fn the_values_of_a_filter_are_bound_in_the_order_of_the_markers() {
    let filter = json!({"id": {"in": [1, 2]}, "price": {"gt": 5, "lte": 9}});
    let made = search(
        &table(),
        json!({"text": "tea \"hot", "filter": filter, "columns": ["id"], "allow_filtering": true}),
    );
    let made = made.unwrap();
    assert_eq!(
        made.query,
        "SELECT id, BM25_SCORE(about, bm25_words(?)) AS \"_score\" FROM shop.\"Products\" \
         WHERE id IN ? AND price > ? AND price <= ? \
         ORDER BY BM25(about, bm25_words(?)) LIMIT 10 ALLOW FILTERING"
    );
    let words = json!("tea \"hot");
    let expected = [words.clone(), json!([1, 2]), json!(5), json!(9), words];
    assert_eq!(made.parameters, expected);
}

#[test]
fn a_vector_and_words_make_a_hybrid_search() {
    let made = search(
        &table(),
        json!({"vector": [1, 0], "text_query": "tea AND hot", "columns": ["id"], "filter": {"price": 4}}),
    );
    let made = made.unwrap();
    assert_eq!(
        made.query,
        "SELECT id, ANN_SCORE(v, ?) AS \"_vector_score\", BM25_SCORE(about, ?) AS \"_text_score\" \
         FROM shop.\"Products\" WHERE price = ? ORDER BY RRF(ANN(v, ?), BM25(about, ?)) LIMIT 10"
    );
    let (vector, words) = (json!([1, 0]), json!("tea AND hot"));
    let expected = [vector.clone(), words.clone(), json!(4), vector, words];
    assert_eq!(made.parameters, expected);
}

#[test]
fn a_table_with_several_vectors_needs_the_column() {
    let mut table = table();
    table.indexes.push(index("by_w", "vector_index", "w"));
    let failure = search(&table, json!({"vector": [1, 0]})).unwrap_err();
    assert!(failure.error.contains("v, w"), "{failure:?}");
    assert!(failure.hint.contains("vector_column"), "{failure:?}");
    let made = search(&table, json!({"vector": [1, 0, 0], "vector_column": "w"}));
    assert!(made.unwrap().query.contains("w ANN OF"));
    // Two on one column are one to a search.
    table.indexes.pop();
    table.indexes.push(index("by_v2", "vector_index", "v"));
    assert!(search(&table, json!({"vector": [1, 0]})).is_ok());
}

#[test]
fn the_similarity_is_that_of_the_index() {
    let mut table = table();
    let options = &mut table.indexes[0].options;
    options.insert("similarity_function".to_owned(), "DOT_PRODUCT".to_owned());
    let made = search(&table, json!({"vector": [1, 0]})).unwrap();
    assert!(
        made.query.contains("similarity_dot_product(v, ?)"),
        "{made:?}"
    );
}

/// Looks at the words of refusals.
fn refused(searches: &[(Value, &str, &str)]) {
    for (fields, error, hint) in searches {
        let failure = search(&table(), fields.clone()).unwrap_err();
        assert!(failure.error.contains(error), "{fields}: {failure:?}");
        assert!(failure.hint.contains(hint), "{fields}: {failure:?}");
    }
}

#[test]
fn bad_searches_name_the_thing_and_the_remedy() {
    let of_w = json!({"vector": [1, 0], "vector_column": "w"});
    let of_id = json!({"text": "a", "text_column": "id"});
    let huge = json!({"vector": [1, 0], "limit": 1001});
    refused(&[
        (json!({}), "needs `vector`", "cql"),
        (json!({"vector": [1]}), "has 1 numbers", "model"),
        (json!({"text": "a", "limit": 0}), "of 0", "1 to 1000"),
        (huge, "of 1001", "1 to 1000"),
        (of_w, "no vector index", ": v"),
        (json!({"vector_column": "v"}), "vector_column", "numbers"),
        (json!({"text": "a", "text_query": "b"}), "one of", "text"),
        (json!({"text_column": "about"}), "one of", "text"),
        (of_id, "no text index", "about"),
        (json!({"text": "a", "columns": []}), "empty", "some"),
        (json!({"text": "a", "columns": ["x"]}), "column x", "id"),
    ]);
}

#[test]
fn bad_filters_name_the_thing_and_the_remedy() {
    let filter = |filter: Value| json!({"text": "a", "filter": filter});
    refused(&[
        (filter(json!({"x": 1})), "no column x", "price"),
        (filter(json!({"price": null})), "null", "leave"),
        (filter(json!({"price": {"gt": null}})), "null", "leave"),
        (filter(json!({"price": {}})), "no comparison", "gte"),
        (filter(json!({"price": {"ne": 1}})), "ne is no", "gte"),
        (filter(json!({"or": [{"price": 1}]})), "`or`", "OR"),
    ]);
}

#[test]
fn an_unknown_argument_is_refused() {
    let arguments = json!({"keyspace": "shop", "table": "t", "vectors": [1]});
    let error = serde_json::from_value::<SearchToolArguments>(arguments).unwrap_err();
    assert!(error.to_string().contains("vectors"), "{error}");
}
