//! `annulus tasks`, `annulus repair`, `annulus check` and `annulus status` against a running
//! service.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use store_api::types::IndexState;
use store_api::{ClientOptions, StoreClient};
use test_support::eventually;

use crate::server::Server;

fn ask(http: &str, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_annulus"))
        .args(arguments)
        .env("ANNULUS_HTTP", http)
        .output()
        .expect("the binary starts")
}

fn text(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout.clone()).expect("text")
}

#[tokio::test(flavor = "multi_thread")]
async fn long_work_is_seen_and_an_index_repaired_from_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let session = server.connect().await;
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)",
        "INSERT INTO ks.t (k, v) VALUES (7, [1, 2])",
        "CREATE CUSTOM INDEX i ON ks.t (v) USING 'vector_index'",
    ] {
        session.query_unpaged(statement, ()).await.unwrap();
    }
    let http = format!("http://{}", server.http);
    let client = StoreClient::new(ClientOptions {
        base_uris: vec![http.clone()],
        ..ClientOptions::default()
    })
    .unwrap();
    let serves = async || {
        let status = client.index_status("ks", "i").await;
        status.is_ok_and(|status| status.status == IndexState::Serving)
    };
    eventually("the index serves", serves).await;

    let repaired = ask(&http, &["repair", "ks.i", "--json"]);
    let repaired: Value = serde_json::from_str(&text(&repaired)).expect("JSON");
    assert_eq!(repaired["state"], "done", "{repaired}");
    assert_eq!(repaired["counters"]["rows_compared"], 1);
    assert_eq!(repaired["counters"]["ranges_differed"], 0);
    let id = repaired["id"].as_str().unwrap();

    let list = text(&ask(&http, &["tasks", "list"]));
    assert!(list.starts_with("ID"), "{list}");
    for kind in ["build", "catch_up", "repair"] {
        assert!(list.contains(&format!("  {kind}  ")), "{kind}: {list}");
    }
    let tree = text(&ask(&http, &["tasks", "tree", id]));
    assert_eq!(
        tree.lines().count(),
        3,
        "the repair and its one range: {tree}"
    );
    let status = text(&ask(&http, &["tasks", "status", id]));
    assert!(status.contains("ranges compared"), "{status}");
    assert!(ask(&http, &["tasks", "wait", id]).status.success());
    assert!(ask(&http, &["repair", "status", "ks.i"]).status.success());
    settings_may_come_in_any_order(&http);
    a_reader_that_has_gone_changes_no_exit_code(&http, id);
    let scrubbed = ask(&http, &["scrub", "--rate", "1000", "--json"]);
    let scrubbed: Value = serde_json::from_str(&text(&scrubbed)).expect("JSON");
    let total = scrubbed["progress_total"].as_u64();
    assert!(total.is_some_and(|total| total > 0), "{scrubbed}");
    assert_eq!(scrubbed["progress_completed"].as_u64(), total, "{scrubbed}");
    let scheduled = text(&ask(&http, &["repair", "update", "ks.i", "--every", "24h"]));
    assert!(scheduled.contains("every 86400 s"), "{scheduled}");

    for (arguments, complaint) in [
        (["repair", "ks.none"].as_slice(), "missing index: ks.none"),
        (&["repair", "control", "ks.i"], "is not being repaired"),
        (&["tasks", "status", "x"], "missing task: x"),
    ] {
        let refused = ask(&http, arguments);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains(complaint), "{error}");
    }
    let nobody = ask("http://127.0.0.1:1", &["tasks", "list"]);
    let error = String::from_utf8_lossy(&nobody.stderr);
    assert!(error.contains("ANNULUS_HTTP"), "{error}");

    drop(session);
    server.stop();
    a_scrub_shows_on_a_terminal_how_far_it_is(directory.path());
}

