//! Tests that an index on vectors and one on texts equal their table in the end, whatever happens
//! to the table while it is scanned and the log is followed. That includes writes with timestamps
//! in the past, in the future and equal, null and absent values, deletes of rows, ranges and
//! partitions, batches, and cells that expire.

mod statements;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use scylla::value::CqlValue;
use serde_json::Value;
use statements::{SHAPES, TableShape, WORDS, statements};
use store_api::types::{AnnRequest, Bm25Request};

use crate::common::{self, Way, World, both_ways, euclidean_score};

impl TableShape {
    async fn create(&self, world: &World) {
        let columns: Vec<String> = self.keys.iter().map(|key| format!("{key} int")).collect();
        world
            .cql(&format!(
                "CREATE TABLE ks.{} ({}, v vector<float, 2>, body text, other text, PRIMARY KEY ({}))",
                self.table,
                columns.join(", "),
                self.primary_key
            ))
            .await;
    }

    /// Creates the indexes on vectors and on texts, one after the other.
    async fn create_indexes(&self, world: &World) {
        world.create_index(self.table, self.table).await;
        let (index, table) = (self.text_index(), self.table);
        world
            .cql(&format!(
                "CREATE CUSTOM INDEX {index} ON ks.{table} (body) USING 'fulltext_index'"
            ))
            .await;
    }

    async fn wait_serving(&self, world: &World) {
        world.wait_serving(self.table).await;
        world.wait_serving(&self.text_index()).await;
    }

    fn text_index(&self) -> String {
        format!("{}_words", self.table)
    }

    /// Returns the rows that each word should find.
    async fn expected_words(&self, world: &World) -> BTreeMap<&'static str, BTreeSet<String>> {
        let statement = format!(
            "SELECT {}, body FROM ks.{}",
            self.keys.join(", "),
            self.table
        );
        let mut found: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for word in WORDS {
            found.insert(word, BTreeSet::new());
        }
        for row in world.rows(&statement).await {
            let (text, key) = row.columns.split_last().unwrap();
            let Some(text) = text else {
                continue;
            };
            let text = text.as_text().unwrap();
            for (word, keys) in &mut found {
                if text.split(' ').any(|of_text| of_text == *word) {
                    keys.insert(key_text(key));
                }
            }
        }
        found
    }

    /// Returns the rows that each word finds in the index.
    async fn found_words(&self, world: &World) -> BTreeMap<&'static str, BTreeSet<String>> {
        let mut found = BTreeMap::new();
        for word in WORDS {
            let request = Bm25Request::new(word, 1_000);
            let index = self.text_index();
            let rows = world.client.words("ks", &index, &request, self.keys);
            let keys = common::keys(rows.await.expect("an answer"));
            let count = keys.len();
            let keys = keys.into_iter();
            let keys: BTreeSet<String> = keys.map(|key| Value::from(key).to_string()).collect();
            assert_eq!(keys.len(), count, "{word} finds a row twice");
            found.insert(word, keys);
        }
        found
    }

    /// Returns the rows that the index should hold, with their scores.
    async fn expected(&self, world: &World, query: &[f32]) -> BTreeMap<String, f32> {
        let statement = format!("SELECT {}, v FROM ks.{}", self.keys.join(", "), self.table);
        let mut rows = BTreeMap::new();
        for row in world.rows(&statement).await {
            let (vector, key) = row.columns.split_last().unwrap();
            let Some(CqlValue::Vector(elements)) = vector else {
                continue;
            };
            let vector: Vec<f32> = elements.iter().map(|e| e.as_float().unwrap()).collect();
            rows.insert(key_text(key), euclidean_score(&vector, query));
        }
        rows
    }
}

/// A primary key of ints as JSON text.
fn key_text(key: &[Option<CqlValue>]) -> String {
    let values = key.iter();
    let values = values.map(|value| value.as_ref().unwrap().as_int().unwrap());
    let key: Vec<i32> = values.collect();
    serde_json::json!(key).to_string()
}

