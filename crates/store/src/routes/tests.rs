//! Tests of the API by requests over a socket, on an engine whose indexes are filled by hand.

mod service;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use http_server::Authorizer;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use test_support::eventually;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod allocations;
mod binary;
mod health;
mod local;
mod long_work;
mod map;
mod recall;
mod returned;
mod slow_searches;
mod sockets;
mod tokens;
mod words;

use slow_statements::{SlowQueries, SlowQueryOptions};
use value::CqlType;

use super::*;
use crate::compute::CpuExecutor;
use crate::database::SourceDatabase;
use crate::database::tests::Silent;
use crate::identity::IndexIdentity;
use crate::indexes::IndexHandle;
use crate::indexes::tests::{identity, in_memory, insert};
use crate::keys::{KeyColumn, KeySchema};
use crate::metrics::ServiceMetrics;
use crate::options::{RepairOptions, ScrubOptions, ShortAnswerPolicy, UnknownKeyRule};
use crate::present::TimeSource;

struct Service {
    base: String,
    api: ApiState,
    engine: Arc<IndexEngine>,
    work: TaskRegistry,
    slow_searches: Arc<SlowQueries>,
    http: Client<HttpConnector, Full<Bytes>>,
    listening: Listening,
}

use axum::body::Bytes;

struct Answer {
    status: u16,
    headers: HashMap<String, String>,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn is(&self, status: u16, body: &str) {
        assert_eq!((self.status, self.body.as_str()), (status, body));
    }
}

/// A limit that is so long that searches of these tests are computed inline on any machine.
const INLINE: Duration = Duration::from_secs(60);

/// The most values of a filter in these tests.
const FILTER_VALUES_MAX: usize = 1000;

impl Service {
    async fn start(searches_max: usize) -> Service {
        Service::start_with(|options| options.searches_max = searches_max).await
    }

    async fn start_with(change: impl FnOnce(&mut ApiSocketOptions)) -> Service {
        Service::start_as(false, change).await
    }

    async fn start_as(internals: bool, change: impl FnOnce(&mut ApiSocketOptions)) -> Service {
        Service::start_behind(None, internals, change).await
    }

    async fn start_behind(
        authorizer: Option<Arc<dyn Authorizer>>,
        internals: bool,
        change: impl FnOnce(&mut ApiSocketOptions),
    ) -> Service {
        Service::start_over(Arc::new(Silent), authorizer, internals, change).await
    }

    async fn start_over(
        database: Arc<dyn SourceDatabase>,
        authorizer: Option<Arc<dyn Authorizer>>,
        internals: bool,
        change: impl FnOnce(&mut ApiSocketOptions),
    ) -> Service {
        let mut options = ApiSocketOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        change(&mut options);
        let bound = BoundSocket::bind(options).await.unwrap();
        Service::start_on(bound, database, authorizer, internals)
    }

    fn start_on(
        bound: BoundSocket,
        database: Arc<dyn SourceDatabase>,
        authorizer: Option<Arc<dyn Authorizer>>,
        internals: bool,
    ) -> Service {
        let engine = Arc::new(IndexEngine::new(ServiceMetrics::new(), vec!["fine".into()]));
        let compute = CpuExecutor::new(cpu_scheduler::CpuScheduler::of_threads(2), INLINE);
        let work = TaskRegistry::default();
        let base = format!("http://{}", bound.address());
        // Each search is slow.
        let slow_searches = Arc::new(SlowQueries::new(SlowQueryOptions {
            threshold: Some(Duration::ZERO),
            ..SlowQueryOptions::default()
        }));
        let searches = VectorSearcher::new(
            engine.clone(),
            compute,
            FILTER_VALUES_MAX,
            ShortAnswerPolicy::Answer,
            slow_searches.clone(),
        );
        let api = ApiState {
            engine: engine.clone(),
            history: http_server::MetricsHistory::new(engine.metrics().registry().clone()),
            maps: IndexMaps::new(
                searches.clone(),
                Arc::default(),
                work.clone(),
                TaskTracker::new(),
                CancellationToken::new(),
            ),
            searches,
            work: work.clone(),
            repairs: Repairs::new(
                database,
                work.clone(),
                TaskTracker::new(),
                RepairOptions::default(),
                CancellationToken::new(),
            ),
            schedules: IndexSchedules::open(
                Path::new("/dev/null/nowhere"),
                None,
                None,
                TimeSource::default(),
            ),
            scrubs: Scrubs::new(
                Arc::new(Silent),
                "/dev/null/nowhere".into(),
                ScrubOptions::default(),
                work.clone(),
                TaskTracker::new(),
                CancellationToken::new(),
            ),
            maintenance: MaintenanceMode::default(),
            info: Arc::new(store_api::types::Info {
                service: "s".into(),
                version: "1".into(),
                engine: "e".into(),
            }),
            internals,
            of_database: None,
            of_process: Vec::new(),
            session: None,
        };
        let listening = bound.serve(api.clone(), authorizer);
        Service {
            base,
            api,
            engine,
            work,
            slow_searches,
            http: Client::builder(TokioExecutor::new()).build_http(),
            listening,
        }
    }

