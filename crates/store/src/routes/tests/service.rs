//! Tests of the service as a whole: what it tells of itself, and searches that it has no room, time
//! or index for.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_service_reports_its_status_its_version_and_its_indexes() {
    let service = Service::serving().await;
    service.get("/api/v1/status").await.is(200, "\"SERVING\"");
    assert_eq!(
        service.get("/api/v1/info").await.json(),
        json!({"service": "s", "version": "1", "engine": "e"})
    );
    let status = json!({
        "status": "SERVING",
        "count": 3,
        "build_progress": 100.0,
        "version": identity("idx").version,
    });
    let mut info = status.clone();
    info["keyspace"] = "ks".into();
    info["index"] = "idx".into();
    info["options"] = json!({
            "type": "vector",
            "dimensions": 2,
            "maximum_node_connections": 16,
            "construction_beam_width": 128,
            "search_beam_width": 64,
            "similarity_function": "EUCLIDEAN",
            "quantization": "F32",
    });
    let shown = async |path: &str| without_memory(service.get(path).await.json());
    assert_eq!(shown("/api/v1/indexes/ks/idx").await, info);
    assert_eq!(shown("/api/v1/indexes/ks/idx/status").await, status);
    let all = service.get("/api/v1/indexes").await.json();
    assert_eq!(without_memory(all[0].clone()), info);
    assert_eq!(all[1], json!(null));
}

