//! CREATE INDEX and DROP INDEX: vector indexes, and a word about all the others.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use cql::ast::{CreateIndex, IndexTarget};
use cql::error::CqlError;
use storage::catalog::{Catalog, Column, ColumnKind, Index, Table};

use super::{Applied, cdc, index_options, names};
use crate::clock;
use crate::query::SchemaChangeKind;

/// The class of vector indexes, as `system_schema.indexes` holds it.
const VECTOR_INDEX: &str = "vector_index";

/// The class of full-text indexes, which don't exist yet.
const FULLTEXT_INDEX: &str = "fulltext_index";

/// Cassandra's vector-capable index, by the name of its class in exactly this case.
const SAI_CLASS: &str = "org.apache.cassandra.index.sai.StorageAttachedIndex";

/// The same by its short names, in any case.
const SAI_NAMES: [&str; 2] = ["StorageAttachedIndex", "sai"];

/// The index service takes a row's key apart with one byte for the number of columns.
const MAX_KEY_COLUMNS: usize = 255;

#[derive(Clone, Debug)]
pub(super) struct CreateIndexPlan {
    keyspace: String,
    table: String,
    /// `None`: made from the names of table and column.
    name: Option<String>,
    if_not_exists: bool,
    /// The class was one of SAI's names, which stand for a vector index on vector columns alone.
    is_sai: bool,
    target: IndexTarget,
    options: BTreeMap<String, String>,
}

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
            names::check_index(name)?;
        }
        Ok(CreateIndexPlan {
            keyspace: keyspace.to_owned(),
            table: create.table.name.clone(),
            name: create.name.clone(),
            if_not_exists: create.if_not_exists,
            is_sai,
            target: single_target(&create.targets)?,
            options: create.options.clone(),
        })
    }

    pub fn apply(&self, catalog: &mut Catalog) -> Result<Applied, CqlError> {
        let Some(table) = catalog.table(&self.keyspace, &self.table) else {
            return super::missing_table(catalog, &self.keyspace, &self.table, false);
        };
        super::refuse_log(table)?;
        let column = self.column(table)?;
        check_table(table)?;
        let dimensions = column.cql_type.float_vector_dimensions().unwrap_or(0);
        index_options::check(&self.options, dimensions)?;
        cdc::check_for_new_index(table.cdc.as_ref())?;

        let taken = |name: &str| find(catalog, &self.keyspace, name).is_some();
        let name = match &self.name {
            Some(name) if taken(name) => {
                if self.if_not_exists {
                    return Ok(Applied::Nothing);
                }
                return Err(CqlError::invalid(format!("Index '{name}' already exists")));
            }
            Some(name) => name.clone(),
            None => {
                let default = names::default_index_name(&table.name, &column.name, taken);
                if let Some(existing) = index_on(table, &column.name) {
                    if self.if_not_exists {
                        return Ok(Applied::Nothing);
                    }
                    return Err(CqlError::invalid(format!(
                        "Index {default} is a duplicate of existing index {}",
                        existing.name
                    )));
                }
                default
            }
        };
        let index = Index {
            name: name.clone(),
            target: column.name.clone(),
            column: column.name.clone(),
            options: self.options.clone(),
            class_name: VECTOR_INDEX.to_owned(),
            version: clock::timeuuid(),
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

    /// The column to index, once it is known to be one that can be.
    fn column<'t>(&self, table: &'t Table) -> Result<&'t Column, CqlError> {
        let (IndexTarget::Column(name) | IndexTarget::Collection { column: name, .. }) =
            &self.target
        else {
            return Err(local_form());
        };
        let column = table.column(name).ok_or_else(|| {
            CqlError::invalid(format!("No column definition found for column {name}"))
        })?;
        let is_vector = column.cql_type.float_vector_dimensions().is_some();
        if self.is_sai && !matches!(column.cql_type, cql::types::CqlType::Vector { .. }) {
            return Err(CqlError::invalid(format!(
                "StorageAttachedIndex is only supported on columns of vectors: column {name} is \
                 of type {}",
                column.cql_type
            )));
        }
        if !is_vector || matches!(self.target, IndexTarget::Collection { .. }) {
            return Err(CqlError::invalid(format!(
                "Vector indexes are only supported on columns of vectors of floats (column {name} \
                 is of type {})",
                column.cql_type
            )));
        }
        if column.kind != ColumnKind::Regular {
            let kind = match column.kind {
                ColumnKind::Static => "static",
                _ => "PRIMARY KEY",
            };
            return Err(CqlError::invalid(format!(
                "Vector indexes are not supported on {kind} columns (column {name})"
            )));
        }
        Ok(column)
    }
}

