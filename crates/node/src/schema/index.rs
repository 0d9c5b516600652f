//! CREATE INDEX and DROP INDEX. Only vector indexes can be created; all other kinds are refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use cql::ast::CreateIndex;
use cql::error::CqlError;
use index::definition::{self, NewName};
use index::options;
use index::target::{StoredTarget, TargetColumn};
use query::clock;
use schema::{Catalog, ColumnKind, Index, Table};
use storage::clock::ServerClock;

use super::{Applied, cdc};
use crate::answer::SchemaChangeKind;

/// The class of full-text indexes, which are not supported yet.
const FULLTEXT_INDEX: &str = "fulltext_index";

/// The class of Cassandra's SAI index, which can index vectors. It is recognised in exactly this
/// case.
const SAI_CLASS: &str = "org.apache.cassandra.index.sai.StorageAttachedIndex";

/// The short names of Cassandra's SAI index. They are recognised in any case.
const SAI_NAMES: [&str; 2] = ["StorageAttachedIndex", "sai"];

/// A prepared CREATE INDEX.
#[derive(Clone, Debug)]
pub(super) struct CreateIndexPlan {
    keyspace: String,
    table: String,
    /// The name of the index. If it is `None`, the name is made from the names of table and column.
    name: Option<String>,
    if_not_exists: bool,
    /// Whether the class is one of SAI's names. These are accepted for vector columns only.
    is_sai: bool,
    target: StoredTarget,
    options: BTreeMap<String, String>,
}

/// A prepared DROP INDEX.
#[derive(Clone, Debug)]
pub(super) struct DropIndexPlan {
    pub keyspace: String,
    pub name: String,
    pub if_exists: bool,
}

impl CreateIndexPlan {
    pub fn prepare(keyspace: &str, create: &CreateIndex) -> Result<Self, CqlError> {
        let is_sai = is_sai(create)?;
        if let Some(name) = &create.name {
            definition::check_name(name)?;
        }
        Ok(CreateIndexPlan {
            keyspace: keyspace.to_owned(),
            table: create.table.name.clone(),
            name: create.name.clone(),
            if_not_exists: create.if_not_exists,
            is_sai,
            target: StoredTarget::of(&create.targets)?,
            options: create.options.clone(),
        })
    }

    pub fn apply(&self, catalog: &mut Catalog, clock: &ServerClock) -> Result<Applied, CqlError> {
        let Some(table) = catalog.table(&self.keyspace, &self.table) else {
            return super::missing_table(catalog, &self.keyspace, &self.table, false);
        };
        super::refuse_log(table)?;
        let described = |name: &str| {
            let column = table.column(name)?;
            let irregular = match column.kind {
                ColumnKind::Regular => None,
                ColumnKind::Static => Some("static"),
                _ => Some("PRIMARY KEY"),
            };
            Some(TargetColumn {
                type_text: column.cql_type.to_string(),
                cql_type: Some(column.cql_type.clone()),
                irregular,
            })
        };
        let dimensions = self.target.check(self.is_sai, described)?;
        definition::check_key_columns(table.partition_key().len() + table.clustering_key().len())?;
        options::check(&self.options, dimensions)?;
        cdc::check_for_new_index(table.cdc.as_ref())?;

        let new_name = definition::new_name(
            self.name.as_deref(),
            self.if_not_exists,
            (&table.name, &self.target.column),
            |name| find(catalog, &self.keyspace, name).is_some(),
            alike(table, &self.target).map(|index| index.name.as_str()),
        )?;
        let NewName::Name(name) = new_name else {
            return Ok(Applied::Nothing);
        };
        let index = Index {
            name: name.clone(),
            target: self.target.encode(),
            column: self.target.column.clone(),
            local_key: self.target.local_key.clone(),
            filter_columns: self.target.filter_columns.clone(),
            options: self.options.clone(),
            class_name: definition::CLASS.to_owned(),
            version: clock::timeuuid(clock),
        };
        let mut table = Table::clone(table);
        table.indexes.insert(name, Arc::new(index));
        catalog.put_table(table);
        Ok(Applied::table(
            SchemaChangeKind::Updated,
            &self.keyspace,
            &self.table,
        ))
    }
}

impl DropIndexPlan {
    pub fn apply(&self, catalog: &mut Catalog) -> Result<Applied, CqlError> {
        let Some(table) = find(catalog, &self.keyspace, &self.name) else {
            if self.if_exists {
                return Ok(Applied::Nothing);
            }
            return Err(definition::missing(&self.keyspace, &self.name));
        };
        let mut table = Table::clone(table);
        table.indexes.remove(&self.name);
        let name = table.name.clone();
        catalog.put_table(table);
        Ok(Applied::table(
            SchemaChangeKind::Updated,
            &self.keyspace,
            &name,
        ))
    }
}

/// Whether the class is one of SAI's names. If it is not, it is the class of vector indexes; any
/// other class is an error.
fn is_sai(create: &CreateIndex) -> Result<bool, CqlError> {
    let Some(class) = &create.using else {
        return Err(CqlError::invalid(if create.custom {
            "CUSTOM index requires specifying the index class"
        } else {
            "Secondary indexes are not supported yet: only vector indexes, CREATE CUSTOM INDEX \
             ... USING 'vector_index'"
        }));
    };
    if definition::is_vector_index(create) {
        Ok(false)
    } else if class == SAI_CLASS
        || SAI_NAMES
            .iter()
            .any(|name| name.eq_ignore_ascii_case(class))
    {
        Ok(true)
    } else if class.eq_ignore_ascii_case(FULLTEXT_INDEX) {
        Err(CqlError::invalid(
            "Full-text indexes (fulltext_index) are not supported yet",
        ))
    } else {
        Err(CqlError::invalid(format!(
            "Non-supported custom class '{class}' provided: use 'vector_index'"
        )))
    }
}

/// An index on the same column, with the same local key or also without one.
fn alike<'t>(table: &'t Table, target: &StoredTarget) -> Option<&'t Arc<Index>> {
    let mut indexes = table.indexes.values();
    indexes.find(|index| index.column == target.column && index.local_key == target.local_key)
}

/// Finds the table that has an index of this name. An index name is unique in its keyspace.
fn find<'c>(catalog: &'c Catalog, keyspace: &str, name: &str) -> Option<&'c Arc<Table>> {
    catalog
        .keyspace(keyspace)?
        .tables
        .values()
        .find(|table| table.indexes.contains_key(name))
}