fn settings_may_come_in_any_order(http: &str) {
    let elsewhere = "http://127.0.0.1:1";
    let named_first = ["repair", "--http", http, "status", "ks.i"];
    text(&ask(elsewhere, &named_first));
    let begun = ask(http, &["repair", "--parallel", "2", "status", "ks.i"]);
    let error = String::from_utf8_lossy(&begun.stderr);
    assert_eq!(begun.status.code(), Some(2), "{error}");
    assert!(
        error.contains("--parallel before the subcommand"),
        "{error}"
    );
}

fn a_reader_that_has_gone_changes_no_exit_code(http: &str, id: &str) {
    for (task, code) in [(id, 0), ("x", 1)] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = Command::new(env!("CARGO_BIN_EXE_annulus"))
            .args(["tasks", "wait", task])
            .env("ANNULUS_HTTP", http)
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            .status();
        assert_eq!(status.unwrap().code(), Some(code), "{task}");
    }
}

fn a_scrub_shows_on_a_terminal_how_far_it_is(directory: &Path) {
    let directory = directory.display();
    let scrub = format!("{} scrub {directory}", env!("CARGO_BIN_EXE_annulus"));
    let on_terminal = Command::new("script")
        .args(["--quiet", "--return", "--command", &scrub, "/dev/null"])
        .output()
        .expect("script is there");
    let shown = text(&on_terminal);
    assert!(
        shown.contains("scrub ") && shown.contains("100%"),
        "{shown}"
    );
    assert!(shown.contains("bytes read"), "{shown}");
    let apart = Command::new("sh").args(["-c", &scrub]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&apart.stderr), "");
}

#[test]
fn a_clock_that_was_set_back_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    // The clock gave times of an hour from now before it was set back.
    let hour = storage::clock::ManualClock::new(
        storage::clock::Clock::now_micros(&storage::clock::SystemClock) + 3_600_000_000,
    );
    let storage =
        storage::Storage::open_with_clock(directory.path(), Default::default(), hour).unwrap();
    tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(storage.close())
        .unwrap();
    drop(storage);

    let server = Server::start(directory.path());
    let http = format!("http://{}", server.http);
    let answer: Value =
        serde_json::from_str(&text(&ask(&http, &["status", "--json"]))).expect("JSON");
    assert_eq!(answer["status"], "SERVING");
    let lead_ms = answer["clock"]["lead_ms"].as_u64().expect("a number");
    assert!((3_500_000..=3_600_000).contains(&lead_ms), "{answer}");
    let shown = text(&ask(&http, &["status"]));
    assert!(
        shown.contains("s behind the time of rows and logs"),
        "{shown}"
    );
    let metrics = answer_of(&server, "/metrics");
    let lead = metrics
        .lines()
        .find_map(|line| line.strip_prefix("clock_lead_seconds "));
    let lead: f64 = lead.expect("the metric").parse().expect("a number");
    assert!((3_500.0..=3_600.0).contains(&lead), "{lead}");
    server.stop();
}

