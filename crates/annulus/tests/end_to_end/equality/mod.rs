//! Writers use timestamps in the past, in the future, and equal ones. They start before there is an
//! index, and go on while it scans and follows. In the end the table holds the result of
//! last-write-wins over all writes, whatever their order, and the index equals the table.

mod outcome;
mod scenario;
mod statements;
mod writing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use outcome::{Done, Effect, outcome};
use scenario::{DIMENSIONS, Scenario, Truncate, vector};
use scylla::client::session::Session;
use statements::Statements;
use test_support::until_ok;
use tokio::sync::{Mutex, RwLock};
use writing::{Writing, micros_now};

use crate::index::{Index, Scores};
use crate::server::Server;

const WRITERS: u64 = 4;
/// The number of rows that no writer contends for. They make the first scan take its time, and only
/// TRUNCATE removes them.
const BYSTANDERS: i32 = 2_000;
/// The number of such rows that are written after each scan.
const BYSTANDERS_MORE: i32 = 200;
/// The number of indexes that are made, one after the other, each with a scan beside the writers.
const INDEXES: usize = 2;
/// The number of writes that each index follows.
const WRITES_FOLLOWED: u64 = 600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_becomes_the_table_and_the_table_what_was_written() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Server::start(&directory.path().join("data"));
    let session = Arc::new(server.connect().await);
    let truncates = [
        Truncate::Never,
        Truncate::BetweenWrites,
        Truncate::AmongWrites,
    ];
    for (seed, truncate) in truncates.into_iter().enumerate() {
        let shapes = [(true, true), (true, false), (false, true), (false, false)];
        let scenarios = shapes
            .into_iter()
            .enumerate()
            .map(|(shape, (tablets, clustering))| Scenario {
                keyspace: format!("k{seed}_{shape}"),
                tablets,
                clustering,
                truncate,
                seed: (seed * shapes.len() + shape) as u64,
            });
        futures::future::join_all(scenarios.map(|scenario| run(&server, &session, scenario))).await;
    }
}

async fn run(server: &Server, session: &Arc<Session>, scenario: Scenario) {
    let writing = start_writing(session, &scenario).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            tokio::spawn(Arc::clone(&writing).write_until_stopped(scenario.seed * WRITERS + n))
        })
        .collect();
    let index = Index::new(
        server,
        &scenario.keyspace,
        "i",
        scenario.key_columns(),
        DIMENSIONS,
    );
    let mut written_during_scans = 0;
    let mut bystanders = BYSTANDERS..BYSTANDERS + BYSTANDERS_MORE;
    for round in 1..=INDEXES {
        writing.wait_for_writes(100).await;
        let written_before = writing.count.load(Ordering::Relaxed);
        create_index(session, &scenario.keyspace).await;
        index.wait_until_serving().await;
        written_during_scans += writing.count.load(Ordering::Relaxed) - written_before;
        writing.write_bystanders(bystanders.clone()).await;
        bystanders = bystanders.end..bystanders.end + BYSTANDERS_MORE;
        writing.wait_for_writes(WRITES_FOLLOWED / 2).await;
        writing.truncate().await;
        writing.wait_for_writes(WRITES_FOLLOWED / 2).await;
        if round < INDEXES {
            let drop = format!("DROP INDEX {}.i", scenario.keyspace);
            session.query_unpaged(drop.as_str(), ()).await.expect(&drop);
        }
    }
    assert!(
        written_during_scans > 0,
        "nothing was written during the scans"
    );
    writing.stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("the writer ends");
    }

    let expected = settled_table(session, &writing).await;
    index
        .assert_becomes(&scores(&expected), &format!("{scenario:?}"))
        .await;
    // A later write that has arrived proves that all earlier ones have arrived too.
    let mut expected = expected;
    let late = bystanders;
    writing.write_bystanders(late.clone()).await;
    expected.extend(late.map(|n| (scenario.bystander(n), n)));
    index
        .assert_becomes(&scores(&expected), &format!("{scenario:?}, afterwards"))
        .await;
    eprintln!(
        "{scenario:?}: {} rows after {} writes, {written_during_scans} of them during scans",
        expected.len(),
        writing.count.load(Ordering::Relaxed)
    );
}

