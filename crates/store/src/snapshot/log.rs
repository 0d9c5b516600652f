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
            let (id, default_ttl_s) = log_table(session, table).await.unwrap_or_default();
            LogFacts {
                id,
                ttl_s: ttl_s(cdc_ttl_s(session, table).await, default_ttl_s),
            }
        };
        tokio::time::timeout(ANSWER_WITHIN, facts)
            .await
            .unwrap_or(LogFacts {
                id: None,
                ttl_s: TTL_DEFAULT_S,
            })
    }
}

/// How long log rows live: `cdc_ttl_s` by the options of a log in ScyllaDB, which gives each row its time (0: for
/// ever); `default_ttl_s` by those of the table that the log is, as behind a gateway (0: they don't say).
fn ttl_s(cdc_ttl_s: Option<u64>, default_ttl_s: Option<i32>) -> u64 {
    let default_ttl_s = default_ttl_s.and_then(|ttl_s| u64::try_from(ttl_s).ok());
    cdc_ttl_s
        .or(default_ttl_s.filter(|ttl_s| *ttl_s > 0))
        .unwrap_or(TTL_DEFAULT_S)
}

/// The id of the table that is the log, and its `default_time_to_live`.
async fn log_table(
    session: &Session,
    table: &TableIdentity,
) -> Option<(Option<Uuid>, Option<i32>)> {
    const LOG_TABLE: &str = "SELECT id, default_time_to_live FROM system_schema.tables \
                             WHERE keyspace_name = ? AND table_name = ?";
    let log = format!("{}{LOG}", table.table);
    let answer = session
        .query_unpaged(LOG_TABLE, (&table.keyspace, log))
        .await;
    let rows = answer.ok()?.into_rows_result().ok()?;
    rows.maybe_first_row().ok()?
}

/// ScyllaDB keeps the options of a log with its table, once they have been set. Cassandra has no such table.
async fn cdc_ttl_s(session: &Session, table: &TableIdentity) -> Option<u64> {
    const OPTIONS: &str =
        "SELECT cdc FROM system_schema.scylla_tables WHERE keyspace_name = ? AND table_name = ?";
    let key = (&table.keyspace, &table.table);
    let answer = session.query_unpaged(OPTIONS, key).await;
    let rows = answer.ok()?.into_rows_result().ok()?;
    let options = rows.maybe_first_row::<(Option<HashMap<String, String>>,)>();
    options.ok()??.0?.get("ttl")?.parse().ok()
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
