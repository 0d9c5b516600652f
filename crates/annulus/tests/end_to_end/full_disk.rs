//! A disk that runs full and has room again, time after time, under writes. In the end the index
//! holds exactly the rows of the table.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use scylla::client::session::Session;
use test_support::eventually;

use crate::index::Index;
use crate::server::Server;

const CYCLES: usize = 4;
const WRITERS: usize = 8;
const DIMENSIONS: usize = 16;

/// Compiles the library that makes a disk look full. The storage's own tests use it too.
fn compile_shim(into: &Path) -> PathBuf {
    let library = into.join("disk.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../storage/tests/shim/disk.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .args(["-ldl", "-lpthread"])
        .status()
        .expect("this test needs a C compiler as `cc`: install gcc or clang");
    assert!(status.success(), "the shim compiles");
    library
}

fn vector(key: i32) -> Vec<f32> {
    let mut vector = vec![1.0; DIMENSIONS];
    vector[0] = key as f32;
    vector
}

async fn keys(session: &Session) -> BTreeSet<i32> {
    let rows = session.query_unpaged("SELECT k FROM disk.t", ()).await;
    let rows = rows.expect("reads go on").into_rows_result().expect("rows");
    let keys = rows.rows::<(i32,)>().expect("keys");
    keys.map(|row| row.expect("a key").0).collect()
}

/// Inserts rows until it is over, and counts those that were taken and those that were refused.
/// Returns the keys of the rows that were acknowledged.
async fn write(
    writer: i32,
    session: Arc<Session>,
    over: Arc<AtomicBool>,
    (taken, refused): (Arc<AtomicI32>, Arc<AtomicI32>),
) -> Vec<i32> {
    let insert = session.prepare("INSERT INTO disk.t (k, v) VALUES (?, ?)");
    let insert = insert.await.expect("prepared");
    let mut acknowledged = Vec::new();
    let mut key = writer;
    // A full disk refuses at once, so that all would be busy with refusals.
    let mut pace = tokio::time::interval(Duration::from_millis(5));
    while !over.load(Ordering::Relaxed) {
        key += WRITERS as i32;
        match session.execute_unpaged(&insert, (key, vector(key))).await {
            Ok(_) => {
                acknowledged.push(key);
                taken.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => {
                refused.fetch_add(1, Ordering::Relaxed);
                pace.reset();
                pace.tick().await;
            }
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_follows_the_table_over_full_disks() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let library = compile_shim(directory.path());
    let full = at("full");
    let environment = [
        ("LD_PRELOAD", library.as_path()),
        ("DISK_ROOT", &at("data")),
        ("DISK_FULL", &full),
    ];
    let server = Server::start_in(&at("data"), &environment);
    let session = Arc::new(server.connect().await);
    for statement in [
        "CREATE KEYSPACE disk WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        &format!("CREATE TABLE disk.t (k int PRIMARY KEY, v vector<float, {DIMENSIONS}>)"),
        "CREATE CUSTOM INDEX t_v ON disk.t (v) USING 'vector_index' \
         WITH OPTIONS = {'similarity_function': 'euclidean'}",
    ] {
        session.query_unpaged(statement, ()).await.expect(statement);
    }
    let over = Arc::new(AtomicBool::new(false));
    let (taken, refused) = (Arc::new(AtomicI32::new(0)), Arc::new(AtomicI32::new(0)));
    let mut writers = Vec::new();
    for writer in 0..WRITERS as i32 {
        let (session, over) = (session.clone(), over.clone());
        let counts = (taken.clone(), refused.clone());
        writers.push(tokio::spawn(write(writer, session, over, counts)));
    }
    let more = async |count: &AtomicI32, what: &str| {
        let until = count.load(Ordering::Relaxed) + 100;
        eventually(what, async || count.load(Ordering::Relaxed) >= until).await;
    };
    for _ in 0..CYCLES {
        more(&taken, "writes are taken").await;
        fs::write(&full, []).expect("it is full");
        more(&refused, "writes are refused").await;
        fs::remove_file(&full).expect("there is room");
    }
    more(&taken, "writes are taken again").await;
    over.store(true, Ordering::Relaxed);
    let mut acknowledged = BTreeSet::new();
    for writer in writers {
        acknowledged.extend(writer.await.expect("a writer"));
    }

    let rows = keys(&session).await;
    assert!(
        rows.is_superset(&acknowledged),
        "nothing acknowledged is lost"
    );
    // Other writes may have been in progress when the disk ran full.
    let expected: crate::index::Scores = rows
        .iter()
        .map(|key| (vec![*key], Index::score(&vector(*key))))
        .collect();
    let index = Index::new(&server, "disk", "t_v", &["k"], DIMENSIONS);
    index
        .assert_becomes(&expected, "after the last full disk")
        .await;
    server.stop();
}
