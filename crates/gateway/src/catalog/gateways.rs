//! The live gateways of a cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use scylla::DeserializeRow;
use scylla::value::CqlTimestamp;
use uuid::Uuid;

use super::cluster::{Cluster, ClusterError};
use super::tables::SCOPE;

/// How long a gateway's word that it lives may take.
pub(super) const BEAT_WITHIN: Duration = Duration::from_secs(2);

/// What a gateway says of itself.
#[derive(Clone, Debug)]
pub(super) struct Word<'a> {
    pub(super) gateway: Uuid,
    /// Where drivers reach it.
    pub(super) address: &'a str,
    /// The revision that it has taken up; `None` before the first.
    pub(super) confirmed: Option<i64>,
    /// Its time, by which it dates log rows. Microseconds since the epoch.
    pub(super) now_micros: i64,
    /// By how much its node's clock is ahead of that. Microseconds.
    pub(super) node_clock: Option<i64>,
    /// Tables whose logs may get rows from it, and up to which time. Microseconds since the epoch.
    pub(super) marks: &'a [(String, i64)],
    /// The write timestamp: each word counts for more than the one before, whichever node takes it.
    pub(super) written_at: i64,
}

/// A gateway that lives, as it says.
#[derive(Clone, Debug)]
pub(super) struct LiveGateway {
    pub(super) gateway: Uuid,
    pub(super) address: Option<String>,
    pub(super) confirmed: Option<i64>,
    /// Its time at its last word, milliseconds since the epoch; `None` from one of an earlier version.
    pub(super) said_ms: Option<i64>,
    /// Tables whose logs may get rows from it, and up to which time, milliseconds since the epoch; `None` from one of an earlier version.
    pub(super) active: Option<BTreeMap<String, i64>>,
}

#[derive(DeserializeRow)]
struct Row {
    gateway: Uuid,
    address: Option<String>,
    confirmed: Option<i64>,
    said: Option<CqlTimestamp>,
    active: Option<BTreeMap<String, CqlTimestamp>>,
}

/// Says that a gateway lives.
pub(super) async fn beat(cluster: &Cluster, word: &Word<'_>) -> Result<(), ClusterError> {
    let keyspace = super::quoted(&cluster.keyspace);
    // The row expires by the TTL of its table.
    let text = format!(
        "INSERT INTO {keyspace}.gateways (scope, gateway, address, confirmed, said, node_clock_ms, active) \
         VALUES (?, ?, ?, ?, ?, ?, ?)"
    );
    let values = (
        SCOPE,
        word.gateway,
        word.address,
        word.confirmed.unwrap_or(-1),
        CqlTimestamp(word.now_micros / 1_000),
        word.node_clock.map(|difference| difference / 1_000),
        word.marks
            .iter()
            .map(|(table, until)| (table.as_str(), CqlTimestamp(until / 1_000)))
            .collect::<BTreeMap<_, _>>(),
    );
    let written = cluster.execute_at(&text, values, word.written_at);
    written.await.map(drop)
}

/// Says that a gateway is gone. Its marks stay until they expire: others may not have seen them yet.
pub(super) async fn leave(
    cluster: &Cluster,
    gateway: Uuid,
    written_at: i64,
) -> Result<(), ClusterError> {
    let keyspace = super::quoted(&cluster.keyspace);
    let text = format!(
        "DELETE address, confirmed, said, node_clock_ms FROM {keyspace}.gateways WHERE scope = ? AND gateway = ?"
    );
    let written = cluster.execute_at(&text, (SCOPE, gateway), written_at);
    written.await.map(drop)
}

/// The gateways that live.
pub(super) async fn read(cluster: &Cluster) -> Result<Vec<LiveGateway>, ClusterError> {
    let keyspace = super::quoted(&cluster.keyspace);
    let text = format!(
        "SELECT gateway, address, confirmed, said, active FROM {keyspace}.gateways WHERE scope = ?"
    );
    let rows: Vec<Row> = cluster.rows(&text, (SCOPE,)).await?;
    let live = rows.into_iter().map(|row| LiveGateway {
        gateway: row.gateway,
        address: row.address,
        confirmed: row.confirmed,
        said_ms: row.said.map(|CqlTimestamp(ms)| ms),
        active: row.active.map(|marks| {
            let marks = marks.into_iter();
            marks.map(|(table, CqlTimestamp(ms))| (table, ms)).collect()
        }),
    });
    Ok(live.collect())
}

/// The revision that all of them have taken up; `None` if none is known to live.
pub(super) fn confirmed_by_all(live: &[LiveGateway]) -> Option<i64> {
    live.iter().filter_map(|gateway| gateway.confirmed).min()
}
