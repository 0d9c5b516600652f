//! `annulus scrub` and `annulus recover` report damage by their exit code and by file, and change
//! nothing unless they are told to.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::server::Server;

const ROWS: i32 = 50;
/// The dimensions are so many that values lie in files of their own.
const DIMENSIONS: usize = 512;

fn annulus(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_annulus"))
        .args(arguments)
        .output()
        .expect("the binary starts")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("it was not killed")
}

/// The whole output, stdout and stderr.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

async fn fill(server: &Server) {
    let session = server.connect().await;
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        &format!("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, {DIMENSIONS}>)"),
    ] {
        session.query_unpaged(statement, ()).await.expect(statement);
    }
    let insert = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)");
    let insert = insert.await.expect("prepared");
    for k in 0..ROWS {
        let row = (k, vec![k as f32; DIMENSIONS]);
        session.execute_unpaged(&insert, row).await.expect("a row");
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path => found.push(path),
        }
    }
    found
}

/// Every file of a directory with its content.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let read = |path: PathBuf| (path.clone(), fs::read(path).expect("a file"));
    files(directory).into_iter().map(read).collect()
}

/// Changes a bit of a file. A second call restores it.
fn flip(path: &Path, offset: usize) {
    let byte = fs::read(path).expect("a file")[offset];
    let file = fs::File::options().write(true).open(path).expect("a file");
    file.write_all_at(&[byte ^ 0x10], offset as u64)
        .expect("written");
}

/// One file of each kind that a stopped server leaves.
fn kinds(data_dir: &Path) -> Vec<PathBuf> {
    let files = files(data_dir);
    let sized = |path: &&PathBuf| fs::metadata(path).expect("a file").len() > 0;
    let kinds = [
        "/tables/",
        "/blobs/",
        "/keyspaces/2/v",
        "/keyspaces/2/current",
        "/snapshots/",
        "/graph",
        "/vectors-00000",
        "/rows",
        "/current",
    ];
    let find = |kind: &str| {
        let is_one = |path: &&PathBuf| {
            let name = path.to_str().expect("plain names");
            let of_snapshot = name.contains("/snapshots/") && !name.ends_with("/lock");
            match kind {
                "/tables/" | "/blobs/" | "/keyspaces/2/v" => name.contains(kind),
                "/keyspaces/2/current" => name.ends_with(kind),
                _ => of_snapshot && name.contains(kind),
            }
        };
        // An older manifest may lie beside the current one.
        let number = |path: &&PathBuf| {
            let name = path.file_name()?.to_str()?;
            name.strip_prefix('v')?.parse::<u64>().ok()
        };
        let mut found = files.iter().filter(sized).filter(is_one);
        let found = match kind {
            "/keyspaces/2/v" => found.max_by_key(number),
            _ => found.next(),
        };
        found
            .unwrap_or_else(|| panic!("no {kind} in {files:?}"))
            .clone()
    };
    kinds.into_iter().map(find).collect()
}

