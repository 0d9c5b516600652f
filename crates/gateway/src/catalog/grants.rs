//! Grants on logs: a role that may write to a table by a grant on that table may write to its log
//! too.
//!
//! Clients write log rows themselves. So where Cassandra checks permissions, a client whose MODIFY
//! comes only from a grant on the table would have its writes refused because of the log. Before
//! writes are logged, the gateway's user therefore grants MODIFY on the log, which belongs to it,
//! to all such roles. Grants on the keyspace, or on all keyspaces, cover the log already. Later
//! grants are not seen, so an administrator has to make them for the log too.

use cql::error::CqlError;
use cql::quote::quoted;

use super::cluster::{ClusterError, InternalSession};
use super::defined_index::DefinedIndex;
use super::log_table;

/// The part of Cassandra's error where permissions are not checked. A GRANT has no effect then.
const NO_AUTHORIZER: &str = "AllowAllAuthorizer";

/// The permission by which the gateway's user sees the grants of others.
const NEEDED: &str = "GRANT SELECT ON system_auth.role_permissions TO";

/// Checks that the gateway can read who may write to a table, before the table gets an index.
///
/// # Errors
/// If the gateway may not read the grants. Then an index could stop all writes to the table.
pub(super) async fn check(
    cluster: &InternalSession,
    keyspace: &str,
    table: &str,
) -> Result<(), CqlError> {
    match writers(cluster, keyspace, table).await {
        Ok(_) => Ok(()),
        Err(ClusterError::Refused(error)) => Err(CqlError::invalid(format!(
            "The gateway's user may not see who may write to {keyspace}.{table}, and could not let them write to the index's log: {error}. \
             Let an administrator {NEEDED} the gateway's user"
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Grants MODIFY on the log of an index's table to each role that has it by a grant on the table.
/// It can be repeated without harm.
pub(super) async fn give(
    cluster: &InternalSession,
    index: &DefinedIndex,
) -> Result<(), ClusterError> {
    let keyspace = quoted(&index.keyspace);
    let log = quoted(&log_table::name_of(&index.table));
    for role in writers(cluster, &index.keyspace, &index.table).await? {
        let role = quoted(&role);
        let text = format!("GRANT MODIFY ON TABLE {keyspace}.{log} TO {role}");
        match cluster.session().query_unpaged(text, ()).await {
            Ok(_) => tracing::info!(
                keyspace = index.keyspace,
                table = index.table,
                role,
                "the role was granted MODIFY on the log, as it has it on the table"
            ),
            Err(error) => match ClusterError::from(error) {
                ClusterError::Refused(error) if error.contains(NO_AUTHORIZER) => return Ok(()),
                error => return Err(error),
            },
        }
    }
    Ok(())
}

/// The roles that have MODIFY by a grant on the table itself.
async fn writers(
    cluster: &InternalSession,
    keyspace: &str,
    table: &str,
) -> Result<Vec<String>, ClusterError> {
    const TEXT: &str = "SELECT role, permissions FROM system_auth.role_permissions \
                        WHERE resource = ? ALLOW FILTERING";
    let resource = format!("data/{keyspace}/{table}");
    let rows: Vec<(String, Option<Vec<String>>)> = cluster.rows(TEXT, (resource,)).await?;
    let may_write = |permissions: &Option<Vec<String>>| {
        let mut permissions = permissions.iter().flatten();
        permissions.any(|permission| permission == "MODIFY")
    };
    let writers = rows
        .into_iter()
        .filter(|(_, permissions)| may_write(permissions));
    Ok(writers.map(|(role, _)| role).collect())
}