async fn write(world: &World, statements: &[String]) {
    let writers = statements
        .chunks(statements.len().div_ceil(8))
        .map(async |chunk| {
            for statement in chunk {
                world.cql(statement).await;
            }
        });
    futures::future::join_all(writers).await;
}

async fn assert_equal(world: &World, shape: &TableShape) {
    for query in [[0.5f32, -3.0], [40.0, 100.0]] {
        let mut last = None;
        let equal = common::eventually(shape.table, async || {
            let index = world.indexed(shape.table, &query, shape.keys).await;
            let table = shape.expected(world, &query).await;
            let same = index.len() == table.len()
                && index
                    .iter()
                    .zip(&table)
                    .all(|((a, s), (b, t))| a == b && (s - t).abs() <= 1e-4 * t.abs());
            last = Some((index, table));
            same
        });
        if tokio::time::timeout(common::PATIENCE / 2, equal)
            .await
            .is_err()
        {
            let (index, table) = last.unwrap();
            assert_eq!(index, table, "{}", shape.table);
            panic!("{}: scores differ", shape.table);
        }
    }
}

async fn assert_words_equal(world: &World, shape: &TableShape) {
    let mut last = None;
    let equal = common::eventually("words find the rows of the table", async || {
        let found = shape.found_words(world).await;
        let table = shape.expected_words(world).await;
        let same = found == table;
        last = Some((found, table));
        same
    });
    if tokio::time::timeout(common::PATIENCE / 2, equal)
        .await
        .is_err()
    {
        let (found, table) = last.unwrap();
        assert_eq!(found, table, "words of {}", shape.table);
    }
}

async fn an_index_equals_its_table_in_the_end(way: Way) {
    let world = World::start_with(way, |options| options.repair.small_table_rows = 0).await;
    for shape in SHAPES {
        shape.create(&world).await;
        let statements = statements(shape, 900);
        let (before, rest) = statements.split_at(300);
        let (during, after) = rest.split_at(300);
        write(&world, before).await;
        // The index is created, scanned and follows the log while rows change.
        tokio::join!(write(&world, during), shape.create_indexes(&world));
        shape.wait_serving(&world).await;
        write(&world, after).await;
        assert_equal(&world, shape).await;
        assert_words_equal(&world, shape).await;
        for index in [shape.table, &shape.text_index()] {
            assert!(world.status(index).await.unwrap().count > 0, "{index}");
        }
    }
    // Cells that have expired meanwhile are gone from all indexes.
    common::eventually("no cell is left that expires", async || {
        for shape in SHAPES {
            let times = format!("SELECT ttl(v), ttl(body) FROM ks.{}", shape.table);
            let times = world.rows(&times).await;
            let mut times = times.iter().flat_map(|row| &row.columns);
            if times.any(Option::is_some) {
                return false;
            }
        }
        true
    })
    .await;
    for shape in SHAPES {
        assert_equal(&world, shape).await;
        assert_words_equal(&world, shape).await;
        // Searches leave out an expired row before the index has read it again and dropped it.
        common::eventually("expired rows are dropped", async || {
            let found = world.indexed(shape.table, &[0.0, 0.0], shape.keys).await;
            let status = world.status(shape.table).await;
            status.is_ok_and(|status| status.count == found.len())
        })
        .await;
        let text_index = shape.text_index();
        common::eventually("expired texts are dropped", async || {
            let found = shape.found_words(&world).await;
            let found: BTreeSet<&String> = found.values().flatten().collect();
            let status = world.status(&text_index).await;
            status.is_ok_and(|status| status.count == found.len())
        })
        .await;
        for index in [shape.table, &text_index] {
            world.assert_repair_finds_nothing(index, true).await;
        }
    }
    world.store.shutdown().await;
}

