//! Tests of what a search may say in addition to its vector: columns whose values it wants, whether
//! another index may answer, and the writes that the answer must know.

use value::{Value as Cql, from_key_json};

use super::*;
use crate::identity::FilterColumn;
use crate::indexes::tests::time_uuid;
use crate::indexes::{ChangeBlock, ChangeBlocks, FreshChange};
use crate::message::LogPosition;
use crate::observed::IndexableValue;

/// An index of `ks.t (v)` that keeps the columns `n` (int) and `tags` (a list of texts).
fn with_columns(name: &str) -> IndexIdentity {
    let filter = |name: &str, cql_type| FilterColumn {
        name: name.into(),
        cql_type,
        is_static: false,
    };
    let tags = CqlType::List {
        element: Box::new(CqlType::Text),
        frozen: false,
    };
    IndexIdentity {
        keys: KeySchema {
            partition: vec![column("pk", CqlType::Int)],
            clustering: vec![],
        },
        filter_columns: vec![filter("n", CqlType::Int), filter("tags", tags)],
        ..identity(name)
    }
}

/// Puts a row into the keys of an index: its key, `n`, and a tag.
fn keep(index: &IndexHandle, id: u32, n: Option<i32>, tag: Option<&str>) {
    let key = index.identity.keys.encode([&id.to_be_bytes()[..]]);
    let mut keys = index.content.keys_mut();
    if keys.key(id).is_none() {
        keys.insert(id, key);
    }
    let tag = tag.map(|tag| Cql::List(vec![Cql::Text(tag.to_owned())]).serialize());
    let n = n.and_then(|n| from_key_json(&CqlType::Int, &json!(n)));
    keys.set_filters(id, &[n, tag]);
}

