//! The live gateways of a cluster.

use uuid::Uuid;

use super::cluster::{Cluster, ClusterError};
use super::tables::SCOPE;

/// Says that this gateway lives, and the revision that it has taken up; `None` before the first.
pub(super) async fn beat(
    cluster: &Cluster,
    gateway: Uuid,
    address: &str,
    confirmed: Option<i64>,
) -> Result<(), ClusterError> {
    let keyspace = super::quoted(&cluster.keyspace);
    // The row expires by the TTL of its table.
    let text = format!(
        "INSERT INTO {keyspace}.gateways (scope, gateway, address, confirmed) VALUES (?, ?, ?, ?)"
    );
    let values = (SCOPE, gateway, address, confirmed.unwrap_or(-1));
    cluster.execute(&text, values).await.map(drop)
}

/// Says that this gateway is gone.
pub(super) async fn leave(cluster: &Cluster, gateway: Uuid) -> Result<(), ClusterError> {
    let keyspace = super::quoted(&cluster.keyspace);
    let text = format!("DELETE FROM {keyspace}.gateways WHERE scope = ? AND gateway = ?");
    cluster.execute(&text, (SCOPE, gateway)).await.map(drop)
}

/// The revision that all live gateways have taken up; `None` if none is known to live.
pub(super) async fn confirmed_by_all(cluster: &Cluster) -> Result<Option<i64>, ClusterError> {
    let keyspace = super::quoted(&cluster.keyspace);
    let text = format!("SELECT confirmed FROM {keyspace}.gateways WHERE scope = ?");
    let rows: Vec<(Option<i64>,)> = cluster.rows(&text, (SCOPE,)).await?;
    Ok(rows.into_iter().filter_map(|(confirmed,)| confirmed).min())
}
