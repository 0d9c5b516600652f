//! The queries about the schema, as the contract gives them (section 4.2).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use index::secondary::sai_column;
use scylla::cluster::Node;
use scylla::deserialize::row::DeserializeRow;
use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlTimestamp, CqlTimeuuid};
use uuid::Uuid;
use value::CqlType;

use super::discovery_error::DiscoveryError;
use super::session::DbSession;
use super::statement::IdempotentStatement;
use crate::identity::IndexName;

/// A row of `system_schema.indexes` that may be a vector index, or one of the database's own.
#[derive(Clone, Debug)]
pub(super) struct ListedIndex {
    /// The keyspace and the name of the index.
    pub name: IndexName,
    /// The name of its table, in the same keyspace.
    pub table: String,
    /// The options of the index.
    pub options: HashMap<String, String>,
}

impl ListedIndex {
    /// The table, by its keyspace and its name.
    pub(super) fn of_table(&self) -> (String, String) {
        (self.name.keyspace.clone(), self.table.clone())
    }
}

/// The columns of each table that have an index of the database's own (SAI). A vector index keeps
/// their values, too.
pub(super) fn own_columns(indexes: &[ListedIndex]) -> HashMap<(String, String), BTreeSet<String>> {
    let mut columns: HashMap<_, BTreeSet<String>> = HashMap::new();
    for listed in indexes {
        let option = |name: &str| listed.options.get(name).map(String::as_str);
        if let Some(column) = sai_column(option) {
            columns.entry(listed.of_table()).or_default().insert(column);
        }
    }
    columns
}

/// A column as `system_schema.columns` describes it.
#[derive(Clone, Debug)]
pub(super) struct ListedColumn {
    /// The type, as CQL text.
    pub type_text: String,
    /// Whether the column has one value for all rows of a partition.
    pub is_static: bool,
}

impl ListedColumn {
    /// The type; `None` for a type that the service doesn't know, such as a user type.
    pub(super) fn cql_type(&self) -> Option<CqlType> {
        cql::parser::parse_type(&self.type_text).ok()
    }
}

/// The statements that read the schema, each prepared when it is first needed on a session.
pub(super) struct DiscoveryStatements {
    version: IdempotentStatement,
    indexes: IdempotentStatement,
    options: IdempotentStatement,
    column: IdempotentStatement,
    table_id: IdempotentStatement,
    truncated: IdempotentStatement,
}

impl Default for DiscoveryStatements {
    fn default() -> DiscoveryStatements {
        DiscoveryStatements {
            version: IdempotentStatement::new(
                "SELECT state_id FROM system.group0_history WHERE key = 'history' \
                 ORDER BY state_id DESC LIMIT 1",
            ),
            indexes: IdempotentStatement::new(
                "SELECT keyspace_name, index_name, table_name, options \
                 FROM system_schema.indexes WHERE kind = 'CUSTOM' ALLOW FILTERING",
            ),
            options: IdempotentStatement::new(
                "SELECT options FROM system_schema.indexes \
                 WHERE keyspace_name = ? AND table_name = ? AND index_name = ?",
            ),
            column: IdempotentStatement::new(
                "SELECT type, kind FROM system_schema.columns \
                 WHERE keyspace_name = ? AND table_name = ? AND column_name = ?",
            ),
            table_id: IdempotentStatement::new(
                "SELECT id FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?",
            ),
            truncated: IdempotentStatement::new(
                "SELECT truncated_at FROM system.truncated WHERE table_uuid = ? LIMIT 1",
            ),
        }
    }
}

