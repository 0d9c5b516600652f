//! A table whose writes are logged, because it has a vector index.

use std::sync::Arc;

use cql::types::CqlType;
use uuid::Uuid;

use super::streams::Streams;

/// What a column is to its table. In this order they stand in [`LoggedTable::columns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ColumnKind {
    /// A part of the partition key.
    PartitionKey,
    /// A part of the clustering key.
    Clustering,
    /// One value a partition.
    Static,
    /// Anything else.
    Regular,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    /// As the database sees it: case preserved, without quotes.
    pub(crate) name: String,
    /// What it is to its table.
    pub(crate) kind: ColumnKind,
    /// Its type; `None` for one that is not understood here (a user-defined type). Never `None` for a key column.
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
    /// All columns: first the partition key, then the clustering key, both in the order of the key, then the others.
    pub(crate) columns: Vec<Column>,
    /// How many of `columns` are the partition key.
    pub(crate) partition_key_count: usize,
    /// How many of `columns` after those are the clustering key.
    pub(crate) clustering_key_count: usize,
    /// The name of the log table, in the same keyspace.
    pub(crate) log_name: String,
    /// Where log rows go.
    pub(crate) streams: Arc<Streams>,
}

impl LoggedTable {
    /// The columns of the partition key, in their order.
    pub(crate) fn partition_key(&self) -> &[Column] {
        &self.columns[..self.partition_key_count]
    }

    /// The columns of the clustering key, in their order.
    pub(crate) fn clustering_key(&self) -> &[Column] {
        &self.columns[self.partition_key_count..][..self.clustering_key_count]
    }

    /// The columns of the whole primary key, in their order.
    pub(crate) fn primary_key(&self) -> &[Column] {
        &self.columns[..self.partition_key_count + self.clustering_key_count]
    }

    /// A column by its name.
    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }
}
