//! Tests of the routes of full-text indexes, and of words in the filter of a search of vectors.

use index::FullTextOptions;
use store_api::{ClientError, ColumnsPredicate, VectorSearch, WordMatches, WordSearch};

use super::*;
use crate::identity::StructureOptions;
use crate::indexes::IndexContent;
use crate::items::ChangeKind;
use crate::observed::IndexableValue;

const TEXTS: [&str; 4] = [
    "the quick brown fox",
    "a lazy dog",
    "the fox and the fox",
    "quick dogs",
];

/// The identity of the full-text index `ks.texts` of `ks.t (body)`.
fn on_texts() -> IndexIdentity {
    IndexIdentity {
        column: "body".into(),
        keys: KeySchema {
            partition: vec![column("pk", CqlType::Int)],
            clustering: vec![],
        },
        options: StructureOptions::FullText(FullTextOptions::default()),
        ..identity("texts")
    }
}

fn put(content: &IndexContent, keys: &KeySchema, id: u32, value: IndexableValue) {
    content
        .keys_mut()
        .insert(id, keys.encode([id.to_be_bytes().as_slice()]));
    let value = content.prepare(&value).unwrap();
    let put = content.change(id, ChangeKind::Insert, Some(&value));
    assert_eq!(put, Ok(()));
}

/// A service with the index `ks.texts` of [`TEXTS`], and one of vectors, `ks.idx`, of the same rows
/// and one without a text. The vector of row `n` is `(n, 0)`.
async fn serving() -> Service {
    let service = Service::start(100).await;
    service.engine.set_connected(true);
    let texts = service.add(on_texts());
    let vectors = service.add(IndexIdentity {
        column: "v".into(),
        options: identity("idx").options,
        ..IndexIdentity {
            name: identity("idx").name,
            ..on_texts()
        }
    });
    service.engine.first_discovery();
    service.engine.serving(&texts);
    service.engine.serving(&vectors);
    let keys = &texts.identity.keys;
    for (id, text) in (0..).zip(TEXTS) {
        let text = IndexableValue::Text(text.to_owned());
        put(&texts.content, keys, id, text);
    }
    for id in 0..=TEXTS.len() as u32 {
        let vector = IndexableValue::Vector(vec![id as f32, 0.0]);
        put(&vectors.content, keys, id, vector);
    }
    service
}

