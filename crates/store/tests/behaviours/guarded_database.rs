//! Tests with databases that ask for a password or present a certificate, and of reloaded options.

use std::net::SocketAddr;
use std::sync::Arc;

use http_server::{TokenAuthorizer, TokenSet};
use net::tls::authority::TestAuthority;
use net::tls::{TlsClients, TlsOptions};
use store::StoreOptions;
use store::{
    ApiListeners, ApiSocketOptions, DatabaseOptions, MemoryOptions, SessionCredentials, Store,
    StoreHandle,
};
use store_api::types::NodeStatus;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::guard::Guard;
use crate::common::{self, Way, World, eventually};

const LOGIN: (&str, &str) = ("annulus", "right");

fn credentials(password: &str) -> Option<SessionCredentials> {
    Some(SessionCredentials {
        user: LOGIN.0.to_owned(),
        password: password.to_owned().into(),
    })
}

/// Starts a service that reaches the database through the guard.
async fn start(
    guard: &Guard,
    indexes: store::IndexesOptions,
    change: impl FnOnce(&mut DatabaseOptions),
) -> (StoreHandle, StoreOptions) {
    let mut options = common::client_options(guard.address, common::loopback(), indexes);
    change(&mut options.database);
    let store = Store::start(options.clone()).await.expect("a free port");
    (store, options)
}

async fn reload(store: &mut StoreHandle, options: &StoreOptions) {
    store
        .reload(
            &options.listeners,
            options.database.clone(),
            MemoryOptions::default(),
        )
        .await
        .expect("usable options");
}

fn status(store: &StoreHandle) -> NodeStatus {
    *store.status().borrow()
}

async fn wait_for(store: &StoreHandle, wanted: NodeStatus) {
    eventually(&format!("{wanted:?}"), async || status(store) == wanted).await;
}

