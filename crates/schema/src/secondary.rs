//! Secondary indexes: those that find rows by the value of a column.
//!
//! The entries of such an index are derived rows of the storage, which lie beside the table's rows
//! and commit with them. An index on vectors is no secondary index but an [`crate::Index`].

use std::collections::BTreeMap;

use index::target::is_filter_type;
use index::{Analysis, IndexedPart};
use uuid::Uuid;

use crate::{Column, ColumnId, ColumnKind, Table};

/// A secondary index on a column.
#[derive(Clone, Debug, PartialEq)]
pub struct SecondaryIndex {
    /// The name.
    pub name: String,
    /// The column that is indexed.
    pub column: ColumnId,
    /// The part of the column's value that is indexed.
    pub part: IndexedPart,
    /// The class of the index, as the user wrote it; `None` for an index without a class.
    pub class_name: Option<String>,
    /// The options that the user gave in `WITH OPTIONS`.
    pub options: BTreeMap<String, String>,
    /// A timeuuid that `CREATE INDEX` makes: an index made again under the same name gets another.
    /// The entries lie under it.
    pub version: Uuid,
}

impl SecondaryIndex {
    /// The target as CREATE INDEX and `options['target']` of `system_schema.indexes` have it.
    pub fn target(&self, table: &Table) -> String {
        let column = table.column_by_id(self.column);
        let name = column.map_or("", |column| &column.name);
        self.part.target(name)
    }

    /// Whether the index has a class, Cassandra's SAI. It serves other relations than one without,
    /// and works together with the others of its class.
    pub fn is_storage_attached(&self) -> bool {
        self.class_name.is_some()
    }
}

impl Table {
    /// The columns outside the primary key whose values an index on vectors keeps beside the
    /// vectors as if it named them, as they have an index of their own. Those whose texts an option
    /// makes alike are not among them: by the values themselves a search would miss some.
    pub fn columns_with_an_index(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| {
            let is_key = !matches!(column.kind, ColumnKind::Regular | ColumnKind::Static);
            let mut indexes = self.secondary_indexes_on(column.id);
            !is_key
                && is_filter_type(&column.cql_type)
                && indexes.any(|index| Analysis::of(&index.options).is_plain())
        })
    }

    /// The secondary indexes on a column.
    pub fn secondary_indexes_on(&self, column: ColumnId) -> impl Iterator<Item = &SecondaryIndex> {
        let indexes = self.secondary_indexes.values();
        indexes
            .map(|index| &**index)
            .filter(move |index| index.column == column)
    }
}