impl DiscoveryStatements {
    /// Reads the newest version of the schema. `None` if the database keeps no history.
    pub(super) async fn version(&self, db: &DbSession) -> Result<Option<Uuid>, DiscoveryError> {
        match first::<(Option<CqlTimeuuid>,)>(db, &self.version, ()).await {
            Ok(row) => Ok(row.and_then(|(version,)| version).map(Uuid::from)),
            Err(DiscoveryError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads all custom indexes, whatever their class.
    pub(super) async fn indexes(&self, db: &DbSession) -> Result<Vec<ListedIndex>, DiscoveryError> {
        type Row = (String, String, String, Option<HashMap<String, String>>);
        let prepared = self.indexes.on(db).await?;
        let answer = db.session.execute_unpaged(&prepared, ()).await;
        let result = db.counted(answer)?;
        let rows = result.into_rows_result().map_err(malformed)?;
        rows.rows::<Row>()
            .map_err(malformed)?
            .map(|row| {
                let (keyspace, index, table, options) = row.map_err(malformed)?;
                Ok(ListedIndex {
                    name: IndexName { keyspace, index },
                    table,
                    options: options.unwrap_or_default(),
                })
            })
            .collect()
    }

    /// Reads the options of an index. `None` if the index no longer exists.
    pub(super) async fn options(
        &self,
        db: &DbSession,
        listed: &ListedIndex,
    ) -> Result<Option<HashMap<String, String>>, DiscoveryError> {
        let key = (&listed.name.keyspace, &listed.table, &listed.name.index);
        let row = first::<(Option<HashMap<String, String>>,)>(db, &self.options, key).await?;
        Ok(row.map(|(options,)| options.unwrap_or_default()))
    }

    /// Reads the type and the kind of a column of an index's table. `None` if there is no such
    /// column.
    pub(super) async fn column(
        &self,
        db: &DbSession,
        listed: &ListedIndex,
        column: &str,
    ) -> Result<Option<ListedColumn>, DiscoveryError> {
        let key = (&listed.name.keyspace, &listed.table, column);
        let row = first::<(String, String)>(db, &self.column, key).await?;
        Ok(row.map(|(type_text, kind)| ListedColumn {
            type_text,
            is_static: kind == "static",
        }))
    }

    /// Reads the id of an index's table. `None` if there is no such table.
    pub(super) async fn table_id(
        &self,
        db: &DbSession,
        listed: &ListedIndex,
    ) -> Result<Option<Uuid>, DiscoveryError> {
        let key = (&listed.name.keyspace, &listed.table);
        let row = first::<(Option<Uuid>,)>(db, &self.table_id, key).await?;
        Ok(row.and_then(|(id,)| id))
    }

    /// Reads when a table was last truncated, milliseconds since the epoch, as far as the nodes
    /// that answer know. Each node keeps a time of its own, so all are queried and the latest
    /// counts.
    pub(super) async fn truncated_ms(
        &self,
        db: &DbSession,
        table: Uuid,
    ) -> Result<Option<i64>, DiscoveryError> {
        let prepared = match self.truncated.on(db).await.map_err(DiscoveryError::from) {
            Ok(prepared) => prepared,
            Err(DiscoveryError::Refused(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let state = db.session.get_cluster_state();
        let asked = state
            .get_nodes_info()
            .iter()
            .map(|node| truncated_on(db, prepared.clone(), node.clone(), table));
        let answers = futures::future::join_all(asked).await;
        let mut latest = None;
        let mut refusal = None;
        let mut answered = false;
        for answer in answers {
            match answer {
                Ok(truncated_ms) => {
                    answered = true;
                    latest = latest.max(truncated_ms);
                }
                Err(error) => refusal = Some(error),
            }
        }
        match refusal {
            Some(error) if !answered => Err(error),
            _ => Ok(latest),
        }
    }
}

async fn truncated_on(
    db: &DbSession,
    mut prepared: PreparedStatement,
    node: Arc<Node>,
    table: Uuid,
) -> Result<Option<i64>, DiscoveryError> {
    let policy = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(node), None);
    prepared.set_load_balancing_policy(Some(policy));
    let answer = db.session.execute_unpaged(&prepared, (table,)).await;
    let result = db.counted(answer)?;
    let rows = result.into_rows_result().map_err(malformed)?;
    let row = rows
        .maybe_first_row::<(Option<CqlTimestamp>,)>()
        .map_err(malformed)?;
    Ok(row.and_then(|(time,)| time).map(|CqlTimestamp(ms)| ms))
}

/// Executes a statement and returns the first row of the answer. `None` if the answer is empty.
pub(super) async fn first<R>(
    db: &DbSession,
    statement: &IdempotentStatement,
    values: impl SerializeRow,
) -> Result<Option<R>, DiscoveryError>
where
    R: for<'frame, 'metadata> DeserializeRow<'frame, 'metadata>,
{
    let prepared = statement.on(db).await?;
    let answer = db.session.execute_unpaged(&prepared, values).await;
    let result = db.counted(answer)?;
    let rows = result.into_rows_result().map_err(malformed)?;
    rows.maybe_first_row::<R>().map_err(malformed)
}

fn malformed(error: impl std::error::Error) -> DiscoveryError {
    DiscoveryError::Malformed(error.to_string())
}

/// Whether the database itself has answered with an error.
fn answered(error: &RequestAttemptError) -> bool {
    matches!(
        error,
        RequestAttemptError::DbError(
            DbError::SyntaxError
                | DbError::Invalid
                | DbError::Unauthorized
                | DbError::ConfigError
                | DbError::ServerError,
            _
        )
    )
}

impl From<PrepareError> for DiscoveryError {
    fn from(error: PrepareError) -> DiscoveryError {
        match &error {
            PrepareError::AllAttemptsFailed { first_attempt } if answered(first_attempt) => {
                DiscoveryError::Refused(error.to_string())
            }
            _ => DiscoveryError::Unreachable(error.to_string()),
        }
    }
}

impl From<ExecutionError> for DiscoveryError {
    fn from(error: ExecutionError) -> DiscoveryError {
        match &error {
            ExecutionError::LastAttemptError(attempt) if answered(attempt) => {
                DiscoveryError::Refused(error.to_string())
            }
            _ => DiscoveryError::Unreachable(error.to_string()),
        }
    }
}