/// Waits until the service has been refused at least twice more.
async fn wait_refused(guard: &Guard, store: &StoreHandle) {
    let before = guard.refused();
    eventually("another try", async || guard.refused() > before + 1).await;
    assert_eq!(status(store), NodeStatus::ConnectingToDb);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_connection_outlives_the_service_though_a_node_holds_its_door() {
    let world = World::start(Way::Cql).await;
    let guard = Guard::start(world.cql, LOGIN).await;
    let directory = tempfile::tempdir().unwrap();
    let indexes = common::in_files(directory.path());
    let mut options = common::client_options(guard.address, common::loopback(), indexes);
    options.database.credentials = credentials("right");
    let listeners = ApiListeners::bind(&options.listeners)
        .await
        .expect("a port");
    let door = listeners.local();
    let store = Store::start_on(listeners, options).expect("usable options");
    wait_for(&store, NodeStatus::Serving).await;
    assert!(guard.open() > 0);
    store.shutdown().await;
    eventually("its connections end", async || guard.open() == 0).await;
    drop(door);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corrected_password_takes_effect_and_the_session_stays_until_then() {
    let world = World::start(Way::Cql).await;
    world
        .cql("CREATE TABLE ks.t (k int PRIMARY KEY, v vector<float, 2>)")
        .await;
    world.create_index("i", "t").await;
    let guard = Guard::start(world.cql, LOGIN).await;
    let directory = tempfile::tempdir().unwrap();
    let indexes = common::in_files(directory.path());
    let (mut store, mut options) = start(&guard, indexes, |database| {
        database.credentials = credentials("wrong");
    })
    .await;
    wait_refused(&guard, &store).await;

    options.database.credentials = credentials("right");
    reload(&mut store, &options).await;
    wait_for(&store, NodeStatus::Serving).await;

    options.database.credentials = credentials("wrong");
    let before = guard.refused();
    reload(&mut store, &options).await;
    eventually("the new password is tried", async || {
        guard.refused() > before + 1
    })
    .await;
    assert_eq!(status(&store), NodeStatus::Serving, "the old session stays");
    let client = store_api::StoreClient::new(store_api::ClientOptions {
        base_uris: vec![format!("http://{}", store.addresses()[0])],
        ..store_api::ClientOptions::default()
    })
    .unwrap();
    world
        .cql("INSERT INTO ks.t (k, v) VALUES (1, [1, 2])")
        .await;
    eventually("the log is still followed", async || {
        let status = client.index_status("ks", "i").await;
        status.is_ok_and(|status| status.count == 1)
    })
    .await;
    store.shutdown().await;
    world.store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_database_with_a_certificate_that_holds_is_talked_to() {
    let world = World::start(Way::Cql).await;
    let guard = Guard::start(world.cql, LOGIN).await;
    let (known, unknown) = (TestAuthority::new(), TestAuthority::new());
    let directory = tempfile::tempdir().unwrap();
    let indexes = common::in_files(directory.path());
    guard.set_certificate(unknown.sign());
    let (store, _) = start(&guard, indexes, |database| {
        database.credentials = credentials("right");
        database.certificate_authorities = Some(known.pem());
    })
    .await;
    wait_refused(&guard, &store).await;
    guard.set_certificate(known.sign_until(2001));
    wait_refused(&guard, &store).await;
    guard.set_certificate(known.sign());
    wait_for(&store, NodeStatus::Serving).await;
    store.shutdown().await;
    world.store.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn listeners_come_and_go_and_what_can_not_be_used_changes_nothing() {
    let world = World::start(Way::Cql).await;
    let guard = Guard::start(world.cql, LOGIN).await;
    let directory = tempfile::tempdir().unwrap();
    let indexes = common::in_files(directory.path());
    let (mut store, options) = start(&guard, indexes, |database| {
        database.credentials = credentials("right");
    })
    .await;
    let first = store.addresses()[0];
    let free = std::net::TcpListener::bind(common::loopback()).unwrap();
    let another = ApiSocketOptions::new(free.local_addr().unwrap());
    drop(free);
    let nonsense = TlsOptions {
        certificates: TestAuthority::new().pem(),
        key: TestAuthority::new().pem(),
        clients: TlsClients::Anyone,
    };
    let broken = ApiSocketOptions {
        tls: Some(nonsense),
        ..options.listeners[0].clone()
    };
    let memory = MemoryOptions::default();
    let refused = store
        .reload(
            &[another.clone(), broken],
            options.database.clone(),
            memory.clone(),
        )
        .await;
    assert!(refused.is_err());
    assert_eq!(store.addresses(), [first]);

    let both = [options.listeners[0].clone(), another.clone()];
    store
        .reload(&both, options.database.clone(), memory.clone())
        .await
        .unwrap();
    let second = store.addresses()[1];
    assert_eq!(store.addresses()[0], first);
    store
        .reload(&[another], options.database, memory)
        .await
        .unwrap();
    assert_eq!(store.addresses(), [second]);
    TcpStream::connect(second).await.unwrap();
    eventually("the first is closed", async || {
        TcpStream::connect(first).await.is_err()
    })
    .await;
    store.shutdown().await;
    world.store.shutdown().await;
}

/// Requests the metrics without a token, and returns the first line of the answer.
async fn metrics_status(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_comes_by_a_reload_checks_tokens_as_the_first_does() {
    let directory = tempfile::tempdir().unwrap();
    let indexes = common::in_files(directory.path());
    let closed = std::net::TcpListener::bind(common::loopback()).unwrap();
    let no_database = closed.local_addr().unwrap();
    drop(closed);
    let mut options = common::client_options(no_database, common::loopback(), indexes);
    let mut listeners = ApiListeners::bind(&options.listeners)
        .await
        .expect("a port");
    let tokens = TokenSet::parse("0123456789abcdef").unwrap();
    listeners.set_authorizer(Arc::new(TokenAuthorizer::new(Some(tokens))));
    let mut store = Store::start_on(listeners, options.clone()).expect("usable options");
    options
        .listeners
        .push(ApiSocketOptions::new(common::loopback()));
    reload(&mut store, &options).await;
    let addresses = store.addresses();
    assert_eq!(addresses.len(), 2);
    for address in addresses {
        let status = metrics_status(address).await;
        assert_eq!(status, "HTTP/1.1 401 Unauthorized", "{address}");
    }
    store.shutdown().await;
}
