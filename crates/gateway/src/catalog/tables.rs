//! The keyspace of the definitions, and its tables.
//!
//! ```text
//! vector_indexes   one partition: a revision, and one row an index, of any class
//! gateways         one row a live gateway, which expires unless it is written again: the revision
//!                  that the gateway has confirmed, its time, the lead of its node's clock, and the
//!                  tables whose logs may get rows from it
//! group0_history, cdc_generation_timestamps, cdc_streams_descriptions_v2
//!                  they replace ScyllaDB's system tables of these names, which Cassandra lacks;
//!                  they answer the queries of index services and of the CDC library
//! ```
//!
//! Several gateways may make the tables at the same time, on different nodes. To Cassandra two
//! tables of one name with different ids are a conflict, so the gateway sets the id of each table.

use std::collections::BTreeMap;
use std::time::Duration;

use cql::quote::StringLiteral;
use cql::quote::quoted;
use uuid::{Uuid, uuid};

use super::cluster::{ClusterError, InternalSession};
use super::options::InternalSessionOptions;

/// The one partition of `vector_indexes`, and of `gateways`.
pub(super) const SCOPE: &str = "cluster";

/// The time for which a gateway counts as alive after its last heartbeat.
pub(super) const LEASE: Duration = Duration::from_secs(15);

/// The time after which entries of the schema's history expire.
const HISTORY_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The greatest number of copies of the definitions in a data centre.
const COPIES_MAX: usize = 3;

/// The namespace of the ids of tables.
const TABLE_IDS: Uuid = uuid!("6f2a5f0e-9a37-4c0b-8a25-6f1b2d6f7d11");

/// The tables: name, columns, and options without the id.
const TABLES: [(&str, &str, &str); 5] = [
    (
        "vector_indexes",
        "scope text, keyspace_name text, index_name text, table_name text, table_id uuid, \
         column_name text, target text, class_name text, options frozen<map<text, text>>, version timeuuid, state text, \
         changed_at bigint, truncates set<timeuuid>, revision bigint static, \
         PRIMARY KEY (scope, keyspace_name, index_name)",
        "comment = 'The vector and full-text indexes of this cluster'",
    ),
    (
        "gateways",
        "scope text, gateway uuid, address text, confirmed bigint, said timestamp, node_clock_ms bigint, \
         active frozen<map<text, timestamp>>, \
         PRIMARY KEY (scope, gateway)",
        "comment = 'Live gateways, and the revision of the definitions that each has taken up'",
    ),
    (
        "group0_history",
        "key text, state_id timeuuid, schema_version uuid, revision bigint, \
         PRIMARY KEY (key, state_id)",
        "CLUSTERING ORDER BY (state_id DESC)",
    ),
    (
        "cdc_generation_timestamps",
        "key text, time timestamp, expired timestamp, PRIMARY KEY (key, time)",
        "CLUSTERING ORDER BY (time DESC)",
    ),
    (
        "cdc_streams_descriptions_v2",
        "time timestamp, range_end bigint, streams frozen<set<blob>>, \
         PRIMARY KEY (time, range_end)",
        "comment = 'The streams of change logs, from a time on'",
    ),
];

/// Columns that tables made by earlier versions lack: table, column, type.
const LATER_COLUMNS: [(&str, &str, &str); 6] = [
    ("vector_indexes", "target", "text"),
    ("vector_indexes", "class_name", "text"),
    ("vector_indexes", "truncates", "set<timeuuid>"),
    ("gateways", "said", "timestamp"),
    ("gateways", "node_clock_ms", "bigint"),
    ("gateways", "active", "frozen<map<text, timestamp>>"),
];

/// Makes the keyspace, the tables and the columns that are missing.
pub(super) async fn create(
    cluster: &InternalSession,
    options: &InternalSessionOptions,
) -> Result<(), ClusterError> {
    let keyspace = &options.keyspace;
    let existing: Vec<(String,)> = cluster
        .rows(
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?",
            (keyspace,),
        )
        .await?;
    let is_there = |name: &str| existing.iter().any(|(existing,)| existing == name);
    let name = quoted(keyspace);
    for (table, column, cql_type) in LATER_COLUMNS {
        if is_there(table) && !has_column(cluster, keyspace, table, column).await? {
            // Another gateway may add the column at the same time, on another node. To Cassandra
            // that is the same column.
            cluster
                .change_schema(&format!(
                    "ALTER TABLE {name}.{table} ADD IF NOT EXISTS {column} {cql_type}"
                ))
                .await?;
        }
    }
    let missing: Vec<_> = TABLES.iter().filter(|(name, ..)| !is_there(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    // The keyspace is only created if it is missing: Cassandra requires the permission to create
    // any keyspace even if it is there.
    if existing.is_empty() && !exists(cluster, keyspace).await? {
        let replication = match &options.replication {
            Some(replication) => replication.clone(),
            None => replication(cluster),
        };
        cluster
            .change_schema(&format!(
                "CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {replication}"
            ))
            .await?;
    }
    for (table, columns, options) in missing {
        let id = Uuid::new_v5(&TABLE_IDS, format!("{keyspace}.{table}").as_bytes());
        cluster
            .change_schema(&format!(
                "CREATE TABLE IF NOT EXISTS {name}.{table} ({columns}) \
                 WITH {options} AND default_time_to_live = {} AND id = '{id}'",
                ttl_s(table)
            ))
            .await?;
    }
    Ok(())
}

/// Whether there is a keyspace of this name.
pub(super) async fn exists(
    cluster: &InternalSession,
    keyspace: &str,
) -> Result<bool, ClusterError> {
    const TEXT: &str = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let keyspaces: Vec<(String,)> = cluster.rows(TEXT, (keyspace,)).await?;
    Ok(!keyspaces.is_empty())
}

async fn has_column(
    cluster: &InternalSession,
    keyspace: &str,
    table: &str,
    column: &str,
) -> Result<bool, ClusterError> {
    const TEXT: &str = "SELECT column_name FROM system_schema.columns \
                        WHERE keyspace_name = ? AND table_name = ? AND column_name = ?";
    let columns: Vec<(String,)> = cluster.rows(TEXT, (keyspace, table, column)).await?;
    Ok(!columns.is_empty())
}

fn ttl_s(table: &str) -> u64 {
    match table {
        "gateways" => LEASE.as_secs(),
        "group0_history" => HISTORY_TTL.as_secs(),
        _ => 0,
    }
}

/// The replication with as many copies in each data centre as it has nodes, three at most.
fn replication(cluster: &InternalSession) -> String {
    let mut nodes: BTreeMap<String, usize> = BTreeMap::new();
    for node in cluster.session().get_cluster_state().get_nodes_info() {
        if let Some(data_centre) = &node.datacenter {
            *nodes.entry(data_centre.clone()).or_default() += 1;
        }
    }
    let copies: String = nodes
        .iter()
        .map(|(data_centre, nodes)| {
            format!(
                ", {}: {}",
                StringLiteral(data_centre),
                (*nodes).min(COPIES_MAX)
            )
        })
        .collect();
    format!("{{'class': 'NetworkTopologyStrategy'{copies}}}")
}
