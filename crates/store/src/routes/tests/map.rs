//! Tests of the routes that make and return the map of an index.

use std::collections::BTreeSet;
use std::sync::mpsc::{SyncSender, sync_channel};

use index::FullTextOptions;
use store_api::types::{IndexMap, MapProgress, TaskState, TaskStatus};
use value::from_key_json;

use super::*;
use crate::identity::{FilterColumn, StructureOptions};
use crate::memory::ProcessMemory;
use crate::search::WantedRows;

const MAP: &str = "/api/v1/indexes/ks/many/map";

/// A service with an index `ks.many` of so many rows in rings, which keeps a column `ring`.
async fn with_rows(rows: u32) -> (Service, Arc<IndexHandle>) {
    let service = Service::serving().await;
    let index = service.add(IndexIdentity {
        keys: KeySchema {
            partition: vec![column("pk", CqlType::Int)],
            clustering: vec![],
        },
        filter_columns: vec![FilterColumn {
            name: "ring".into(),
            cql_type: CqlType::Int,
            is_static: false,
        }],
        ..identity("many")
    });
    for id in 0..rows {
        let ring = 1 + id % 3;
        let angle = id as f32;
        let key = index.identity.keys.encode([&id.to_be_bytes()[..]]);
        {
            let mut keys = index.content.keys_mut();
            keys.insert(id, key);
            // A tenth of the rows has no value.
            let value = (id % 10 != 0).then(|| json!(ring));
            let value = value.and_then(|value| from_key_json(&CqlType::Int, &value));
            keys.set_filters(id, &[value]);
        }
        let reach = 10.0 * ring as f32;
        insert(
            &index.content,
            id,
            &[reach * angle.cos(), reach * angle.sin()],
        );
    }
    service.engine.serving(&index);
    (service, index)
}

async fn begun(service: &Service, body: &str) -> MapProgress {
    let answer = service.send("POST", MAP, "application/json", body).await;
    assert_eq!(answer.status, 200, "{body}: {}", answer.body);
    serde_json::from_str(&answer.body).unwrap()
}

/// The task of a map, once it has ended.
async fn ended(service: &Service, progress: &MapProgress) -> TaskStatus {
    let id = &progress.task.as_ref().expect("a task").id;
    let path = format!("/api/v1/tasks/{id}/wait?timeout=60");
    serde_json::from_str(&service.get(&path).await.body).unwrap()
}

