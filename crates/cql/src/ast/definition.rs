//! Definitions of keyspaces, tables and indexes as data.

use std::collections::BTreeMap;

use super::{DataType, TableName};

/// The value in `WITH name = value`.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// A string, number, boolean or bare word, as text without quotes.
    Scalar(String),
    /// `{'k': 'v', ...}`, in the order written. Keys and values are texts without quotes.
    Map(Vec<(String, String)>),
}

/// A `CREATE KEYSPACE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateKeyspace {
    /// The keyspace.
    pub name: String,
    /// Whether `IF NOT EXISTS` is written.
    pub if_not_exists: bool,
    /// The options after `WITH`, by name, in the order written; empty without a `WITH`.
    pub options: Vec<(String, OptionValue)>,
}

/// A `CREATE TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// The table.
    pub table: TableName,
    /// Whether `IF NOT EXISTS` is written.
    pub if_not_exists: bool,
    /// The columns in the order written.
    pub columns: Vec<ColumnDefinition>,
    /// The columns of the partition key, in key order. Empty if the statement names no primary key,
    /// which the planner reports.
    pub partition_key: Vec<String>,
    /// The clustering columns, in key order.
    pub clustering_key: Vec<String>,
    /// `WITH CLUSTERING ORDER BY (c DESC)`.
    pub clustering_order: Vec<(String, SortDirection)>,
    /// Whether `WITH COMPACT STORAGE` is written.
    pub compact_storage: bool,
    /// The further options after `WITH`, by name, in the order written.
    pub options: Vec<(String, OptionValue)>,
    /// `WITH ID = ...`.
    pub id: Option<uuid::Uuid>,
}

/// The direction in which a clustering column is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortDirection {
    /// `ASC`, the default.
    Ascending,
    /// `DESC`.
    Descending,
}

/// `name type [STATIC] [TTL]`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// The column.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// Whether `STATIC` is written.
    pub is_static: bool,
    /// Whether `TTL` is written: the value of the column says when its row expires.
    pub is_row_ttl: bool,
}

/// An `ALTER TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// The table.
    pub table: TableName,
    /// Whether `IF EXISTS` is written after `ALTER TABLE`.
    pub if_exists: bool,
    /// The change to the table.
    pub change: AlterTableChange,
}

/// The change that an `ALTER TABLE` makes.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterTableChange {
    /// `ADD [IF NOT EXISTS] a int, b text`.
    AddColumns {
        /// Whether `IF NOT EXISTS` is written.
        if_not_exists: bool,
        /// The new columns.
        columns: Vec<ColumnDefinition>,
    },
    /// `DROP [IF EXISTS] a, b [USING TIMESTAMP ..]`.
    DropColumns {
        /// Whether `IF EXISTS` is written after `DROP`.
        if_exists: bool,
        /// The columns that are dropped.
        columns: Vec<String>,
        /// `USING TIMESTAMP`, in microseconds.
        timestamp: Option<i64>,
    },
    /// `RENAME a TO b AND ..`: old and new names.
    RenameColumns(Vec<(String, String)>),
    /// `WITH ..`: options by name, in the order written.
    Options(Vec<(String, OptionValue)>),
    /// `TTL c`, of which the value says when its row expires, or `TTL NULL`.
    RowTtl(Option<String>),
    /// `ALTER c TYPE t`, which no current database allows.
    ChangeType {
        /// The column.
        column: String,
    },
}

/// A `CREATE [CUSTOM] INDEX`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    /// Whether the word `CUSTOM` is written.
    pub custom: bool,
    /// Whether `IF NOT EXISTS` is written.
    pub if_not_exists: bool,
    /// The name of the index, if one is written.
    pub name: Option<String>,
    /// The table after `ON`.
    pub table: TableName,
    /// The entries in parentheses after the table.
    pub targets: Vec<IndexTarget>,
    /// The class of the index in `USING '...'`, as written.
    pub using: Option<String>,
    /// `WITH OPTIONS = {...}`.
    pub options: BTreeMap<String, String>,
    /// The other options after `WITH`, by name, in the order written.
    pub properties: Vec<(String, OptionValue)>,
}

/// One entry of the list in parentheses of `CREATE INDEX ... ON t (...)`.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexTarget {
    /// A column.
    Column(String),
    /// `(p1, p2)`: the partition key of a local index.
    LocalKey(Vec<String>),
    /// `keys(c)`, `values(c)`, `entries(c)` or `full(c)`.
    Collection {
        /// The word before the parenthesis, in lower case: `keys`, `values`, `entries`, `full`.
        part: String,
        /// The column.
        column: String,
    },
}

/// A kind of thing that Annulus has none of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are the words of CQL")]
pub enum AbsentKind {
    Function,
    Aggregate,
    Trigger,
    MaterializedView,
}
