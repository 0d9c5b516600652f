//! Rows that get another vector between the answer of the index service in the same process and
//! their reading.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::BoxFuture;
use storage::Storage;
use storage::mutation::AtomicWrite;
use store_api::{
    ClientError, ColumnsPredicate, InProcessService, IndexServices, KeyValue, MatchedRows,
    NearestRows, StoreClient, VectorSearch, WordMatches, WordSearch,
};
use uuid::Uuid;

use crate::fixture::Fixture;

/// An index service that gives canned answers, one after another: the ids of rows with the first
/// element of the vector that it knows. It knows nothing else of them.
struct Canned {
    /// A storage that is written to during each search.
    written: Option<Storage>,
    answers: Mutex<VecDeque<Vec<(i32, f32)>>>,
    /// The number of rows that each search asked for.
    asked: Mutex<Vec<usize>>,
}

impl InProcessService for Canned {
    fn search<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        search: VectorSearch,
    ) -> BoxFuture<'a, Result<NearestRows, ClientError>> {
        let limit = search.limit.get();
        self.asked.lock().unwrap().push(limit);
        let mut rows = self.answers.lock().unwrap().pop_front().unwrap();
        rows.truncate(limit);
        let key = |id: i32| vec![KeyValue::Cql(Bytes::copy_from_slice(&id.to_be_bytes()))];
        let found = NearestRows {
            keys: rows.iter().map(|(id, _)| key(*id)).collect(),
            similarity_scores: rows.iter().map(|(_, x)| 1.0 / (1.0 + x * x)).collect(),
            column_values: Vec::new(),
            is_short: false,
        };
        Box::pin(async move {
            if let Some(storage) = &self.written {
                let write = AtomicWrite {
                    mutations: Vec::new(),
                    condition: None,
                };
                storage.write(write).await.unwrap();
            }
            Ok(found)
        })
    }

    fn search_words<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: WordSearch,
    ) -> BoxFuture<'a, Result<NearestRows, ClientError>> {
        Box::pin(async { Err(ClientError::Unavailable) })
    }

    fn match_words<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: WordMatches,
    ) -> BoxFuture<'a, Result<MatchedRows, ClientError>> {
        Box::pin(async { Err(ClientError::Unavailable) })
    }

    fn highlight<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: String,
        _: Vec<Option<Bytes>>,
    ) -> BoxFuture<'a, Result<Vec<Option<String>>, ClientError>> {
        Box::pin(async { Err(ClientError::Unavailable) })
    }

    fn score_texts<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        _: String,
        _: Vec<ColumnsPredicate>,
        _: Vec<Option<Bytes>>,
    ) -> BoxFuture<'a, Result<Vec<Option<f32>>, ClientError>> {
        Box::pin(async { Err(ClientError::Unavailable) })
    }

    fn ranked_rows(&self, _: &str, _: &str) {}

    fn created<'a>(&'a self, _: &'a str, _: &'a str, _: Uuid) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    fn serves(&self, _: &str, _: &str, _: Uuid) -> bool {
        true
    }
}

/// A table whose rows have these ids and first elements of their vectors, and an index service.
/// Something is written during each search.
fn table(rows: &[(i32, f32)], answers: &[&[(i32, f32)]]) -> (Fixture, Arc<Canned>) {
    table_written_to(true, rows, answers)
}

fn table_written_to(
    is_written_to: bool,
    rows: &[(i32, f32)],
    answers: &[&[(i32, f32)]],
) -> (Fixture, Arc<Canned>) {
    let mut fixture = Fixture::with_stores(StoreClient::disabled()).with(&[
        "CREATE TABLE t (id int PRIMARY KEY, n int, v vector<float, 2>)",
        "CREATE CUSTOM INDEX i ON t (v) USING 'vector_index' WITH OPTIONS = {'similarity_function': 'euclidean'}",
    ]);
    for (id, x) in rows {
        fixture.run(&format!(
            "INSERT INTO t (id, n, v) VALUES ({id}, 1, [{x}, 0])"
        ));
    }
    let store = Arc::new(Canned {
        written: is_written_to.then(|| fixture.database.storage.clone()),
        answers: Mutex::new(answers.iter().map(|answer| answer.to_vec()).collect()),
        asked: Mutex::default(),
    });
    fixture.database.stores = IndexServices::from(store.clone());
    (fixture, store)
}

fn nearest(fixture: &Fixture, limit: usize) -> Vec<String> {
    let query = format!(
        "SELECT id FROM t WHERE n = 1 ORDER BY v ANN OF [0, 0] LIMIT {limit} ALLOW FILTERING"
    );
    fixture.rows(&query)
}

#[test]
fn a_row_stands_where_the_vector_belongs_that_was_read_with_it() {
    let told = [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)];
    let rows = [(1, 2.5), (2, 2.0), (3, 3.0), (4, 0.5)];
    let (fixture, store) = table(&rows, &[&told]);
    assert_eq!(nearest(&fixture, 4), ["4", "2", "1", "3"]);
    assert_eq!(*store.asked.lock().unwrap(), [4]);
}

#[test]
fn a_row_that_is_farther_away_than_all_that_were_named_is_made_up_for() {
    let told = [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)];
    let now = [(2, 2.0), (3, 3.0), (4, 4.0), (1, 9.0)];
    let (fixture, store) = table(&now, &[&told, &now]);
    assert_eq!(nearest(&fixture, 2), ["2", "3"]);
    assert_eq!(*store.asked.lock().unwrap(), [2, 6]);
    // It is the last of all rows.
    let (fixture, store) = table(&now, &[&told]);
    assert_eq!(nearest(&fixture, 5), ["2", "3", "4", "1"]);
    assert_eq!(*store.asked.lock().unwrap(), [5]);
}

#[test]
fn rows_that_stay_as_they_are_are_asked_for_once() {
    let told: Vec<(i32, f32)> = (1..100).map(|id| (id, id as f32 / 7.0)).collect();
    let (fixture, store) = table(&told, &[&told]);
    let expected: Vec<String> = (1..=50).map(|id: i32| id.to_string()).collect();
    assert_eq!(nearest(&fixture, 50), expected);
    assert_eq!(*store.asked.lock().unwrap(), [50]);
}

#[test]
fn vectors_are_compared_only_if_something_was_written_meanwhile() {
    let told = [(1, 1.0), (2, 2.0), (3, 3.0)];
    let (fixture, _) = table_written_to(false, &[(1, 9.0), (2, 2.0), (3, 3.0)], &[&told]);
    assert_eq!(nearest(&fixture, 2), ["1", "2"]);
}

/// Tests rows of which a visit to a blocking thread reads a few only, as they are large.
#[test]
fn large_rows_come_in_their_order() {
    let told: Vec<(i32, f32)> = (1..=80).map(|id| (id, id as f32 / 7.0)).collect();
    let expected: Vec<String> = (1..=80).map(|id: i32| id.to_string()).collect();
    let blob = "0f".repeat(100 << 10);
    for is_written_to in [false, true] {
        let (fixture, store) = table_written_to(is_written_to, &told, &[&told]);
        fixture.run("ALTER TABLE t ADD b blob");
        for id in (10..=80).step_by(2) {
            fixture.run(&format!("UPDATE t SET b = 0x{blob} WHERE id = {id}"));
        }
        assert_eq!(nearest(&fixture, 80), expected);
        assert_eq!(*store.asked.lock().unwrap(), [80]);
    }
}