/// The rows are compared where the answers are whole. Otherwise these must say that they may not
/// be. Returns whether one of them says so.
async fn check_words_whole_or_short(world: &World, way: Way, shape: &TableShape) -> bool {
    if way == Way::InProcess {
        let found = shape.found_words(world).await;
        assert_eq!(found, shape.expected_words(world).await, "{}", shape.table);
        return false;
    }
    let mut is_short = false;
    common::eventually(
        "words find all rows, or say that they may not",
        async || {
            let request = Bm25Request::new(WORDS.join(" OR "), 1_000);
            let index = shape.text_index();
            let found = world.client.words("ks", &index, &request, shape.keys);
            let found = found.await.expect("an answer");
            let expected = shape.expected_words(world).await;
            let expected: BTreeSet<&String> = expected.values().flatten().collect();
            is_short = found.is_short;
            is_short || found.keys.len() == expected.len()
        },
    )
    .await;
    is_short
}

/// The distances are compared where the answer is whole. Otherwise it must say that it may not be.
async fn check_whole_or_short(world: &World, way: Way, shape: &TableShape) -> bool {
    let query = [0.5f32, -3.0];
    let search = AnnRequest::new(query.to_vec(), 1_000);
    let client = &world.client;
    let ask = async || {
        let found = client.ann("ks", shape.table, &search, shape.keys).await;
        found.expect("an answer")
    };
    if way == Way::InProcess {
        let found = ask().await;
        let expected = shape.expected(world, &query).await;
        assert!(!found.is_short, "the rows are read");
        assert_eq!(found.keys.len(), expected.len(), "{}", shape.table);
        let mut expected: Vec<f32> = expected.into_values().collect();
        expected.sort_unstable_by(|a, b| b.total_cmp(a));
        for (told, expected) in found.similarity_scores.iter().zip(&expected) {
            assert!((told - expected).abs() <= 1e-4 * expected.abs());
        }
        return false;
    }
    // The index learns of writes some time later.
    let mut is_short = false;
    common::eventually("the answer is whole, or says that it is not", async || {
        let found = ask().await;
        let expected = shape.expected(world, &query).await;
        is_short = found.is_short;
        is_short || found.keys.len() == expected.len()
    })
    .await;
    is_short
}

async fn no_answer_is_short_in_silence_while_memory_runs_out(way: Way) {
    const LIMIT_BYTES: u64 = 1 << 30;
    let used_bytes = Arc::new(AtomicU64::new(0));
    let world = World::start_with(way, |options| {
        options.memory.limit_bytes = Some(LIMIT_BYTES);
        options.memory.check_interval = Duration::from_millis(5);
        options.memory.reported_bytes = Some(used_bytes.clone());
    });
    let world = world.await;
    for shape in SHAPES {
        shape.create(&world).await;
        // Rows do not expire while they are compared.
        let statements = statements(shape, 900).into_iter();
        let lasting = statements.filter(|statement| !statement.contains("USING TTL"));
        let statements: Vec<String> = lasting.collect();
        shape.create_indexes(&world).await;
        shape.wait_serving(&world).await;
        let (mut short, mut short_of_words) = (0, 0);
        for (number, some) in statements.chunks(30).enumerate() {
            let is_out = number % 3 > 0;
            let bytes = if is_out { 2 * LIMIT_BYTES } else { 0 };
            used_bytes.store(bytes, Ordering::Relaxed);
            common::eventually("the service has looked", async || {
                let metrics = world.get("/metrics").await;
                metrics.contains(&format!("\nmemory_used_bytes {bytes}\n"))
            })
            .await;
            write(&world, some).await;
            short += usize::from(check_whole_or_short(&world, way, shape).await);
            short_of_words += usize::from(check_words_whole_or_short(&world, way, shape).await);
        }
        for short in [short, short_of_words] {
            assert_eq!(short > 0, way == Way::Cql, "{short} of {}", shape.table);
        }
        used_bytes.store(0, Ordering::Relaxed);
        assert_equal(&world, shape).await;
        assert_words_equal(&world, shape).await;
        for index in [shape.table, &shape.text_index()] {
            common::eventually("no row waits for room", async || {
                let status = world.status(index).await;
                status.is_ok_and(|status| status.rows_without_room == 0)
            })
            .await;
        }
    }
    world.store.shutdown().await;
}

both_ways!(
    an_index_equals_its_table_in_the_end,
    no_answer_is_short_in_silence_while_memory_runs_out,
);
