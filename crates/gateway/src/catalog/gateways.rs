//! The live gateways of a cluster, each with a row in the table of gateways.

use std::collections::BTreeMap;
use std::time::Duration;

use cql::quote::quoted;
use scylla::DeserializeRow;
use scylla::value::CqlTimestamp;
use uuid::Uuid;

use super::cluster::{ClusterError, InternalSession};
use super::tables::SCOPE;

/// The time limit for a heartbeat, the write of a gateway's own row.
pub(super) const BEAT_WITHIN: Duration = Duration::from_secs(2);

/// The content of a heartbeat: what a gateway reports to the others about itself.
#[derive(Clone, Debug)]
pub(super) struct HeartbeatContent<'a> {
    /// The id of the gateway, which is new at each start.
    pub(super) gateway: Uuid,
    /// The address at which drivers reach the gateway.
    pub(super) address: &'a str,
    /// The revision that the gateway has confirmed; `None` before the first.
    pub(super) confirmed: Option<i64>,
    /// The time by which the gateway dates log rows. Microseconds since the epoch.
    pub(super) now_micros: i64,
    /// The time by which the node's clock is ahead of the gateway's; `None` if it was not compared
    /// yet. Microseconds.
    pub(super) node_clock: Option<i64>,
    /// The tables whose logs may get rows from the gateway, each with the latest time of such rows.
    /// Microseconds since the epoch.
    pub(super) marks: &'a [(String, i64)],
    /// The write timestamp. It grows with each heartbeat, so the latest one wins at every node.
    pub(super) written_at: i64,
}

/// The last heartbeat of a live gateway, or the marks that remain of a gateway which has left.
#[derive(Clone, Debug)]
pub(super) struct LiveGateway {
    /// The id of the gateway, which is new at each start.
    pub(super) gateway: Uuid,
    /// The address at which drivers reach the gateway; `None` if it has left.
    pub(super) address: Option<String>,
    /// The revision that the gateway has confirmed, -1 before the first; `None` if it has left.
    pub(super) confirmed: Option<i64>,
    /// The gateway's time in its last heartbeat, milliseconds since the epoch; `None` from an
    /// earlier version and from a gateway that has left.
    pub(super) said_ms: Option<i64>,
    /// The tables whose logs may get rows from the gateway, each with the latest time of such rows,
    /// milliseconds since the epoch; `None` from an earlier version.
    pub(super) active: Option<BTreeMap<String, i64>>,
}

#[derive(DeserializeRow)]
struct HeartbeatRow {
    gateway: Uuid,
    address: Option<String>,
    confirmed: Option<i64>,
    said: Option<CqlTimestamp>,
    active: Option<BTreeMap<String, CqlTimestamp>>,
}

/// Writes a heartbeat.
pub(super) async fn beat(
    cluster: &InternalSession,
    word: &HeartbeatContent<'_>,
) -> Result<(), ClusterError> {
    let keyspace = quoted(&cluster.keyspace);
    // The table's TTL makes the row expire.
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

/// Clears a gateway's row when it leaves, except for its marks. Others may not have seen these yet,
/// so they stay until they expire.
pub(super) async fn leave(
    cluster: &InternalSession,
    gateway: Uuid,
    written_at: i64,
) -> Result<(), ClusterError> {
    let keyspace = quoted(&cluster.keyspace);
    let text = format!(
        "DELETE address, confirmed, said, node_clock_ms FROM {keyspace}.gateways WHERE scope = ? AND gateway = ?"
    );
    let written = cluster.execute_at(&text, (SCOPE, gateway), written_at);
    written.await.map(drop)
}

/// Reads the rows of all gateways that live, or have left a moment ago.
pub(super) async fn read(cluster: &InternalSession) -> Result<Vec<LiveGateway>, ClusterError> {
    let keyspace = quoted(&cluster.keyspace);
    let text = format!(
        "SELECT gateway, address, confirmed, said, active FROM {keyspace}.gateways WHERE scope = ?"
    );
    let rows: Vec<HeartbeatRow> = cluster.rows(&text, (SCOPE,)).await?;
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

/// The revision that all live gateways have confirmed; `None` if no gateway lives, -1 if one of
/// them has confirmed none.
pub(super) fn confirmed_by_all(live: &[LiveGateway]) -> Option<i64> {
    live.iter().filter_map(|gateway| gateway.confirmed).min()
}
