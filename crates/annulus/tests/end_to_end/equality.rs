//! Writers with timestamps in the past, in the future and equal start before there is an index and go on while it
//! scans and follows: in the end the table holds what last-write-wins makes of all writes, whatever their order, and the index
//! holds what the table does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::index::{Index, Scores};
use crate::server::Server;
use futures::{StreamExt, TryStreamExt, stream};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use tokio::sync::{Mutex, RwLock};

const DIMENSIONS: usize = 3;
const WRITERS: u64 = 4;
/// Keys that the writers fight for, as partitions and rows of each.
const PARTITIONS: i32 = 20;
const ROWS: i32 = 15;
/// Rows that are there before and stay, so that the scan takes its time.
const BYSTANDERS: i32 = 2_000;
const BYSTANDERS_IN_FLIGHT: usize = 64;
/// Writes after the index serves.
const WRITES_FOLLOWED: u64 = 1_500;
const TTL_S: i32 = 1;
const HOUR_MICROS: i64 = 3_600_000_000;
/// Timestamps of a kind are so few that many are equal.
const TIMESTAMPS: i64 = 40;
const TABLE_WAIT: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Truncate {
    Never,
    /// While no write is under way, so that it is known which are gone.
    BetweenWrites,
    /// Among the writes: the table alone knows what is left.
    AmongWrites,
}

#[derive(Clone, Debug)]
struct Scenario {
    keyspace: String,
    tablets: bool,
    clustering: bool,
    truncate: Truncate,
    seed: u64,
}

impl Scenario {
    fn key_columns(&self) -> &'static [&'static str] {
        if self.clustering { &["p", "c"] } else { &["p"] }
    }

    /// The key of one of the rows that the writers fight for.
    fn key(&self, p: i32, c: i32) -> Vec<i32> {
        if self.clustering {
            vec![p, c]
        } else {
            vec![p * ROWS + c]
        }
    }

    fn bystander(&self, n: i32) -> Vec<i32> {
        if self.clustering {
            vec![1_000 + n % 50, n]
        } else {
            vec![100_000 + n]
        }
    }
}

/// The vector of a number; the number can be told from its distance to the origin.
fn vector(number: i32) -> Vec<f32> {
    vec![number as f32, 1.0, 0.0]
}

/// What a write does.
#[derive(Clone, Debug)]
enum Effect {
    Set {
        key: Vec<i32>,
        number: i32,
    },
    /// A value that has expired when the test looks, or a null.
    Unset {
        key: Vec<i32>,
    },
    /// Every key from the first to the last, both included.
    Delete {
        from: Vec<i32>,
        to: Vec<i32>,
    },
}

#[derive(Clone, Debug)]
struct Done {
    timestamp: i64,
    effect: Effect,
}

/// What is left of all writes, in whatever order they were done.
fn outcome(done: &[Done]) -> BTreeMap<Vec<i32>, i32> {
    // The greatest of a key wins: the later, at equal times that which is no value, then the greater value.
    let mut cells: BTreeMap<&Vec<i32>, (i64, bool, i32)> = BTreeMap::new();
    for write in done {
        let (key, candidate) = match &write.effect {
            Effect::Set { key, number } => (key, (write.timestamp, false, *number)),
            Effect::Unset { key } => (key, (write.timestamp, true, 0)),
            Effect::Delete { .. } => continue,
        };
        let cell = cells.entry(key).or_insert(candidate);
        *cell = (*cell).max(candidate);
    }
    for write in done {
        if let Effect::Delete { from, to } = &write.effect {
            for (_, cell) in cells.range_mut::<Vec<i32>, _>(from..=to) {
                *cell = (*cell).max((write.timestamp, true, 0));
            }
        }
    }
    cells
        .into_iter()
        .filter(|(_, (_, gone, _))| !gone)
        .map(|(key, (_, _, number))| (key.clone(), number))
        .collect()
}