impl Service {
    async fn texts(&self, route: &str, body: &str) -> Answer {
        let path = format!("/api/v1/indexes/ks/texts/{route}");
        self.send("POST", &path, "application/json", body).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_of_words_answers_by_column_best_first() {
    let service = serving().await;
    let answer = service.texts("bm25", r#"{"query":"fox","limit":9}"#).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.json()["primary_keys"], json!({"pk": [2, 0]}));
    let scores = answer.json()["scores"].clone();
    let scores: Vec<f64> = serde_json::from_value(scores).unwrap();
    assert!(scores[0] > scores[1] && scores[1] > 0.0, "{scores:?}");
    for (body, expected) in [
        (r#"{"query":"fox"}"#, json!([2])),
        (r#"{"query":"quick -dogs","limit":9}"#, json!([0])),
        (r#"{"words":"quick -dogs","limit":9}"#, json!([3, 0])),
        (r#"{"query":"none","limit":9}"#, json!([])),
        (
            r#"{"query":"fox","limit":9,"filter":{"not":{"type":"==","lhs":"pk","rhs":2},"allow_filtering":true}}"#,
            json!([0]),
        ),
        (
            r#"{"query":"fox","limit":9,"filter":{"and":[{"type":"BM25","lhs":"body","rhs":"quick"}]}}"#,
            json!([0]),
        ),
    ] {
        let answer = service.texts("bm25", body).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
        assert_eq!(answer.json()["primary_keys"]["pk"], expected, "{body}");
    }
    let metrics = service.get("/metrics").await.body;
    let line = r#"request_latency_seconds_count{index_name="texts",keyspace="ks"} 7"#;
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_query_is_refused_with_its_place_on_every_route() {
    let service = serving().await;
    for (route, rest) in [
        ("bm25", ""),
        ("matches", ""),
        ("highlight", r#","documents":["x"]"#),
        ("scores", r#","texts":["x"]"#),
    ] {
        let body = format!(r#"{{"query":"fox AND (dog"{rest}}}"#);
        let answer = service.texts(route, &body).await;
        assert_eq!(answer.status, 400, "{route}: {}", answer.body);
        assert!(answer.body.contains("at character"), "{}", answer.body);
        for (body, status) in [
            (format!(r#"{{"x":1{rest}}}"#), 400),
            (format!(r#"{{"query":"a","words":"b"{rest}}}"#), 422),
            (format!(r#"{{"query":7{rest}}}"#), 422),
            ("{".to_owned(), 400),
        ] {
            let answer = service.texts(route, &body).await;
            assert_eq!(answer.status, status, "{route} {body}: {}", answer.body);
        }
        let path = format!("/api/v1/indexes/ks/texts/{route}");
        let answer = service.send("POST", &path, "text/plain", "{}").await;
        assert_eq!(answer.status, 415, "{route}");
    }
    let answer = service.texts("bm25", r#"{"limit":1}"#).await;
    answer.is(422, "missing field `query`");
    let answer = service.texts("bm25", r#"{"query":"a","limit":0}"#).await;
    assert_eq!(answer.status, 422);
    // An index of texts has no vectors.
    let answer = service.ann("texts", r#"{"vector":[0,0]}"#).await;
    answer.is(404, "missing index: ks.texts");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_rows_that_match_come_in_pages() {
    let service = serving().await;
    let mut found = Vec::new();
    let mut after = String::new();
    loop {
        let body = format!(r#"{{"query":"quick fox","limit":2{after}}}"#);
        let answer = service.texts("matches", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let page = answer.json();
        found.extend(page["primary_keys"]["pk"].as_array().unwrap().clone());
        match page.get("next") {
            Some(next) => after = format!(r#","after":{next}"#),
            None => break,
        }
    }
    assert_eq!(Value::from(found), json!([0, 2, 3]));
    for after in ["00", "x"] {
        let body = format!(r#"{{"query":"fox","after":"{after}"}}"#);
        let answer = service.texts("matches", &body).await;
        assert_eq!(answer.status, 400, "{after}");
        assert!(answer.body.starts_with("after: "), "{}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_marked_and_scored_by_the_statistics_of_the_index() {
    let service = serving().await;
    let body = r#"{"query":"fox","documents":["a <fox>","dog",null]}"#;
    let answer = service.texts("highlight", body).await;
    let marked = json!({"highlights": ["a &lt;<b>fox</b>&gt;", null, null]});
    assert_eq!(answer.json(), marked);
    let body = r#"{"query":"fox","documents":["a fox"],"options":{"pre_tag":"[","post_tag":"]"}}"#;
    let answer = service.texts("highlight", body).await;
    assert_eq!(answer.json(), json!({"highlights": ["a [fox]"]}));
    let found = service.texts("bm25", r#"{"query":"fox"}"#).await.json();
    let body = json!({"query": "fox", "texts": [TEXTS[2], "dog", null]});
    let scores = service.texts("scores", &body.to_string()).await.json();
    let unmatched = &scores["scores"].as_array().unwrap()[1..];
    assert_eq!(unmatched, [Value::Null, Value::Null]);
    let (scored, of_search) = (&scores["scores"][0], &found["scores"][0]);
    let difference = scored.as_f64().unwrap() - of_search.as_f64().unwrap();
    assert!(difference.abs() < 1e-5, "{scored} {of_search}");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_may_be_longer_than_other_bodies_and_are_bounded_all_the_same() {
    let service = serving().await;
    let body = |bytes: usize| json!({"query": "fox", "documents": ["x".repeat(bytes)]}).to_string();
    assert_eq!(service.texts("highlight", &body(3 << 20)).await.status, 200);
    let answer = service.texts("highlight", &body(33 << 20)).await;
    assert_eq!(answer.status, 413, "{}", answer.body);
    let long = json!({"query": "x".repeat(3 << 20)}).to_string();
    assert_eq!(service.texts("bm25", &long).await.status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn words_restrict_a_search_of_vectors() {
    let service = serving().await;
    let leaf = |query: &str| format!(r#"{{"type":"BM25","lhs":"body","rhs":"{query}"}}"#);
    for (condition, expected) in [
        (format!(r#""and":[{}]"#, leaf("fox")), json!([0, 2])),
        // The row without a text matches neither.
        (format!(r#""not":{}"#, leaf("fox")), json!([1, 3])),
        (
            format!(
                r#""or":[{},{{"type":"==","lhs":"pk","rhs":4}}]"#,
                leaf("lazy")
            ),
            json!([1, 4]),
        ),
        (
            format!(r#""and":[{},{{"not":{}}}]"#, leaf("quick"), leaf("fox")),
            json!([3]),
        ),
    ] {
        let body = format!(
            r#"{{"vector":[0,0],"limit":9,"filter":{{{condition},"allow_filtering":true}}}}"#
        );
        let answer = service.ann("idx", &body).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
        assert_eq!(answer.json()["primary_keys"]["pk"], expected, "{body}");
    }
    for (column, query, named) in [
        ("v", "fox", "but column v is not"),
        ("body", "(fox", "at character"),
    ] {
        let body = format!(
            r#"{{"vector":[0,0],"filter":{{"and":[{{"type":"BM25","lhs":"{column}","rhs":"{query}"}}]}}}}"#
        );
        let answer = service.ann("idx", &body).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.body);
        assert!(answer.body.contains(named), "{}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_for_words_come_to_what_requests_do() {
    let service = serving().await;
    let (local, remote) = (service.local(), service.remote());
    let fox = ColumnsPredicate::Words {
        column: "body".into(),
        index: "texts".into(),
        query: "fox".into(),
    };
    let not_fox = ColumnsPredicate::Not(Box::new(fox));
    // The first answer in the binary form shows the client that the service has it.
    for (index, query) in [
        ("texts", "quick"),
        ("texts", "(fox"),
        ("idx", "quick"),
        ("none", "x"),
    ] {
        let search = WordSearch {
            predicates: vec![not_fox.clone()],
            ..WordSearch::new(query, 9)
        };
        let here = local.words("ks", index, search.clone(), &["pk"]).await;
        let there = remote.words("ks", index, search, &["pk"]).await;
        assert_eq!(here, there, "{index} {query}");
        assert_eq!(
            here.is_ok(),
            (index, query) == ("texts", "quick"),
            "{here:?}"
        );
    }
    let search = VectorSearch {
        predicates: vec![not_fox],
        ..VectorSearch::new(vec![0.0, 0.0], 9)
    };
    let here = local.ann("ks", "idx", search.clone(), &["pk"]).await;
    assert_eq!(here.as_ref().unwrap().keys.len(), 2);
    assert_eq!(here, remote.ann("ks", "idx", search, &["pk"]).await);
    let texts = vec![Some(Bytes::from_static(b"fox")), None];
    let query = || "fox".to_owned();
    let here = local.score_texts("ks", "texts", query(), Vec::new(), texts.clone());
    let there = remote.score_texts("ks", "texts", query(), Vec::new(), texts.clone());
    assert_eq!(here.await, there.await);
    let here = local.highlight("ks", "texts", query(), texts.clone()).await;
    assert_eq!(here, Ok(vec![Some("<b>fox</b>".to_owned()), None]));
    assert_eq!(here, remote.highlight("ks", "texts", query(), texts).await);
    let page = local.word_matches("ks", "texts", WordMatches::new("fox", 1), &["pk"]);
    let page = page.await.unwrap();
    let next = WordMatches {
        after: page.next,
        ..WordMatches::new("fox", 1)
    };
    let here = local
        .word_matches("ks", "texts", next.clone(), &["pk"])
        .await;
    let there = remote.word_matches("ks", "texts", next, &["pk"]).await;
    let (here, there) = (here.unwrap(), there.unwrap());
    assert_eq!((here.keys.len(), here.next), (1, there.next));
    let early = WordSearch::new("fox", 1);
    let door: store_api::IndexServices = Arc::new(InProcessStore::default()).into();
    let early = door.words("ks", "texts", early, &["pk"]).await;
    assert_eq!(early, Err(ClientError::Unavailable));
}
