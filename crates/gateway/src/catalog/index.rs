//! A vector index.

use std::collections::BTreeMap;

use uuid::Uuid;

/// The definition of a vector index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VectorIndex {
    /// The keyspace of the table and of the index.
    pub(crate) keyspace: String,
    /// The indexed table.
    pub(crate) table: String,
    /// Unique in the keyspace.
    pub(crate) name: String,
    /// The indexed column.
    pub(crate) column: String,
    /// `options['target']` of `system_schema.indexes`: the column's name.
    pub(crate) target: String,
    /// The user's own options.
    pub(crate) options: BTreeMap<String, String>,
    /// A timeuuid of the time of CREATE INDEX.
    pub(crate) version: Uuid,
    /// The id of the table that it was made on: a table that is made anew under the same name has another.
    pub(crate) table_id: Uuid,
}