    /// Starts a service in the state SERVING, with an index `ks.idx` of `(0, 0)`, `(3, 4)` and `(6,
    /// 8)`.
    async fn serving() -> Service {
        Service::serving_with(|_| {}).await
    }

    async fn serving_with(change: impl FnOnce(&mut ApiSocketOptions)) -> Service {
        let service = Service::start_with(change).await;
        service.engine.set_connected(true);
        let index = service.add(IndexIdentity {
            keys: KeySchema {
                partition: vec![column("pk", CqlType::Int)],
                clustering: vec![column("ck", CqlType::Text)],
            },
            ..identity("idx")
        });
        service.engine.first_discovery();
        service.engine.serving(&index);
        for id in 0..3u32 {
            let key = index
                .identity
                .keys
                .encode([id.to_be_bytes().as_slice(), &[b'a' + id as u8]]);
            index.content.keys_mut().insert(id, key);
            insert(&index.content, id, &[3.0 * id as f32, 4.0 * id as f32]);
        }
        service
    }

    fn add(&self, identity: IndexIdentity) -> Arc<IndexHandle> {
        let metrics = self.engine.metrics().index(&identity.name);
        let index = Arc::new(IndexHandle::new(identity, &in_memory(), metrics).unwrap());
        self.engine.insert(index.clone());
        index
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, body: &str) -> Answer {
        let mut request = hyper::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base));
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let request = request
            .body(Full::new(Bytes::from(body.to_owned())))
            .unwrap();
        let response = self.http.request(request).await.unwrap();
        let status = response.status().as_u16();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Answer {
            status,
            headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "").await
    }

    async fn ann(&self, index: &str, body: &str) -> Answer {
        let path = format!("/api/v1/indexes/ks/{index}/ann");
        self.send("POST", &path, "application/json", body).await
    }
}

