//! Tokens at the door: what a database requests needs none, all else one.

use http_server::{TokenAuthorizer, TokenSet};

use super::*;

const TOKEN: &str = "0123456789abcdef";

async fn asked(service: &Service, method: &str, path: &str, token: Option<&str>) -> u16 {
    let mut request = hyper::Request::builder()
        .method(method)
        .uri(format!("{}{path}", service.base))
        .header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = Full::new(Bytes::from_static(b"{\"vector\":[0,0]}"));
    let answer = service.http.request(request.body(body).unwrap()).await;
    let answer = answer.unwrap();
    let challenge = answer.headers().get("www-authenticate");
    let is_challenged = challenge.is_some_and(|value| value == "Bearer realm=\"annulus\"");
    assert_eq!(
        is_challenged,
        answer.status() == 401,
        "{method} {path}: a client is told how to log in"
    );
    answer.status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_database_need_no_token() {
    let set = TokenSet::parse(TOKEN).unwrap();
    let tokens = Arc::new(TokenAuthorizer::new(Some(set)));
    let service = Service::start_behind(Some(tokens.clone()), true, |_| {}).await;
    for (method, path, status) in [
        ("GET", "/api/v1/status", 200),
        ("GET", "/api/v1/indexes/ks/none/status", 404),
        ("POST", "/api/v1/indexes/ks/none/ann", 404),
        ("POST", "/api/v1/indexes/k%73/none/ann", 404),
        ("POST", "/api/v1/indexes/ks/none/bm25", 400),
        ("POST", "/api/v1/indexes/ks/none/highlight", 400),
    ] {
        let got = asked(&service, method, path, None).await;
        assert!(got == status || got == 503, "{method} {path}: {got}");
    }
    for (method, path) in [
        ("GET", "/metrics"),
        ("GET", "/api/v1/info"),
        ("GET", "/api/v1/clock"),
        ("GET", "/api/v1/indexes"),
        ("GET", "/api/v1/indexes/ks/none"),
        ("POST", "/api/v1/indexes/ks/none/recall"),
        ("GET", "/api/v1/indexes/ks/none/map"),
        ("POST", "/api/v1/indexes/ks/none/map"),
        ("GET", "/api/v1/indexes/ks/none/repair"),
        ("POST", "/api/v1/indexes/ks/none/repair"),
        ("PATCH", "/api/v1/indexes/ks/none/repair"),
        ("PUT", "/api/v1/indexes/ks/none/repair/schedule"),
        ("POST", "/api/v1/scrub"),
        ("GET", "/api/v1/tasks"),
        ("GET", "/api/v1/tasks/x"),
        ("DELETE", "/api/v1/tasks/x"),
        ("GET", "/api/v1/tasks/x/tree"),
        ("GET", "/api/v1/tasks/x/wait"),
        ("GET", "/api-docs/openapi.json"),
        ("GET", "/api/internals/counters"),
        ("DELETE", "/api/internals/counters"),
        ("PUT", "/api/internals/counters/x"),
        ("GET", "/api/internals/session-counters"),
    ] {
        assert_eq!(asked(&service, method, path, None).await, 401, "{path}");
        let wrong = asked(&service, method, path, Some("fedcba9876543210")).await;
        assert_eq!(wrong, 401, "{path}");
        let right = asked(&service, method, path, Some(TOKEN)).await;
        assert!(![401, 403].contains(&right), "{method} {path}: {right}");
    }
    tokens.replace(Some(TokenSet::parse("fedcba9876543210").unwrap()));
    assert_eq!(
        asked(&service, "GET", "/metrics", Some(TOKEN)).await,
        401,
        "the token was taken away"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_loopback_there_has_to_be_a_token() {
    let tokens = Arc::new(TokenAuthorizer::default());
    for (address, status) in [("127.0.0.1:0", 200), ("0.0.0.0:0", 403)] {
        let mut service = Service::start_behind(Some(tokens.clone()), false, |options| {
            options.address = address.parse().unwrap();
        })
        .await;
        service.base = service.base.replace("0.0.0.0", "127.0.0.1");
        assert_eq!(asked(&service, "GET", "/metrics", None).await, status);
        assert_eq!(asked(&service, "GET", "/api/v1/status", None).await, 200);
        if status == 403 {
            let why = service.get("/metrics").await.body;
            assert!(why.contains("--token-file"), "{why}");
        }
    }
}
