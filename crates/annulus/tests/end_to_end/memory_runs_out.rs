//! Much is written to many tables under a small limit. The process stays within it, and no search
//! lacks a row: by CQL at each consistency level and by HTTP the answer is the nearest rows of all
//! that was written.
//!
//! `ANNULUS_MEMORY_MIB` sets the MiB that are written (`make memory-test`).

use std::sync::Arc;

use scylla::client::session::Session;
use scylla::statement::Consistency;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use store_api::types::AnnRequest;
use store_api::{ClientOptions, KeyValue, StoreClient};

use crate::memory::Watch;
use crate::server::Server;

const DEFAULT_MIB: usize = 48;
const DIMENSIONS: usize = 16;
const PAD_BYTES: usize = 2_000;
/// The rows of a batch, which are written to one partition.
const BATCH_ROWS: i32 = 100;
/// The rows of an answer.
const LIMIT: usize = 10;

/// Rows to write, and the limit under which.
struct Load {
    tables: usize,
    /// Whether each table has an index on its vectors.
    indexed: bool,
    limit_mib: u64,
}

/// The vector of a row, which its latest write gave it.
fn vector(table: usize, row: i32, round: i32) -> Vec<f32> {
    let mut state = (table as u64) << 40 | (row as u64) << 16 | round as u64;
    let elements = (0..DIMENSIONS).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 16_777_216.0
    });
    elements.collect()
}

fn similarity(a: &[f32], b: &[f32]) -> f32 {
    let distance: f32 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    1.0 / (1.0 + distance)
}

/// The similarities of the nearest rows, nearest first.
fn nearest(vectors: &[Vec<f32>], query: &[f32]) -> Vec<f32> {
    let mut all: Vec<f32> = vectors.iter().map(|one| similarity(one, query)).collect();
    all.sort_unstable_by(|a, b| b.total_cmp(a));
    all.truncate(LIMIT);
    all
}

struct Tables {
    session: Arc<Session>,
    http: StoreClient,
    inserts: Vec<PreparedStatement>,
    searches: Vec<PreparedStatement>,
    /// The vectors of each table, by the number of their row.
    vectors: Vec<Vec<Vec<f32>>>,
    indexed: bool,
}

impl Tables {
    async fn make(server: &Server, load: &Load) -> Tables {
        let session = server.connect().await;
        let run = async |statement: &str| {
            let done = session.query_unpaged(statement, ()).await;
            done.unwrap_or_else(|error| panic!("{statement}: {error}"));
        };
        run(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        )
        .await;
        let (mut inserts, mut searches) = (Vec::new(), Vec::new());
        for table in 0..load.tables {
            run(&format!(
                "CREATE TABLE ks.t{table} (p int, c int, pad blob, v vector<float, {DIMENSIONS}>, \
                 PRIMARY KEY (p, c))"
            ))
            .await;
            let insert = format!("INSERT INTO ks.t{table} (p, c, pad, v) VALUES (?, ?, ?, ?)");
            inserts.push(session.prepare(insert).await.unwrap());
            if load.indexed {
                run(&format!(
                    "CREATE CUSTOM INDEX i{table} ON ks.t{table} (v) USING 'vector_index' \
                     WITH OPTIONS = {{'similarity_function': 'euclidean'}}"
                ))
                .await;
                let search = format!(
                    "SELECT similarity_euclidean(v, ?) FROM ks.t{table} ORDER BY v ANN OF ? \
                     LIMIT {LIMIT} WITH ann_options = {{'exact': true}}"
                );
                searches.push(session.prepare(search).await.unwrap());
            }
        }
        let http = StoreClient::new(ClientOptions {
            base_uris: vec![format!("http://{}", server.http)],
            ..ClientOptions::default()
        });
        Tables {
            session: Arc::new(session),
            http: http.unwrap(),
            inserts,
            searches,
            vectors: vec![Vec::new(); load.tables],
            indexed: load.indexed,
        }
    }

