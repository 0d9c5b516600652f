//! A table of the cluster, read from the tables of Cassandra's schema.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use cql::parser::parse_type;
use index::secondary::sai_column;
use index::target::TargetColumn;
use tokio::time::sleep;
use uuid::Uuid;

use super::cluster::{ClusterError, InternalSession};
use super::streams::LogStreams;
use super::table::{LoggedColumn, LoggedColumnKind, LoggedTable};

/// The number of times that a table is read again while it is being made or dropped, and the pause
/// between them.
const TRIES_MAX: usize = 20;
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The options of an index, as Cassandra keeps them.
type IndexOptions = HashMap<String, String>;

/// A table of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BaseTable {
    /// The keyspace of the table.
    pub(super) keyspace: String,
    /// The name of the table, without quotes.
    pub(super) name: String,
    /// The id of the table, as Cassandra gave it.
    pub(super) id: Uuid,
    /// Whether its columns are counters.
    pub(super) counters: bool,
    /// The columns that have an index of Cassandra's own (SAI).
    sai_columns: Vec<String>,
    /// The columns with a mask (`CREATE TABLE t (c text MASKED WITH ...)`).
    masked_columns: Vec<String>,
    /// The columns with the texts of their types. The partition key comes first, then the
    /// clustering key, then all others.
    columns: Vec<(LoggedColumn, String)>,
}

impl BaseTable {
    /// Reads a table; `None` if there is no such table.
    ///
    /// # Errors
    /// The errors of the cluster, and [`ClusterError::Unsettled`] if the table is being made or
    /// dropped and only a part of it can be seen.
    pub(super) async fn read(
        cluster: &InternalSession,
        keyspace: &str,
        name: &str,
    ) -> Result<Option<BaseTable>, ClusterError> {
        const TABLE: &str =
            "SELECT id FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?";
        const COLUMNS: &str = "SELECT column_name, kind, position, type FROM system_schema.columns \
                               WHERE keyspace_name = ? AND table_name = ?";
        const INDEXES: &str = "SELECT options FROM system_schema.indexes \
                               WHERE keyspace_name = ? AND table_name = ?";
        const MASKS: &str = "SELECT column_name FROM system_schema.column_masks \
                             WHERE keyspace_name = ? AND table_name = ?";
        for _ in 0..TRIES_MAX {
            let ids: Vec<(Uuid,)> = cluster.rows(TABLE, (keyspace, name)).await?;
            let Some((id,)) = ids.first().copied() else {
                return Ok(None);
            };
            let columns = cluster.rows(COLUMNS, (keyspace, name)).await?;
            let table = BaseTable::new(keyspace, name, id, columns);
            if table.is_whole() {
                let indexes: Vec<(IndexOptions,)> = cluster.rows(INDEXES, (keyspace, name)).await?;
                let sai_columns = indexes.iter().filter_map(|(options,)| {
                    sai_column(|name| options.get(name).map(String::as_str))
                });
                let masks: Vec<(String,)> = cluster.rows(MASKS, (keyspace, name)).await?;
                return Ok(Some(BaseTable {
                    sai_columns: sai_columns.collect(),
                    masked_columns: masks.into_iter().map(|(column,)| column).collect(),
                    ..table
                }));
            }
            sleep(AGAIN_AFTER).await;
        }
        Err(ClusterError::Unsettled)
    }

    /// Whether the columns of the table are there. A node applies the tables of a schema version
    /// before it reports that version. So a table without columns may be seen even while all nodes
    /// have reported the same one.
    fn is_whole(&self) -> bool {
        self.key().next().is_some()
    }

    /// Makes a table of these columns, each given by its name, kind, position in the key, and type.
    pub(super) fn new(
        keyspace: &str,
        name: &str,
        id: Uuid,
        mut columns: Vec<(String, String, i32, String)>,
    ) -> BaseTable {
        columns.sort_by_key(|(_, kind, position, _)| (kind_of(kind), *position));
        BaseTable {
            keyspace: keyspace.to_owned(),
            name: name.to_owned(),
            id,
            counters: columns.iter().any(|(.., cql_type)| cql_type == "counter"),
            sai_columns: Vec::new(),
            masked_columns: Vec::new(),
            columns: columns.into_iter().map(column).collect(),
        }
    }

    /// The column of this name as the target of an index; `None` if there is no such column.
    pub(super) fn target(&self, name: &str) -> Option<TargetColumn> {
        let (column, type_text) = self
            .columns
            .iter()
            .find(|(column, _)| column.name == name)?;
        Some(TargetColumn {
            type_text: type_text.clone(),
            cql_type: column.cql_type.clone(),
            irregular: match column.kind {
                LoggedColumnKind::Regular => None,
                LoggedColumnKind::Static => Some("static"),
                LoggedColumnKind::PartitionKey | LoggedColumnKind::Clustering => {
                    Some("PRIMARY KEY")
                }
            },
            is_partition_key: column.kind == LoggedColumnKind::PartitionKey,
        })
    }

    /// The columns of the primary key, in their order, with the texts of their types.
    pub(super) fn key(&self) -> impl Iterator<Item = &(LoggedColumn, String)> {
        self.columns.iter().filter(|(column, _)| {
            matches!(
                column.kind,
                LoggedColumnKind::PartitionKey | LoggedColumnKind::Clustering
            )
        })
    }

    /// Returns the table in the form of one whose writes are logged.
    pub(super) fn logged(&self, log_name: String, streams: Arc<LogStreams>) -> LoggedTable {
        let count = |kind| {
            let of_kind = |(column, _): &&(LoggedColumn, String)| column.kind == kind;
            self.columns.iter().filter(of_kind).count()
        };
        LoggedTable {
            keyspace: self.keyspace.clone(),
            name: self.name.clone(),
            id: self.id,
            columns: self
                .columns
                .iter()
                .map(|(column, _)| column.clone())
                .collect(),
            partition_key_count: count(LoggedColumnKind::PartitionKey),
            clustering_key_count: count(LoggedColumnKind::Clustering),
            sai_columns: self.sai_columns.clone(),
            masked_columns: self.masked_columns.clone(),
            log_name,
            streams,
        }
    }
}

fn column((name, kind, _, type_text): (String, String, i32, String)) -> (LoggedColumn, String) {
    let column = LoggedColumn {
        name,
        kind: kind_of(&kind),
        cql_type: parse_type(&type_text).ok(),
    };
    (column, type_text)
}

fn kind_of(kind: &str) -> LoggedColumnKind {
    match kind {
        "partition_key" => LoggedColumnKind::PartitionKey,
        "clustering" => LoggedColumnKind::Clustering,
        "static" => LoggedColumnKind::Static,
        _ => LoggedColumnKind::Regular,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_whose_columns_are_gone_is_not_whole() {
        let table = |columns: &[(&str, &str)]| {
            let columns = columns.iter().map(|(name, kind)| {
                let cql_type = "int".to_owned();
                (name.to_string(), kind.to_string(), 0, cql_type)
            });
            BaseTable::new("k", "t", Uuid::nil(), columns.collect())
        };
        assert!(!table(&[]).is_whole());
        assert!(!table(&[("v", "regular")]).is_whole());
        assert!(table(&[("v", "regular"), ("id", "partition_key")]).is_whole());
    }
}