async fn serving() -> (Service, Arc<IndexHandle>) {
    let service = Service::start(100).await;
    service.engine.set_connected(true);
    let index = service.add(with_columns("idx"));
    service.engine.first_discovery();
    service.engine.serving(&index);
    keep(&index, 0, Some(7), Some("a"));
    insert(&index.content, 0, &[0.0, 1.0]);
    keep(&index, 1, None, None);
    insert(&index.content, 1, &[0.0, 2.5]);
    (service, index)
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_that_the_index_stores_are_returned() {
    let (service, index) = serving().await;
    let ask = r#"{"vector":[0,0],"limit":9,"return_columns":["tags","v","n","pk","n"]}"#;
    let answer = service.ann("idx", ask).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let stored = json!({
        "tags": [["a"], null],
        "v": [[0.0, 1.0], [0.0, 2.5]],
        "n": [7, null],
        "pk": [0, 1],
    });
    assert_eq!(answer.json()["column_values"], stored);
    assert_eq!(answer.json()["primary_keys"], json!({"pk": [0, 1]}));
    // What waits for the graph is answered as it is now.
    keep(&index, 1, Some(8), None);
    let vector = index
        .content
        .prepare(&IndexableValue::Vector(vec![0.5, 0.0]))
        .unwrap();
    let change = FreshChange {
        id: 1,
        value: Some(vector),
    };
    index.content.publish(
        ChangeBlocks {
            first: 0,
            blocks: vec![Arc::new(ChangeBlock::new(vec![change]))],
        },
        &[],
    );
    let answer = service.ann("idx", ask).await.json();
    assert_eq!(
        answer["column_values"]["v"],
        json!([[0.5, 0.0], [0.0, 1.0]])
    );
    assert_eq!(answer["column_values"]["n"], json!([8, 7]));
    let filtered = r#"{"vector":[0,0],"limit":9,"return_columns":["n"],"filter":{"restrictions":
        [{"type":"<","lhs":"n","rhs":8}],"allow_filtering":true}}"#;
    let answer = service.ann("idx", filtered).await;
    assert_eq!(answer.json()["column_values"], json!({"n": [7]}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_speaks_of_columns_only_if_it_was_asked() {
    let (service, _) = serving().await;
    let answer = service.ann("idx", r#"{"vector":[0,0]}"#).await.json();
    assert_eq!(answer.get("column_values"), None);
    for none in ["null", "[]"] {
        let ask = format!(r#"{{"vector":[0,0],"return_columns":{none}}}"#);
        let answer = service.ann("idx", &ask).await.json();
        let expected = (none == "[]").then(|| json!({}));
        assert_eq!(answer.get("column_values"), expected.as_ref(), "{none}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_tells_how_it_was_done_if_it_is_asked() {
    let (service, index) = serving().await;
    let debug = async |rest: &str| {
        let ask = format!(r#"{{"vector":[0,0],"limit":9{rest}}}"#);
        let answer = service.ann("idx", &ask).await.json();
        answer.get("debug").cloned()
    };
    assert_eq!(debug("").await, None);
    assert_eq!(debug(r#","debug":false"#).await, None);
    let plain = json!({"index": "idx", "plan": "scan", "fresh": 0, "walk_given_up": false});
    assert_eq!(debug(r#","debug":true"#).await, Some(plain));
    let vector = index
        .content
        .prepare(&IndexableValue::Vector(vec![0.5, 0.0]))
        .unwrap();
    let change = FreshChange {
        id: 0,
        value: Some(vector),
    };
    index.content.publish(
        ChangeBlocks {
            first: 0,
            blocks: vec![Arc::new(ChangeBlock::new(vec![change]))],
        },
        &[],
    );
    let filtered = r#","filter":{"restrictions":[{"type":"IN","lhs":"pk","rhs":[0,1,5]}],
        "allow_filtering":true}"#;
    let told = json!({"index": "idx", "plan": "filtered_scan", "admitted": 2, "fresh": 1,
        "walk_given_up": false});
    assert_eq!(
        debug(&format!(r#"{filtered},"debug":true"#)).await,
        Some(told)
    );
    // An exact search is named as such, whatever way it took.
    for rest in [r#","exact":true"#, &format!(r#"{filtered},"exact":true"#)] {
        let told = debug(&format!(r#"{rest},"debug":true"#)).await;
        assert_eq!(told.unwrap()["plan"], "exact", "{rest}");
    }
    let metrics = service.get("/metrics").await.body;
    for (plan, count) in [
        ("scan", 3),
        ("filtered_scan", 1),
        ("exact", 2),
        ("walk", 0),
        ("ranked_rows", 0),
    ] {
        let line =
            format!(r#"searches_total{{index_name="idx",keyspace="ks",plan="{plan}"}} {count}"#);
        assert!(metrics.contains(&line), "{line} not in\n{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_no_index_stores_is_named() {
    let (service, _) = serving().await;
    let answer = service
        .ann("idx", r#"{"vector":[0,0],"return_columns":["n","colour"]}"#)
        .await;
    answer.is(
        400,
        "column colour can't be returned, as the index doesn't store it: name it in the index, as in \
         ON table (vector, colour)",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_that_stores_the_columns_answers() {
    let (service, index) = serving().await;
    // The newest, without filter columns.
    let bare = service.add(IndexIdentity {
        filter_columns: Vec::new(),
        version: Some(time_uuid(2)),
        ..with_columns("bare")
    });
    service.engine.serving(&bare);
    keep(&index, 2, Some(9), None);
    let key = bare.identity.keys.encode([&5_u32.to_be_bytes()[..]]);
    bare.content.keys_mut().insert(0, key);
    insert(&bare.content, 0, &[0.0, 0.0]);
    let rows = async |index: &str, ask: &str| {
        let answer = service.ann(index, ask).await;
        match answer.status {
            200 => answer.json()["primary_keys"]["pk"].clone(),
            status => json!(status),
        }
    };
    let plain = r#"{"vector":[0,0]}"#;
    let here = r#"{"vector":[0,0],"routing":false}"#;
    let returning = r#"{"vector":[0,0],"return_columns":["n"]}"#;
    let returning_here = r#"{"vector":[0,0],"return_columns":["n"],"routing":false}"#;
    for (index, ask, expected) in [
        ("idx", plain, json!([5])),
        ("bare", plain, json!([5])),
        ("idx", here, json!([0])),
        ("bare", here, json!([5])),
        ("bare", returning, json!([0])),
        ("idx", returning_here, json!([0])),
        ("bare", returning_here, json!(400)),
        ("none", here, json!(404)),
    ] {
        assert_eq!(rows(index, ask).await, expected, "{index} {ask}");
    }
    let filtered_here = r#"{"vector":[0,0],"routing":false,"filter":{"restrictions":
        [{"type":"==","lhs":"n","rhs":7}],"allow_filtering":true}}"#;
    assert_eq!(rows("idx", filtered_here).await, json!([0]));
    assert_eq!(rows("bare", filtered_here).await, json!(400));
    // Only the named index is waited for, even if another serves.
    let later = service.add(IndexIdentity {
        version: Some(time_uuid(3)),
        ..with_columns("later")
    });
    assert_eq!(rows("later", plain).await, json!([5]));
    assert_eq!(rows("later", here).await, json!(503));
    service.engine.serving(&later);
    assert_eq!(rows("later", here).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_knows_the_writes_up_to_the_time_asked_for_or_there_is_none() {
    let (service, index) = serving().await;
    let ask = async |time_us: i64| {
        let body = json!({"vector": [0, 0], "min_time_us": time_us}).to_string();
        let request = hyper::Request::post(format!("{}/api/v1/indexes/ks/idx/ann", service.base))
            .header("content-type", "application/json")
            .header("x-request-timeout-ms", "100")
            .body(Full::new(Bytes::from(body)));
        let answer = service.http.request(request.unwrap()).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let behind = "index ks.idx has not taken up all writes up to min_time_us in time, and";
    let unknown = json!({
        "reason": "INDEX_BEHIND",
        "message": format!("{behind} does not know yet how far it is"),
    });
    assert_eq!(ask(7).await, (503, unknown));
    index.freshness.reached(LogPosition {
        run: 1,
        time_us: 2_000_000,
    });
    assert_eq!(ask(2_000_000).await.0, 200);
    let known = json!({
        "reason": "INDEX_BEHIND",
        "message": format!("{behind} lacks the last 1.500 s of them"),
        "behind_us": 1_500_000,
    });
    assert_eq!(ask(3_500_000).await, (503, known));
    let metrics = service.get("/metrics").await.body;
    let line = r#"searches_refused_total{reason="behind"} 2"#;
    assert!(metrics.contains(line), "{metrics}");
}
