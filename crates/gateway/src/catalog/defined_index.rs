//! An index that this gateway's catalog defines.

use std::collections::BTreeMap;

use index::SearchClass;
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
    /// The class, as `system_schema.indexes` shows it. It may be one that only newer gateways know.
    pub(crate) class_name: String,
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

impl DefinedIndex {
    /// The class of the index; `None` if only newer gateways know it. They made the index, and its
    /// table's writes are logged as for any other.
    pub(crate) fn class(&self) -> Option<SearchClass> {
        SearchClass::of(&self.class_name)
    }

    /// The word for an index of the class, as messages have it within a sentence.
    pub(crate) fn noun(&self) -> &'static str {
        self.class().map_or("index", SearchClass::noun)
    }
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