    /// Writes a batch of rows to a table: new ones, or each third time those of the batch before.
    async fn write(&mut self, table: usize, round: i32) {
        let rows = &mut self.vectors[table];
        let held = i32::try_from(rows.len()).unwrap();
        let first = match round % 3 {
            2 => held - BATCH_ROWS,
            _ => held,
        };
        let mut batch = Batch::new(BatchType::Unlogged);
        let mut values = Vec::new();
        for row in first..first + BATCH_ROWS {
            let vector = vector(table, row, round);
            let at = usize::try_from(row).unwrap();
            match rows.get_mut(at) {
                Some(before) => *before = vector.clone(),
                None => rows.push(vector.clone()),
            }
            batch.append_statement(self.inserts[table].clone());
            let pad = vec![row as u8; PAD_BYTES];
            values.push((row / BATCH_ROWS, row, pad, vector));
        }
        let written = self.session.batch(&batch, values).await;
        written.unwrap_or_else(|error| panic!("a batch to t{table}: {error}"));
    }

    /// Compares the answers of one table with all that was written to it.
    async fn check(&self, table: usize, round: i32) {
        if !self.indexed {
            return;
        }
        let query = vector(table, -1, round);
        let expected = nearest(&self.vectors[table], &query);
        let same = |found: &[f32]| {
            found.len() == expected.len()
                && found
                    .iter()
                    .zip(&expected)
                    .all(|(a, b)| (a - b).abs() <= 1e-4)
        };
        for consistency in [Consistency::One, Consistency::LocalQuorum] {
            let mut search = self.searches[table].clone();
            search.set_consistency(consistency);
            let found = self
                .session
                .execute_unpaged(&search, (&query, &query))
                .await;
            let found = found.unwrap_or_else(|error| panic!("a search of t{table}: {error}"));
            let rows = found.into_rows_result().unwrap();
            let found: Vec<f32> = rows
                .rows::<(f32,)>()
                .unwrap()
                .map(|row| row.unwrap().0)
                .collect();
            assert!(
                same(&found),
                "t{table} in round {round} at {consistency}: {found:?}, where {expected:?} is right"
            );
        }
        let search = AnnRequest {
            exact: true,
            ..AnnRequest::new(query, LIMIT)
        };
        let index = format!("i{table}");
        let found = self.http.ann("ks", &index, &search, &["p", "c"]).await;
        let found = found.unwrap_or_else(|error| panic!("t{table} by HTTP: {error}"));
        assert!(!found.is_short, "the rows are there to be read");
        assert!(
            same(&found.similarity_scores),
            "t{table} in round {round} by HTTP: {found:?}, where {expected:?} is right"
        );
        let is_row = |key: &Vec<KeyValue>| key.len() == 2;
        assert!(found.keys.iter().all(is_row));
    }
}

/// Writes, and searches at each step. Returns the most bytes that the process took.
async fn run(load: Load) -> u64 {
    let mib = std::env::var("ANNULUS_MEMORY_MIB")
        .ok()
        .map_or(DEFAULT_MIB, |text| text.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let limit = format!("{}MiB", load.limit_mib);
    let server = Server::start_with(
        &directory.path().join("data"),
        &["--memory-limit", &limit, "--durability", "buffered"],
    );
    let watch = Watch::start(server.process_id());
    let mut tables = Tables::make(&server, &load).await;
    let bytes_a_round = load.tables * BATCH_ROWS as usize * PAD_BYTES;
    let rounds = i32::try_from((mib << 20).div_ceil(bytes_a_round)).unwrap();
    for round in 0..rounds {
        for table in 0..load.tables {
            tables.write(table, round).await;
        }
        for table in 0..load.tables {
            tables.check(table, round).await;
        }
    }
    let peak = watch.peak();
    eprintln!(
        "{} tables, indexed: {}: {mib} MiB written, {} MiB at the peak of {}",
        load.tables,
        load.indexed,
        peak >> 20,
        load.limit_mib
    );
    server.stop();
    peak
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_without_indexes_stay_within_the_limit() {
    let peak = run(Load {
        tables: 30,
        indexed: false,
        limit_mib: 128,
    });
    assert!(peak.await <= 128 << 20);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_search_lacks_a_row_while_memory_runs_out() {
    let peak = run(Load {
        tables: 30,
        indexed: true,
        limit_mib: 128,
    });
    assert!(peak.await <= 128 << 20);
}

/// The least limit leaves the indexes no room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_search_lacks_a_row_where_there_is_no_memory_for_indexes() {
    run(Load {
        tables: 6,
        indexed: true,
        limit_mib: 64,
    })
    .await;
}