struct Statements {
    insert: PreparedStatement,
    insert_ttl: PreparedStatement,
    update: PreparedStatement,
    set_null: PreparedStatement,
    delete_column: PreparedStatement,
    delete_row: PreparedStatement,
    delete_range: Option<PreparedStatement>,
    delete_partition: Option<PreparedStatement>,
}

impl Statements {
    async fn prepare(session: &Session, scenario: &Scenario) -> Statements {
        let table = format!("{}.t", scenario.keyspace);
        let (columns, marks, key) = if scenario.clustering {
            ("p, c", "?, ?", "p = ? AND c = ?")
        } else {
            ("p", "?", "p = ?")
        };
        let prepare = async |text: String| session.prepare(text.as_str()).await.expect(&text);
        let by_range = [
            format!("DELETE FROM {table} USING TIMESTAMP ? WHERE p = ? AND c >= ? AND c <= ?"),
            format!("DELETE FROM {table} USING TIMESTAMP ? WHERE p = ?"),
        ];
        let [delete_range, delete_partition] = if scenario.clustering {
            let [range, partition] = by_range;
            [Some(prepare(range).await), Some(prepare(partition).await)]
        } else {
            [None, None]
        };
        Statements {
            insert: prepare(format!(
                "INSERT INTO {table} (n, v, {columns}) VALUES (1, ?, {marks}) USING TIMESTAMP ?"
            ))
            .await,
            insert_ttl: prepare(format!(
                "INSERT INTO {table} (v, {columns}) VALUES (?, {marks}) USING TIMESTAMP ? AND TTL {TTL_S}"
            ))
            .await,
            update: prepare(format!("UPDATE {table} USING TIMESTAMP ? SET v = ? WHERE {key}")).await,
            set_null: prepare(format!("UPDATE {table} USING TIMESTAMP ? SET v = null, n = 2 WHERE {key}")).await,
            delete_column: prepare(format!("DELETE v FROM {table} USING TIMESTAMP ? WHERE {key}")).await,
            delete_row: prepare(format!("DELETE FROM {table} USING TIMESTAMP ? WHERE {key}")).await,
            delete_range,
            delete_partition,
        }
    }
}

/// What the writers of a scenario share.
struct Writing {
    scenario: Scenario,
    session: Arc<Session>,
    statements: Statements,
    start_micros: i64,
    stop: AtomicBool,
    count: AtomicU64,
    /// Held shared during a write, alone when nothing may be under way.
    gate: RwLock<()>,
    done: Mutex<Vec<Done>>,
}

