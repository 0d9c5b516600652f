//! Sessions, and steps that all sections share.

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::deserialize::row::DeserializeRow;
use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;

pub fn builder(address: &str) -> SessionBuilder {
    SessionBuilder::new().known_node(address)
}

/// A session that uses a keyspace which it makes.
pub async fn using_new(address: &str, keyspace: &str) -> Session {
    let session = builder(address).build().await.expect("a session");
    run(
        &session,
        &format!("CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"),
    )
    .await;
    let used = session.use_keyspace(keyspace, false).await;
    used.expect("the keyspace is there");
    session
}

pub async fn run(session: &Session, statement: &str) -> QueryResult {
    with(session, statement, ()).await
}

/// Executes a statement with values, which the driver prepares.
pub async fn with(session: &Session, statement: &str, values: impl SerializeRow) -> QueryResult {
    let done = session.query_unpaged(statement, values).await;
    done.unwrap_or_else(|error| panic!("{statement}: {error}"))
}

pub fn rows<T>(result: QueryResult) -> Vec<T>
where
    T: for<'frame> DeserializeRow<'frame, 'frame>,
{
    let result = result.into_rows_result().expect("rows");
    let rows = result.rows::<T>().expect("columns of these types");
    rows.collect::<Result<_, _>>().expect("values of the types")
}

pub async fn select<T>(session: &Session, statement: &str) -> Vec<T>
where
    T: for<'frame> DeserializeRow<'frame, 'frame>,
{
    rows(run(session, statement).await)
}

/// The error with which the server answered, and its text.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: Result<T, ExecutionError>) -> (DbError, String) {
    let error = result.expect_err("the server refuses it");
    match error {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, text))
        | ExecutionError::PrepareError(PrepareError::AllAttemptsFailed {
            first_attempt: RequestAttemptError::DbError(error, text),
        }) => (error, text),
        other => panic!("not an error of the server: {other}"),
    }
}

pub async fn refusal(session: &Session, statement: &str) -> (DbError, String) {
    refused(session.query_unpaged(statement, ()).await)
}
