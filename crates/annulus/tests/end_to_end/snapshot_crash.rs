//! `kill -9` at random moments while an index is saved. The next start never needs more than a
//! catch-up, and the index equals its table.
//!
//! `ANNULUS_SNAPSHOT_KILLS` sets the number of kills (`make crash-test`).

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use test_support::blocking::eventually;

use crate::index::{Index, Scores};
use crate::server::Server;

const DEFAULT_KILLS: u32 = 6;
const WRITERS: u64 = 2;
const KEYS: i32 = 600;
const DIMENSIONS: usize = 48;

/// The longest time that a save of so few rows takes. On a quiet machine it takes a few
/// milliseconds.
const SAVE_TAKES: Duration = Duration::from_millis(40);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_while_saving_costs_a_catch_up_at_most() {
    let kills = std::env::var("ANNULUS_SNAPSHOT_KILLS")
        .ok()
        .map_or(DEFAULT_KILLS, |text| text.parse().expect("a number"));
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = directory.path().join("data");
    let snapshots = data_dir.join("indexes").join("snapshots");
    let mut numbers = StdRng::seed_from_u64(4);
    // The interval is the shortest, so that the service saves as often as it can.
    let start = || Server::start_with(&data_dir, &["--snapshot-interval", "1ms"]);
    let mut server = start();
    create_schema(&server.connect().await).await;
    Index::new(&server, "crash", "t_v", &["k"], DIMENSIONS)
        .wait_until_serving()
        .await;
    while_saving(&snapshots, |generations| {
        generations > 0 && has_finished_generation(&snapshots)
    });
    let mut in_a_save = 0;
    for kill in 1..=kills {
        let session = Arc::new(server.connect().await);
        // The statements are prepared before the kill can come.
        let insert = session.prepare("INSERT INTO crash.t (k, v) VALUES (?, ?)");
        let insert = insert.await.expect("an insert");
        let delete = session.prepare("DELETE FROM crash.t WHERE k = ?");
        let delete = delete.await.expect("a delete");
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                let writes = write_until_killed(
                    session.clone(),
                    insert.clone(),
                    delete.clone(),
                    numbers.random(),
                );
                tokio::spawn(writes)
            })
            .collect();
        let waiting = snapshots.clone();
        let begun = tokio::task::spawn_blocking(move || {
            while_saving(&waiting, |generations| generations > 1);
        });
        begun.await.expect("a save begins");
        // The kill comes at any moment of a save, and more often at the early ones, which every
        // save has.
        server.kill_after(SAVE_TAKES.mul_f64(numbers.random_range(0f64..1.0).powi(3)));
        for writer in writers {
            writer.await.expect("the writer ends");
        }
        in_a_save += u32::from(generations(&snapshots) > 1);
        server = start();
        let index = Index::new(&server, "crash", "t_v", &["k"], DIMENSIONS);
        index.wait_until_serving().await;
        let scans = metric(server.http, "index_scans_total");
        assert_eq!(scans, Some(0), "kill {kill} cost a scan");
        let expected = table(&server.connect().await).await;
        index.assert_becomes(&expected, "after a kill").await;
    }
    eprintln!("{in_a_save} of {kills} kills came while a snapshot was unfinished");
    assert!(in_a_save > 0, "none of {kills} kills hit a save");
}

async fn create_schema(session: &Session) {
    for statement in [
        "CREATE KEYSPACE crash WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE crash.t (k int PRIMARY KEY, v vector<float, 48>)",
        "CREATE CUSTOM INDEX t_v ON crash.t (v) USING 'vector_index' \
         WITH OPTIONS = {'similarity_function': 'euclidean'}",
    ] {
        session.query_unpaged(statement, ()).await.expect(statement);
    }
}

/// Inserts and deletes until a statement fails because of the kill.
async fn write_until_killed(
    session: Arc<Session>,
    insert: PreparedStatement,
    delete: PreparedStatement,
    seed: u64,
) {
    let mut numbers = StdRng::seed_from_u64(seed);
    loop {
        let key = numbers.random_range(0..KEYS);
        let vector: Vec<f32> = (0..DIMENSIONS).map(|_| numbers.random()).collect();
        let written = match numbers.random_ratio(1, 4) {
            true => session.execute_unpaged(&delete, (key,)).await,
            false => session.execute_unpaged(&insert, (key, vector)).await,
        };
        if written.is_err() {
            return;
        }
    }
}

/// The rows that the index has to hold.
async fn table(session: &Session) -> Scores {
    let rows = session.query_unpaged("SELECT k, v FROM crash.t", ()).await;
    let rows = rows
        .expect("the table is read")
        .into_rows_result()
        .expect("rows");
    rows.rows::<(i32, Vec<f32>)>()
        .expect("typed rows")
        .map(|row| {
            let (key, vector) = row.expect("a row");
            (vec![key], Index::score(&vector))
        })
        .collect()
}

/// Waits until the number of generations on the disk fulfils a condition. A second one is being
/// written.
pub fn while_saving(snapshots: &Path, is_so: impl Fn(usize) -> bool) {
    eventually("a save begins", || is_so(generations(snapshots)));
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The number of generations of the only index, finished or not.
fn generations(snapshots: &Path) -> usize {
    let of_index = entries(snapshots)
        .into_iter()
        .flat_map(|path| entries(&path));
    of_index.filter(|path| path.is_dir()).count()
}

/// Whether there is a finished generation.
pub fn has_finished_generation(snapshots: &Path) -> bool {
    let of_index = entries(snapshots)
        .into_iter()
        .flat_map(|path| entries(&path));
    of_index.into_iter().any(|path| path.ends_with("current"))
}

/// The value of a metric of the only index. `None` if there is no such series.
pub fn metric(http: SocketAddr, name: &str) -> Option<u64> {
    let mut stream = TcpStream::connect(http).expect("a connection");
    let request = "GET /metrics HTTP/1.0\r\nhost: localhost\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let begin = format!("{name}{{");
    let line = answer.lines().find(|line| line.starts_with(&begin))?;
    line.rsplit(' ').next()?.parse().ok()
}
