//! Tests of the route that measures recall.

use index::FullTextOptions;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::*;
use crate::database::LogHead;
use crate::identity::StructureOptions;
use crate::options::RecallCheckOptions;
use crate::recall_checks::RecallChecks;

async fn measured(service: &Service, index: &str, body: &str) -> Answer {
    let path = format!("/api/v1/indexes/ks/{index}/recall");
    service.send("POST", &path, "application/json", body).await
}

/// A service with an index `ks.many` of so many rows, whose vectors are drawn.
async fn with_rows(rows: u32) -> Service {
    let service = Service::serving().await;
    let index = service.add(identity("many"));
    let mut state = 1u64;
    let mut element = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as f32
    };
    for id in 0..rows {
        let key = index.identity.keys.encode([id.to_string().as_bytes()]);
        index.content.keys_mut().insert(id, key);
        insert(&index.content, id, &[element(), element()]);
    }
    service.engine.serving(&index);
    service
}

/// The tasks that measure recall, by their states.
async fn states(service: &Service) -> Vec<String> {
    let tasks = service.get("/api/v1/tasks").await.json();
    let tasks = tasks.as_array().unwrap().iter();
    let tasks = tasks.filter(|task| task["kind"] == "recall");
    tasks
        .map(|task| task["state"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_are_compared_with_a_scan_of_all_vectors() {
    let service = with_rows(3000).await;
    let answer = measured(&service, "many", r#"{"queries": 200}"#).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let answer = answer.json();
    let share = |name: &str| answer[name].as_f64().unwrap();
    assert_eq!(answer["queries"], 200);
    assert!(share("recall") >= 0.98, "{answer}");
    assert!(share("self_recall") >= 0.98, "{answer}");
    assert!(share("low") < share("recall"), "{answer}");
    assert!((share("recall")..=1.0).contains(&share("high")), "{answer}");
    assert_eq!(states(&service).await, ["done"]);
    let by_default = measured(&service, "many", "{}").await.json();
    assert_eq!(by_default["queries"], 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_with_few_rows_has_all_of_them_checked_and_one_without_rows_has_no_recall() {
    let service = Service::serving().await;
    let few = measured(&service, "idx", "{}").await.json();
    let shown = ["recall", "self_recall", "high"].map(|name| few[name].as_f64());
    assert_eq!(shown, [Some(1.0); 3], "{few}");
    assert_eq!(few["queries"], 3);
    let empty = service.add(identity("empty"));
    service.engine.serving(&empty);
    let none = measured(&service, "empty", "{}").await;
    none.is(
        200,
        r#"{"recall":null,"low":null,"high":null,"self_recall":null,"queries":0}"#,
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_can_not_be_is_refused_with_the_reason() {
    let service = Service::serving().await;
    let none = measured(&service, "none", "{}").await;
    none.is(404, "missing index: ks.none");
    for (body, status) in [
        (r#"{"queries": 0}"#, 400),
        (r#"{"queries": 10001}"#, 400),
        (r#"{"queries": -1}"#, 422),
        (r#"{"rows": 1}"#, 422),
        ("{", 400),
    ] {
        let refused = measured(&service, "idx", body).await;
        assert_eq!(refused.status, status, "{body}: {}", refused.body);
    }
    let refused = measured(&service, "idx", r#"{"queries": 0}"#).await;
    refused.is(400, "queries is 0, and may be 1 to 10000");
    service.add(identity("later"));
    let building = measured(&service, "later", "{}").await;
    assert_eq!(building.status, 503);
    assert_eq!(building.json()["reason"], "INDEX_BUILDING");
    let words = service.add(IndexIdentity {
        options: StructureOptions::FullText(FullTextOptions::default()),
        ..identity("words")
    });
    service.engine.serving(&words);
    let of_words = measured(&service, "words", "{}").await;
    assert_eq!(of_words.status, 400, "{}", of_words.body);
    assert!(of_words.body.contains("no vectors"), "{}", of_words.body);
    assert!(states(&service).await.is_empty());
}

/// The end of a log that no index reaches.
struct FarHead;

impl LogHead for FarHead {
    fn acknowledged_us(&self) -> i64 {
        i64::MAX
    }

    fn slow_writers(&self) -> Box<dyn Send> {
        Box::new(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_ends_with_its_client() {
    let service = Service::serving().await;
    // The check waits for a write that the index does not take up.
    let index = service.engine.index(&identity("idx").name).unwrap();
    index.freshness.set_head(Arc::new(FarHead));
    let address = service.base.strip_prefix("http://").unwrap();
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /api/v1/indexes/ks/idx/recall HTTP/1.1\r\nhost: {address}\r\n\
         content-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    client.write_all(request.as_bytes()).await.unwrap();
    let is = async |state: &str| states(&service).await == [state];
    eventually("the check runs", async || is("running").await).await;
    drop(client);
    eventually("the check has ended", async || is("aborted").await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_that_is_aborted_is_a_conflict() {
    let service = with_rows(4000).await;
    let index = service.engine.index(&identity("many").name).unwrap();
    // Searches wait for the keys, so that the check can't be done before it is aborted.
    let (locked, is_locked) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::sync_channel::<()>(1);
    let writer = std::thread::spawn(move || {
        let keys = index.content.keys_mut();
        let _ = locked.send(());
        let _ = released.recv();
        drop(keys);
    });
    is_locked.await.unwrap();
    let abort = async {
        eventually("the check runs", async || {
            !states_running(&service).is_empty()
        })
        .await;
        for id in states_running(&service) {
            service.work.abort(id).unwrap();
        }
        drop(release);
    };
    let (refused, ()) = tokio::join!(measured(&service, "many", "{}"), abort);
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert_eq!(states(&service).await, ["aborted"]);
    writer.join().unwrap();
}

/// The tasks that measure recall now. A request for them would wait for the keys of indexes.
fn states_running(service: &Service) -> Vec<uuid::Uuid> {
    let tasks = service.work.list(false).into_iter();
    let running = tasks.filter(|task| task.kind == "recall");
    running.map(|task| task.id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_check_is_remembered_and_checks_come_by_schedule() {
    let service = with_rows(30).await;
    let mut indexes = service.engine.indexes().into_iter();
    let index = indexes.find(|index| index.identity.name.index == "many");
    let index = index.unwrap();
    assert_eq!(index.last_recall.get(), None);
    assert_eq!(measured(&service, "many", "{}").await.status, 200);
    let first = index.last_recall.get().expect("a check");
    assert_eq!(first.queries, 30);
    assert!(first.at_s > 0 && first.low <= first.recall && first.recall <= first.high);

    let options = RecallCheckOptions {
        interval: Some(Duration::from_millis(20)),
        queries: 7,
    };
    let (engine, searches) = (service.engine.clone(), service.api.searches.clone());
    let checks = RecallChecks::new(engine, searches, service.work.clone(), options);
    let running = tokio::spawn(checks.run());
    let is_checked = || {
        let last = index.last_recall.get();
        last.is_some_and(|checked| checked.queries == 7)
    };
    eventually("the schedule checks", async || is_checked()).await;
    running.abort();
}
