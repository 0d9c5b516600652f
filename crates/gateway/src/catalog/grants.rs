//! Who may write to a log: whoever may write to its table.
//!
//! Clients write log rows themselves, so where Cassandra checks permissions a client that may MODIFY a table by a grant on that table alone
//! would be locked out of it by an index: its writes would be refused for the log's sake. So before writes are logged the gateway's
//! user, whose table the log is, grants MODIFY on it to all such roles. Grants on the keyspace, or on all, cover the log already. Grants that are made
//! later are not seen: they have to name the log, too.

use cql::error::CqlError;

use super::cluster::{Cluster, ClusterError};
use super::index::VectorIndex;
use super::log_table;

/// What Cassandra says where nobody is asked for permissions. What was granted before is of no effect then.
const NOT_ASKED_FOR: &str = "AllowAllAuthorizer";

/// What the gateway's user needs to see whom to grant.
const NEEDED: &str = "GRANT SELECT ON system_auth.role_permissions TO";

/// Makes sure that the gateway can see who may write to a table, before it gets an index.
///
/// # Errors
/// If it may not: all of them could be locked out.
pub(super) async fn check(cluster: &Cluster, keyspace: &str, table: &str) -> Result<(), CqlError> {
    match writers(cluster, keyspace, table).await {
        Ok(_) => Ok(()),
        Err(ClusterError::Refused(error)) => Err(CqlError::invalid(format!(
            "The gateway's user may not see who may write to {keyspace}.{table}, and could not let them write to the index's log: {error}. \
             Let an administrator {NEEDED} the gateway's user"
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Grants MODIFY on the log of an index's table to whoever was granted it on the table. Done again it does nothing.
pub(super) async fn give(cluster: &Cluster, index: &VectorIndex) -> Result<(), ClusterError> {
    let keyspace = super::quoted(&index.keyspace);
    let log = super::quoted(&log_table::name_of(&index.table));
    for role in writers(cluster, &index.keyspace, &index.table).await? {
        let role = super::quoted(&role);
        let text = format!("GRANT MODIFY ON TABLE {keyspace}.{log} TO {role}");
        match cluster.session().query_unpaged(text, ()).await {
            Ok(_) => tracing::info!(
                keyspace = index.keyspace,
                table = index.table,
                role,
                "may write to the log, as to the table"
            ),
            Err(error) => match ClusterError::from(error) {
                ClusterError::Refused(error) if error.contains(NOT_ASKED_FOR) => return Ok(()),
                error => return Err(error),
            },
        }
    }
    Ok(())
}

/// The roles that were granted MODIFY on a table by itself.
async fn writers(
    cluster: &Cluster,
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
