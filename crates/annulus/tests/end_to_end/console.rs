//! The console of the real binary: its page, sessions of browsers, settings, embeddings, and the
//! film sample by a request.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::Server;

/// The longest time that a test waits for an answer: the film sample is loaded within it.
const PATIENCE: Duration = Duration::from_secs(300);

const GUARD: &str = "X-Requested-With: annulus\r\n";
/// The headers of the console's requests.
const PAGE: &str = "X-Requested-With: annulus\r\nX-Annulus-Console: 1\r\n";

/// The first superuser, its login, and its login with another password.
const SUPERUSER: &str = "chief\nfirst-password\n";
const FIRST: &str = "Authorization: Basic Y2hpZWY6Zmlyc3QtcGFzc3dvcmQ=\r\n";
const OTHER: &str = "Authorization: Basic Y2hpZWY6b3RoZXItcGFzc3dvcmQ=\r\n";
/// A role without rights.
const READER: &str = "Authorization: Basic cmVhZGVyOnJlYWRlci1wYXNzd29yZA==\r\n";

struct HttpAnswer {
    status: u16,
    head: String,
    body: String,
}

impl HttpAnswer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The header with the cookie that this answer sets.
    fn cookie(&self) -> String {
        let (_, cookie) = self.head.split_once("set-cookie: ").expect("a cookie");
        let (cookie, _) = cookie.split_once(';').expect("attributes");
        format!("{GUARD}Cookie: {cookie}\r\n")
    }
}

/// Sends a request with these headers, and with a body if it is not empty.
fn send(address: SocketAddr, request: &str, headers: &str, body: &str) -> HttpAnswer {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let length = body.len();
    let text = format!(
        "{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\
         Content-Type: application/json\r\n{headers}\r\n{body}"
    );
    socket.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    HttpAnswer {
        status: status.expect("a status"),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

fn get(address: SocketAddr, path: &str, headers: &str) -> HttpAnswer {
    send(address, &format!("GET {path}"), headers, "")
}

fn cql(address: SocketAddr, headers: &str, query: &str) -> u16 {
    let body = json!({"query": query}).to_string();
    send(address, "POST /api/v1/cql", headers, &body).status
}

#[test]
fn the_binary_has_the_page_and_tells_it_what_runs() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let page = get(server.http, "/", "");
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.head.contains("content-security-policy: default-src"));
    assert!(page.body.contains("<title>Annulus"), "{}", page.body);
    let (_, tag) = page.head.split_once("etag: ").expect("a tag");
    let tag = tag.lines().next().expect("a line");
    let known = format!("If-None-Match: {tag}\r\n");
    assert_eq!(get(server.http, "/console/index.html", &known).status, 304);
    assert_eq!(get(server.http, "/console/nothing.js", "").status, 404);

    let session = get(server.http, "/api/v1/session", "").json();
    assert_eq!(session["program"], "serve");
    assert_eq!(session["login"], "none");
    assert_eq!(session["logged_in"], false);
    assert_eq!(session["cql"], server.cql.to_string());
    assert_eq!(session["http"], server.http.to_string());
    let features = session["features"].as_object().unwrap();
    assert_eq!(features.len(), 10);
    for (feature, is_there) in features {
        let is_set = !["embeddings", "sample"].contains(&feature.as_str());
        assert!(*is_there == is_set || feature == "sample", "{feature}");
    }

    let settings = get(server.http, "/api/v1/settings", "").json();
    let settings = settings["settings"].as_array().unwrap().clone();
    let port = settings.iter().find(|line| line["name"] == "cql-port");
    let source = "command line or environment";
    let wanted = json!({"name": "cql-port", "value": "0", "source": source});
    assert_eq!(port, Some(&wanted));

    let body = r#"{"texts": ["tea"]}"#;
    let embed = send(server.http, "POST /api/v1/embed", GUARD, body);
    assert_eq!(embed.status, 404);
    assert!(embed.body.contains("--embeddings-url"), "{}", embed.body);
    let described = get(server.http, "/api-docs/openapi.json", "").json();
    for path in ["/api/v1/session", "/api/v1/settings", "/api/v1/embed"] {
        assert!(described["paths"][path].is_object(), "{path}");
    }
    let foreign = "Origin: http://evil.example\r\n";
    assert_eq!(get(server.http, "/", foreign).status, 403);
}

fn with_login(directory: &Path) -> Server {
    let superuser = directory.join("superuser");
    std::fs::write(&superuser, SUPERUSER).unwrap();
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&superuser, private).unwrap();
    let superuser = superuser.to_str().unwrap();
    let settings = ["--login", "--superuser-file", superuser];
    Server::start_with(&directory.join("data"), &settings)
}

