//! `kill -9` at random moments under concurrent inserts, updates and deletes: no acknowledged
//! write is lost, no delete comes back, and the index equals the table again.
//!
//! Each writer owns its keys, so that the content of a key is known: that of its last acknowledged
//! operation, or of the one in progress at the kill.
//!
//! `ANNULUS_CRASH_ROUNDS` sets the number of kills (`make crash-test`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;

use crate::index::{Index, Scores};
use crate::server::Server;

const WRITERS: i32 = 8;
const PARTITIONS_PER_WRITER: i32 = 3;
const ROWS_PER_PARTITION: i32 = 12;
const DIMENSIONS: usize = 8;
const DEFAULT_ROUNDS: u32 = 5;

/// (partition key, clustering key).
type Key = (i32, i32);

/// The content of a row: a sequence number, and a vector if it has one.
#[derive(Clone, Debug, PartialEq)]
struct Content {
    number: i64,
    vector: Option<Vec<f32>>,
}

/// The content of one key as far as it is known. `None` stands for "no row".
#[derive(Clone, Debug, Default)]
struct Known {
    acknowledged: Option<Content>,
    /// The outcome of the operation that was in progress, if there was one.
    in_doubt: Option<Option<Content>>,
}

type Model = BTreeMap<Key, Known>;

struct Statements {
    insert: PreparedStatement,
    update: PreparedStatement,
    delete_vector: PreparedStatement,
    delete_row: PreparedStatement,
    delete_partition: PreparedStatement,
}

