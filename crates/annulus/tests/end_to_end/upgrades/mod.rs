//! A data directory of a former version, opened by this version, gives the same answers as then.
//!
//! `crates/annulus/tests/fixtures/<version>/` holds such a directory and its answers.
//! `make upgrade-fixture` writes those of the version that is built. A fixture is never made anew
//! once its version is out.

mod answers;
mod archive;
mod making;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use answers::Answers;
use tempfile::TempDir;
use test_support::{eventually, until_ok};

use crate::server::Server;

/// No snapshot is taken while the answers are compared, so that the snapshot of the fixture is
/// used.
const SETTINGS: [&str; 2] = ["--snapshot-interval", "1h"];

const ARCHIVE: &str = "data.tar.gz";
const ANSWERS: &str = "answers.txt";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The folders of the versions that have a fixture.
fn versions() -> Vec<PathBuf> {
    let entries = fs::read_dir(fixtures()).expect("the fixtures are there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut versions: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    versions.sort();
    versions
}

/// Unpacks a copy of a fixture's data directory that may be written to.
fn unpacked(version: &Path) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    archive::unpack(&version.join(ARCHIVE), directory.path());
    let data = directory.path().join("data");
    (directory, data)
}

/// The number of snapshots of indexes in a data directory.
fn snapshots(data: &Path) -> usize {
    let entries = fs::read_dir(data.join("indexes/snapshots")).expect("there are snapshots");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.is_dir()).count()
}

/// Waits until what snapshots and changes have left to do in the indexes is done.
async fn await_tending(server: &Server) {
    let http = format!("http://{}", server.http);
    eventually("the indexes are tended", async || {
        let status = std::process::Command::new(env!("CARGO_BIN_EXE_annulus"))
            .args(["status", "--json", "--http", &http])
            .output();
        let status = status.expect("the binary runs").stdout;
        let status = String::from_utf8(status).expect("text");
        assert!(status.contains("\"SERVING\""), "{status}");
        !status.contains("tending")
    })
    .await;
}

/// Asks the questions of a fixture until the answers are those recorded, or the time is over. An
/// index needs a while for changes behind its snapshot.
async fn assert_answers(server: &Server, expected: &Answers, when: &str) {
    let session = server.connect().await;
    until_ok(when, async || {
        let given = Answers::ask(&session, &expected.questions()).await;
        match given == *expected {
            true => Ok(()),
            false => Err(expected.difference(&given)),
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_of_former_versions_is_read() {
    let versions = versions();
    assert!(!versions.is_empty(), "there is no fixture");
    for version in versions {
        let expected = Answers::parse(
            &fs::read_to_string(version.join(ANSWERS)).expect("the answers are readable"),
        );
        let (_directory, data) = unpacked(&version);
        let name = version.display();
        // The data survive a kill, a stop and another start.
        let server = Server::start_with(&data, &SETTINGS);
        assert_answers(&server, &expected, &format!("{name}, opened")).await;
        server.kill();
        let server = Server::start_with(&data, &SETTINGS);
        assert_answers(&server, &expected, &format!("{name}, after a kill")).await;
        server.stop();
        let server = Server::start_with(&data, &SETTINGS);
        assert_answers(&server, &expected, &format!("{name}, after a stop")).await;
    }
}

/// An index of a former version is opened as it was saved, whatever the version of its snapshot.
/// The log has expired since, so that the table is read, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_of_former_versions_are_opened() {
    for version in versions() {
        let expected = Answers::parse(
            &fs::read_to_string(version.join(ANSWERS)).expect("the answers are readable"),
        );
        let (directory, data) = unpacked(&version);
        let there = snapshots(&data);
        let log = directory.path().join("log");
        let server = Server::start_logging(&data, "store=info", &log);
        assert_answers(&server, &expected, "opened").await;
        await_tending(&server).await;
        server.stop();
        let log = fs::read_to_string(&log).expect("the log is readable");
        let opened = log.matches("is reconciled with its table before it serves");
        assert_eq!(opened.count(), there, "{}: {log}", version.display());
        assert!(!log.contains("built anew"), "{}: {log}", version.display());
    }
}

/// A first start may be killed at any moment, and the next one still finds everything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_may_be_killed_at_any_moment() {
    /// The time between two kills. The last kill comes after the ready line on a quiet machine.
    const STEP: Duration = Duration::from_millis(7);
    const KILLS: u32 = 12;
    for version in versions() {
        let expected = Answers::parse(
            &fs::read_to_string(version.join(ANSWERS)).expect("the answers are readable"),
        );
        let (_directory, data) = unpacked(&version);
        for kill in 0..KILLS {
            Server::start_and_kill_after(&data, &SETTINGS, STEP * kill);
        }
        let server = Server::start_with(&data, &SETTINGS);
        let when = format!("{}, after {KILLS} kills", version.display());
        assert_answers(&server, &expected, &when).await;
    }
}