#[test]
fn a_browser_logs_in_once_until_the_password_changes() {
    let directory = tempfile::tempdir().unwrap();
    let server = with_login(directory.path());
    let login = |login: &str| {
        let headers = format!("{PAGE}{login}");
        send(server.http, "POST /api/v1/session", &headers, "")
    };
    let refused = login(OTHER);
    assert_eq!(refused.status, 401);
    assert!(
        !refused.head.contains("www-authenticate"),
        "{}",
        refused.head
    );
    // Some clients send their login only in answer to a challenge.
    let statement = r#"{"query": "SELECT key FROM system.local"}"#;
    let challenged = send(server.http, "POST /api/v1/cql", GUARD, statement);
    assert_eq!(challenged.status, 401);
    let challenge = "www-authenticate: Basic realm=";
    assert!(challenged.head.contains(challenge), "{}", challenged.head);
    let unknown = get(server.http, "/api/v1/session", PAGE).json();
    assert_eq!(unknown["login"], "password");
    for of_server in ["version", "cql", "http"] {
        assert_eq!(unknown[of_server], Value::Null, "{of_server}");
    }
    let begun = login(FIRST);
    assert_eq!(begun.status, 200, "{}", begun.body);
    assert_eq!(begun.json()["role"], "chief");
    assert_eq!(begun.json()["superuser"], true);
    let chief = begun.cookie();
    let session = get(server.http, "/api/v1/session", &chief).json();
    assert_eq!(session["login"], "password");
    assert_eq!(session["logged_in"], true);
    assert_eq!(get(server.http, "/api/v1/settings", &chief).status, 200);
    let without_header = chief.replace(GUARD, "");
    let settings = get(server.http, "/api/v1/settings", &without_header);
    assert_eq!(settings.status, 401);

    let role = "CREATE ROLE reader WITH LOGIN = true AND PASSWORD = 'reader-password'";
    assert_eq!(cql(server.http, &chief, role), 200);
    let reader = login(READER).cookie();
    assert_eq!(get(server.http, "/api/v1/indexes", &reader).status, 200);
    assert_eq!(get(server.http, "/api/v1/settings", &reader).status, 403);
    let sample = send(server.http, "POST /api/v1/samples/movies", &reader, "");
    assert_eq!(sample.status, 403);

    let password = "ALTER ROLE chief WITH PASSWORD = 'other-password'";
    assert_eq!(cql(server.http, &chief, password), 200);
    for _ in 0..2 {
        assert_eq!(get(server.http, "/api/v1/indexes", &chief).status, 401);
        assert_eq!(
            cql(server.http, &chief, "SELECT key FROM system.local"),
            401
        );
    }
    let session = get(server.http, "/api/v1/session", &chief).json();
    assert_eq!(session["logged_in"], false);
    let other = login(OTHER).cookie();
    assert_eq!(get(server.http, "/api/v1/indexes", &other).status, 200);
    let ended = send(server.http, "DELETE /api/v1/session", &other, "");
    assert_eq!(ended.json()["logged_in"], false);
    assert_eq!(get(server.http, "/api/v1/indexes", &other).status, 401);
    assert_eq!(get(server.http, "/api/v1/indexes", &reader).status, 200);
}

#[cfg(feature = "sample")]
#[test]
fn the_film_sample_is_loaded_by_a_request() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path());
    let load = |headers: &str| send(server.http, "POST /api/v1/samples/movies", headers, "");
    assert_eq!(load("").status, 403);
    for _ in 0..2 {
        let begun = load(GUARD);
        assert_eq!(begun.status, 200, "{}", begun.body);
        let task = begun.json();
        assert_eq!(task["kind"], "sample");
        let wait = format!(
            "/api/v1/tasks/{}/wait?timeout=300",
            task["id"].as_str().unwrap()
        );
        let ended = get(server.http, &wait, "").json();
        assert_eq!(ended["state"], "done", "{ended}");
        assert_eq!(ended["progress_completed"], 10_000);
        assert_eq!(ended["progress_total"], 10_000);
    }
    for index in ["movies_by_plot", "movies_by_words"] {
        let path = format!("/api/v1/indexes/samples/{index}/status");
        let state = get(server.http, &path, "").json();
        assert_eq!(state["status"], "SERVING", "{index}: {state}");
    }
}

/// Answers one request for embeddings with this vector for each text.
fn answer_once(listener: &TcpListener) {
    let (mut socket, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        let mut bytes = [0; 1024];
        let read = socket.read(&mut bytes).unwrap();
        assert!(read > 0, "the server hung up");
        request.extend_from_slice(&bytes[..read]);
    }
    let request = String::from_utf8(request).unwrap();
    assert!(request.contains(r#""model":"small""#), "{request}");
    let body = r#"{"data": [{"index": 0, "embedding": [0.5, 1]}]}"#;
    let length = body.len();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
    socket.write_all(answer.as_bytes()).unwrap();
}

#[test]
fn a_sentence_is_embedded_by_the_server_that_the_operator_names() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/embeddings", listener.local_addr().unwrap());
    let settings = [
        "--embeddings-url",
        url.as_str(),
        "--embeddings-model",
        "small",
    ];
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start_with(directory.path(), &settings);
    let embed = |headers: &str, body: &str| send(server.http, "POST /api/v1/embed", headers, body);
    let body = r#"{"texts": ["tea"]}"#;
    assert_eq!(embed("", body).status, 403);
    assert_eq!(embed(GUARD, r#"{"texts": []}"#).status, 400);
    assert_eq!(embed(GUARD, "{}").status, 400);
    let answering = std::thread::spawn(move || answer_once(&listener));
    let embedded = embed(GUARD, body);
    // The listener is closed with the thread.
    answering.join().unwrap();
    assert_eq!(embedded.status, 200, "{}", embedded.body);
    let wanted = json!({"model": "small", "dimensions": 2, "vectors": [[0.5, 1.0]]});
    assert_eq!(embedded.json(), wanted);
    let failed = embed(GUARD, body);
    assert_eq!(failed.status, 502, "{}", failed.body);
    assert!(failed.body.contains(&url), "{}", failed.body);
    let session = get(server.http, "/api/v1/session", "").json();
    assert_eq!(session["features"]["embeddings"], true);
}