/// The answer of the service, with its head and body.
fn answer_of(server: &Server, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut socket = std::net::TcpStream::connect(server.http).unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        server.http
    );
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[tokio::test]
async fn a_secondary_index_is_repaired_from_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let session = server.connect().await;
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, n int)",
        "CREATE INDEX by_n ON ks.t (n)",
        "INSERT INTO ks.t (k, n) VALUES (7, 3)",
        "INSERT INTO ks.t (k) VALUES (8)",
    ] {
        session.query_unpaged(statement, ()).await.unwrap();
    }
    let http = format!("http://{}", server.http);
    let repaired = ask(&http, &["repair", "ks.by_n", "--json"]);
    let repaired: Value = serde_json::from_str(&text(&repaired)).expect("JSON");
    let shown = ["kind", "state", "table", "index"].map(|name| repaired[name].as_str());
    assert_eq!(shown, ["repair", "done", "t", "by_n"].map(Some));
    let counters = ["rows_compared", "entries_compared", "entries_added"];
    let counters = counters.map(|name| repaired["counters"][name].as_u64());
    assert_eq!(counters, [2, 1, 0].map(Some), "{repaired}");
    let status = text(&ask(&http, &["repair", "status", "ks.by_n"]));
    assert!(status.contains("entries compared"), "{status}");
    for arguments in [
        ["repair", "control", "ks.by_n"].as_slice(),
        &["repair", "update", "ks.by_n", "--never"],
    ] {
        let refused = ask(&http, arguments);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{error}");
        assert!(error.contains("neither a speed nor"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn recall_is_checked_from_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let session = server.connect().await;
    for statement in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.t (k int PRIMARY KEY, n int, v vector<float, 2>)",
        "CREATE CUSTOM INDEX i ON ks.t (v, n) USING 'vector_index'",
        "CREATE TABLE ks.u (k int PRIMARY KEY, v vector<float, 2>)",
        "CREATE CUSTOM INDEX empty ON ks.u (v) USING 'vector_index'",
    ] {
        session.query_unpaged(statement, ()).await.unwrap();
    }
    for k in 0..40 {
        let insert = format!("INSERT INTO ks.t (k, n, v) VALUES ({k}, {k}, [1, 0.{k:02}])");
        session.query_unpaged(insert, ()).await.unwrap();
    }
    let http = format!("http://{}", server.http);
    let client = StoreClient::new(ClientOptions {
        base_uris: vec![http.clone()],
        ..ClientOptions::default()
    })
    .unwrap();
    for index in ["i", "empty"] {
        let serves = async || {
            let status = client.index_status("ks", index).await;
            status.is_ok_and(|status| status.status == IndexState::Serving)
        };
        eventually("the index serves", serves).await;
    }

    // The check knows every acknowledged write, as searches do.
    let checked = text(&ask(&http, &["check", "ks.i", "--target", "1"]));
    assert!(
        checked.starts_with("ks.i: recall 1.0000 (95 % interval 0.9"),
        "{checked}"
    );
    assert!(
        checked.ends_with("self-recall 1.0000, of 40 rows\n"),
        "{checked}"
    );
    let few = text(&ask(&http, &["check", "ks.i", "--queries", "7", "--json"]));
    let few: Value = serde_json::from_str(&few).expect("JSON");
    assert_eq!((&few["queries"], &few["recall"]), (&7.into(), &1.0.into()));
    let empty = text(&ask(&http, &["check", "ks.empty", "--target", "1"]));
    assert!(empty.contains("recall unknown"), "{empty}");
    let tasks = text(&ask(&http, &["tasks", "list"]));
    assert!(tasks.contains("  recall  "), "{tasks}");
    let help = text(&ask(&http, &["check", "--help"]));
    assert!(
        help.contains("Wilson") && help.contains("--target 0.98"),
        "{help}"
    );

    checks_that_can_not_be_are_refused(&http);
    let status = text(&ask(&http, &["status"]));
    let lines = |begin: &str| {
        status
            .lines()
            .filter(|line| line.starts_with(begin))
            .count()
    };
    assert!(status.contains("  FILTERS  "), "{status}");
    // State and memory of each index.
    assert_eq!((lines("ks.i "), lines("ks.empty ")), (2, 2), "{status}");
    drop(session);
    server.stop();
}

fn checks_that_can_not_be_are_refused(http: &str) {
    for (arguments, code, complaint) in [
        (["check", "ks.none"].as_slice(), 1, "missing index: ks.none"),
        (&["check", "ks.i", "--queries", "0"], 1, "may be 1 to 10000"),
        (&["check", "ks.i", "--target", "2"], 2, "from 0 to 1"),
        (&["check"], 2, "KEYSPACE.INDEX"),
    ] {
        let refused = ask(http, arguments);
        let error = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(code), "{error}");
        assert!(error.contains(complaint), "{error}");
    }
    let nothing = ask("http://127.0.0.1:1", &["check", "ks.i"]);
    assert_eq!(nothing.status.code(), Some(1));
}
