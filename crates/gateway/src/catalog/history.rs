//! The history of the schema that index services poll, as they poll ScyllaDB's
//! `system.group0_history`.
//!
//! An index service may read the newest entry through one gateway and the indexes through another.
//! So every gateway adds an entry once it shows a change, even if another gateway has added one. An
//! index service that polled it too early then looks again.

use cql::quote::quoted;
use scylla::value::CqlTimeuuid;
use uuid::Uuid;

use super::cluster::{ClusterError, InternalSession};
use super::timeuuids;

/// The partition key of the whole history.
const KEY: &str = "history";

/// Adds an entry that is newer than all others, even if their clocks were ahead. It may only be
/// called once this gateway shows the schema and the definitions.
pub(super) async fn record(
    cluster: &InternalSession,
    schema_version: Uuid,
    revision: i64,
) -> Result<(), ClusterError> {
    let keyspace = quoted(&cluster.keyspace);
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
