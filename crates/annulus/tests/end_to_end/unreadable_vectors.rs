//! A file of an index's vectors is cut short under a running server. A search fails, the index is
//! built anew, and everything else goes on.

use std::fs;
use std::path::{Path, PathBuf};

use scylla::client::session::Session;
use test_support::eventually;

use crate::index::{Index, Scores};
use crate::server::Server;

/// The dimensions are so many that a few rows make a mapped file.
const DIMENSIONS: usize = 4096;
const ROWS: i32 = 300;

fn vector(key: i32) -> Vec<f32> {
    let mut vector = vec![0.0; DIMENSIONS];
    vector[0] = key as f32 + 1.0;
    vector
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_of_vectors_that_is_cut_short_costs_a_search_and_a_build() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = directory.path().join("data");
    let log = directory.path().join("log");
    let all = |rows: i32| -> Scores {
        (0..rows)
            .map(|key| (vec![key], Index::score(&vector(key))))
            .collect()
    };
    let (expected, expected_of_other) = (all(ROWS), all(1));
    let indexes = |server: &Server| {
        ["t_v", "other_v"].map(|name| Index::new(server, "cut", name, &["k"], DIMENSIONS))
    };

    let server = Server::start(&data_dir);
    fill(&server.connect().await).await;
    let [index, other] = indexes(&server);
    index.assert_becomes(&expected, "built").await;
    other.assert_becomes(&expected_of_other, "built").await;
    // The stop saves the indexes.
    server.stop();

    let server = Server::start_logging(&data_dir, "warn,store=debug", &log);
    let [index, other] = indexes(&server);
    index.wait_until_serving().await;
    other.wait_until_serving().await;
    // A fault that the verification finds would not be met by a search.
    let verified = async || lines(&log, &["all vectors are as they were saved"]).len() == 2;
    eventually("both indexes are verified", verified).await;
    let found = index.contents().await.expect("it answers");
    assert_eq!(found.len(), expected.len());

    let file = largest_file_of_vectors(&data_dir);
    let cut = fs::File::options().write(true).open(&file);
    cut.and_then(|file| file.set_len(4096))
        .expect("it is cut short");
    let error = index
        .contents()
        .await
        .expect_err("there is no right answer");
    let said = format!("{} can no longer be read", file.display());
    assert!(error.to_string().contains(&said), "{error}");
    let found = other.contents().await.expect("it answers");
    assert_eq!(found.len(), expected_of_other.len());

    index.assert_becomes(&expected, "built anew").await;
    let named = ["ERROR", "cut.t_v", &said, "the index is built anew"];
    assert_eq!(
        lines(&log, &named).len(),
        1,
        "{:?}",
        lines(&log, &["ERROR"])
    );
    let session = server.connect().await;
    let nearest = "SELECT k FROM cut.t ORDER BY v ANN OF ? LIMIT 1";
    let rows = session.query_unpaged(nearest, (vector(41),)).await;
    let rows = rows.expect("an answer").into_rows_result().expect("rows");
    assert_eq!(rows.single_row::<(i32,)>().expect("one"), (41,));
    // The process is still the one that was started, and ends well.
    server.stop();
}

async fn fill(session: &Session) {
    for table in ["t", "other"] {
        for statement in [
            "CREATE KEYSPACE IF NOT EXISTS cut WITH replication = \
             {'class': 'SimpleStrategy', 'replication_factor': 1}",
            &format!("CREATE TABLE cut.{table} (k int PRIMARY KEY, v vector<float, {DIMENSIONS}>)"),
            &format!(
                "CREATE CUSTOM INDEX {table}_v ON cut.{table} (v) USING 'vector_index' \
                 WITH OPTIONS = {{'similarity_function': 'euclidean'}}"
            ),
        ] {
            session.query_unpaged(statement, ()).await.expect(statement);
        }
    }
    for (table, rows) in [("t", ROWS), ("other", 1)] {
        let insert = format!("INSERT INTO cut.{table} (k, v) VALUES (?, ?)");
        let insert = session.prepare(insert).await.expect("an insert");
        for key in 0..rows {
            let inserted = session.execute_unpaged(&insert, (key, vector(key))).await;
            inserted.expect("inserted");
        }
    }
}

/// The lines of a log that have all of these words.
fn lines(log: &Path, words: &[&str]) -> Vec<String> {
    let text = fs::read_to_string(log).expect("the log");
    let has_all = |line: &&str| words.iter().all(|word| line.contains(word));
    text.lines().filter(has_all).map(str::to_owned).collect()
}

fn largest_file_of_vectors(data_dir: &Path) -> PathBuf {
    let entries = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let mut found: Vec<PathBuf> = vec![data_dir.join("indexes").join("snapshots")];
    // The levels of the path are the index, its generation and the file.
    for _ in 0..3 {
        found = found.iter().flat_map(|path| entries(path)).collect();
    }
    found.retain(|path| path.ends_with("vectors-00000"));
    let bytes = |path: &PathBuf| fs::metadata(path).expect("a file").len();
    found
        .into_iter()
        .max_by_key(bytes)
        .expect("a file of vectors")
}
