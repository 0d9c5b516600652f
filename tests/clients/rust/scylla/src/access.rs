//! Logins, rights and TLS.

use std::path::Path;

use scylla::client::session::{Session, TlsContext};
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::DbError;
use sections::certificates::{trusting, trusting_nobody};
use sections::{Section, equal, in_time, section};

use crate::session::{builder, refusal, run, select};

/// The error with which connecting ends, or an answer.
async fn asks(builder: SessionBuilder) -> Result<(), String> {
    let session = in_time(builder.build())
        .await
        .map_err(|error| error.to_string())?;
    let found: Vec<(String,)> = select(&session, "SELECT release_version FROM system.local").await;
    equal(found.len(), 1, "rows");
    Ok(())
}

async fn is_refused(builder: SessionBuilder, part: &str) {
    let error = asks(builder).await.expect_err("it is let in");
    assert!(error.contains(part), "{error}");
}

async fn of(address: &str, user: &str, password: &str) -> Session {
    let session = builder(address).user(user, password).build().await;
    session.expect("a session")
}

pub fn login<'a>(address: &'a str, user: &'a str, password: &'a str) -> [Section<'a>; 3] {
    let right = async move {
        let session = of(address, user, password).await;
        assert!(
            !select::<(String,)>(&session, "SELECT role FROM system_auth.roles")
                .await
                .is_empty()
        );
    };
    let wrong = async move {
        is_refused(builder(address).user(user, "wrong"), "incorrect").await;
        is_refused(builder(address), "uthentication").await;
    };
    [
        section("login", right),
        section("wrong-password", wrong),
        section("rights", rights(address, user, password)),
    ]
}

async fn rights(address: &str, user: &str, password: &str) {
    let session = of(address, user, password).await;
    for statement in [
        "CREATE KEYSPACE of_scylla WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE of_scylla.t (k int PRIMARY KEY)",
        "CREATE ROLE scylla_reader WITH LOGIN = true AND PASSWORD = 'rust'",
    ] {
        run(&session, statement).await;
    }
    let reader = of(address, "scylla_reader", "rust").await;
    let read = "SELECT * FROM of_scylla.t";
    equal(
        refusal(&reader, read).await.0,
        DbError::Unauthorized,
        "a read without the right",
    );
    run(&session, "GRANT SELECT ON of_scylla.t TO scylla_reader").await;
    equal(select::<(i32,)>(&reader, read).await.len(), 0, "rows");
    let write = "INSERT INTO of_scylla.t (k) VALUES (1)";
    let (error, text) = refusal(&reader, write).await;
    assert!(
        error == DbError::Unauthorized && text.contains("MODIFY"),
        "{error:?}: {text}"
    );
}

fn under(address: &str, config: std::sync::Arc<rustls::ClientConfig>) -> SessionBuilder {
    builder(address).tls_context(Some(TlsContext::Rustls023(config)))
}

pub fn encrypted<'a>(address: &'a str, folder: &'a Path) -> [Section<'a>; 3] {
    let trusted = async move {
        asks(under(address, trusting(folder, false)))
            .await
            .expect("an answer")
    };
    let unknown =
        async move { is_refused(under(address, trusting_nobody()), "UnknownIssuer").await };
    let clear = async move { is_refused(builder(address), "").await };
    [
        section("tls", trusted),
        section("tls-not-trusted", unknown),
        section("tls-in-clear", clear),
    ]
}

pub fn with_certificate<'a>(address: &'a str, folder: &'a Path) -> [Section<'a>; 2] {
    let own = async move {
        asks(under(address, trusting(folder, true)))
            .await
            .expect("an answer")
    };
    let without = async move { is_refused(under(address, trusting(folder, false)), "").await };
    [
        section("tls-client", own),
        section("tls-no-client", without),
    ]
}