impl Writing {
    async fn write_until_stopped(self: Arc<Self>, seed: u64) {
        let mut numbers = StdRng::seed_from_u64(seed);
        while !self.stop.load(Ordering::Relaxed) {
            let _passing = self.gate.read().await;
            let done = self.write_one(&mut numbers).await;
            self.done.lock().await.push(done);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn timestamp(&self, numbers: &mut StdRng) -> i64 {
        let offset = numbers.random_range(0..TIMESTAMPS);
        match numbers.random_range(0..4) {
            0 => self.start_micros - HOUR_MICROS + offset,
            1 => self.start_micros + HOUR_MICROS + offset,
            2 => self.start_micros,
            _ => micros_now(),
        }
    }

    async fn write_one(&self, numbers: &mut StdRng) -> Done {
        let (p, c) = (
            numbers.random_range(0..PARTITIONS),
            numbers.random_range(0..ROWS),
        );
        let (timestamp, number) = (self.timestamp(numbers), numbers.random_range(0..4_000));
        let key = self.scenario.key(p, c);
        let statements = &self.statements;
        let kind = numbers.random_range(0..100);
        let (statement, values, effect) =
            match (kind, &statements.delete_range, &statements.delete_partition) {
                (0..3, _, Some(delete)) => (
                    delete,
                    Values::Range(timestamp, vec![p]),
                    Effect::Delete {
                        from: vec![p, i32::MIN],
                        to: vec![p, i32::MAX],
                    },
                ),
                (3..8, Some(delete), _) => {
                    let last = numbers.random_range(c..ROWS);
                    (
                        delete,
                        Values::Range(timestamp, vec![p, c, last]),
                        Effect::Delete {
                            from: vec![p, c],
                            to: vec![p, last],
                        },
                    )
                }
                (8..45, ..) => (
                    &statements.insert,
                    Values::Insert(vector(number), key.clone(), timestamp),
                    Effect::Set { key, number },
                ),
                (45..58, ..) => (
                    &statements.insert_ttl,
                    Values::Insert(vector(number), key.clone(), timestamp),
                    Effect::Unset { key },
                ),
                (58..65, ..) => (
                    &statements.set_null,
                    Values::Range(timestamp, key.clone()),
                    Effect::Unset { key },
                ),
                (65..70, ..) => (
                    &statements.delete_column,
                    Values::Range(timestamp, key.clone()),
                    Effect::Unset { key },
                ),
                (70..80, ..) => (
                    &statements.delete_row,
                    Values::Range(timestamp, key.clone()),
                    Effect::Delete {
                        from: key.clone(),
                        to: key,
                    },
                ),
                _ => (
                    &statements.update,
                    Values::Update(timestamp, vector(number), key.clone()),
                    Effect::Set { key, number },
                ),
            };
        values.execute(&self.session, statement).await;
        Done { timestamp, effect }
    }

    async fn truncate(&self) {
        let statement = format!("TRUNCATE {}.t", self.scenario.keyspace);
        let truncate = async || {
            self.session
                .query_unpaged(statement.as_str(), ())
                .await
                .expect(&statement);
        };
        match self.scenario.truncate {
            Truncate::Never => {}
            Truncate::AmongWrites => truncate().await,
            Truncate::BetweenWrites => {
                let _alone = self.gate.write().await;
                truncate().await;
                self.done.lock().await.clear();
            }
        }
    }

    /// Waits until there are so many writes more.
    async fn wait_for_writes(&self, more: u64) {
        let until = self.count.load(Ordering::Relaxed) + more;
        while self.count.load(Ordering::Relaxed) < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The values of a statement, by its shape.
enum Values {
    Insert(Vec<f32>, Vec<i32>, i64),
    Update(i64, Vec<f32>, Vec<i32>),
    Range(i64, Vec<i32>),
}

impl Values {
    async fn execute(&self, session: &Session, statement: &PreparedStatement) {
        let result = match self {
            Values::Insert(vector, key, timestamp) => match key[..] {
                [p, c] => {
                    session
                        .execute_unpaged(statement, (vector, p, c, timestamp))
                        .await
                }
                _ => {
                    session
                        .execute_unpaged(statement, (vector, key[0], timestamp))
                        .await
                }
            },
            Values::Update(timestamp, vector, key) => match key[..] {
                [p, c] => {
                    session
                        .execute_unpaged(statement, (timestamp, vector, p, c))
                        .await
                }
                _ => {
                    session
                        .execute_unpaged(statement, (timestamp, vector, key[0]))
                        .await
                }
            },
            Values::Range(timestamp, key) => match key[..] {
                [p, c, last] => {
                    session
                        .execute_unpaged(statement, (timestamp, p, c, last))
                        .await
                }
                [p, c] => session.execute_unpaged(statement, (timestamp, p, c)).await,
                _ => {
                    session
                        .execute_unpaged(statement, (timestamp, key[0]))
                        .await
                }
            },
        };
        result.expect("a write");
    }
}

fn micros_now() -> i64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    now.as_micros() as i64
}

/// The numbers of the vectors in the table, and whether some of them will expire.
async fn table(session: &Session, scenario: &Scenario) -> (BTreeMap<Vec<i32>, i32>, bool) {
    let columns = scenario.key_columns().join(", ");
    let query = format!("SELECT v, ttl(v), {columns} FROM {}.t", scenario.keyspace);
    let rows = session
        .query_unpaged(query.as_str(), ())
        .await
        .expect(&query);
    let rows = rows.into_rows_result().expect("rows");
    let rows: Vec<(Option<Vec<f32>>, Option<i32>, Vec<i32>)> = if scenario.clustering {
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
    let timestamp = writing.start_micros - 2 * HOUR_MICROS;
    let bystanders: Vec<Done> = stream::iter(0..BYSTANDERS)
        .map(|n| {
            let writing = &writing;
            async move {
                let (key, number) = (writing.scenario.bystander(n), n % 4_000);
                let values = Values::Insert(vector(number), key.clone(), timestamp);
                values
                    .execute(&writing.session, &writing.statements.insert)
                    .await;
                Ok::<_, ()>(Done {
                    timestamp,
                    effect: Effect::Set { key, number },
                })
            }
        })
        .buffer_unordered(BYSTANDERS_IN_FLIGHT)
        .try_collect()
        .await
        .expect("writes");
    writing.done.lock().await.extend(bystanders);
    writing
}

async fn run(server: &Server, session: &Arc<Session>, scenario: Scenario) {
    let writing = start_writing(session, &scenario).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            tokio::spawn(Arc::clone(&writing).write_until_stopped(scenario.seed * WRITERS + n))
        })
        .collect();
    writing.wait_for_writes(100).await;

    let create = format!(
        "CREATE CUSTOM INDEX i ON {}.t (v) USING 'vector_index' WITH OPTIONS = {{'similarity_function': 'euclidean'}}",
        scenario.keyspace
    );
    session
        .query_unpaged(create.as_str(), ())
        .await
        .expect(&create);
    let written_before = writing.count.load(Ordering::Relaxed);
    let index = Index::new(
        server,
        &scenario.keyspace,
        "i",
        scenario.key_columns(),
        DIMENSIONS,
    );
    index.wait_until_serving().await;
    let written_during = writing.count.load(Ordering::Relaxed) - written_before;
    assert!(written_during > 0, "nothing was written during the scan");
    for _ in 0..3 {
        writing.wait_for_writes(WRITES_FOLLOWED / 3).await;
        writing.truncate().await;
    }
    writing.wait_for_writes(200).await;
    writing.stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("the writer ends");
    }

    let expected = settled_table(session, &writing).await;
    index
        .assert_becomes(&scores(&expected), &format!("{scenario:?}"))
        .await;
    // What was on its way when they became equal has arrived when a later write has.
    let mut expected = expected;
    for n in 0..PARTITIONS {
        let key = scenario.bystander(BYSTANDERS + n);
        let values = Values::Insert(vector(n), key.clone(), micros_now());
        values.execute(session, &writing.statements.insert).await;
        expected.insert(key, n);
    }
    index
        .assert_becomes(&scores(&expected), &format!("{scenario:?}, afterwards"))
        .await;
    eprintln!(
        "{scenario:?}: {} rows after {} writes, {written_during} of them during the scan",
        expected.len(),
        writing.count.load(Ordering::Relaxed)
    );
}

/// What the table holds when everything has expired that will: what the writes add up to, if that can be known.
async fn settled_table(session: &Session, writing: &Writing) -> BTreeMap<Vec<i32>, i32> {
    let deadline = Instant::now() + TABLE_WAIT;
    let done = writing.done.lock().await;
    let expected = (writing.scenario.truncate != Truncate::AmongWrites).then(|| outcome(&done));
    loop {
        let (found, expiring) = table(session, &writing.scenario).await;
        if !expiring && expected.as_ref().is_none_or(|expected| *expected == found) {
            return found;
        }
        if Instant::now() > deadline {
            assert!(!expiring, "{:?}: values do not expire", writing.scenario);
            let expected = expected.expect("without one nothing else is waited for");
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
            panic!(
                "{:?}: key {key:?} holds {:?} instead of {:?} after {latest:?}",
                writing.scenario,
                found.get(key),
                expected.get(key)
            );
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

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
