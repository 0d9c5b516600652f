//! The server under test, and steps that all these tests share.

use std::env;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::deserialize::row::DeserializeRow;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};
use scylla::response::query_result::QueryResult;
use tempfile::TempDir;

use crate::server::Server;

/// The variable with the address of the server: `host:port`.
const SERVER: &str = "CQL_SERVER";
/// The variable with the nodes of Cassandra behind the server, separated by commas.
const NODES: &str = "CASSANDRA_SERVER";

/// Cassandra writes a trace some time after it has answered.
const TRACE_PAUSE: Duration = Duration::from_millis(100);
const TRACE_ATTEMPTS: NonZeroU32 = NonZeroU32::new(300).expect("more than none");

/// The server that the driver connects to.
pub struct Target {
    pub address: SocketAddr,
    /// The server and its directory, if the test started it. The server ends before its directory
    /// is removed.
    _own: Option<(Server, TempDir)>,
}

impl Target {
    /// The server that the variable names, or one of our own.
    pub fn start() -> Target {
        if let Some(address) = named() {
            return Target {
                address,
                _own: None,
            };
        }
        let directory = tempfile::tempdir().expect("a temporary directory");
        let server = Server::start(&directory.path().join("data"));
        Target {
            address: server.cql,
            _own: Some((server, directory)),
        }
    }

    /// The gateway that the variable names.
    ///
    /// # Panics
    /// If the variable is not set.
    pub fn gateway() -> Target {
        let address = named().unwrap_or_else(|| {
            panic!("{SERVER}=host:port must name a gateway before a Cassandra: make cluster-test")
        });
        Target {
            address,
            _own: None,
        }
    }

    /// A builder of sessions to the server.
    pub fn builder(&self) -> SessionBuilder {
        SessionBuilder::new()
            .known_node_addr(self.address)
            .tracing_info_fetch_interval(TRACE_PAUSE)
            .tracing_info_fetch_attempts(TRACE_ATTEMPTS)
    }

    /// Runs a test with a session that uses a fresh keyspace, and drops the keyspace afterwards.
    pub async fn in_keyspace(&self, name: &str, test: impl AsyncFnOnce(Session)) {
        let session = self.builder().build().await.expect("the driver connects");
        execute(&session, &format!("DROP KEYSPACE IF EXISTS {name}")).await;
        let create = format!(
            "CREATE KEYSPACE {name} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 1}}"
        );
        execute(&session, &create).await;
        let used = session.use_keyspace(name, false).await;
        used.expect("the keyspace is there");
        test(session).await;
        let session = self.builder().build().await.expect("the driver connects");
        execute(&session, &format!("DROP KEYSPACE {name}")).await;
    }
}

/// The nodes of Cassandra behind the gateway.
///
/// # Panics
/// If the variable is not set.
pub fn cassandra_nodes() -> Vec<SocketAddr> {
    let nodes = env::var(NODES)
        .unwrap_or_else(|_| panic!("{NODES}=host:port,... must name Cassandra: make cluster-test"));
    let parsed = |node: &str| {
        node.parse()
            .unwrap_or_else(|error| panic!("{NODES}: {node}: {error}"))
    };
    nodes.split(',').map(parsed).collect()
}

fn named() -> Option<SocketAddr> {
    let address = env::var(SERVER).ok()?;
    let parsed = address.parse();
    Some(parsed.unwrap_or_else(|error| panic!("{SERVER}: {address}: {error}")))
}

/// Executes a statement as text. Panics if it is refused.
pub async fn execute(session: &Session, statement: &str) -> QueryResult {
    match session.query_unpaged(statement, ()).await {
        Ok(result) => result,
        Err(error) => panic!("{statement}: {error}"),
    }
}

/// The rows of a SELECT that is executed as text.
pub async fn select<T>(session: &Session, statement: &str) -> Vec<T>
where
    T: for<'frame> DeserializeRow<'frame, 'frame>,
{
    rows(execute(session, statement).await)
}

/// The rows of an answer.
pub fn rows<T>(result: QueryResult) -> Vec<T>
where
    T: for<'frame> DeserializeRow<'frame, 'frame>,
{
    let result = result.into_rows_result().expect("rows");
    let rows = result.rows::<T>().expect("columns of these types");
    rows.collect::<Result<_, _>>().expect("values of the types")
}

/// The error with which the server refuses a statement.
pub async fn refusal(session: &Session, statement: &str) -> (DbError, String) {
    match session.query_unpaged(statement, ()).await {
        Err(ExecutionError::LastAttemptError(RequestAttemptError::DbError(error, text))) => {
            (error, text)
        }
        other => panic!("{statement}: {other:?}"),
    }
}
