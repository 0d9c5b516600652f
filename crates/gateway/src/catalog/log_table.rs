//! The log of a table: an ordinary Cassandra table in the format of ScyllaDB's CDC logs.
//!
//! It holds keys alone. A log row is a hint to read the row of its key again, so it need not say what was written.

use std::time::Duration;

use cql::quote::Quoted;
use tokio::time::Instant;
use uuid::{Uuid, uuid};

use super::base_table::BaseTable;
use super::cluster::{Cluster, ClusterError};
use super::one_version::of_one_version;

const SUFFIX: &str = "_scylla_cdc_log";

/// A column that no other table has.
const STREAM_ID: &str = "cdc$stream_id";

/// The columns of a log beside the keys, with their types.
const COLUMNS: [(&str, &str); 6] = [
    (STREAM_ID, "blob"),
    ("cdc$time", "timeuuid"),
    ("cdc$batch_seq_no", "int"),
    ("cdc$end_of_batch", "boolean"),
    ("cdc$operation", "tinyint"),
    ("cdc$ttl", "bigint"),
];

/// Rows expire and are never deleted, so tombstones protect nothing; this is as long as hints are kept.
const GC_GRACE: Duration = Duration::from_secs(3 * 60 * 60);

/// Compaction drops what has expired in whole windows; about so many make up the time that rows are kept.
const WINDOWS: u64 = 24;

/// How long to wait until the nodes agree on whether a log is there; then the next round tries.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);

/// From what a log is made for to its id.
const LOG_IDS: Uuid = uuid!("6f2a5f0e-9a37-4c0b-8a25-6f1b2d6f7d12");

/// The name of the log of a table.
pub(super) fn name_of(table: &str) -> String {
    format!("{table}{SUFFIX}")
}

impl BaseTable {
    /// Whether it is a log.
    pub(super) fn is_log(&self) -> bool {
        self.target(STREAM_ID).is_some()
    }
}

/// Whether every log has a column of this name, so that no key column may have it.
pub(super) fn is_own_column(name: &str) -> bool {
    COLUMNS.iter().any(|(own, _)| *own == name)
}

/// Makes the log of a table unless it is there. Its id follows from the table and from `schema_version`, that of the schema
/// which had no log: two gateways that make it at the same time make the same one, where two ids would be a
/// conflict to Cassandra, and no id is used twice.
pub(super) async fn create(
    cluster: &Cluster,
    table: &BaseTable,
    schema_version: Uuid,
    ttl: Duration,
) -> Result<(), ClusterError> {
    cluster
        .change_schema(&create_statement(table, schema_version, ttl))
        .await
}

/// Whether the log of a table is there.
pub(super) async fn is_there(
    cluster: &Cluster,
    keyspace: &str,
    table: &str,
) -> Result<bool, ClusterError> {
    let log = name_of(table);
    // A node that has not heard of it would say that it is gone, and it would stay.
    let there = of_one_version(
        || cluster.agreed_schema_version(),
        || BaseTable::read(cluster, keyspace, &log),
        Instant::now() + SETTLED_WITHIN,
    )
    .await?;
    // Somebody may have put another table in its place.
    Ok(there.is_some_and(|table| table.is_log()))
}

/// Drops the log of a table. Not to be called if it is not there: Cassandra asks for the right to drop a table even then.
pub(super) async fn drop(
    cluster: &Cluster,
    keyspace: &str,
    table: &str,
) -> Result<(), ClusterError> {
    let log = super::quoted(&name_of(table));
    let keyspace = super::quoted(keyspace);
    cluster
        .change_schema(&format!("DROP TABLE IF EXISTS {keyspace}.{log}"))
        .await
}

fn create_statement(table: &BaseTable, schema_version: Uuid, ttl: Duration) -> String {
    let made_for = [table.id.into_bytes(), schema_version.into_bytes()].concat();
    let log = name_of(&table.name);
    let own = COLUMNS.into_iter();
    let keys = table.key();
    let keys = keys.map(|(column, type_text)| (column.name.as_str(), type_text.as_str()));
    let columns: String = own
        .chain(keys)
        .map(|(name, type_text)| format!("{} {type_text}, ", super::quoted(name)))
        .collect();
    let comment = format!(
        "CDC log of {}.{} for its vector indexes",
        table.keyspace, table.name
    );
    let window_minutes = (ttl.as_secs() / 60 / WINDOWS).max(1);
    format!(
        "CREATE TABLE IF NOT EXISTS {}.{} ({columns}PRIMARY KEY (\"cdc$stream_id\", \"cdc$time\", \"cdc$batch_seq_no\")) \
         WITH default_time_to_live = {} AND gc_grace_seconds = {} AND comment = {} \
         AND caching = {{'keys': 'NONE', 'rows_per_partition': 'NONE'}} \
         AND compaction = {{'class': 'TimeWindowCompactionStrategy', \
         'compaction_window_unit': 'MINUTES', 'compaction_window_size': '{window_minutes}'}} \
         AND id = '{}'",
        super::quoted(&table.keyspace),
        super::quoted(&log),
        ttl.as_secs(),
        GC_GRACE.as_secs(),
        Quoted(&comment),
        Uuid::new_v5(&LOG_IDS, &made_for),
    )
}
