//! Words, several searches, and what a selection shows of them, against an index service in memory.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use store_api::{
    ClientError, ColumnsPredicate, InProcessService, IndexServices, KeyValue, MatchedRows,
    NearestRows, StoreClient, VectorSearch, WordMatches, WordSearch,
};
use uuid::Uuid;

use crate::fixture::{Fixture, text, vector};

/// The ids of the rows, the first elements of their vectors, and their texts.
static FILMS: [(i32, f32, &str); 4] = [
    (1, 1.0, "sea storm sea"),
    (2, 2.0, "storm"),
    (3, 3.0, "calm lake"),
    (4, 4.0, "sea"),
];

/// An index service that knows [`FILMS`]. The score of a text is the number of words of the query
/// that it has.
struct FilmService;

fn score(query: &str, document: &str) -> Option<f32> {
    let words = document.split(' ');
    let count = words.filter(|word| query.split(' ').any(|wanted| wanted == *word));
    let count = count.count();
    (count > 0).then_some(count as f32)
}

fn satisfies(document: &str, predicates: &[ColumnsPredicate]) -> bool {
    predicates.iter().all(|predicate| match predicate {
        ColumnsPredicate::Words { query, .. } => score(query, document).is_some(),
        _ => true,
    })
}

fn key(id: i32) -> Vec<KeyValue> {
    vec![KeyValue::Cql(Bytes::copy_from_slice(&id.to_be_bytes()))]
}

/// The rows with these scores, the best first.
fn named(mut scored: Vec<(i32, f32)>, limit: usize) -> Result<NearestRows, ClientError> {
    scored.sort_by(|a, b| b.1.total_cmp(&a.1));
    scored.truncate(limit);
    Ok(NearestRows {
        keys: scored.iter().map(|(id, _)| key(*id)).collect(),
        similarity_scores: scored.iter().map(|(_, score)| *score).collect(),
        column_values: Vec::new(),
        is_short: false,
    })
}

fn texts(documents: Vec<Option<Bytes>>) -> impl Iterator<Item = Option<String>> {
    let documents = documents.into_iter();
    documents.map(|text| Some(String::from_utf8(text?.to_vec()).unwrap()))
}

impl InProcessService for FilmService {
    fn search<'a>(
        &'a self,
        _: &'a str,
        index: &'a str,
        search: VectorSearch,
    ) -> BoxFuture<'a, Result<NearestRows, ClientError>> {
        assert_eq!(index, "by_v");
        let films = FILMS.iter();
        let films = films.filter(|(_, _, text)| satisfies(text, &search.predicates));
        let scored = films.map(|(id, x, _)| {
            let distance = x - search.vector[0];
            (*id, 1.0 / (1.0 + distance * distance))
        });
        let found = named(scored.collect(), search.limit.get());
        Box::pin(async { found })
    }

    fn search_words<'a>(
        &'a self,
        _: &'a str,
        index: &'a str,
        search: WordSearch,
    ) -> BoxFuture<'a, Result<NearestRows, ClientError>> {
        assert_eq!(index, "by_body");
        let films = FILMS.iter();
        let films = films.filter(|(_, _, text)| satisfies(text, &search.predicates));
        let scored = films.filter_map(|(id, _, text)| Some((*id, score(&search.query, text)?)));
        let found = named(scored.collect(), search.limit.get());
        Box::pin(async { found })
    }

    fn match_words<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        search: WordMatches,
    ) -> BoxFuture<'a, Result<MatchedRows, ClientError>> {
        let after = search.after.map_or(0, |after| i32::from(after[0]));
        let films = FILMS.iter().filter(|(id, _, text)| {
            *id > after
                && score(&search.query, text).is_some()
                && satisfies(text, &search.predicates)
        });
        let ids: Vec<i32> = films.map(|(id, _, _)| *id).collect();
        let page = &ids[..ids.len().min(search.limit.get())];
        let next = (page.len() < ids.len()).then(|| page[page.len() - 1] as u8);
        let found = MatchedRows {
            keys: page.iter().map(|id| key(*id)).collect(),
            next: next.map(|id| Bytes::copy_from_slice(&[id])),
            is_short: false,
        };
        Box::pin(async { Ok(found) })
    }

    fn highlight<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        query: String,
        documents: Vec<Option<Bytes>>,
    ) -> BoxFuture<'a, Result<Vec<Option<String>>, ClientError>> {
        let marked = texts(documents).map(|text| {
            let text = text?;
            score(&query, &text).map(|_| text.replace(&query, &format!("<b>{query}</b>")))
        });
        let marked = marked.collect();
        Box::pin(async { Ok(marked) })
    }

    fn score_texts<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        query: String,
        _: Vec<ColumnsPredicate>,
        documents: Vec<Option<Bytes>>,
    ) -> BoxFuture<'a, Result<Vec<Option<f32>>, ClientError>> {
        let scores = texts(documents).map(|text| score(&query, &text?)).collect();
        Box::pin(async { Ok(scores) })
    }

    fn ranked_rows(&self, _: &str, _: &str) {}

    fn created<'a>(&'a self, _: &'a str, _: &'a str, _: Uuid) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    fn serves(&self, _: &str, _: &str, _: Uuid) -> bool {
        true
    }
}

