//! An index that this gateway's catalog defines.

use std::collections::BTreeMap;

use index::target::StoredTarget;
use uuid::Uuid;

/// The definition of an index that an index service builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DefinedIndex {
    /// The keyspace of the table and of the index.
    pub(crate) keyspace: String,
    /// The indexed table.
    pub(crate) table: String,
    /// The name of the index, unique in the keyspace.
    pub(crate) name: String,
    /// The columns that the index is on.
    pub(crate) target: StoredTarget,
    /// The user's own options.
    pub(crate) options: BTreeMap<String, String>,
    /// The version of the index, a timeuuid: of the time of CREATE INDEX, or of the time at which
    /// the index was last started over.
    pub(crate) version: Uuid,
    /// The id of the indexed table. A table that is recreated under the same name has another id.
    pub(crate) table_id: Uuid,
}

impl query::IndexDefinition for DefinedIndex {
    fn version(&self) -> Uuid {
        self.version
    }

    fn local_key(&self) -> &[String] {
        &self.target.local_key
    }

    fn filter_columns(&self) -> &[String] {
        &self.target.filter_columns
    }
}
