//! A table whose writes are logged, because it has a vector index.
//!
//! It is no `schema::Table`. That is a table which this process keeps, with an id for each column
//! and a type that it can read. This one is what Cassandra says of its own table: a column may have
//! a type that the gateway can't read, and has no id. Nor is its [`LoggedColumnKind`] that of
//! `schema`, as the gateway reads no clustering order.

use std::sync::Arc;

use index::target::is_filter_type;
use uuid::Uuid;
use value::CqlType;

use super::streams::LogStreams;

/// The role of a column in its table. [`LoggedTable::columns`] is in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LoggedColumnKind {
    /// A column of the partition key.
    PartitionKey,
    /// A column of the clustering key.
    Clustering,
    /// A column with one value a partition.
    Static,
    /// Any other column.
    Regular,
}

/// A column of a logged table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoggedColumn {
    /// The name of the column, without quotes, its case as stored.
    pub(crate) name: String,
    /// The role of the column in its table.
    pub(crate) kind: LoggedColumnKind,
    /// The type of the column; `None` for a type that the gateway does not understand, such as a
    /// user-defined type. It is never `None` for a key column.
    pub(crate) cql_type: Option<CqlType>,
}

/// A table whose writes are logged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LoggedTable {
    /// The keyspace of the table and of its log.
    pub(crate) keyspace: String,
    /// The name of the table.
    pub(crate) name: String,
    /// The id of the table.
    pub(crate) id: Uuid,
    /// All columns: the partition key, then the clustering key, then the others. Key columns are in
    /// the order of their key.
    pub(crate) columns: Vec<LoggedColumn>,
    /// The number of columns in the partition key, which are the first of `columns`.
    pub(crate) partition_key_count: usize,
    /// The number of columns in the clustering key, which follow the partition key in `columns`.
    pub(crate) clustering_key_count: usize,
    /// The columns that have an index of Cassandra's own (SAI).
    pub(crate) sai_columns: Vec<String>,
    /// The columns whose values Cassandra masks for some users.
    pub(crate) masked_columns: Vec<String>,
    /// The name of the log table, in the same keyspace.
    pub(crate) log_name: String,
    /// The streams that log rows go to.
    pub(crate) streams: Arc<LogStreams>,
}

impl LoggedTable {
    /// The columns of the partition key, in their order.
    pub(crate) fn partition_key(&self) -> &[LoggedColumn] {
        &self.columns[..self.partition_key_count]
    }

    /// The columns of the clustering key, in their order.
    pub(crate) fn clustering_key(&self) -> &[LoggedColumn] {
        &self.columns[self.partition_key_count..][..self.clustering_key_count]
    }

    /// The columns of the whole primary key, in their order.
    pub(crate) fn primary_key(&self) -> &[LoggedColumn] {
        &self.columns[..self.partition_key_count + self.clustering_key_count]
    }

    /// Whether each vector index keeps a column, named or not, as Cassandra has an index of its own
    /// on it. The index service adds such columns to those that an index names. One with a mask
    /// does not count, as the service may see the mask in place of the values.
    pub(crate) fn is_kept_unnamed(&self, name: &str) -> bool {
        let cql_type = self
            .column(name)
            .and_then(|column| column.cql_type.as_ref());
        let is_among = |columns: &[String]| columns.iter().any(|column| column == name);
        is_among(&self.sai_columns)
            && !is_among(&self.masked_columns)
            && cql_type.is_some_and(is_filter_type)
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<&LoggedColumn> {
        self.columns.iter().find(|column| column.name == name)
    }
}