fn films() -> Fixture {
    let mut fixture = Fixture::with_stores(StoreClient::disabled()).with(&[
        "CREATE TABLE films (id int PRIMARY KEY, year int, body text, v vector<float, 2>, title text)",
        "CREATE CUSTOM INDEX by_v ON films (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}",
        "CREATE CUSTOM INDEX by_body ON films (body) USING 'fulltext_index'",
    ]);
    for (id, x, body) in FILMS {
        fixture.run(&format!(
            "INSERT INTO films (id, year, body, v) VALUES ({id}, 200{id}, '{body}', [{x}, 0])"
        ));
    }
    fixture.database.stores = IndexServices::from(Arc::new(FilmService));
    fixture
}

#[test]
fn rows_come_as_each_form_of_search_ranks_them() {
    let films = films();
    for (clauses, ids) in [
        ("ORDER BY BM25(body, 'sea') LIMIT 3", &["1", "4"][..]),
        (
            "WHERE BM25(body, 'sea') > 0 ORDER BY BM25(body, 'sea') LIMIT 3",
            &["1", "4"],
        ),
        (
            "WHERE BM25(body, 'storm') > 0 ORDER BY BM25(body, 'sea') LIMIT 3",
            &["1"],
        ),
        (
            "WHERE BM25(body, 'sea') > 0 ORDER BY v ANN OF [4, 0] LIMIT 3",
            &["4", "1"],
        ),
        (
            "ORDER BY RRF(ANN(v, [1, 0]), BM25(body, 'sea')) LIMIT 4",
            &["1", "4", "2", "3"],
        ),
        (
            "WHERE year > 2001 ORDER BY RRF(ANN(v, [1, 0]), BM25(body, 'sea')) LIMIT 4 ALLOW FILTERING",
            &["4", "2", "3"],
        ),
        (
            "ORDER BY RRF(ANN(v, [1, 0]), BM25(body, 'sea')) LIMIT 4 WITH hybrid_options = {'weights': [1, 0]}",
            &["1", "2", "3", "4"],
        ),
        (
            "ORDER BY ANN_SCORE(v, [1, 0]) + 0.2 * BM25_SCORE(body, 'sea') LIMIT 4",
            &["1", "2", "4", "3"],
        ),
        (
            "WHERE id IN (3, 4) ORDER BY RRF(ANN(v, [1, 0]), BM25(body, 'sea')) LIMIT 4",
            &["4", "3"],
        ),
        (
            "WHERE id IN (1, 3) ORDER BY BM25(body, 'sea lake') LIMIT 4",
            &["1", "3"],
        ),
        ("WHERE BM25(body, 'sea') > 0", &["1", "4"]),
        (
            "WHERE BM25(body, 'sea') > 0 AND year > 2001 LIMIT 7 ALLOW FILTERING",
            &["4"],
        ),
        ("WHERE BM25(body, 'sea') > 0 LIMIT 1", &["1"]),
    ] {
        let query = format!("SELECT id FROM films {clauses}");
        assert_eq!(films.rows(&query), ids, "{query}");
        if !clauses.contains("ORDER BY") {
            assert_eq!(films.paged(&query, &[], 1), ids, "{query}");
        }
    }
    let count = "SELECT count(*) FROM films WHERE BM25(body, 'sea') > 0";
    assert_eq!(films.rows(count), ["2"]);
}

#[test]
fn the_selection_shows_what_the_searches_know() {
    let films = films();
    let query = "SELECT id, ANN_RANK(v, ?), BM25_RANK(body, ?), BM25_HIGHLIGHT(body, ?) FROM films \
                 ORDER BY RRF(ANN(v, ?), BM25(body, ?)) LIMIT 3";
    let (like, sea) = (vector(&[1.0, 0.0]), text("sea"));
    let values = [
        like.clone(),
        sea.clone(),
        sea.clone(),
        like.clone(),
        sea.clone(),
    ];
    assert_eq!(
        films.bound(query, &values),
        [
            "1 | 1 | 1 | '<b>sea</b> storm <b>sea</b>'",
            "4 | 4 | 2 | '<b>sea</b>'",
            "2 | 2 | null | null",
        ]
    );
    // In an expression a row that a search did not name has its true score, and no rank.
    let query = "SELECT id, ANN_SCORE(v, ?), BM25_SCORE(body, ?), BM25_RANK(body, ?) FROM films \
                 ORDER BY ANN_SCORE(v, ?) + BM25_SCORE(body, ?) LIMIT 3";
    let values = [like.clone(), sea.clone(), sea.clone(), like, sea];
    let rows = films.bound(query, &values);
    assert!(rows[2].starts_with("2 | 0.5 | 0"), "{rows:?}");
    assert!(rows[2].ends_with("| null"), "{rows:?}");
    let matches = "SELECT id, BM25_SCORE(body, 'sea') FROM films WHERE BM25(body, 'sea') > 0";
    let rows = films.rows(matches);
    assert!(rows[0].starts_with("1 | 2") && rows[1].starts_with("4 | 1"));
}

