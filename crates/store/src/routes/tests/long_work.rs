//! Tests that the API shows and stops tasks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tasks::{InclusiveTokenRange, Task, TaskScope, TaskSpec};
use tokio::net::TcpStream;
use uuid::Uuid;

use super::Service;
use crate::database::{
    DatabaseIndex, IndexName, LogFacts, LogHead, LogRun, Piece, RowReader, SchemaFollower,
    SourceDatabase, SourceTable, TableIdentity, TokenRange as Tokens,
};

fn spec(abortable: bool) -> TaskSpec {
    TaskSpec {
        kind: "repair",
        scope: TaskScope {
            keyspace: Some("ks".into()),
            table: Some("t".into()),
            index: Some("idx".into()),
            token_range: None,
            entity: None,
        },
        units: "token_ranges",
        total: Some(4),
        counters: &["rows_added"],
        abortable,
    }
}

fn path(task: &Task) -> String {
    format!("/api/v1/tasks/{}", task.id())
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_listed_with_all_that_is_known_of_them() {
    let service = Service::start(8).await;
    service.get("/api/v1/tasks").await.is(200, "[]");
    let task = service.work.start(spec(true));
    task.add(1);
    task.count("rows_added", 7);
    let range = InclusiveTokenRange {
        start: i64::MIN + 1,
        end: i64::MAX,
    };
    let scope = spec(true).scope.in_range(range);
    let part = task.child(TaskSpec {
        scope,
        total: None,
        ..spec(true)
    });
    let list = service.get("/api/v1/tasks").await.json();
    let shown = &list[0];
    assert_eq!(list.as_array().unwrap().len(), 1);
    let times = &shown["start_time"];
    assert!(times.as_str().unwrap().ends_with('Z'), "{times}");
    assert_eq!(
        shown,
        &json!({
            "id": task.id().to_string(), "sequence_number": 1, "kind": "repair", "scope": "index",
            "keyspace": "ks", "table": "t", "index": "idx", "state": "running",
            "is_abortable": true, "abort_requested": false, "start_time": times,
            "children_ids": [part.id().to_string()], "children_left_out": 0,
            "progress_units": "token_ranges", "progress_completed": 1, "progress_total": 4,
            "counters": {"rows_added": 7},
        })
    );
    let all = service.get("/api/v1/tasks?parts=true").await.json();
    assert_eq!(all[1]["parent_id"], shown["id"]);
    assert_eq!(
        all[1]["token_range"],
        json!({"start": "-9223372036854775807", "end": "9223372036854775807"})
    );
    assert_eq!(all[1].get("progress_total"), None);
    let tree = service.get(&format!("{}/tree", path(&task))).await.json();
    assert_eq!(tree["children"][0]["id"], all[1]["id"]);
    let asked = service.get("/api/v1/tasks?parts=maybe").await;
    assert_eq!(asked.status, 400, "{}", asked.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_waited_for_and_stopped() {
    let service = Service::start(8).await;
    let task = service.work.start(spec(true));
    let path = path(&task);
    let running = service.get(&format!("{path}/wait?timeout=0")).await.json();
    assert_eq!(running["state"], "running");
    let work = tokio::spawn(async move {
        task.aborted().await;
        task.stopped();
    });
    let aborted = service.send("DELETE", &path, "", "").await;
    assert_eq!(aborted.status, 200, "{}", aborted.body);
    assert_eq!(aborted.json()["abort_requested"], true);
    let wait = format!("{path}/wait?timeout=20");
    let ended = service.get(&wait);
    let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
    assert_eq!(ended.expect("it stops").json()["state"], "aborted");
    work.await.unwrap();
    assert_eq!(service.get(&path).await.json()["state"], "aborted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_for_a_task_does_not_hold_up_the_end() {
    let service = Service::start(8).await;
    let task = service.work.start(spec(true));
    let wait = format!("{}/wait?timeout=600", path(&task));
    let address = service.base.strip_prefix("http://").unwrap();
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .handshake::<_, Full<Bytes>>(stream)
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut ask = |path: &str| {
        let request = hyper::Request::get(format!("http://localhost{path}")).body(Full::default());
        sender.send_request(request.unwrap())
    };
    // Requests of a connection are begun in their order, so that the first has begun when the
    // second is answered.
    let (waiting, known) = (ask(&wait), ask("/api/v1/tasks"));
    assert_eq!(known.await.unwrap().status(), 200);
    service.listening.stop();
    let answered = tokio::time::timeout(Duration::from_secs(10), waiting).await;
    let answer = answered.expect("the end is not held up").unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let status: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status["state"], "running");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_tasks_are_not_found_and_some_can_not_be_stopped() {
    let service = Service::start(8).await;
    let none = "00000000-0000-0000-0000-000000000000";
    for id in [none, "x"] {
        for (method, path) in [
            ("GET", format!("/api/v1/tasks/{id}")),
            ("GET", format!("/api/v1/tasks/{id}/tree")),
            ("GET", format!("/api/v1/tasks/{id}/wait")),
            ("DELETE", format!("/api/v1/tasks/{id}")),
        ] {
            let answer = service.send(method, &path, "", "").await;
            answer.is(404, &format!("missing task: {id}"));
        }
    }
    let task = service.work.start(spec(false));
    let refused = service.send("DELETE", &path(&task), "", "").await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert!(!task.abort_requested());
}

#[tokio::test(flavor = "multi_thread")]
async fn repairs_that_can_not_be_are_refused_with_the_reason() {
    let service = Service::serving().await;
    let send = async |method: &str, path: &str, body: &str| {
        let path = format!("/api/v1/indexes/ks/{path}");
        service.send(method, &path, "application/json", body).await
    };
    for (method, path) in [
        ("GET", "none/repair"),
        ("POST", "none/repair"),
        ("PATCH", "none/repair"),
        ("PUT", "none/repair/schedule"),
    ] {
        let answer = send(method, path, "{}").await;
        answer.is(404, "missing index: ks.none");
    }
    // The index exists, but has not been released for repair.
    let refused = send("POST", "idx/repair", r#"{"intensity": 2}"#).await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.body.contains("once it is SERVING"),
        "{}",
        refused.body
    );
    let refused = send("PATCH", "idx/repair", "{}").await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.body.contains("not being repaired"),
        "{}",
        refused.body
    );
    assert_eq!(
        send("POST", "idx/repair", r#"{"speed": 2}"#).await.status,
        422
    );
    for (body, status, reason) in [
        ("{}", 400, "has no schedule"),
        (
            r#"{"never": true, "interval_s": 5}"#,
            400,
            "both were given",
        ),
        (r#"{"interval_s": 5}"#, 500, "can't be written"),
    ] {
        let refused = send("PUT", "idx/repair/schedule", body).await;
        assert_eq!(refused.status, status, "{}", refused.body);
        assert!(refused.body.contains(reason), "{}", refused.body);
    }
    let status = send("GET", "idx/repair", "").await;
    status.is(200, r#"{"last":null,"schedule":null}"#);
}

/// A database that keeps the indexes `own` and `new` itself. The last is being built.
struct Keeper;

struct Own {
    is_built: bool,
}

#[async_trait]
impl DatabaseIndex for Own {
    fn version(&self) -> Uuid {
        Uuid::nil()
    }

    fn table(&self) -> TableIdentity {
        TableIdentity {
            keyspace: "ks".into(),
            table: "t".into(),
            id: Uuid::nil(),
        }
    }

    fn is_built(&self) -> bool {
        self.is_built
    }

    fn counters(&self) -> &'static [&'static str] {
        &["entries_added"]
    }

    async fn repair(&self, task: &Task) -> anyhow::Result<bool> {
        task.count("entries_added", 3);
        task.aborted().await;
        Ok(false)
    }
}

#[async_trait]
impl SourceDatabase for Keeper {
    fn schema(&self) -> Box<dyn SchemaFollower> {
        unreachable!("nobody asks")
    }

    fn has_index(&self, _: &IndexName) -> bool {
        false
    }

    fn database_index(&self, name: &IndexName) -> Option<Arc<dyn DatabaseIndex>> {
        let is_built = match name.index.as_str() {
            "own" => true,
            "new" => false,
            _ => return None,
        };
        Some(Arc::new(Own { is_built }))
    }

    async fn log(&self, _: &TableIdentity) -> anyhow::Result<Option<LogFacts>> {
        Ok(None)
    }

    fn log_head(&self, _: &TableIdentity) -> Option<Arc<dyn LogHead>> {
        None
    }

    fn log_readers(&self) -> Vec<String> {
        Vec::new()
    }

    async fn follow(&self, _: usize, _: LogRun) -> anyhow::Result<()> {
        std::future::pending().await
    }

    fn rows(&self, _: &RowReader, _: usize) -> Arc<dyn SourceTable> {
        unreachable!("nobody reads")
    }

    async fn pieces(&self, _: &TableIdentity, _: Tokens, _: usize) -> Vec<Piece> {
        Vec::new()
    }

    async fn shards(&self) -> BTreeMap<Uuid, usize> {
        BTreeMap::new()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_the_database_keeps_is_repaired_one_at_a_time_and_until_it_is_stopped() {
    let service = Service::start_over(Arc::new(Keeper), None, false, |_| {}).await;
    let send = async |method: &str, path: &str, body: &str| {
        let path = format!("/api/v1/indexes/ks/{path}");
        service.send(method, &path, "application/json", body).await
    };
    let status = send("GET", "own/repair", "").await;
    status.is(200, r#"{"last":null,"schedule":null}"#);
    send("POST", "none/repair", "{}")
        .await
        .is(404, "missing index: ks.none");
    send("POST", "new/repair", "{}").await.is(
        409,
        "index ks.new does not have all rows yet: it can be repaired once it is built; if the log \
         says that building was given up, drop the index and create it again",
    );
    let begun = send("POST", "own/repair", "{}").await;
    assert_eq!(begun.status, 200, "{}", begun.body);
    let begun = begun.json();
    let shown = ["kind", "table", "index", "state", "progress_units"].map(|name| &begun[name]);
    assert_eq!(shown, ["repair", "t", "own", "running", "keys"]);
    send("POST", "own/repair", "{}").await.is(
        409,
        "index ks.own is being repaired: wait until that has ended, or abort it",
    );
    let without =
        "index ks.own is a secondary one: its repairs have neither a speed nor a schedule";
    send("PATCH", "own/repair", "{}").await.is(409, without);
    send("PUT", "own/repair/schedule", r#"{"interval_s": 5}"#)
        .await
        .is(400, without);

    let path = format!("/api/v1/tasks/{}", begun["id"].as_str().unwrap());
    assert_eq!(service.send("DELETE", &path, "", "").await.status, 200);
    let ended = service.get(&format!("{path}/wait?timeout=20")).await;
    assert_eq!(ended.json()["state"], "aborted");
    let last = send("GET", "own/repair", "").await.json();
    assert_eq!(last["last"]["counters"], json!({"entries_added": 3}));
    assert_eq!(send("POST", "own/repair", "{}").await.status, 200);
}
