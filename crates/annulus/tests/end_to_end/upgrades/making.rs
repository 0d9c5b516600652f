//! Makes the fixture of the version that is built: `make upgrade-fixture`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use scylla::client::session::Session;
use storage::{Storage, StorageOptions};
use test_support::steady;

use super::answers::Answers;
use super::{ANSWERS, ARCHIVE, archive, assert_answers, fixtures, unpacked};
use crate::server::Server;

/// The dimensions of a vector that `{wide n}` stands for.
const WIDE: u32 = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "writes a fixture into the tree: make upgrade-fixture"]
async fn make_the_fixture_of_this_version() {
    let version = fixtures().join(env!("CARGO_PKG_VERSION"));
    assert!(!version.exists(), "{} is there already", version.display());
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data = directory.path().join("data");
    let statements = read("statements.cql");
    let questions = read("questions.cql");
    let questions: Vec<&str> = lines(&questions).collect();

    let mut server = start(&data);
    for line in lines(&statements) {
        match line {
            "@stop" => {
                settle(&server.connect().await, &questions).await;
                server.stop();
                server = start(&data);
            }
            "@flush" => {
                settle(&server.connect().await, &questions).await;
                server.stop();
                write_out(&data).await;
                server = start(&data);
            }
            statement => {
                let session = server.connect().await;
                let result = session.query_unpaged(spelt_out(statement), ()).await;
                result.unwrap_or_else(|error| panic!("{statement}: {error}"));
            }
        }
    }
    settle(&server.connect().await, &questions).await;
    let answers = Answers::ask(&server.connect().await, &questions).await;
    let text = answers.text();
    assert!(!text.contains("    ! "), "an answer is an error:\n{text}");
    server.kill();

    fs::create_dir_all(&version).expect("the fixture's folder");
    archive::pack(directory.path(), "data", &version.join(ARCHIVE));
    fs::write(version.join(ANSWERS), text).expect("the answers are written");
    let (_copy, data) = unpacked(&version);
    let server = start(&data);
    assert_answers(&server, &answers, "unpacked at once").await;
}

/// Starts a server that takes snapshots only when it stops.
fn start(data: &Path) -> Server {
    Server::start_with(data, &["--snapshot-interval", "1h"])
}

fn read(name: &str) -> String {
    fs::read_to_string(fixtures().join(name)).expect(name)
}

/// The lines of a text without comments.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && !line.starts_with("--"))
}

/// Has the storage write the rows of all tables out to files.
async fn write_out(data: &Path) {
    let storage = Storage::open(data, StorageOptions::default()).expect("the storage opens");
    let catalog = storage.catalog();
    for keyspace in catalog.keyspaces.values() {
        for table in keyspace.tables.values() {
            storage.compact(table.id).expect("the table is written out");
        }
    }
    storage.close().await.expect("the storage closes");
}

/// Waits until the answers no longer change: until the indexes have caught up and rows have
/// expired.
async fn settle(session: &Session, questions: &[&str]) {
    /// This is longer than the longest TTL, and than the time in which an index follows.
    const STEADY: Duration = Duration::from_secs(3);
    let ask = async || Answers::ask(session, questions).await;
    steady("the answers settle", STEADY, ask).await;
}

/// Replaces `{wide n}` in a text by a vector that differs with `n` in every element.
pub fn spelt_out(text: &str) -> String {
    let Some((before, rest)) = text.split_once("{wide ") else {
        return text.to_owned();
    };
    let (number, after) = rest.split_once('}').expect("a closing brace");
    let number: u32 = number.parse().expect("a number");
    let elements: Vec<String> = (0..WIDE)
        .map(|at| format!("{}", f64::from(number) + f64::from(at % 4) / 4.0))
        .collect();
    format!("{before}[{}]{after}", elements.join(", "))
}
