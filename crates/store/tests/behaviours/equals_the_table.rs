//! Tests that the index equals its table in the end, whatever happens to the table while it is
//! scanned and the log is followed. That includes writes with timestamps in the past, in the future
//! and equal, null and absent vectors, deletes of rows, ranges and partitions, batches, and cells
//! that expire.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use scylla::value::CqlValue;
use store_api::types::AnnRequest;

use crate::common::{self, Way, World, both_ways, euclidean_score};

/// The primary key of a table. All key columns are `int` and named by letters.
struct Shape {
    table: &'static str,
    primary_key: &'static str,
    keys: &'static [&'static str],
    partition: usize,
}

const SHAPES: &[Shape] = &[
    Shape {
        table: "one_column",
        primary_key: "a",
        keys: &["a"],
        partition: 1,
    },
    Shape {
        table: "clustered",
        primary_key: "a, b",
        keys: &["a", "b"],
        partition: 1,
    },
    Shape {
        table: "composite",
        primary_key: "(a, b), c, d",
        keys: &["a", "b", "c", "d"],
        partition: 2,
    },
];

#[derive(Clone, Debug)]
enum Step {
    Insert {
        key: u32,
        vector: [i8; 2],
        using: Using,
    },
    Update {
        key: u32,
        vector: [i8; 2],
        using: Using,
    },
    Null {
        key: u32,
        using: Using,
    },
    Delete {
        key: u32,
        using: Using,
    },
    DeletePartition {
        key: u32,
    },
    DeleteRange {
        key: u32,
    },
    Touch {
        key: u32,
    },
    Batch {
        keys: [u32; 3],
        vector: [i8; 2],
    },
}

#[derive(Clone, Debug)]
enum Using {
    Nothing,
    Timestamp(i64),
    Ttl(u8),
}

fn using() -> impl Strategy<Value = Using> {
    const NOW: i64 = 1_900_000_000_000_000;
    prop_oneof![
        6 => Just(Using::Nothing),
        // The timestamps lie in the far past or the future, and are often equal.
        3 => prop_oneof![Just(1000), Just(NOW), Just(NOW + 1), 1..20i64].prop_map(Using::Timestamp),
        1 => (1..3u8).prop_map(Using::Ttl),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..60u32;
    let vector = || any::<[i8; 2]>();
    prop_oneof![
        8 => (key(), vector(), using()).prop_map(|(key, vector, using)| Step::Insert { key, vector, using }),
        4 => (key(), vector(), using()).prop_map(|(key, vector, using)| Step::Update { key, vector, using }),
        2 => (key(), using()).prop_map(|(key, using)| Step::Null { key, using }),
        3 => (key(), using()).prop_map(|(key, using)| Step::Delete { key, using }),
        1 => key().prop_map(|key| Step::DeletePartition { key }),
        1 => key().prop_map(|key| Step::DeleteRange { key }),
        1 => key().prop_map(|key| Step::Touch { key }),
        1 => (any::<[u8; 3]>(), vector()).prop_map(|(keys, vector)| Step::Batch { keys: keys.map(|key| u32::from(key) % 60), vector }),
    ]
}

impl Shape {
    async fn create(&self, world: &World) {
        let columns: Vec<String> = self.keys.iter().map(|key| format!("{key} int")).collect();
        world
            .cql(&format!(
                "CREATE TABLE ks.{} ({}, v vector<float, 2>, other text, PRIMARY KEY ({}))",
                self.table,
                columns.join(", "),
                self.primary_key
            ))
            .await;
    }

    /// Spreads a number over the key columns.
    fn key(&self, number: u32) -> Vec<u32> {
        let columns = self.keys.len() as u32;
        let base: u32 = if columns == 1 { 60 } else { 4 };
        (0..columns)
            .map(|at| number / base.pow(at) % base)
            .collect()
    }

    fn condition(&self, key: &[u32], columns: usize) -> String {
        let terms: Vec<String> = self
            .keys
            .iter()
            .zip(key)
            .take(columns)
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        terms.join(" AND ")
    }

    /// Returns the statement of a step. `None` if a table of this shape has no such statement.
    fn statement(&self, step: &Step) -> Option<String> {
        let Shape { table, keys, .. } = self;
        let names = keys.join(", ");
        let values = |key: u32| {
            let values: Vec<String> = self.key(key).iter().map(u32::to_string).collect();
            values.join(", ")
        };
        let of = |key: u32| self.condition(&self.key(key), keys.len());
        Some(match step {
            Step::Insert { key, vector, using } => format!(
                "INSERT INTO ks.{table} ({names}, v) VALUES ({}, {vector:?}){using}",
                values(*key)
            ),
            Step::Update { key, vector, using } => {
                format!(
                    "UPDATE ks.{table}{using} SET v = {vector:?} WHERE {}",
                    of(*key)
                )
            }
            Step::Null {
                key,
                using: Using::Ttl(_),
            } => {
                format!("DELETE v FROM ks.{table} WHERE {}", of(*key))
            }
            Step::Null { key, using } => {
                format!("UPDATE ks.{table}{using} SET v = null WHERE {}", of(*key))
            }
            Step::Delete {
                key,
                using: Using::Ttl(_),
            } => {
                format!("DELETE FROM ks.{table} WHERE {}", of(*key))
            }
            Step::Delete { key, using } => {
                format!("DELETE FROM ks.{table}{using} WHERE {}", of(*key))
            }
            Step::DeletePartition { key } => format!(
                "DELETE FROM ks.{table} WHERE {}",
                self.condition(&self.key(*key), self.partition)
            ),
            Step::DeleteRange { key } => {
                let clustering = *keys.get(self.partition)?;
                let key = self.key(*key);
                format!(
                    "DELETE FROM ks.{table} WHERE {} AND {clustering} > {}",
                    self.condition(&key, self.partition),
                    key[self.partition] / 2
                )
            }
            Step::Touch { key } => {
                format!("UPDATE ks.{table} SET other = 'x' WHERE {}", of(*key))
            }
            Step::Batch { keys: rows, vector } => {
                let inserts: Vec<String> = rows
                    .iter()
                    .map(|key| {
                        format!(
                            "INSERT INTO ks.{table} ({names}, v) VALUES ({}, {vector:?})",
                            values(*key)
                        )
                    })
                    .collect();
                format!("BEGIN BATCH {}; APPLY BATCH", inserts.join("; "))
            }
        })
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
            let key: Vec<i32> = key
                .iter()
                .map(|value| value.as_ref().unwrap().as_int().unwrap())
                .collect();
            rows.insert(
                serde_json::json!(key).to_string(),
                euclidean_score(&vector, query),
            );
        }
        rows
    }
}

