//! A start that has to replay journals: the HTTP port answers meanwhile, the log tells of it, and
//! the next start has nothing to replay.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use test_support::{Running, eventually};

use crate::server::Server;

/// Bytes of a row, and the rows that are written.
const VALUE_BYTES: usize = 10_000;
const ROWS: i32 = 400;
/// The most bytes of a journal that a start leaves for the next one.
const LEFT_MAX: u64 = 1 << 20;

/// The status of an answer to a GET, and its body; `None` if nothing listens.
fn get(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut socket = TcpStream::connect(address).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some((status, body.to_owned()))
}

/// The value of a field in the first line of a log that has this text.
fn field(log: &Path, text: &str, name: &str) -> Option<String> {
    let log = std::fs::read_to_string(log).unwrap();
    let line = log.lines().find(|line| line.contains(text))?;
    let (_, value) = line.split_once(&format!("{name}="))?;
    Some(value.split_whitespace().next()?.to_owned())
}

fn start(data: &Path, log: &Path, out: &Path) -> Running {
    let process = Command::new(env!("CARGO_BIN_EXE_annulus"))
        .args(["serve", "--cql-port=0", "--http-port=0", "--log=info"])
        .arg("--data-dir")
        .arg(data)
        .stderr(File::create(log).unwrap())
        .stdout(File::create(out).unwrap())
        .stdin(Stdio::null())
        .spawn();
    Running(process.expect("the binary starts"))
}

async fn logged(log: &Path, text: &str, name: &str) -> String {
    let what = format!("a line of the log with {text:?} and {name}");
    eventually(&what, async || field(log, text, name).is_some()).await;
    field(log, text, name).expect("it was there")
}

fn journals(data: &Path) -> usize {
    let entries = std::fs::read_dir(data.join("db")).unwrap().flatten();
    let is_journal = |path: &Path| path.extension().is_some_and(|kind| kind == "jnl");
    entries.filter(|entry| is_journal(&entry.path())).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_after_a_kill_answers_at_once_and_replays_a_journal_once() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let server = Server::start(&data);
    let session = server.connect().await;
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, v text)",
    ] {
        session.query_unpaged(statement, ()).await.unwrap();
    }
    let insert = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)");
    let insert = insert.await.unwrap();
    let value = "x".repeat(VALUE_BYTES);
    for k in 0..ROWS {
        let inserted = session.execute_unpaged(&insert, (k, &value)).await;
        inserted.unwrap();
    }
    drop(session);
    server.kill();

    // The storage reads a note of refused writes before its journals. This one is a pipe, so that
    // the storage does not open before something is written to it.
    let note = data.join("acknowledged");
    let made = Command::new("mkfifo").arg(&note).status();
    assert!(made.expect("mkfifo is there").success());
    let (log, out) = (directory.path().join("log"), directory.path().join("out"));
    let mut process = start(&data, &log, &out);
    let http = logged(&log, "health is answered", "http").await;
    let http: SocketAddr = http.parse().unwrap();
    assert_eq!(get(http, "/health/live"), Some((200, "live".to_owned())));
    let (status, body) = get(http, "/health/ready").expect("an answer");
    assert_eq!((status, &*body), (503, "\"INITIALIZING\""));
    let (status, _) = get(http, "/metrics").expect("an answer");
    assert_eq!(status, 503);
    assert!(field(&log, "storage is open", "journal_bytes").is_none());

    // Nothing was refused.
    std::fs::write(&note, format!("{}\n", u64::MAX)).unwrap();
    let serves = || get(http, "/health/ready").is_some_and(|(status, _)| status == 200);
    eventually("it serves", async || serves()).await;
    let (_, body) = get(http, "/health/ready").expect("an answer");
    assert_eq!(body, "\"SERVING\"");
    assert_eq!(get(http, "/health/live"), Some((200, "live".to_owned())));
    let written = VALUE_BYTES as u64 * ROWS as u64;
    for (text, name) in [
        ("checking the journals", "bytes"),
        ("replaying the journals", "bytes"),
        ("the journals are replayed", "bytes"),
        ("storage is open", "journal_bytes"),
    ] {
        let bytes: u64 = logged(&log, text, name).await.parse().unwrap();
        assert!(bytes >= written, "{text}: {bytes}");
    }
    eventually("it is ready", async || {
        std::fs::read_to_string(&out).unwrap().ends_with('\n')
    })
    .await;
    let said = std::fs::read_to_string(&out).unwrap();
    assert!(said.starts_with("annulus is ready: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    eventually("what was replayed is written out", async || {
        journals(&data) == 1
    })
    .await;
    process.0.kill().unwrap();
    process.0.wait().unwrap();

    let _process = start(&data, &log, &out);
    let bytes = logged(&log, "storage is open", "journal_bytes").await;
    let bytes: u64 = bytes.parse().unwrap();
    assert!(bytes < LEFT_MAX, "{bytes}");
    assert_eq!(field(&log, "replaying the journals", "bytes"), None);
}
