//! The gateway's own session to its cluster.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::PoolSize;
use scylla::client::caching_session::{CachingSession, CachingSessionBuilder};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::{Session, TlsContext};
use scylla::client::session_builder::SessionBuilder;
use scylla::cluster::Node;
use scylla::deserialize::row::DeserializeRow;
use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::{Consistency, SerialConsistency, Statement};
use scylla::value::CqlTimeuuid;
use uuid::Uuid;
use value::timeuuid;

use super::options::InternalSessionOptions;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for opening a session as a whole, as the driver sets none for a TLS handshake.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of prepared statements that are cached. It is more than this module has.
const STATEMENTS_MAX: usize = 64;

/// The failure of a request to the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClusterError {
    /// The cluster answered with an error about the request.
    #[error("{0}")]
    Refused(String),
    /// The cluster did not answer, or answered with an error about its own state.
    #[error("{0}")]
    Unreachable(String),
    /// This gateway's clock shows a time that no timeuuid can have.
    #[error("the clock cannot be right: {0}")]
    Clock(String),
    /// The nodes have several versions of the schema, or the schema changes all the time.
    #[error("the nodes of the cluster do not agree on one version of the schema: try again")]
    Unsettled,
    /// The answer does not have the expected form.
    #[error("an unexpected answer: {0}")]
    Malformed(String),
}

/// A session under the gateway's own user.
pub(crate) struct InternalSession {
    session: CachingSession,
    /// The keyspace of the definitions.
    pub(super) keyspace: String,
    contact_points: Vec<String>,
}

impl InternalSession {
    /// Opens a session, in one attempt.
    pub(super) async fn connect(
        options: &InternalSessionOptions,
    ) -> Result<InternalSession, ClusterError> {
        // Definitions are few, and none may be missed: a quorum makes one gateway read what another
        // wrote.
        let profile = ExecutionProfile::builder()
            .consistency(Consistency::Quorum)
            .serial_consistency(Some(SerialConsistency::Serial))
            .request_timeout(Some(REQUEST_TIMEOUT))
            .build();
        let mut builder = SessionBuilder::new()
            .known_nodes(&options.contact_points)
            .connection_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .fetch_schema_metadata(false)
            .fetch_full_schema_metadata(false)
            .tls_context(options.tls.clone().map(TlsContext::Rustls023))
            .pool_size(PoolSize::PerHost(std::num::NonZeroUsize::MIN))
            .default_execution_profile_handle(profile.into_handle());
        if let Some((user, password)) = &options.credentials {
            builder = builder.user(user, password.expose());
        }
        let session = tokio::time::timeout(OPEN_TIMEOUT, builder.build())
            .await
            .map_err(|_| {
                ClusterError::Unreachable(format!("no session was open after {OPEN_TIMEOUT:?}"))
            })?
            .map_err(|error| ClusterError::Unreachable(error.to_string()))?;
        Ok(InternalSession {
            session: CachingSessionBuilder::new(session)
                .max_capacity(STATEMENTS_MAX)
                .build(),
            keyspace: options.keyspace.clone(),
            contact_points: options.contact_points.clone(),
        })
    }

    /// The driver's session, for requests with a consistency level of their own.
    pub(crate) fn session(&self) -> &Session {
        self.session.get_session()
    }

    /// Executes a statement whose answer is one page.
    pub(super) async fn execute(
        &self,
        text: &str,
        values: impl SerializeRow,
    ) -> Result<QueryResult, ClusterError> {
        let mut statement = Statement::new(text);
        statement.set_is_idempotent(!text.contains(" IF "));
        Ok(self.session.execute_unpaged(statement, values).await?)
    }

    /// Executes a write with the timestamp `written_at`. Microseconds since the epoch.
    pub(super) async fn execute_at(
        &self,
        text: &str,
        values: impl SerializeRow,
        written_at: i64,
    ) -> Result<QueryResult, ClusterError> {
        let mut statement = Statement::new(text);
        statement.set_is_idempotent(true);
        statement.set_timestamp(Some(written_at));
        Ok(self.session.execute_unpaged(statement, values).await?)
    }