impl std::fmt::Display for Using {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Using::Nothing => Ok(()),
            Using::Timestamp(timestamp) => write!(f, " USING TIMESTAMP {timestamp}"),
            Using::Ttl(seconds) => write!(f, " USING TTL {seconds}"),
        }
    }
}

/// Returns random statements, the same in each run.
fn statements(shape: &Shape, count: usize) -> Vec<String> {
    let mut runner = TestRunner::deterministic();
    let tree = proptest::collection::vec(step(), count)
        .new_tree(&mut runner)
        .unwrap();
    let steps = tree.current();
    steps
        .iter()
        .filter_map(|step| shape.statement(step))
        .collect()
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

async fn assert_equal(world: &World, shape: &Shape) {
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

async fn an_index_equals_its_table_in_the_end(way: Way) {
    let world = World::start_with(way, |options| options.repair.small_table_rows = 0).await;
    for shape in SHAPES {
        shape.create(&world).await;
        let statements = statements(shape, 900);
        let (before, rest) = statements.split_at(300);
        let (during, after) = rest.split_at(300);
        write(&world, before).await;
        // The index is created, scanned and follows the log while rows change.
        tokio::join!(
            write(&world, during),
            world.create_index(shape.table, shape.table)
        );
        world.wait_serving(shape.table).await;
        write(&world, after).await;
        assert_equal(&world, shape).await;
        assert!(world.status(shape.table).await.unwrap().count > 0);
    }
    // Cells that have expired meanwhile are gone from all indexes.
    common::eventually("no cell is left that expires", async || {
        for shape in SHAPES {
            let times = format!("SELECT ttl(v) FROM ks.{}", shape.table);
            let times = world.rows(&times).await;
            if times.iter().any(|row| row.columns[0].is_some()) {
                return false;
            }
        }
        true
    })
    .await;
    for shape in SHAPES {
        assert_equal(&world, shape).await;
        // Searches leave out an expired row before the index has read it again and dropped it.
        common::eventually("expired rows are dropped", async || {
            let found = world.indexed(shape.table, &[0.0, 0.0], shape.keys).await;
            let status = world.status(shape.table).await;
            status.is_ok_and(|status| status.count == found.len())
        })
        .await;
        world.assert_repair_finds_nothing(shape.table, true).await;
    }
    world.store.shutdown().await;
}

/// The distances are compared where the answer is whole. Otherwise it must say that it may not be.
async fn check_whole_or_short(world: &World, way: Way, shape: &Shape) -> bool {
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
        world.create_index(shape.table, shape.table).await;
        world.wait_serving(shape.table).await;
        let mut short = 0;
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
        }
        assert_eq!(short > 0, way == Way::Cql, "{short} of {}", shape.table);
        used_bytes.store(0, Ordering::Relaxed);
        assert_equal(&world, shape).await;
        common::eventually("no row waits for room", async || {
            let status = world.status(shape.table).await;
            status.is_ok_and(|status| status.rows_without_room == 0)
        })
        .await;
    }
    world.store.shutdown().await;
}

both_ways!(
    an_index_equals_its_table_in_the_end,
    no_answer_is_short_in_silence_while_memory_runs_out,
);