fn column(name: &str, cql_type: CqlType) -> KeyColumn {
    KeyColumn {
        name: name.into(),
        cql_type,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_answer_by_column_nearest_first() {
    let service = Service::serving().await;
    service
        .ann("idx", r#"{"vector":[0,0],"limit":2}"#)
        .await
        .is(
            200,
            r#"{"primary_keys":{"pk":[0,1],"ck":["a","b"]},"distances":[0.0,25.0],"similarity_scores":[1.0,0.03846154]}"#,
        );
    let all = service
        .ann("idx", r#"{"vector":[9,9],"limit":100000}"#)
        .await;
    assert_eq!(all.json()["primary_keys"]["pk"], json!([2, 1, 0]));
    assert_eq!(all.headers["content-type"], "application/json");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_needs_only_a_vector_and_takes_any_content_type_of_json() {
    let service = Service::serving().await;
    for body in [
        r#"{"vector":[0,0]}"#,
        r#"{"vector":[0,0],"filter":null}"#,
        r#"{"vector":[0,0],"filter":{"restrictions":[],"allow_filtering":true}}"#,
    ] {
        let answer = service.ann("idx", body).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
        assert_eq!(answer.json()["primary_keys"]["pk"], json!([0]), "{body}");
    }
    let path = "/api/v1/indexes/ks/idx/ann";
    for content_type in ["application/json; charset=utf-8", "application/ld+json"] {
        let answer = service
            .send("POST", path, content_type, r#"{"vector":[0,0]}"#)
            .await;
        assert_eq!(answer.status, 200, "{content_type}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_keys_are_refused_by_name_or_counted() {
    let service = Service::serving().await;
    let beside = [
        r#"{"vector":[0,0],"filtr":{"restrictions":[]}}"#,
        r#"{"filtr":{"restrictions":[]},"vector":[0,0]}"#,
    ];
    let within = [
        r#"{"vector":[0,0],"filter":{"restrictions":[],"filtr":1}}"#,
        r#"{"vector":[0,0],"filter":{"restrictions":[{"type":"==","lhs":"pk","rhs":0,"filtr":1}]}}"#,
    ];
    for body in beside.iter().chain(&within) {
        let answer = service.ann("idx", body).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.body);
        let named = r#"unknown key "filtr""#;
        assert!(answer.body.contains(named), "{}", answer.body);
    }
    let answer = service.ann("idx", r#"{"vectr":[0,0]}"#).await;
    assert_eq!(answer.status, 400);
    let told = r#"unknown key "vectr" of the request: did you mean "vector"?"#;
    assert!(answer.body.starts_with(told), "{}", answer.body);

    let beside_scylladb = Service::serving_with(|options| {
        options.unknown_keys = UnknownKeyRule::Counted;
    });
    let service = beside_scylladb.await;
    for body in beside {
        let answer = service.ann("idx", body).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
    }
    for body in within {
        assert_eq!(service.ann("idx", body).await.status, 400, "{body}");
    }
    let metrics = service.engine.metrics().registry().text().unwrap();
    assert!(
        metrics.contains("request_keys_unknown_total 2\n"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_another_shape_say_where() {
    let service = Service::serving().await;
    for (body, named) in [
        (r#"{"vector":[0,0],"limit":0}"#, "limit"),
        (r#"{"vector":[0,0],"limit":-1}"#, "limit"),
        (r#"{"vector":[0,0],"limit":1.5}"#, "limit"),
        (r#"{"limit":1}"#, "vector"),
        (r#"{"vector":[0,"x"]}"#, "vector[1]"),
        (r#"{"vector":[0,null]}"#, "vector[1]"),
        (
            r#"{"vector":[0,0],"filter":{"restrictions":[{"type":"~","lhs":"a","rhs":1}]}}"#,
            "filter.restrictions[0]",
        ),
    ] {
        let answer = service.ann("idx", body).await;
        assert_eq!(answer.status, 422, "{body}: {}", answer.body);
        assert!(answer.body.contains(named), "{body}: {}", answer.body);
        assert!(answer.body.contains("column"), "{body}: {}", answer.body);
        assert!(answer.headers["content-type"].starts_with("text/plain"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_no_index_can_serve() {
    let service = Service::serving().await;
    for body in ["{", "", r#"{"vector":[0,0]"#] {
        assert_eq!(service.ann("idx", body).await.status, 400, "{body}");
    }
    service
        .ann("idx", r#"{"vector":[0,0,0]}"#)
        .await
        .is(400, "Wrong embedding dimension: expected 2, got 3");
    service
        .ann("idx", r#"{"vector":[]}"#)
        .await
        .is(400, "Wrong embedding dimension: expected 2, got 0");
    service
        .ann("idx", r#"{"vector":[0,1e300]}"#)
        .await
        .is(400, "vector[1] is not a finite 32-bit number");
    for (restriction, allowed, named) in [
        (r#""==","lhs":"x","rhs":1"#, true, "column x is not part of"),
        (
            r#""==","lhs":"pk","rhs":"one""#,
            true,
            "column pk is of type int",
        ),
        (
            r#""==","lhs":"pk","rhs":null"#,
            true,
            "column pk is of type int",
        ),
        (r#""()==()","lhs":["pk","ck"],"rhs":[1]"#, true, "2 columns"),
        (
            r#""==","lhs":"pk","rhs":1"#,
            false,
            "requires ALLOW FILTERING",
        ),
    ] {
        let body = format!(
            r#"{{"vector":[0,0],"filter":{{"restrictions":[{{"type":{restriction}}}],"allow_filtering":{allowed}}}}}"#
        );
        let answer = service.ann("idx", &body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.body.contains(named), "{}", answer.body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_are_restricted_by_key_columns() {
    let service = Service::serving().await;
    for (restriction, expected) in [
        (r#""==","lhs":"pk","rhs":1"#, json!([1])),
        (r#""IN","lhs":"pk","rhs":[2,0,7]"#, json!([0, 2])),
        (r#"">","lhs":"pk","rhs":0"#, json!([1, 2])),
        (r#""<=","lhs":"pk","rhs":1"#, json!([0, 1])),
        (r#""()>()","lhs":["pk","ck"],"rhs":[1,"z"]"#, json!([2])),
        (r#""==","lhs":"pk","rhs":7"#, json!([])),
    ] {
        let body = format!(
            r#"{{"vector":[0,0],"limit":10,"filter":{{"restrictions":[{{"type":{restriction}}}],"allow_filtering":true}}}}"#
        );
        let answer = service.ann("idx", &body).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
        assert_eq!(answer.json()["primary_keys"]["pk"], expected, "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_has_so_many_values_at_most() {
    let service = Service::serving().await;
    let search = |restriction: &str| {
        format!(
            r#"{{"vector":[0,0],"limit":9,"filter":{{"restrictions":[{restriction}],"allow_filtering":true}}}}"#
        )
    };
    let one_of = |count: usize| {
        let values: Vec<usize> = (0..count).collect();
        search(&format!(
            r#"{{"type":"IN","lhs":"pk","rhs":{}}}"#,
            json!(values)
        ))
    };
    let answer = service.ann("idx", &one_of(FILTER_VALUES_MAX)).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let tuples: Vec<Value> = (0..=FILTER_VALUES_MAX / 2)
        .map(|pk| json!([pk, "a"]))
        .collect();
    let tuples = json!({"type": "()IN()", "lhs": ["pk", "ck"], "rhs": tuples}).to_string();
    for body in [one_of(FILTER_VALUES_MAX + 1), search(&tuples)] {
        service.ann("idx", &body).await.is(
            400,
            "the filter has more than 1000 values, the most that one may have: make several \
             searches, or raise --filter-values",
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_types_and_sizes() {
    let service = Service::serving().await;
    let path = "/api/v1/indexes/ks/idx/ann";
    for content_type in ["", "text/plain", "application/x-www-form-urlencoded"] {
        let answer = service
            .send("POST", path, content_type, r#"{"vector":[0,0]}"#)
            .await;
        assert_eq!(answer.status, 415, "{content_type}");
    }
    service.get(path).await.is(405, "");
    service.send("OPTIONS", path, "", "").await.is(405, "");
    service
        .send("HEAD", "/api/v1/status", "", "")
        .await
        .is(200, "");
    let long = format!(r#"{{"vector":[0,0],"x":"{}"}}"#, "x".repeat(2 << 20));
    service.ann("idx", &long).await.is(
        413,
        "the request body is longer than 2097152 bytes, the most that is taken",
    );
    let wide: Vec<u8> = vec![1; 16_000];
    let wide = json!({"vector": wide}).to_string();
    assert_eq!(service.ann("idx", &wide).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_index_is_missing_on_every_route() {
    let service = Service::serving().await;
    let missing = "missing index: ks.none";
    service
        .ann("none", r#"{"vector":[0,0]}"#)
        .await
        .is(404, missing);
    service
        .get("/api/v1/indexes/ks/none")
        .await
        .is(404, missing);
    service
        .get("/api/v1/indexes/ks/none/status")
        .await
        .is(404, missing);
    for (route, body) in [
        ("bm25", r#"{"query":"x"}"#),
        ("matches", r#"{"query":"x"}"#),
        ("highlight", r#"{"query":"x","documents":["x"]}"#),
        ("scores", r#"{"query":"x","texts":["x"]}"#),
    ] {
        // An index of vectors has no words.
        for index in ["none", "idx"] {
            let path = format!("/api/v1/indexes/ks/{index}/{route}");
            let answer = service.send("POST", &path, "application/json", body);
            let missing = format!("missing index: ks.{index}");
            answer.await.is(404, &missing);
        }
    }
    assert!(!service.get("/metrics").await.body.contains("none"));
    service
        .get("/api/v1/indexes/a%20b/c%2Fd")
        .await
        .is(404, "missing index: a b.c/d");
}
