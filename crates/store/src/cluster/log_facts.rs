//! Reads facts about a table's log from the schema.

use std::collections::HashMap;
use std::time::Duration;

use uuid::Uuid;

use super::discovery_error::DiscoveryError;
use super::schema_statements::first;
use super::session::DbSession;
use super::statement::IdempotentStatement;
use crate::database::LogFacts;
use crate::identity::TableIdentity;

/// The suffix of a log's name.
const LOG: &str = "_scylla_cdc_log";

/// The time to live of log rows if the schema doesn't give one, seconds.
const TTL_DEFAULT_S: u64 = 86_400;

/// The longest wait for the facts. After that the database counts as unreachable.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Reads the facts about a table's log. `None` if the table has no log.
pub(super) async fn log_facts(
    db: &DbSession,
    table: &TableIdentity,
) -> Result<Option<LogFacts>, DiscoveryError> {
    let facts = async {
        let Some((id, default_ttl_s)) = log_table(db, table).await? else {
            return Ok(None);
        };
        let ttl_s = ttl_s(cdc_ttl_s(db, table).await?, default_ttl_s);
        Ok(Some(LogFacts {
            id,
            ttl_s,
            settled: None,
        }))
    };
    let answer = tokio::time::timeout(ANSWER_WITHIN, facts).await;
    answer.unwrap_or_else(|_| Err(DiscoveryError::Unreachable("no answer".to_owned())))
}

/// The time to live of log rows, seconds. In ScyllaDB the options of the log give it (`cdc_ttl_s`;
/// 0: for ever), and each row carries that TTL. With a gateway the log's own table gives it
/// (`default_ttl_s`; 0: unknown).
fn ttl_s(cdc_ttl_s: Option<u64>, default_ttl_s: Option<i32>) -> u64 {
    let default_ttl_s = default_ttl_s.and_then(|ttl_s| u64::try_from(ttl_s).ok());
    cdc_ttl_s
        .or(default_ttl_s.filter(|ttl_s| *ttl_s > 0))
        .unwrap_or(TTL_DEFAULT_S)
}

/// Reads the id and the `default_time_to_live` of the log's own table. `None` if there is no such
/// table.
async fn log_table(
    db: &DbSession,
    table: &TableIdentity,
) -> Result<Option<(Uuid, Option<i32>)>, DiscoveryError> {
    const LOG_TABLE: &str = "SELECT id, default_time_to_live FROM system_schema.tables \
                             WHERE keyspace_name = ? AND table_name = ?";
    let key = (&table.keyspace, format!("{}{LOG}", table.table));
    let row =
        first::<(Option<Uuid>, Option<i32>)>(db, &IdempotentStatement::new(LOG_TABLE), key).await?;
    Ok(row.and_then(|(id, default_ttl_s)| Some((id?, default_ttl_s))))
}

/// Reads the TTL among the options of a log, seconds. ScyllaDB keeps the options with the log's
/// base table, once they have been set. Cassandra has no such table and refuses the query, which
/// gives `None`.
async fn cdc_ttl_s(db: &DbSession, table: &TableIdentity) -> Result<Option<u64>, DiscoveryError> {
    const OPTIONS: &str =
        "SELECT cdc FROM system_schema.scylla_tables WHERE keyspace_name = ? AND table_name = ?";
    type Row = (Option<HashMap<String, String>>,);
    let key = (&table.keyspace, &table.table);
    match first::<Row>(db, &IdempotentStatement::new(OPTIONS), key).await {
        Ok(row) => Ok(row.and_then(|(options,)| options?.get("ttl")?.parse().ok())),
        Err(DiscoveryError::Refused(_) | DiscoveryError::Malformed(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_itself_how_long_its_rows_live_where_nothing_else_does() {
        assert_eq!(ttl_s(None, Some(7200)), 7200);
        assert_eq!(ttl_s(Some(172_800), Some(7200)), 172_800);
        assert_eq!(ttl_s(Some(0), Some(0)), 0, "for ever");
        for nothing in [None, Some(0)] {
            assert_eq!(ttl_s(None, nothing), TTL_DEFAULT_S);
        }
    }
}
