//! Logins, rights and TLS. A session of this driver tries without end to connect, so that what is
//! refused is asked of a single connection.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cdrs_tokio::authenticators::{
    NoneAuthenticatorProvider, SaslAuthenticatorProvider, StaticPasswordAuthenticatorProvider,
};
use cdrs_tokio::cluster::session::{
    DEFAULT_TRANSPORT_BUFFER_SIZE, RustlsSessionBuilder, SessionBuilder,
};
use cdrs_tokio::cluster::{
    ConnectionManager, KeyspaceHolder, NodeRustlsConfigBuilder, RustlsConnectionManager,
    TcpConnectionManager,
};
use cdrs_tokio::compression::Compression;
use cdrs_tokio::error::Error;
use cdrs_tokio::frame::Version;
use cdrs_tokio::frame::message_error::ErrorType;
use cdrs_tokio::frame_encoding::ProtocolFrameEncodingFactory;
use cdrs_tokio::load_balancing::RoundRobinLoadBalancingStrategy;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sections::certificates::{trusting, trusting_nobody};
use sections::{Section, equal, in_time, section};

use crate::session::{Client, connect, node, refusal, refused, rows, run, select};

const QUESTION: &str = "SELECT release_version FROM system.local";

/// How often a connection that a server ends is tried, and how long each attempt may take.
const ATTEMPTS: usize = 4;
const ATTEMPT_MAX: Duration = Duration::from_secs(5);

type Provider = Arc<dyn SaslAuthenticatorProvider + Send + Sync>;

fn password(user: &str, password: &str) -> Provider {
    Arc::new(StaticPasswordAuthenticatorProvider::new(user, password))
}

async fn of(address: &str, provider: Provider) -> Client {
    connect(node(address).with_authenticator_provider(provider), None).await
}

fn parsed(address: &str) -> SocketAddr {
    address.parse().expect("an address")
}

/// How a connection in clear ends.
async fn once(address: &str, provider: Provider) -> Result<(), Error> {
    let keyspace = Arc::new(KeyspaceHolder::new(tokio::sync::watch::channel(None).0));
    let frames = Box::<ProtocolFrameEncodingFactory>::default();
    let size = DEFAULT_TRANSPORT_BUFFER_SIZE;
    let manager = TcpConnectionManager::new(
        provider,
        keyspace,
        frames,
        Compression::None,
        size,
        true,
        Version::V4,
    );
    in_time(manager.connection(None, None, parsed(address)))
        .await
        .map(drop)
}

/// How a connection under TLS ends.
async fn once_under(address: &str, config: Arc<ClientConfig>) -> Result<(), Error> {
    in_time(connected_under(address, config)).await
}

async fn connected_under(address: &str, config: Arc<ClientConfig>) -> Result<(), Error> {
    let keyspace = Arc::new(KeyspaceHolder::new(tokio::sync::watch::channel(None).0));
    let frames = Box::<ProtocolFrameEncodingFactory>::default();
    let provider: Provider = Arc::new(NoneAuthenticatorProvider);
    let size = DEFAULT_TRANSPORT_BUFFER_SIZE;
    let manager = RustlsConnectionManager::new(
        name(),
        provider,
        config,
        keyspace,
        frames,
        Compression::None,
        size,
        true,
        Version::V4,
    );
    manager
        .connection(None, None, parsed(address))
        .await
        .map(drop)
}

/// Checks that a server ends connections under TLS, after the handshake.
///
/// An attempt may wait for ever though its connection has ended: the first request of this driver
/// (9.0) is lost without an error if it is put into its queue while the task that reads the queue
/// ends. So some attempts are made, of which one ends.
async fn is_ended(address: &str, config: Arc<ClientConfig>) {
    for _ in 0..ATTEMPTS {
        let attempt = connected_under(address, config.clone());
        match tokio::time::timeout(ATTEMPT_MAX, attempt).await {
            Ok(Ok(())) => panic!("it is let in"),
            Ok(Err(_)) => return,
            Err(_) => {}
        }
    }
    panic!("none of {ATTEMPTS} attempts has ended, each within {ATTEMPT_MAX:?}");
}

pub fn login<'a>(address: &'a str, user: &'a str, secret: &'a str) -> [Section<'a>; 3] {
    let right = async move {
        let client = of(address, password(user, secret)).await;
        equal(select(&client, QUESTION).await.len(), 1, "rows");
    };
    let wrong = async move {
        let (error, text) = refused(once(address, password(user, "wrong")).await);
        assert!(
            error == ErrorType::Authentication && text.contains("incorrect"),
            "{error:?}: {text}"
        );
        let without = once(address, Arc::new(NoneAuthenticatorProvider)).await;
        assert!(without.is_err(), "without a password");
        once(address, password(user, secret))
            .await
            .expect("the right password");
    };
    [
        section("login", right),
        section("wrong-password", wrong),
        section("rights", rights(address, user, secret)),
    ]
}

async fn rights(address: &str, user: &str, secret: &str) {
    let client = of(address, password(user, secret)).await;
    for statement in [
        "CREATE KEYSPACE of_cdrs WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE of_cdrs.t (k int PRIMARY KEY)",
        "CREATE ROLE cdrs_reader WITH LOGIN = true AND PASSWORD = 'rust'",
    ] {
        run(&client, statement).await;
    }
    let reader = of(address, password("cdrs_reader", "rust")).await;
    let read = "SELECT * FROM of_cdrs.t";
    equal(
        refusal(&reader, read).await.0,
        ErrorType::Unauthorized,
        "a read without the right",
    );
    run(&client, "GRANT SELECT ON of_cdrs.t TO cdrs_reader").await;
    equal(select(&reader, read).await.len(), 0, "rows");
    let (error, text) = refusal(&reader, "INSERT INTO of_cdrs.t (k) VALUES (1)").await;
    assert!(
        error == ErrorType::Unauthorized && text.contains("MODIFY"),
        "{error:?}: {text}"
    );
}

fn name() -> ServerName<'static> {
    ServerName::try_from("localhost").expect("a name")
}

/// Connects under TLS, and asks.
async fn asks(address: &str, config: Arc<ClientConfig>) {
    let node = NodeRustlsConfigBuilder::new(name(), config).with_contact_point(address.into());
    let node = node.build().await.expect("the configuration");
    let builder = RustlsSessionBuilder::new(RoundRobinLoadBalancingStrategy::new(), node);
    let client = in_time(builder.build()).await.expect("a session");
    equal(
        rows(client.query(QUESTION).await.expect("an answer")).len(),
        1,
        "rows",
    );
}

pub fn encrypted<'a>(address: &'a str, folder: &'a Path) -> [Section<'a>; 3] {
    let unknown = async move {
        let error = once_under(address, trusting_nobody())
            .await
            .expect_err("it is trusted");
        assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    };
    let clear = async move {
        let clear = once(address, Arc::new(NoneAuthenticatorProvider)).await;
        assert!(clear.is_err(), "it is answered in clear");
    };
    [
        section("tls", asks(address, trusting(folder, false))),
        section("tls-not-trusted", unknown),
        section("tls-in-clear", clear),
    ]
}

pub fn with_certificate<'a>(address: &'a str, folder: &'a Path) -> [Section<'a>; 2] {
    let without = async move {
        is_ended(address, trusting(folder, false)).await;
        once_under(address, trusting(folder, true))
            .await
            .expect("with a certificate");
    };
    [
        section("tls-client", asks(address, trusting(folder, true))),
        section("tls-no-client", without),
    ]
}
