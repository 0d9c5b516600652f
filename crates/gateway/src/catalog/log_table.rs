//! The log of a table, an ordinary Cassandra table in the format of ScyllaDB's CDC logs.
//!
//! A log holds only keys. Its row is a hint to read the row of that key again, so it need not say
//! what was written.

use std::time::Duration;

use cql::quote::StringLiteral;
use cql::quote::quoted;
use tokio::time::Instant;
use uuid::{Uuid, uuid};

use super::base_table::BaseTable;
use super::cluster::{ClusterError, InternalSession};
use super::one_version::of_one_version;

const SUFFIX: &str = "_scylla_cdc_log";

/// The column that distinguishes a log from other tables.
const STREAM_ID: &str = "cdc$stream_id";

/// The columns of a log that hold no key, with their types.
const COLUMNS: [(&str, &str); 6] = [
    (STREAM_ID, "blob"),
    ("cdc$time", "timeuuid"),
    ("cdc$batch_seq_no", "int"),
    ("cdc$end_of_batch", "boolean"),
    ("cdc$operation", "tinyint"),
    ("cdc$ttl", "bigint"),
];

/// The `gc_grace_seconds` of a log. Its rows expire and are never deleted, so tombstones protect
/// nothing. It is as long as Cassandra keeps hints for nodes that are away.
const GC_GRACE: Duration = Duration::from_secs(3 * 60 * 60);

/// The number of compaction windows in the lifetime of rows. Compaction drops expired rows in whole
/// windows.
const WINDOWS: u64 = 24;

/// The time limit for the nodes to agree on whether a log is there. After that the next round
/// tries.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);

/// The namespace of the ids of logs.
const LOG_IDS: Uuid = uuid!("6f2a5f0e-9a37-4c0b-8a25-6f1b2d6f7d12");

/// The name of the log of a table.
pub(super) fn name_of(table: &str) -> String {
    format!("{table}{SUFFIX}")
}

impl BaseTable {
    /// Whether the table is a log.
    pub(super) fn is_log(&self) -> bool {
        self.target(STREAM_ID).is_some()
    }
}

/// Whether every log has a column of this name. A key column of an indexed table must not have it.
pub(super) fn is_own_column(name: &str) -> bool {
    COLUMNS.iter().any(|(own, _)| *own == name)
}

/// Makes the log of a table, unless it is there. `schema_version` is that of the schema which had
/// no log. The id of the log follows from it and from the table. So two gateways that make the log
/// at the same time give it the same id, where two ids would be a conflict to Cassandra. No id is
/// used twice.
pub(super) async fn create(
    cluster: &InternalSession,
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
    cluster: &InternalSession,
    keyspace: &str,
    table: &str,
) -> Result<bool, ClusterError> {
    let log = name_of(table);
    // A node that has not heard of the log yet would say that it does not exist. Then it would stay
    // for good.
    let there = of_one_version(
        || cluster.agreed_schema_version(),
        || BaseTable::read(cluster, keyspace, &log),
        Instant::now() + SETTLED_WITHIN,
    )
    .await?;
    // Somebody may have made another table of that name.
    Ok(there.is_some_and(|table| table.is_log()))
}

/// Drops the log of a table. It may only be called if the log is there: Cassandra requires the
/// permission to drop a table even if there is none.
pub(super) async fn drop(
    cluster: &InternalSession,
    keyspace: &str,
    table: &str,
) -> Result<(), ClusterError> {
    let log = quoted(&name_of(table));
    let keyspace = quoted(keyspace);
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
        .map(|(name, type_text)| format!("{} {type_text}, ", quoted(name)))
        .collect();
    let comment = format!(
        "CDC log of {}.{} for its vector and full-text indexes",
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
        quoted(&table.keyspace),
        quoted(&log),
        ttl.as_secs(),
        GC_GRACE.as_secs(),
        StringLiteral(&comment),
        Uuid::new_v5(&LOG_IDS, &made_for),
    )
}
