//! The history of the schema that index services poll: ScyllaDB's `system.group0_history`.
//!
//! An index service reads the newest entry by one gateway and the indexes by another. So every gateway adds an entry once it
//! shows what there is, even if another one has: an index service that asked it too early looks again then.

use scylla::value::CqlTimeuuid;
use uuid::Uuid;

use super::cluster::{Cluster, ClusterError};
use super::timeuuids;

/// The key of the whole history.
const KEY: &str = "history";

/// Adds an entry, newer than all others whatever clocks they were made by. To be called once this gateway shows the schema
/// and the definitions.
pub(super) async fn record(
    cluster: &Cluster,
    schema_version: Uuid,
    revision: i64,
) -> Result<(), ClusterError> {
    let keyspace = super::quoted(&cluster.keyspace);
    let newest: Vec<(CqlTimeuuid,)> = cluster
        .rows(
            &format!("SELECT state_id FROM {keyspace}.group0_history WHERE key = ? LIMIT 1"),
            (KEY,),
        )
        .await?;
    let newest = newest.first().map(|(newest,)| Uuid::from(*newest));
    let state_id = CqlTimeuuid::from(timeuuids::after(newest)?);
    let text = format!(
        "INSERT INTO {keyspace}.group0_history (key, state_id, schema_version, revision) \
         VALUES (?, ?, ?, ?)"
    );
    cluster
        .execute(&text, (KEY, state_id, schema_version, revision))
        .await
        .map(drop)
}