#[test]
fn columns_and_markers_have_the_types_of_their_places() {
    let films = films();
    let query = "SELECT ANN(v, ?), system.bm25(body, ?), bm25_score(body, 'x'), ANN_RANK(v, ?) AS r \
                 FROM films WHERE BM25(body, ?) > 0 ORDER BY :w * ANN_SCORE(v, ?) LIMIT ?";
    assert_eq!(
        films.columns(query),
        [
            "system.ann(v, ?) frozen<tuple<float, int>>",
            "system.bm25(body, ?) frozen<tuple<float, int>>",
            "system.bm25_score(body, 'x') float",
            "r int"
        ]
    );
    assert_eq!(
        films.variables(query),
        [
            "v vector<float, 2>",
            "body text",
            "v vector<float, 2>",
            "body text",
            "w double",
            "v vector<float, 2>",
            "[limit] int"
        ]
    );
}

#[test]
fn a_plan_names_the_index_of_each_search() {
    let films = films();
    let query = "SELECT id FROM films WHERE BM25(body, 'x') > 0 AND year = 1 \
                 ORDER BY RRF(ANN(v, ?), BM25(body, ?)) LIMIT 3 ALLOW FILTERING";
    let plan = films.explain(query);
    assert_eq!(
        plan.lines().collect::<Vec<_>>(),
        [
            "select id from ks.films",
            "nearest v by index by_v",
            "best words of body by index by_body",
            "ranked by reciprocal ranks",
            "words by index by_body: bm25(body, 'x') > 0",
            "filter of rows: year = 1",
        ]
    );
}

#[test]
fn clauses_that_make_no_sense_are_named() {
    let films = films();
    for (query, fragment) in [
        (
            "SELECT * FROM films ORDER BY BM25(title, 'x') LIMIT 3",
            "BM25 requires the column to be indexed using 'fulltext_index', but column title is not",
        ),
        (
            "SELECT * FROM films ORDER BY BM25(year, 'x') LIMIT 3",
            "BM25",
        ),
        (
            "SELECT * FROM films WHERE BM25(title, 'x') > 0",
            "but column title is not",
        ),
        (
            "SELECT * FROM films ORDER BY BM25(body, 'x')",
            "BM25 queries must have a limit specified",
        ),
        (
            "SELECT * FROM films ORDER BY BM25(body, 'x') LIMIT 1001",
            "that is not greater than 1000",
        ),
        (
            "SELECT * FROM films ORDER BY BM25(body, null) LIMIT 3",
            "Unsupported null value for column body",
        ),
        (
            "SELECT * FROM films WHERE BM25(body, 'x') > 1",
            "the operator > with the literal 0",
        ),
        (
            "SELECT * FROM films WHERE BM25_SCORE(body, 'x') > 0",
            "WHERE takes BM25(column, words) > 0 alone",
        ),
        ("SELECT BM25_SCORE(body, 'x') FROM films", "need a search"),
        (
            "SELECT BM25_RANK(body, 'x') FROM films WHERE BM25(body, 'x') > 0",
            "there are no ranks",
        ),
        (
            "SELECT id FROM films WHERE BM25(body, 'x') > 0 GROUP BY id",
            "does not support GROUP BY",
        ),
        (
            "SELECT count(*) FROM films ORDER BY RRF(BM25(body, 'x')) LIMIT 3",
            "Hybrid Search queries cannot be run with aggregation",
        ),
        (
            "SELECT id FROM films ORDER BY BM25(body, 'x') LIMIT 3 WITH hybrid_options = {'candidates': 3}",
            "hybrid_options is for queries with ORDER BY RRF",
        ),
        (
            "SELECT id FROM films ORDER BY RRF(BM25(body, 'x')) LIMIT 30 WITH hybrid_options = {'candidates': 3}",
            "as LIMIT is 30",
        ),
    ] {
        let message = films.refused(query, &[]);
        assert!(message.contains(fragment), "{query}: {message}");
    }
}
