//! The history of the schema that index services poll: ScyllaDB's `system.group0_history`.

use uuid::Uuid;

use super::cluster::{Cluster, ClusterError};

/// The key of the whole history.
const KEY: &str = "history";

/// Makes the newest entry be of this schema and these definitions. Of gateways that do so at the same time each may add one:
/// an entry too many costs an index service a look.
pub(super) async fn record(
    cluster: &Cluster,
    schema_version: Uuid,
    revision: i64,
) -> Result<(), ClusterError> {
    let keyspace = super::quoted(&cluster.keyspace);
    let newest: Vec<(Option<Uuid>, Option<i64>)> = cluster
        .rows(
            &format!(
                "SELECT schema_version, revision FROM {keyspace}.group0_history WHERE key = ? LIMIT 1"
            ),
            (KEY,),
        )
        .await?;
    if newest.first() == Some(&(Some(schema_version), Some(revision))) {
        return Ok(());
    }
    let text = format!(
        "INSERT INTO {keyspace}.group0_history (key, state_id, schema_version, revision) \
         VALUES (?, now(), ?, ?)"
    );
    cluster
        .execute(&text, (KEY, schema_version, revision))
        .await
        .map(drop)
}