impl DropIndexPlan {
    pub fn apply(&self, catalog: &mut Catalog) -> Result<Applied, CqlError> {
        let Some(table) = find(catalog, &self.keyspace, &self.name) else {
            if self.if_exists {
                return Ok(Applied::Nothing);
            }
            return Err(CqlError::invalid(format!(
                "Index '{}.{}' doesn't exist",
                self.keyspace, self.name
            )));
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

/// Whether the class is one of SAI's names; if not, it is that of vector indexes.
fn is_sai(create: &CreateIndex) -> Result<bool, CqlError> {
    let Some(class) = &create.using else {
        return Err(CqlError::invalid(if create.custom {
            "CUSTOM index requires specifying the index class"
        } else {
            "Secondary indexes are not supported yet: only vector indexes, CREATE CUSTOM INDEX \
             ... USING 'vector_index'"
        }));
    };
    if class.eq_ignore_ascii_case(VECTOR_INDEX) {
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

/// The one target of a global index without columns to filter by.
fn single_target(targets: &[IndexTarget]) -> Result<IndexTarget, CqlError> {
    check_duplicates(targets)?;
    match targets {
        [IndexTarget::LocalKey(_), ..] => Err(local_form()),
        [target] => Ok(target.clone()),
        [] => Err(CqlError::invalid("An index needs a column to index")),
        _ => Err(CqlError::invalid(
            "Vector indexes with filtering columns are not supported yet: name the vector column \
             alone",
        )),
    }
}

fn local_form() -> CqlError {
    CqlError::invalid(
        "Local vector indexes are not supported yet: name the vector column alone, without the \
         partition key before it",
    )
}

fn check_duplicates(targets: &[IndexTarget]) -> Result<(), CqlError> {
    let mut seen = HashSet::new();
    for target in targets {
        let columns = match target {
            IndexTarget::Column(column) | IndexTarget::Collection { column, .. } => {
                std::slice::from_ref(column)
            }
            IndexTarget::LocalKey(columns) => {
                let mut seen = HashSet::new();
                if let Some(column) = columns.iter().find(|column| !seen.insert(*column)) {
                    return Err(CqlError::invalid(format!(
                        "Duplicate column definition in local vector index: {column}"
                    )));
                }
                columns.as_slice()
            }
        };
        for column in columns {
            if !seen.insert(column) {
                return Err(CqlError::invalid(format!(
                    "Duplicate column {column} in index target list"
                )));
            }
        }
    }
    Ok(())
}

fn check_table(table: &Table) -> Result<(), CqlError> {
    let key_columns = table.partition_key().len() + table.clustering_key().len();
    if key_columns > MAX_KEY_COLUMNS {
        return Err(CqlError::invalid(format!(
            "Vector index requires at most {MAX_KEY_COLUMNS} primary key columns, but the table \
             has {key_columns}"
        )));
    }
    Ok(())
}

fn index_on<'t>(table: &'t Table, column: &str) -> Option<&'t Arc<Index>> {
    table.indexes.values().find(|index| index.column == column)
}

/// The table of a keyspace that has an index of a name: names are unique in a keyspace.
fn find<'c>(catalog: &'c Catalog, keyspace: &str, name: &str) -> Option<&'c Arc<Table>> {
    catalog
        .keyspace(keyspace)?
        .tables
        .values()
        .find(|table| table.indexes.contains_key(name))
}