/// Asserts that a scrub of a directory that no server has open names each kind of file that rots.
fn assert_rot_is_named(data_dir: &Path) {
    let path = data_dir.to_str().expect("plain names");
    let clean = annulus(&["scrub", path]);
    assert_eq!(code(&clean), 0, "{}", said(&clean));
    for file in kinds(data_dir) {
        let middle = fs::metadata(&file).expect("a file").len() as usize / 2;
        flip(&file, middle);
        let found = annulus(&["scrub", path, "--rate", "1000"]);
        let name = file.to_str().expect("plain names");
        assert_eq!(code(&found), 5, "{name}: {}", said(&found));
        // The report names a manifest by its own name, or by the file that refers to it.
        let folder = file
            .parent()
            .expect("a folder")
            .to_str()
            .expect("plain names");
        assert!(said(&found).contains(folder), "{name}: {}", said(&found));
        flip(&file, middle);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scrub_names_damage_with_and_without_a_running_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let data_dir = directory.path();
    let path = data_dir.to_str().expect("plain names");
    let server = Server::start(data_dir);
    fill(&server).await;
    let session = server.connect().await;
    let index = "CREATE CUSTOM INDEX i ON ks.t (v) USING 'vector_index'";
    session.query_unpaged(index, ()).await.expect(index);
    // The stop writes rows out and saves the index.
    server.stop();

    assert_rot_is_named(data_dir);
    let server = Server::start(data_dir);
    let locked = annulus(&["scrub", path]);
    assert_eq!(code(&locked), 4, "{}", said(&locked));
    assert!(
        said(&locked).contains("annulus scrub --http"),
        "{}",
        said(&locked)
    );
    let http = format!("http://{}", server.http);
    let scrub = |more: &[&str]| annulus(&[&["scrub", "--http", &http], more].concat());
    let clean = scrub(&["--json", "--rate", "1000"]);
    assert_eq!(code(&clean), 0, "{}", said(&clean));
    let task: Value = serde_json::from_slice(&clean.stdout).expect("JSON");
    assert_eq!(
        (&task["state"], &task["kind"]),
        (&"done".into(), &"scrub".into())
    );
    assert_eq!(task["counters"]["damaged"], 0);
    let files = task["counters"]["files"].as_u64().expect("a number");
    assert!(files > 10, "{task}");
    let bytes = task["progress_completed"].as_u64().expect("a number");
    assert!(bytes >= 2 * ROWS as u64 * 4 * DIMENSIONS as u64, "{task}");

    // A table that the server has open, and a file of a snapshot.
    let rotten = kinds(data_dir);
    let rotten = [&rotten[1], &rotten[6]];
    for file in rotten {
        flip(file, fs::metadata(file).expect("a file").len() as usize / 2);
    }
    let found = scrub(&[]);
    assert_eq!(code(&found), 1, "{}", said(&found));
    for file in rotten {
        let name = file.to_str().expect("plain names");
        assert!(said(&found).contains(name), "{name}: {}", said(&found));
    }
    for file in rotten {
        flip(file, fs::metadata(file).expect("a file").len() as usize / 2);
    }
    // One scrub runs at a time, and a scrub that is aborted ends.
    let slow = scrub(&["--rate", "1", "--detach", "--json"]);
    assert_eq!(code(&slow), 0, "{}", said(&slow));
    let task: Value = serde_json::from_slice(&slow.stdout).expect("JSON");
    let id = task["id"].as_str().expect("an id");
    let busy = scrub(&[]);
    let ended = annulus(&["tasks", "--http", &http, "status", id]);
    if said(&ended).contains("running") {
        assert_eq!(code(&busy), 1, "{}", said(&busy));
        assert!(
            said(&busy).contains("a scrub is running"),
            "{}",
            said(&busy)
        );
    }
    annulus(&["tasks", "--http", &http, "abort", id]);
    annulus(&["tasks", "--http", &http, "wait", id]);
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scrubs_come_by_themselves_where_that_is_set() {
    let directory = tempfile::tempdir().expect("a directory");
    let settings = ["--scrub-interval", "50ms"];
    let server = Server::start_with(directory.path(), &settings);
    let http = format!("http://{}", server.http);
    let began = std::time::Instant::now();
    while !said(&annulus(&["tasks", "--http", &http, "list"])).contains("  scrub  ") {
        assert!(began.elapsed().as_secs() < 60, "none came");
    }
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recover_lists_what_would_be_lost_and_cuts_only_when_told_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let data_dir = directory.path();
    let path = data_dir.to_str().expect("plain names");
    let server = Server::start(data_dir);
    fill(&server).await;
    // All rows are in the journal.
    server.kill();
    let whole = annulus(&["recover", path]);
    assert_eq!(code(&whole), 0, "{}", said(&whole));
    assert!(
        said(&whole).contains("No journal is damaged"),
        "{}",
        said(&whole)
    );

    let journal = data_dir.join("db/0.jnl");
    let content = fs::read(&journal).expect("the journal");
    let needle = 30.0_f32.to_be_bytes().repeat(8);
    let at = content
        .windows(needle.len())
        .position(|part| part == needle);
    flip(&journal, at.expect("the row of key 30"));
    let damaged = contents(data_dir);

    let refused = annulus(&[
        "serve",
        "--data-dir",
        path,
        "--cql-port",
        "0",
        "--http-port",
        "0",
    ]);
    assert_eq!(code(&refused), 5, "{}", said(&refused));
    assert!(
        said(&refused).contains("annulus recover"),
        "{}",
        said(&refused)
    );
    let listed = annulus(&["recover", path]);
    assert_eq!(code(&listed), 5, "{}", said(&listed));
    for words in ["0.jnl", "ks.t: 19 writes", "--accept-loss"] {
        assert!(said(&listed).contains(words), "{words}: {}", said(&listed));
    }
    assert!(contents(data_dir) == damaged, "nothing was changed");

    let accepted = annulus(&["recover", path, "--accept-loss"]);
    assert_eq!(code(&accepted), 0, "{}", said(&accepted));
    let kept = files(&data_dir.join("db"));
    let is_kept = |path: &&PathBuf| path.to_str().is_some_and(|name| name.contains("cut-at"));
    let kept = kept.iter().find(is_kept).expect("what was cut is kept");
    let kept = fs::read(kept).expect("a file");
    let damaged = &damaged[&journal];
    assert!(
        damaged.windows(kept.len()).any(|part| part == kept),
        "to the byte"
    );

    let server = Server::start(data_dir);
    let session = server.connect().await;
    let rows = session.query_unpaged("SELECT k FROM ks.t", ()).await;
    let rows = rows.expect("an answer").into_rows_result().expect("rows");
    assert_eq!(rows.rows_num(), 30);
    server.stop();
}
