//! Sessions of browsers at a listener whose logins have a password that may change.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::routing::MethodFilter;
use http_server::{
    AuthorizationRefusal, Authorizer, BoundHttpListener, ClientLogin, ConnectionLimits,
    HttpListenerOptions, LoginKind, OverflowPolicy, RequestOrigin, RequestedOperation,
    RequiredRight, RouteRow, RouteTable, ServedFeatures, ServedHttpListener, SessionFacts,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The longest time that a test waits for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

const GUARD: &str = "X-Requested-With: annulus\r\n";
/// The headers of the console's requests.
const PAGE: &str = "X-Requested-With: annulus\r\nX-Annulus-Console: 1\r\n";

/// Lets in who bears the value of `Authorization` that counts now.
#[derive(Debug)]
struct ChangingLogin {
    right: Mutex<&'static str>,
    /// How often a login was checked and wrong.
    refused: Mutex<usize>,
}

impl ChangingLogin {
    fn is_right(&self, origin: RequestOrigin<'_>) -> bool {
        let is_right = origin.authorization == Some(*self.right.lock().unwrap());
        if !is_right && origin.authorization.is_some() {
            *self.refused.lock().unwrap() += 1;
        }
        is_right
    }
}

impl Authorizer for ChangingLogin {
    fn admit<'a>(
        &'a self,
        origin: RequestOrigin<'a>,
        _operation: RequestedOperation<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), AuthorizationRefusal>> + Send + 'a>> {
        let admitted = match self.is_right(origin) {
            true => Ok(()),
            false => Err(AuthorizationRefusal::Login("log in".to_owned())),
        };
        Box::pin(std::future::ready(admitted))
    }

    fn identify<'a>(
        &'a self,
        origin: RequestOrigin<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ClientLogin, AuthorizationRefusal>> + Send + 'a>> {
        let login = match self.is_right(origin) {
            true => ClientLogin {
                is_logged_in: true,
                role: Some("ada".to_owned()),
                is_superuser: Some(false),
                ..ClientLogin::missing(LoginKind::Password)
            },
            false => ClientLogin::missing(LoginKind::Password),
        };
        Box::pin(std::future::ready(Ok(login)))
    }
}

struct LoginServer {
    listening: ServedHttpListener,
    login: Arc<ChangingLogin>,
}

impl LoginServer {
    async fn start() -> LoginServer {
        let login = Arc::new(ChangingLogin {
            right: Mutex::new("Basic one"),
            refused: Mutex::new(0),
        });
        let listening = serve(Some(login.clone())).await;
        LoginServer { listening, login }
    }

    async fn send(&self, method: &str, path: &str, headers: &str) -> String {
        exchange(self.listening.address(), method, path, headers).await
    }