/// The status of an index without the memory that it takes.
fn without_memory(mut status: Value) -> Value {
    let memory = status.as_object_mut().unwrap().remove("memory");
    assert!(memory.is_some_and(|memory| memory.is_object()), "{status}");
    status
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_an_index_is_shown_by_part() {
    let service = Service::serving().await;
    let status = service.get("/api/v1/indexes/ks/idx/status").await.json();
    let part = |name: &str| status["memory"][name].as_u64().unwrap_or_default();
    for name in ["graph", "codes", "keys", "other"] {
        assert!(part(name) > 0, "{name}: {status}");
    }
    // Codes of two dimensions are the vectors.
    assert_eq!((part("vectors"), part("mapped")), (0, 0), "{status}");
    let metrics = service.get("/metrics").await.body;
    for name in ["codes", "vectors", "keys", "filter_values"] {
        let series = format!("component=\"{name}\",index_name=\"idx\",keyspace=\"ks\"}} ");
        let line = format!("index_memory_bytes{{{series}{}\n", part(name));
        assert!(metrics.contains(&line), "{line} not in\n{metrics}");
    }
    for name in ["index_dead_entries", "index_maintenance_debt"] {
        let line = format!("{name}{{index_name=\"idx\",keyspace=\"ks\"}} 0\n");
        assert!(metrics.contains(&line), "{line} not in\n{metrics}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_not_ready() {
    let service = Service::start(100).await;
    service.engine.set_connected(true);
    let index = service.add(identity("idx"));
    service.engine.first_discovery();
    let ask = r#"{"vector":[0,0]}"#;
    service
        .ann("idx", ask)
        .await
        .is(503, r#"{"reason":"NODE_BOOTSTRAPPING"}"#);
    service
        .get("/api/v1/status")
        .await
        .is(200, "\"BOOTSTRAPPING\"");
    service.engine.serving(&index);
    let later = service.add(identity("later"));
    later.set_progress(12.5);
    // The column is another one, as the index that serves would answer otherwise.
    let later = service.add(IndexIdentity {
        column: "w".into(),
        ..later.identity.clone()
    });
    later.set_progress(12.5);
    service.ann("later", ask).await.is(
        503,
        r#"{"reason":"INDEX_BUILDING","message":"Index ks.later is still being constructed: 12.500% done"}"#,
    );
    assert_eq!(
        without_memory(service.get("/api/v1/indexes/ks/later/status").await.json()),
        json!({"status": "INITIALIZING", "count": 0, "build_progress": 12.5, "version": identity("later").version})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn more_searches_than_admitted_are_refused_fast() {
    let service = Service::start(0).await;
    let answer = service.ann("idx", r#"{"vector":[0,0]}"#).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.headers["retry-after"], "1");
    assert!(!answer.body.contains("BOOTSTRAPPING"), "{}", answer.body);
    // Other requests take no place of a search.
    let metrics = service.get("/metrics").await;
    assert_eq!(metrics.status, 200);
    let line = r#"searches_refused_total{reason="admission"} 1"#;
    assert!(metrics.body.contains(line), "{}", metrics.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_without_time_is_refused_fast() {
    let service = Service::serving().await;
    let ask = async |timeout: &str| {
        let request = hyper::Request::post(format!("{}/api/v1/indexes/ks/idx/ann", service.base))
            .header("content-type", "application/json")
            .header("x-request-timeout-ms", timeout)
            .body(Full::new(Bytes::from_static(br#"{"vector":[0,0]}"#)));
        let answer = service.http.request(request.unwrap()).await.unwrap();
        (answer.status().as_u16(), answer.headers().clone())
    };
    assert_eq!(ask("20000").await.0, 200);
    assert_eq!(ask("18446744073709551615").await.0, 200);
    let (status, headers) = ask("0").await;
    assert_eq!(
        (status, headers["retry-after"].as_bytes()),
        (503, &b"1"[..])
    );
    assert_eq!(ask("soon").await.0, 400);
    let metrics = service.get("/metrics").await.body;
    let line = r#"searches_refused_total{reason="deadline"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_follow_the_indexes() {
    let service = Service::serving().await;
    service.ann("idx", r#"{"vector":[0,0]}"#).await;
    let answer = service.get("/metrics").await;
    assert!(answer.headers["content-type"].starts_with("text/plain; version=0.0.4"));
    for line in [
        r#"index_size{index_name="idx",keyspace="ks"} 3"#,
        r#"index_memory_bytes{component="graph",index_name="idx",keyspace="ks"} "#,
        r#"index_memory_bytes{component="keys",index_name="idx",keyspace="ks"} "#,
        r#"index_mapped_bytes{index_name="idx",keyspace="ks"} 0"#,
        r#"index_rows_without_room{index_name="idx",keyspace="ks"} 0"#,
        r#"index_tending{index_name="idx",keyspace="ks"} 0"#,
        r#"index_recall_estimate{index_name="idx",k="10",keyspace="ks"} NaN"#,
        r#"index_walk_width{index_name="idx",k="100",keyspace="ks"} 1"#,
        r#"request_latency_seconds_count{index_name="idx",keyspace="ks"} 1"#,
    ] {
        assert!(answer.body.contains(line), "{line} not in\n{}", answer.body);
    }
    for component in ["graph", "ids", "keys"] {
        let none = format!("component=\"{component}\",index_name=\"idx\",keyspace=\"ks\"}} 0");
        assert!(!answer.body.contains(&none), "{}", answer.body);
    }
    service.engine.remove(&identity("idx").name);
    let left = service.get("/metrics").await;
    assert!(
        left.status == 200 && !left.body.contains("idx"),
        "{}",
        left.body
    );
    // An alert sees the first refusal as a rise.
    let shed = r#"annulus_search_shed_total{reason="behind"} 0"#;
    assert!(left.body.contains(shed), "{}", left.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_of_tests_are_there_only_if_they_were_asked_for() {
    let hooks = [
        ("GET", "/api/internals/counters"),
        ("DELETE", "/api/internals/counters"),
        ("PUT", "/api/internals/counters/searches"),
        ("GET", "/api/internals/session-counters"),
    ];
    let without = Service::start(1).await;
    for (method, path) in hooks {
        assert_eq!(
            without.send(method, path, "", "").await.status,
            404,
            "{path}"
        );
    }
    let service = Service::start_as(true, |_| {}).await;
    let [counters, _, of_searches, of_sessions] = hooks.map(|(_, path)| path);
    service.get(of_sessions).await.is(200, "{}");
    service.get(counters).await.is(200, "{}");
    service.send("PUT", of_searches, "", "").await.is(200, "");
    service.get(counters).await.is(200, r#"{"searches":0}"#);
    service.engine.set_connected(true);
    let index = service.add(identity("idx"));
    service.engine.serving(&index);
    assert_eq!(service.ann("idx", r#"{"vector":[0,0]}"#).await.status, 200);
    assert_eq!(service.ann("none", r#"{"vector":[0,0]}"#).await.status, 404);
    service.get(counters).await.is(200, r#"{"searches":1}"#);
    service.send("DELETE", counters, "", "").await.is(200, "");
    service.get(counters).await.is(200, "{}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_names_every_route() {
    let service = Service::start(1).await;
    let document = service.get("/api-docs/openapi.json").await.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for (path, method) in [
        ("/api/v1/status", "get"),
        ("/api/v1/info", "get"),
        ("/api/v1/indexes", "get"),
        ("/api/v1/indexes/{keyspace}/{index}", "get"),
        ("/api/v1/indexes/{keyspace}/{index}/status", "get"),
        ("/api/v1/indexes/{keyspace}/{index}/ann", "post"),
        ("/api/v1/indexes/{keyspace}/{index}/bm25", "post"),
        ("/api/v1/indexes/{keyspace}/{index}/highlight", "post"),
        ("/api/v1/indexes/{keyspace}/{index}/matches", "post"),
        ("/api/v1/indexes/{keyspace}/{index}/scores", "post"),
        ("/api/v1/indexes/{keyspace}/{index}/recall", "post"),
        ("/api/v1/indexes/{keyspace}/{index}/map", "post"),
        ("/api/v1/indexes/{keyspace}/{index}/map", "get"),
        ("/metrics", "get"),
    ] {
        assert!(document["paths"][path][method].is_object(), "{path}");
    }
    let search = &document["paths"]["/api/v1/indexes/{keyspace}/{index}/ann"]["post"];
    for types in [&search["requestBody"], &search["responses"]["200"]] {
        assert_eq!(types["content"].as_object().unwrap().len(), 2, "{types}");
    }
    for status in [
        "200", "400", "403", "404", "408", "413", "415", "422", "500", "503",
    ] {
        assert!(search["responses"][status].is_object(), "{status}");
    }
    let restriction = &document["components"]["schemas"]["Restriction"];
    assert_eq!(restriction["oneOf"].as_array().unwrap().len(), 22);
    let filter = &document["components"]["schemas"]["Filter"]["properties"];
    for key in ["restrictions", "allow_filtering", "and", "or", "not"] {
        assert!(filter[key].is_object(), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_service_closes_its_socket() {
    let service = Service::serving().await;
    assert_eq!(service.get("/api/v1/status").await.status, 200);
    service.listening.stop();
    let address = service.base.strip_prefix("http://").unwrap();
    eventually("the socket is closed", async || {
        tokio::net::TcpStream::connect(address).await.is_err()
    })
    .await;
}
