//! `DESCRIBE`.

use super::TableName;

/// A `DESCRIBE`, which the server answers itself (since Cassandra 4, and in ScyllaDB).
#[derive(Clone, Debug, PartialEq)]
pub struct Describe {
    /// The thing to describe.
    pub target: DescribeTarget,
    /// Whether `WITH INTERNALS` is written.
    pub internals: bool,
}

/// The thing that a `DESCRIBE` requests.
#[derive(Clone, Debug, PartialEq)]
pub enum DescribeTarget {
    /// `DESCRIBE CLUSTER`.
    Cluster,
    /// `DESCRIBE [FULL] SCHEMA`.
    Schema {
        /// Whether `FULL` is written.
        full: bool,
    },
    /// `DESCRIBE KEYSPACES`.
    Keyspaces,
    /// `DESCRIBE [ONLY] KEYSPACE [name]`.
    Keyspace {
        /// The keyspace; `None` is the keyspace in use.
        name: Option<String>,
        /// Whether `ONLY` is written.
        only: bool,
    },
    /// `DESCRIBE TABLES`.
    Tables,
    /// `DESCRIBE TABLE name`.
    Table(TableName),
    /// `DESCRIBE INDEX name`.
    Index {
        /// The keyspace before the name, if one is written.
        keyspace: Option<String>,
        /// The index.
        name: String,
    },
    /// `DESCRIBE TYPES`.
    Types,
    /// `DESCRIBE TYPE name`.
    Type(TableName),
    /// A function, aggregate or view, or all of a kind. Annulus has none of them.
    Empty {
        /// The words that name the kind, in lower case (`functions`, `materialized view`).
        kind: String,
        /// The requested name, if the statement requests one thing.
        name: Option<TableName>,
    },
    /// `DESCRIBE name`: a keyspace, table, type or index, whichever is found.
    Any(TableName),
}