async fn start_writing(session: &Arc<Session>, scenario: &Scenario) -> Arc<Writing> {
    let keyspace = &scenario.keyspace;
    let key = scenario.key_columns().join(", ");
    let clustering = if scenario.clustering { "c int," } else { "" };
    for statement in [
        format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}} \
             AND tablets = {{'enabled': {}}}",
            scenario.tablets
        ),
        format!(
            "CREATE TABLE {keyspace}.t (p int, {clustering} n int, v vector<float, {DIMENSIONS}>, PRIMARY KEY ({key}))"
        ),
    ] {
        session
            .query_unpaged(statement.as_str(), ())
            .await
            .expect(&statement);
    }
    let writing = Arc::new(Writing {
        scenario: scenario.clone(),
        session: Arc::clone(session),
        statements: Statements::prepare(session, scenario).await,
        start_micros: micros_now(),
        stop: AtomicBool::new(false),
        count: AtomicU64::new(0),
        gate: RwLock::new(()),
        done: Mutex::new(Vec::new()),
    });
    writing.write_bystanders(0..BYSTANDERS).await;
    writing
}

async fn create_index(session: &Session, keyspace: &str) {
    let create = format!(
        "CREATE CUSTOM INDEX i ON {keyspace}.t (v) USING 'vector_index' \
         WITH OPTIONS = {{'similarity_function': 'euclidean'}}"
    );
    session
        .query_unpaged(create.as_str(), ())
        .await
        .expect(&create);
}

/// Waits until everything has expired that will and, if it can be known, until the table equals the
/// outcome of all writes. Returns the table.
async fn settled_table(session: &Session, writing: &Writing) -> BTreeMap<Vec<i32>, i32> {
    let done = writing.done.lock().await;
    let expected = (writing.scenario.truncate != Truncate::AmongWrites).then(|| outcome(&done));
    until_ok(&format!("{:?} settles", writing.scenario), async || {
        let (found, expiring) = table(session, &writing.scenario).await;
        if expiring {
            return Err("values do not expire".to_owned());
        }
        match &expected {
            Some(expected) if *expected != found => Err(difference(&found, expected, &done)),
            _ => Ok(found),
        }
    })
    .await
}

/// Says of one key that a table differs in, by its latest writes.
fn difference(
    found: &BTreeMap<Vec<i32>, i32>,
    expected: &BTreeMap<Vec<i32>, i32>,
    done: &[Done],
) -> String {
    let mut keys = found.keys().chain(expected.keys());
    let wrong = keys.find(|key| found.get(*key) != expected.get(*key));
    let key = wrong.expect("they differ");
    let concerns = |done: &&Done| match &done.effect {
        Effect::Set { key: of, .. } | Effect::Unset { key: of } => of == key,
        Effect::Delete { from, to } => (from..=to).contains(&key),
    };
    let mut history: Vec<&Done> = done.iter().filter(concerns).collect();
    history.sort_by_key(|done| done.timestamp);
    let latest = &history[history.len().saturating_sub(4)..];
    format!(
        "key {key:?} holds {:?} instead of {:?} after {latest:?}",
        found.get(key),
        expected.get(key)
    )
}

/// A row of the table: a vector, its TTL, and its key.
type TableRow = (Option<Vec<f32>>, Option<i32>, Vec<i32>);

/// The numbers of the vectors in the table, and whether some of them will expire.
async fn table(session: &Session, scenario: &Scenario) -> (BTreeMap<Vec<i32>, i32>, bool) {
    let columns = scenario.key_columns().join(", ");
    let query = format!("SELECT v, ttl(v), {columns} FROM {}.t", scenario.keyspace);
    let rows = session
        .query_unpaged(query.as_str(), ())
        .await
        .expect(&query);
    let rows = rows.into_rows_result().expect("rows");
    let rows: Vec<TableRow> = if scenario.clustering {
        rows.rows::<(Option<Vec<f32>>, Option<i32>, i32, i32)>()
            .expect("typed rows")
            .map(|row| {
                row.map(|(v, ttl, p, c)| (v, ttl, vec![p, c]))
                    .expect("a row")
            })
            .collect()
    } else {
        rows.rows::<(Option<Vec<f32>>, Option<i32>, i32)>()
            .expect("typed rows")
            .map(|row| row.map(|(v, ttl, p)| (v, ttl, vec![p])).expect("a row"))
            .collect()
    };
    let expiring = rows.iter().any(|(_, ttl, _)| ttl.is_some());
    let numbers = rows
        .into_iter()
        .filter_map(|(v, _, key)| Some((key, v?[0] as i32)))
        .collect();
    (numbers, expiring)
}

fn scores(numbers: &BTreeMap<Vec<i32>, i32>) -> Scores {
    numbers
        .iter()
        .map(|(key, number)| (key.clone(), Index::score(&vector(*number))))
        .collect()
}
