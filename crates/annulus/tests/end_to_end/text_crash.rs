//! `kill -9` at random moments while segments of texts are merged. After the next start words find
//! the rows of the table, and the index comes from its snapshot.
//!
//! `ANNULUS_TEXT_KILLS` sets the number of kills (`make crash-test`).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use store_api::types::{Bm25Request, IndexState};
use store_api::{ClientOptions, KeyValue, StoreClient};
use test_support::blocking::eventually;
use test_support::until_ok;

use crate::server::Server;
use crate::snapshot_crash::{has_finished_generation, metric, while_saving};

const DEFAULT_KILLS: u32 = 4;
const WRITERS: u64 = 16;
const KEYS: i32 = 2_000;

/// The writes of all writers before segments are merged. A segment has 256 texts, and of eight one
/// is made. Those whose rows were written again meanwhile are made anew without them.
const WRITES_BEFORE: u64 = 5_000;

/// The words that are looked for. A text has two of them.
const MARKS: usize = 20;

/// The other words of texts, and how many of them a text has.
const FILLERS: u32 = 500;
const TEXT_WORDS: usize = 60;

/// The longest time that goes by between the first merge and the kill. All merges of so few texts
/// take about as long.
const MERGES_TAKE: Duration = Duration::from_millis(150);

/// The words that are looked for, with the keys of the rows that have them.
type WordKeys = BTreeMap<String, BTreeSet<i32>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_find_the_rows_of_the_table_after_a_crash_while_segments_are_merged() {
    let kills = std::env::var("ANNULUS_TEXT_KILLS")
        .ok()
        .map_or(DEFAULT_KILLS, |text| text.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = directory.path().join("data");
    let snapshots = data_dir.join("indexes").join("snapshots");
    let mut numbers = StdRng::seed_from_u64(7);
    // Segments are taken over into new generations while others are merged.
    let start = || Server::start_with(&data_dir, &["--snapshot-interval", "50ms"]);
    let mut server = start();
    create_schema(&server.connect().await).await;
    wait_until_serving(&client(&server)).await;
    let finished = snapshots.clone();
    let saved = tokio::task::spawn_blocking(move || {
        while_saving(&finished, |generations| {
            generations > 0 && has_finished_generation(&finished)
        });
    });
    saved.await.expect("a first save");
    for kill in 1..=kills {
        let session = Arc::new(server.connect().await);
        let statements = TextStatements::prepare(&session).await;
        let merges = tokio::task::spawn_blocking({
            let http = server.http;
            move || wait_for_merge(http)
        });
        write_all(&session, &statements, &mut numbers, WRITES_BEFORE / WRITERS).await;
        merges.await.expect("segments are merged");
        let writers = writers(&session, &statements, &mut numbers, u64::MAX);
        server.kill_after(MERGES_TAKE.mul_f64(numbers.random_range(0f64..1.0).powi(2)));
        for writer in writers {
            writer.await.expect("the writer ends");
        }
        server = start();
        let client = client(&server);
        wait_until_serving(&client).await;
        let scans = metric(server.http, "index_scans_total");
        assert_eq!(scans, Some(0), "kill {kill} cost a scan");
        let expected = words_of_table(&server.connect().await).await;
        until_ok("words find the rows of the table", async || {
            differences(&client, &expected).await
        })
        .await;
    }
}

async fn create_schema(session: &Session) {
    for statement in [
        "CREATE KEYSPACE crash WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE crash.t (k int PRIMARY KEY, body text)",
        "CREATE CUSTOM INDEX t_body ON crash.t (body) USING 'fulltext_index'",
    ] {
        session.query_unpaged(statement, ()).await.expect(statement);
    }
}

/// A client of the index service of a server.
fn client(server: &Server) -> StoreClient {
    StoreClient::new(ClientOptions {
        base_uris: vec![format!("http://{}", server.http)],
        ..ClientOptions::default()
    })
    .expect("the address makes a URI")
}

async fn wait_until_serving(client: &StoreClient) {
    until_ok("the index serves", async || {
        match client.index_status("crash", "t_body").await {
            Ok(status) if status.status == IndexState::Serving => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// Waits until there are fewer segments than before.
fn wait_for_merge(http: SocketAddr) {
    let mut last = 0;
    eventually("segments are merged", || {
        let count = metric(http, "fts_segment_count").unwrap_or(0);
        let is_merged = count < last;
        last = count;
        is_merged
    });
}

/// The statements of writers. They are prepared before a kill can come.
#[derive(Clone)]
struct TextStatements {
    insert: PreparedStatement,
    delete: PreparedStatement,
}

impl TextStatements {
    async fn prepare(session: &Session) -> TextStatements {
        let insert = session.prepare("INSERT INTO crash.t (k, body) VALUES (?, ?)");
        let insert = insert.await.expect("an insert");
        let delete = session.prepare("DELETE FROM crash.t WHERE k = ?");
        let delete = delete.await.expect("a delete");
        TextStatements { insert, delete }
    }
}

/// Starts all writers, each for so many statements, or until one fails because of a kill.
fn writers(
    session: &Arc<Session>,
    statements: &TextStatements,
    numbers: &mut StdRng,
    count: u64,
) -> Vec<tokio::task::JoinHandle<()>> {
    let writers = (0..WRITERS).map(|_| {
        let (session, statements) = (session.clone(), statements.clone());
        let numbers = StdRng::seed_from_u64(numbers.random());
        tokio::spawn(write(session, statements, numbers, count))
    });
    writers.collect()
}

async fn write_all(
    session: &Arc<Session>,
    statements: &TextStatements,
    numbers: &mut StdRng,
    count: u64,
) {
    for writer in writers(session, statements, numbers, count) {
        writer.await.expect("the writer ends");
    }
}

/// Inserts and deletes so many times, or until a statement fails because of a kill.
async fn write(session: Arc<Session>, statements: TextStatements, mut numbers: StdRng, count: u64) {
    for _ in 0..count {
        let key = numbers.random_range(0..KEYS);
        let written = match numbers.random_ratio(1, 8) {
            true => session.execute_unpaged(&statements.delete, (key,)).await,
            false => {
                let values = (key, text(&mut numbers));
                session.execute_unpaged(&statements.insert, values).await
            }
        };
        if written.is_err() {
            return;
        }
    }
}

fn text(numbers: &mut StdRng) -> String {
    let mut words: Vec<String> = (0..2)
        .map(|_| mark(numbers.random_range(0..MARKS)))
        .collect();
    for _ in 0..TEXT_WORDS {
        words.push(format!("filler{}", numbers.random_range(0..FILLERS)));
    }
    words.join(" ")
}

fn mark(number: usize) -> String {
    format!("mark{number}")
}

/// The rows that words have to find.
async fn words_of_table(session: &Session) -> WordKeys {
    let mut words: WordKeys = (0..MARKS)
        .map(|number| (mark(number), BTreeSet::new()))
        .collect();
    let rows = session
        .query_unpaged("SELECT k, body FROM crash.t", ())
        .await;
    let rows = rows
        .expect("the table is read")
        .into_rows_result()
        .expect("rows");
    for row in rows.rows::<(i32, String)>().expect("typed rows") {
        let (key, text) = row.expect("a row");
        for word in text.split(' ') {
            if let Some(keys) = words.get_mut(word) {
                keys.insert(key);
            }
        }
    }
    words
}

/// Fails with the words that don't find the rows that they have to.
async fn differences(client: &StoreClient, expected: &WordKeys) -> Result<(), String> {
    let mut differences = Vec::new();
    for (word, keys) in expected {
        let request = Bm25Request::new(word.as_str(), 100_000);
        let found = client.words("crash", "t_body", &request, &["k"]).await;
        let found = found.map_err(|error| format!("{word}: {error:?}"))?;
        let count = found.keys.len();
        let found: BTreeSet<i32> = found.keys.into_iter().map(key).collect();
        assert_eq!(found.len(), count, "{word} finds a row twice");
        if found != *keys {
            let missing: Vec<&i32> = keys.difference(&found).take(9).collect();
            let wrong: Vec<&i32> = found.difference(keys).take(9).collect();
            differences.push(format!("{word} lacks {missing:?} and finds {wrong:?}"));
        }
    }
    match differences.is_empty() {
        true => Ok(()),
        false => Err(differences.join("; ")),
    }
}

fn key(values: Vec<KeyValue>) -> i32 {
    match &values[..] {
        [KeyValue::Cql(bytes)] => i32::from_be_bytes(bytes[..].try_into().expect("an int")),
        other => panic!("{other:?}: our services answer in binary"),
    }
}
