//! Secondary indexes: those that find rows by the value of a column.
//!
//! The entries of such an index are derived rows of the storage, which are stored with the table's
//! rows and commit with them. An index on vectors, or a full-text index, is no secondary index but
//! a [`crate::SearchIndexMetadata`].

use std::collections::BTreeMap;

use index::target::{is_filter_type, local_list, local_target};
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
    /// Whether the index is local: it finds rows within a partition that the query names, and
    /// serves no other query.
    pub is_local: bool,
    /// The class of the index, as the user wrote it; `None` for an index without a class.
    pub class_name: Option<String>,
    /// The options that the user gave in `WITH OPTIONS`.
    pub options: BTreeMap<String, String>,
    /// A timeuuid that `CREATE INDEX` makes: an index made again under the same name gets another.
    /// The entries are stored under it.
    pub version: Uuid,
}

impl SecondaryIndex {
    /// The target as `options['target']` of `system_schema.indexes` has it: that of a local index
    /// is a JSON object, as in ScyllaDB.
    pub fn target(&self, table: &Table) -> String {
        let name = self.column_name(table);
        if !self.is_local {
            return self.part.target(name);
        }
        let key = table.partition_key().into_iter();
        let key: Vec<&str> = key.map(|column| &*column.name).collect();
        match self.part {
            IndexedPart::Value => local_target(&key, name),
            part => local_target(&key, &part.target(name)),
        }
    }

    /// The list in the parentheses of CREATE INDEX.
    pub fn target_list(&self, table: &Table) -> String {
        let target = self.part.target(self.column_name(table));
        if !self.is_local {
            return target;
        }
        let key = table.partition_key().into_iter();
        let key: Vec<&str> = key.map(|column| &*column.name).collect();
        local_list(&key, &target)
    }

    fn column_name<'t>(&self, table: &'t Table) -> &'t str {
        let column = table.column_by_id(self.column);
        column.map_or("", |column| &column.name)
    }

    /// Whether the index has a class, Cassandra's SAI. It serves other relations than one without,
    /// and works together with the others of its class.
    pub fn is_storage_attached(&self) -> bool {
        self.class_name.is_some()
    }
}

impl Table {
    /// The columns outside the primary key whose values an index on vectors stores with the vectors
    /// as if it named them, as they have an index of their own. Those whose texts an option makes
    /// alike are not among them: by the values themselves a search would miss some. Nor are those
    /// with only local indexes, which serve no query of the whole table.
    pub fn columns_with_an_index(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| {
            let is_key = !matches!(column.kind, ColumnKind::Regular | ColumnKind::Static);
            let mut indexes = self.secondary_indexes_on(column.id);
            !is_key
                && is_filter_type(&column.cql_type)
                && indexes.any(|index| !index.is_local && Analysis::of(&index.options).is_plain())
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