/// Keeps the keys of an index from all readers until the result is dropped.
async fn locked(index: &Arc<IndexHandle>) -> SyncSender<()> {
    let (is_locked, locked) = tokio::sync::oneshot::channel();
    let (release, released) = sync_channel::<()>(1);
    let index = index.clone();
    std::thread::spawn(move || {
        let keys = index.content.keys_mut();
        let _ = is_locked.send(());
        let _ = released.recv();
        drop(keys);
    });
    locked.await.unwrap();
    release
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_is_made_by_a_task_and_has_a_sample_of_the_rows() {
    let (service, _) = with_rows(700).await;
    service
        .get(MAP)
        .await
        .is(404, "index ks.many has no map: POST to this path makes one");
    let first = begun(&service, r#"{"points": 500}"#).await;
    assert!(!first.ready);
    let task = ended(&service, &first).await;
    assert_eq!((task.kind.as_str(), task.state), ("map", TaskState::Done));
    assert_eq!(
        (task.index.as_deref(), task.is_abortable),
        (Some("many"), true)
    );
    assert_eq!(Some(task.progress_completed), task.progress_total);

    let answer = service.get(MAP).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let map: IndexMap = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(
        (map.points, map.rows, map.seed, map.neighbours),
        (500, 700, 0, 10)
    );
    assert!(
        map.method.contains("t-SNE") && map.made_at.ends_with('Z'),
        "{map:?}"
    );
    // Vectors of two dimensions are as near on their principal components as they are.
    assert!(map.neighbours_kept_by_pca.unwrap() > 0.9, "{map:?}");
    assert!(
        map.neighbours_kept.unwrap() > 0.5,
        "{:?}",
        map.neighbours_kept
    );
    assert_eq!((map.x.len(), map.y.len()), (500, 500));
    assert!(
        map.x
            .iter()
            .chain(&map.y)
            .all(|at| (-1.0..=1.0).contains(at))
    );
    let [(name, keys)] = &map.primary_keys.0[..] else {
        panic!("one key column: {:?}", map.primary_keys);
    };
    let drawn: BTreeSet<u64> = keys.iter().map(|key| key.as_u64().unwrap()).collect();
    assert_eq!((name.as_str(), drawn.len()), ("pk", 500));
    let rings = &map.column_values["ring"];
    assert_eq!(rings.len(), 500);
    for (key, ring) in keys.iter().zip(rings) {
        let id = key.as_u64().unwrap();
        let wanted = if id % 10 == 0 {
            Value::Null
        } else {
            json!(1 + id % 3)
        };
        assert_eq!(*ring, wanted, "row {id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_equal_map_is_reused_unless_a_fresh_one_is_wanted() {
    let (service, _) = with_rows(520).await;
    let first = begun(&service, r#"{"points": 500, "seed": 3}"#).await;
    let task = ended(&service, &first).await;
    let again = begun(&service, r#"{"points": 500, "seed": 3}"#).await;
    assert!(again.ready);
    assert_eq!(again.task, Some(task));
    let drawn = async || {
        let map: IndexMap = serde_json::from_str(&service.get(MAP).await.body).unwrap();
        (map.seed, map.x, map.primary_keys)
    };
    let by_three = drawn().await;
    let fresh = begun(&service, r#"{"points": 500, "seed": 3, "fresh": true}"#).await;
    assert!(!fresh.ready && fresh.task != again.task);
    ended(&service, &fresh).await;
    assert_eq!(drawn().await, by_three, "one seed has one map");
    let other = begun(&service, r#"{"points": 500, "seed": 4}"#).await;
    ended(&service, &other).await;
    let by_four = drawn().await;
    assert_ne!(by_four.2, by_three.2);
    begun(&service, r#"{"points": 500, "seed": 3}"#).await;
    assert_eq!(drawn().await, by_three, "it was requested last");
    // Of more than four maps the one that was requested before all others is dropped.
    for seed in 5..8 {
        let body = format!(r#"{{"points": 500, "seed": {seed}}}"#);
        ended(&service, &begun(&service, &body).await).await;
    }
    assert!(begun(&service, r#"{"points": 500, "seed": 3}"#).await.ready);
    assert!(!begun(&service, r#"{"points": 500, "seed": 4}"#).await.ready);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_map_is_made_at_a_time_and_can_be_aborted() {
    let (service, index) = with_rows(520).await;
    let release = locked(&index).await;
    let first = begun(&service, r#"{"points": 500}"#).await;
    let making = service.get(MAP).await;
    assert_eq!(making.status, 202, "{}", making.body);
    let making: MapProgress = serde_json::from_str(&making.body).unwrap();
    let id = first.task.clone().unwrap().id;
    assert_eq!((making.task.unwrap().id, making.ready), (id.clone(), false));
    let equal = begun(&service, r#"{"points": 500}"#).await;
    assert_eq!(equal.task.unwrap().id, id);
    let body = r#"{"points": 500, "seed": 1}"#;
    let busy = service.send("POST", MAP, "application/json", body).await;
    assert_eq!(busy.status, 409, "{}", busy.body);
    assert!(
        busy.body.contains("ks.many") && busy.body.contains("one at a time"),
        "{}",
        busy.body
    );
    let path = format!("/api/v1/tasks/{id}");
    assert_eq!(service.send("DELETE", &path, "", "").await.status, 200);
    // An equal one will not come of the map that is to stop.
    let body = r#"{"points": 500}"#;
    let stopping = service.send("POST", MAP, "application/json", body).await;
    assert_eq!(stopping.status, 409, "{}", stopping.body);
    drop(release);
    assert_eq!(ended(&service, &first).await.state, TaskState::Aborted);
    assert_eq!(service.get(MAP).await.status, 404);
    let second = begun(&service, r#"{"points": 500}"#).await;
    assert_eq!(ended(&service, &second).await.state, TaskState::Done);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_ends_with_its_index() {
    let (service, index) = with_rows(520).await;
    let release = locked(&index).await;
    let first = begun(&service, r#"{"points": 500}"#).await;
    service.engine.remove(&index.identity.name);
    drop(release);
    let task = ended(&service, &first).await;
    assert_eq!(task.state, TaskState::Failed);
    let error = task.error.expect("an error");
    assert!(error.contains("ks.many was dropped"), "{error}");
    let gone = service.get(MAP).await;
    gone.is(404, "missing index: ks.many");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_that_can_not_be_is_refused_with_the_reason() {
    let service = Service::serving().await;
    service.add(identity("later"));
    let words = service.add(IndexIdentity {
        options: StructureOptions::FullText(FullTextOptions::default()),
        ..identity("words")
    });
    service.engine.serving(&words);
    let sent = async |index: &str, body: &str| {
        let path = format!("/api/v1/indexes/ks/{index}/map");
        service.send("POST", &path, "application/json", body).await
    };
    sent("none", "{}").await.is(404, "missing index: ks.none");
    let few = sent("idx", r#"{"points": 499}"#).await;
    few.is(400, "points is 499, and may be 500 to 20000");
    for (body, status) in [
        (r#"{"points": 20001}"#, 400),
        (r#"{"seed": -1}"#, 422),
        (r#"{"rows": 500}"#, 422),
        ("{", 400),
    ] {
        assert_eq!(sent("idx", body).await.status, status, "{body}");
    }
    assert_eq!(sent("later", "{}").await.status, 503);
    for answer in [
        sent("words", "{}").await,
        service.get("/api/v1/indexes/ks/words/map").await,
    ] {
        answer.is(400, "index ks.words has no vectors, which a map could show");
    }
    let mut tasks = service.work.list(false).into_iter();
    assert!(tasks.all(|task| task.kind != "map"));
    let none = service.get("/api/v1/indexes/ks/none/map").await;
    none.is(404, "missing index: ks.none");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_with_few_rows_has_all_of_them_on_its_map() {
    let service = Service::serving().await;
    let path = "/api/v1/indexes/ks/idx/map";
    let answer = service.send("POST", path, "application/json", "{}").await;
    let progress: MapProgress = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(ended(&service, &progress).await.state, TaskState::Done);
    let map = service.get(path).await.json();
    assert_eq!(map["points"], 3);
    assert_eq!(
        map["primary_keys"],
        json!({"pk": [0, 1, 2], "ck": ["a", "b", "c"]})
    );
    assert_eq!(map["column_values"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_map_without_memory_for_it_fails_with_the_reason() {
    let (service, index) = with_rows(520).await;
    let memory = Arc::new(ProcessMemory::default());
    memory.note(1 << 20, 1 << 20);
    let maps = IndexMaps::new(
        service.api.searches.clone(),
        memory,
        service.work.clone(),
        TaskTracker::new(),
        CancellationToken::new(),
    );
    let wanted = WantedRows {
        points: 500,
        seed: 0,
    };
    let state = maps.start(&index, wanted, false).unwrap();
    let id = state.task.unwrap().id;
    let ended = service.work.wait(id, Duration::from_secs(60)).await;
    let error = ended.unwrap().error.expect("an error");
    assert!(error.contains("of memory are needed"), "{error}");
    assert!(maps.last(&index.identity).is_none());
}