impl Statements {
    async fn prepare(session: &Session) -> Statements {
        let prepare = async |text: &str| session.prepare(text).await.expect(text);
        Statements {
            insert: prepare("INSERT INTO crash.t (p, c, n, v) VALUES (?, ?, ?, ?)").await,
            update: prepare("UPDATE crash.t SET v = ?, n = ? WHERE p = ? AND c = ?").await,
            delete_vector: prepare("UPDATE crash.t SET v = null, n = ? WHERE p = ? AND c = ?")
                .await,
            delete_row: prepare("DELETE FROM crash.t WHERE p = ? AND c = ?").await,
            delete_partition: prepare("DELETE FROM crash.t WHERE p = ?").await,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost() {
    let rounds = std::env::var("ANNULUS_CRASH_ROUNDS")
        .ok()
        .map_or(DEFAULT_ROUNDS, |text| text.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = directory.path().join("data");
    let mut numbers = StdRng::seed_from_u64(1);
    let mut models: Vec<Model> = (0..WRITERS).map(|_| Model::new()).collect();
    let mut operations = 0;

    let mut server = Server::start(&data_dir);
    create_schema(&server.connect().await).await;
    for round in 1..=rounds {
        let session = Arc::new(server.connect().await);
        let statements = Arc::new(Statements::prepare(&session).await);
        let writers: Vec<_> = models
            .drain(..)
            .enumerate()
            .map(|(writer, model)| {
                tokio::spawn(write_until_killed(
                    Arc::clone(&session),
                    Arc::clone(&statements),
                    writer as i32,
                    model,
                    numbers.random(),
                ))
            })
            .collect();
        // The kill comes at a random moment of the writes.
        server.kill_after(Duration::from_millis(numbers.random_range(5..1_000)));
        for writer in writers {
            let (model, done) = writer.await.expect("the writer ends");
            models.push(model);
            operations += done;
        }
        drop(session);

        server = Server::start(&data_dir);
        let session = server.connect().await;
        check_table(&session, &mut models).await;
        check_index(&server, &models).await;
        eprintln!("round {round}/{rounds}: {operations} acknowledged writes so far, all there");
    }
    assert!(operations > 0, "the writers never wrote");
}

async fn create_schema(session: &Session) {
    for statement in [
        "CREATE KEYSPACE crash WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE crash.t (p int, c int, n bigint, v vector<float, 8>, PRIMARY KEY (p, c))",
        "CREATE CUSTOM INDEX t_v ON crash.t (v) USING 'vector_index' \
         WITH OPTIONS = {'similarity_function': 'euclidean'}",
    ] {
        session.query_unpaged(statement, ()).await.expect(statement);
    }
}

/// Makes one write after the other until one fails because of the kill.
async fn write_until_killed(
    session: Arc<Session>,
    statements: Arc<Statements>,
    writer: i32,
    mut model: Model,
    seed: u64,
) -> (Model, u64) {
    let mut numbers = StdRng::seed_from_u64(seed);
    let mut acknowledged = 0;
    loop {
        let p = writer * PARTITIONS_PER_WRITER + numbers.random_range(0..PARTITIONS_PER_WRITER);
        let c = numbers.random_range(0..ROWS_PER_PARTITION);
        let number: i64 = numbers.random_range(0..i64::MAX);
        let vector: Vec<f32> = (0..DIMENSIONS).map(|_| numbers.random()).collect();
        let with_vector = Content {
            number,
            vector: Some(vector.clone()),
        };
        let before = |model: &Model, key: Key| model.get(&key).and_then(|k| k.acknowledged.clone());
        let (effects, result) = match numbers.random_range(0..100) {
            0..50 => (
                vec![((p, c), Some(with_vector))],
                session
                    .execute_unpaged(&statements.insert, (p, c, number, &vector))
                    .await,
            ),
            50..75 => (
                vec![((p, c), Some(with_vector))],
                session
                    .execute_unpaged(&statements.update, (&vector, number, p, c))
                    .await,
            ),
            75..82 => (
                vec![(
                    (p, c),
                    Some(Content {
                        number,
                        vector: None,
                    }),
                )],
                session
                    .execute_unpaged(&statements.delete_vector, (number, p, c))
                    .await,
            ),
            82..98 => (
                vec![((p, c), None)],
                session
                    .execute_unpaged(&statements.delete_row, (p, c))
                    .await,
            ),
            _ => (
                (0..ROWS_PER_PARTITION)
                    .map(|c| (p, c))
                    .filter(|key| before(&model, *key).is_some())
                    .map(|key| (key, None))
                    .collect(),
                session
                    .execute_unpaged(&statements.delete_partition, (p,))
                    .await,
            ),
        };
        let failed = result.is_err();
        for (key, effect) in effects {
            let known = model.entry(key).or_default();
            if failed {
                known.in_doubt = Some(effect);
            } else {
                known.acknowledged = effect;
            }
        }
        if failed {
            return (model, acknowledged);
        }
        acknowledged += 1;
    }
}

/// Compares the whole table with the known content, and notes the outcome of operations in doubt.
async fn check_table(session: &Session, models: &mut [Model]) {
    let rows = session
        .query_unpaged("SELECT p, c, n, v FROM crash.t", ())
        .await
        .expect("the table is read")
        .into_rows_result()
        .expect("rows");
    let mut table: BTreeMap<Key, Content> = BTreeMap::new();
    for row in rows
        .rows::<(i32, i32, i64, Option<Vec<f32>>)>()
        .expect("typed rows")
    {
        let (p, c, number, vector) = row.expect("a row");
        table.insert((p, c), Content { number, vector });
    }
    for model in models {
        for (key, known) in model.iter_mut() {
            let found = table.remove(key);
            let doubtful = known.in_doubt.take();
            assert!(
                found == known.acknowledged || Some(&found) == doubtful.as_ref(),
                "key {key:?} holds {found:?}; acknowledged {:?}, in doubt {doubtful:?}",
                known.acknowledged
            );
            known.acknowledged = found;
        }
    }
    assert!(table.is_empty(), "rows that nobody wrote: {table:?}");
}

/// Asks the index for more neighbours than there are rows. The index must give every vector of the
/// table at its true distance, and nothing else.
async fn check_index(server: &Server, models: &[Model]) {
    let mut expected = Scores::new();
    for ((p, c), known) in models.iter().flatten() {
        if let Some(Content {
            vector: Some(vector),
            ..
        }) = &known.acknowledged
        {
            expected.insert(vec![*p, *c], Index::score(vector));
        }
    }
    Index::new(server, "crash", "t_v", &["p", "c"], DIMENSIONS)
        .assert_becomes(&expected, "after a restart")
        .await;
}
