//! What the schema says of a table's log, as far as a snapshot depends on it.

use std::collections::HashMap;
use std::time::Duration;

use scylla::client::session::Session;
use uuid::Uuid;

use crate::identity::TableIdentity;

/// The suffix of a log's name.
const LOG: &str = "_scylla_cdc_log";

/// How long log rows live unless the table says otherwise, seconds.
const TTL_DEFAULT_S: u64 = 86_400;

/// An answer that takes longer is none.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Facts about a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFacts {
    /// The id of the table that is the log: another one after it was dropped and made again.
    pub id: Option<Uuid>,
    /// How long its rows live, seconds; 0: for ever.
    pub ttl_s: u64,
}

impl LogFacts {
    /// Asks the database. What it doesn't say is the default.
    pub async fn of(session: &Session, table: &TableIdentity) -> LogFacts {
        let facts = async {
            let id = log_id(session, table).await;
            let ttl_s = ttl_s(session, table).await.unwrap_or(TTL_DEFAULT_S);
            LogFacts { id, ttl_s }
        };
        tokio::time::timeout(ANSWER_WITHIN, facts)
            .await
            .unwrap_or(LogFacts {
                id: None,
                ttl_s: TTL_DEFAULT_S,
            })
    }
}

async fn log_id(session: &Session, table: &TableIdentity) -> Option<Uuid> {
    const ID: &str =
        "SELECT id FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";
    let log = format!("{}{LOG}", table.table);
    let answer = session.query_unpaged(ID, (&table.keyspace, log)).await;
    let rows = answer.ok()?.into_rows_result().ok()?;
    rows.maybe_first_row::<(Option<Uuid>,)>().ok()??.0
}

/// ScyllaDB keeps the options of a log with its table, once they have been set.
async fn ttl_s(session: &Session, table: &TableIdentity) -> Option<u64> {
    const OPTIONS: &str =
        "SELECT cdc FROM system_schema.scylla_tables WHERE keyspace_name = ? AND table_name = ?";
    let key = (&table.keyspace, &table.table);
    let answer = session.query_unpaged(OPTIONS, key).await;
    let rows = answer.ok()?.into_rows_result().ok()?;
    let options = rows.maybe_first_row::<(Option<HashMap<String, String>>,)>();
    options.ok()??.0?.get("ttl")?.parse().ok()
}