    /// The time of the node's clock, in microseconds since the epoch. The node is the one at the
    /// first contact point. If no known node has that address, the clock of any node is read.
    pub(super) async fn node_time(&self) -> Result<i64, ClusterError> {
        let mut statement = Statement::new("SELECT now() FROM system.local");
        statement.set_is_idempotent(true);
        if let Some(node) = self.contact_node().await {
            let only = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(node), None);
            statement.set_load_balancing_policy(Some(only));
        }
        let result = self.session.execute_unpaged(statement, ()).await?;
        let rows = result.into_rows_result().map_err(malformed)?;
        let (now,) = rows.first_row::<(CqlTimeuuid,)>().map_err(malformed)?;
        Ok(timeuuid::unix_micros(&now.into()))
    }

    async fn contact_node(&self) -> Option<Arc<Node>> {
        let contact_point = self.contact_points.first()?;
        let addresses: Vec<SocketAddr> =
            tokio::net::lookup_host(contact_point).await.ok()?.collect();
        let state = self.session().get_cluster_state();
        let mut nodes = state.get_nodes_info().iter();
        let is_behind = |node: &&Arc<Node>| {
            let address = SocketAddr::new(node.address.ip(), node.address.port());
            addresses.contains(&address)
        };
        nodes.find(is_behind).cloned()
    }

    /// Reads the rows of a SELECT whose answer is one page.
    pub(super) async fn rows<R>(
        &self,
        text: &str,
        values: impl SerializeRow,
    ) -> Result<Vec<R>, ClusterError>
    where
        R: for<'frame, 'metadata> DeserializeRow<'frame, 'metadata>,
    {
        let result = self.execute(text, values).await?;
        let rows = result.into_rows_result().map_err(malformed)?;
        let rows = rows.rows::<R>().map_err(malformed)?;
        rows.map(|row| row.map_err(malformed)).collect()
    }

    /// Executes a conditional statement; true if it was applied.
    pub(super) async fn execute_if(
        &self,
        text: &str,
        values: impl SerializeRow,
    ) -> Result<bool, ClusterError> {
        let result = self.execute(text, values).await?;
        let rows = result.into_rows_result().map_err(malformed)?;
        // The other columns of the row depend on the outcome.
        let row = rows.first_row::<scylla::value::Row>().map_err(malformed)?;
        let applied = row.columns.first().and_then(Option::as_ref);
        applied
            .and_then(scylla::value::CqlValue::as_boolean)
            .ok_or_else(|| ClusterError::Malformed("a condition without an outcome".to_owned()))
    }

    /// The version of the schema; `None` while the reachable nodes do not agree on one.
    pub(super) async fn agreed_schema_version(&self) -> Result<Option<Uuid>, ClusterError> {
        let agreement = self.session().check_schema_agreement().await;
        agreement.map_err(|error| ClusterError::Unreachable(error.to_string()))
    }

    /// Changes the schema, and waits until the nodes agree on it.
    pub(super) async fn change_schema(&self, text: &str) -> Result<(), ClusterError> {
        let session = self.session();
        session.query_unpaged(text, ()).await?;
        session
            .await_schema_agreement()
            .await
            .map(drop)
            .map_err(|error| ClusterError::Unreachable(error.to_string()))
    }
}

fn malformed(error: impl std::error::Error) -> ClusterError {
    ClusterError::Malformed(error.to_string())
}

/// Whether an error of the database is about the request, and not about the database's own state.
fn is_refusal(error: &RequestAttemptError) -> bool {
    matches!(
        error,
        RequestAttemptError::DbError(
            DbError::SyntaxError
                | DbError::Invalid
                | DbError::Unauthorized
                | DbError::ConfigError
                | DbError::AlreadyExists { .. },
            _
        )
    )
}

impl From<ExecutionError> for ClusterError {
    fn from(error: ExecutionError) -> ClusterError {
        let refused = match &error {
            ExecutionError::LastAttemptError(attempt) => is_refusal(attempt),
            ExecutionError::PrepareError(PrepareError::AllAttemptsFailed { first_attempt }) => {
                is_refusal(first_attempt)
            }
            _ => false,
        };
        match refused {
            true => ClusterError::Refused(error.to_string()),
            false => ClusterError::Unreachable(error.to_string()),
        }
    }
}