    /// Logs in as a browser, and returns the header with the cookie.
    async fn log_in(&self) -> String {
        let headers = format!("{GUARD}Authorization: Basic one\r\n");
        let answer = self.send("POST", "/api/v1/session", &headers).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains(r#""role":"ada""#), "{answer}");
        let (_, cookie) = answer.split_once("set-cookie: ").expect("a cookie");
        let (cookie, _) = cookie.split_once(';').expect("attributes");
        let port = self.listening.address().port();
        assert!(
            cookie.starts_with(&format!("annulus_session_{port}=")),
            "{cookie}"
        );
        format!("Cookie: other=1; {cookie}\r\n")
    }

    fn refusals(&self) -> usize {
        *self.login.refused.lock().unwrap()
    }
}

async fn serve(authorizer: Option<Arc<dyn Authorizer>>) -> ServedHttpListener {
    let options = HttpListenerOptions {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        names: Vec::new(),
        tls_alone: false,
        answer_bytes_max: 1 << 20,
        connections_max: 16,
        when_full: OverflowPolicy::Waits,
        connection: ConnectionLimits::default(),
    };
    let bound = BoundHttpListener::bind(options, None, RouteTable::default()).await;
    let bound: BoundHttpListener = bound.unwrap();
    let rows: [RouteRow<()>; 2] = [
        RouteRow::new(MethodFilter::GET, "/free", || async { "free" })
            .needs(RequiredRight::Nothing),
        RouteRow::new(MethodFilter::GET, "/closed", || async { "let in" }),
    ];
    let facts = SessionFacts {
        program: "serve",
        version: "1.2.3".to_owned(),
        cql: Some(SocketAddr::from(([127, 0, 0, 1], 9042))),
        features: ServedFeatures {
            cql: true,
            ..ServedFeatures::default()
        },
    };
    let table = RouteTable::default()
        .with_rows(rows, &())
        .with_session(facts);
    bound.serve(table, authorizer)
}

/// The whole answer to a request without a body.
async fn exchange(address: SocketAddr, method: &str, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await;
    read.expect("an answer").unwrap();
    answer
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test]
async fn a_cookie_with_the_header_lets_a_browser_in() {
    let server = LoginServer::start().await;
    let cookie = server.log_in().await;
    let guarded = format!("{GUARD}{cookie}");
    let answer = server.send("GET", "/closed", &guarded).await;
    assert!(answer.ends_with("let in"), "{answer}");
    for without in ["", GUARD, PAGE, cookie.as_str()] {
        let answer = server.send("GET", "/closed", without).await;
        assert_eq!(status(&answer), "401", "{without}: {answer}");
        // The console shows its own form, others learn how to log in.
        let is_challenged = answer.contains("www-authenticate: Basic");
        assert_eq!(is_challenged, without != PAGE, "{answer}");
    }
    assert_eq!(server.refusals(), 0, "no one has guessed");
}

#[tokio::test]
async fn the_console_has_the_login_of_its_session_alone() {
    let server = LoginServer::start().await;
    let cookie = server.log_in().await;
    let (right, wrong) = (
        "Authorization: Basic one\r\n",
        "Authorization: Basic two\r\n",
    );
    // A browser adds the login of a dialog, which another page of the server has led to.
    for of_dialog in [right, wrong] {
        let headers = format!("{PAGE}{cookie}{of_dialog}");
        let answer = server.send("GET", "/closed", &headers).await;
        assert!(answer.ends_with("let in"), "{answer}");
        let headers = format!("{PAGE}{of_dialog}");
        let answer = server.send("GET", "/closed", &headers).await;
        assert_eq!(status(&answer), "401", "{answer}");
    }
    let headers = format!("{PAGE}{cookie}{right}");
    let answer = server.send("DELETE", "/api/v1/session", &headers).await;
    assert!(answer.contains(r#""logged_in":false"#), "{answer}");
    let answer = server.send("GET", "/api/v1/session", &headers).await;
    assert!(answer.contains(r#""logged_in":false"#), "{answer}");
    assert_eq!(server.refusals(), 0, "no login of a dialog was checked");
    // Other clients have their own login, whatever cookies they send.
    let headers = format!("{GUARD}{cookie}{right}");
    let answer = server.send("GET", "/closed", &headers).await;
    assert!(answer.ends_with("let in"), "{answer}");
    let headers = format!("{PAGE}{right}");
    let answer = server.send("POST", "/api/v1/session", &headers).await;
    assert!(answer.contains(r#""logged_in":true"#), "{answer}");
}

#[tokio::test]
async fn a_session_is_shown_and_ends_with_a_logout() {
    let server = LoginServer::start().await;
    let answer = server.send("GET", "/api/v1/session", GUARD).await;
    assert_eq!(status(&answer), "200");
    for part in [
        r#""login":"password""#,
        r#""logged_in":false"#,
        r#""role":null"#,
        r#""program":"serve""#,
        r#""version":null"#,
        r#""cql":null"#,
        r#""http":null"#,
        r#""tables":false"#,
        "cache-control: no-store",
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }

    let guarded = format!("{GUARD}{}", server.log_in().await);
    let answer = server.send("GET", "/api/v1/session", &guarded).await;
    let http = format!(r#""http":"{}""#, server.listening.address());
    for part in [
        r#""logged_in":true"#,
        r#""version":"1.2.3""#,
        r#""cql":"127.0.0.1:9042""#,
        http.as_str(),
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let answer = server.send("DELETE", "/api/v1/session", &guarded).await;
    assert!(answer.contains("Max-Age=0"), "{answer}");
    assert!(answer.contains(r#""logged_in":false"#), "{answer}");
    let answer = server.send("GET", "/closed", &guarded).await;
    assert_eq!(status(&answer), "401");
}

#[tokio::test]
async fn a_session_of_a_former_password_ends_at_its_first_request() {
    let server = LoginServer::start().await;
    let guarded = format!("{GUARD}{}", server.log_in().await);
    let other = format!("{GUARD}{}", server.log_in().await);
    *server.login.right.lock().unwrap() = "Basic two";
    for _ in 0..3 {
        let answer = server.send("GET", "/closed", &guarded).await;
        assert_eq!(status(&answer), "401", "{answer}");
        let answer = server.send("GET", "/api/v1/session", &other).await;
        assert_eq!(status(&answer), "200", "{answer}");
        assert!(answer.contains(r#""logged_in":false"#), "{answer}");
    }
    assert_eq!(server.refusals(), 2, "each session was checked once");
    let answer = server.send("GET", "/free", &guarded).await;
    assert!(answer.ends_with("free"), "{answer}");
}

#[tokio::test]
async fn a_login_needs_the_header_and_a_right_password() {
    let server = LoginServer::start().await;
    for (headers, refused) in [
        ("Authorization: Basic one\r\n".to_owned(), "403"),
        (format!("{GUARD}Authorization: Basic two\r\n"), "401"),
        (GUARD.to_owned(), "401"),
        (
            format!("{GUARD}Authorization: Basic one\r\nOrigin: http://evil.example\r\n"),
            "403",
        ),
    ] {
        let answer = server.send("POST", "/api/v1/session", &headers).await;
        assert_eq!(status(&answer), refused, "{headers}: {answer}");
        assert!(!answer.contains("set-cookie"), "{answer}");
    }
    let answer = server.send("DELETE", "/api/v1/session", "").await;
    assert_eq!(status(&answer), "403", "{answer}");
}

#[tokio::test]
async fn a_server_without_logins_has_no_sessions() {
    let listening = serve(None).await;
    let address = listening.address();
    let answer = exchange(address, "GET", "/api/v1/session", "").await;
    for part in [
        r#""login":"none""#,
        r#""logged_in":false"#,
        r#""version":"1.2.3""#,
    ] {
        assert!(answer.contains(part), "{answer}");
    }
    let headers = format!("{GUARD}Authorization: Basic one\r\n");
    let answer = exchange(address, "POST", "/api/v1/session", &headers).await;
    assert_eq!(status(&answer), "400", "{answer}");
    assert!(answer.contains("needs no login"), "{answer}");
}
