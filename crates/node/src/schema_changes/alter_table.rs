//! ALTER TABLE and DROP TABLE.

use std::sync::Arc;

use cql::ast::{AlterTable, AlterTableChange, ColumnDefinition};
use cql::error::CqlError;
use index::target::StoredTarget;
use schema::{
    Catalog, Column, ColumnId, ColumnKind, DroppedColumn, Keyspace, SearchIndexMetadata, Table,
};
use storage::clock::ServerClock;
use value::identifier::Identifier;

use super::column_type::check_column_type;
use super::create_table::{check_column_count, useless_static};
use super::table_options::TableOptions;
use super::{ApplyOutcome, cdc, counters, names, readded_columns, row_ttl, user_type};
use crate::statement::CatalogChangeKind;

/// A prepared ALTER TABLE.
#[derive(Clone, Debug)]
pub(super) struct AlterTablePlan {
    keyspace: String,
    name: String,
    if_exists: bool,
    change: TableAlteration,
}

/// A prepared DROP TABLE.
#[derive(Clone, Debug)]
pub(super) struct DropTablePlan {
    pub keyspace: String,
    pub name: String,
    pub if_exists: bool,
}

/// A change of a table.
#[derive(Clone, Debug)]
enum TableAlteration {
    Add {
        columns: Vec<ColumnDefinition>,
        if_not_exists: bool,
    },
    Drop {
        columns: Vec<String>,
        if_exists: bool,
        timestamp_micros: Option<i64>,
    },
    /// The old names of columns with their new names.
    Rename(Vec<(String, String)>),
    Options(TableOptions),
    /// The column that says when its row expires, or none.
    RowTtl(Option<String>),
}

impl AlterTablePlan {
    /// The keyspace and the name of the table.
    pub fn table(&self) -> (&str, &str) {
        (&self.keyspace, &self.name)
    }

    /// The warnings that options have no effect.
    pub fn warnings(&self) -> Vec<String> {
        match &self.change {
            TableAlteration::Options(options) => options.warnings(&self.keyspace, &self.name),
            _ => Vec::new(),
        }
    }

    pub fn prepare(keyspace: &str, alter: &AlterTable) -> Result<Self, CqlError> {
        let change = match &alter.change {
            AlterTableChange::AddColumns {
                if_not_exists,
                columns,
            } => {
                for column in columns {
                    names::check_column(&column.name)?;
                    row_ttl::check_added(&alter.table.name, column)?;
                }
                TableAlteration::Add {
                    columns: columns.clone(),
                    if_not_exists: *if_not_exists,
                }
            }
            AlterTableChange::DropColumns {
                if_exists,
                columns,
                timestamp,
            } => TableAlteration::Drop {
                columns: columns.clone(),
                if_exists: *if_exists,
                timestamp_micros: *timestamp,
            },
            AlterTableChange::RenameColumns(renames) => {
                for (_, to) in renames {
                    names::check_column(to)?;
                }
                TableAlteration::Rename(renames.clone())
            }
            AlterTableChange::Options(options) => {
                TableAlteration::Options(TableOptions::parse(options)?)
            }
            AlterTableChange::RowTtl(column) => TableAlteration::RowTtl(column.clone()),
            AlterTableChange::ChangeType { column } => {
                return Err(CqlError::invalid(format!(
                    "Altering column types is no longer supported (column {column})"
                )));
            }
        };
        Ok(AlterTablePlan {
            keyspace: keyspace.to_owned(),
            name: alter.table.name.clone(),
            if_exists: alter.if_exists,
            change,
        })
    }

    pub fn apply(
        &self,
        catalog: &mut Catalog,
        clock: &ServerClock,
    ) -> Result<ApplyOutcome, CqlError> {
        let keyspace = catalog.keyspace(&self.keyspace);
        let known = keyspace.and_then(|known| Some((known, known.tables.get(&self.name)?)));
        let Some((keyspace, table)) = known else {
            return super::missing_table(catalog, &self.keyspace, &self.name, self.if_exists);
        };
        super::refuse_log(table)?;
        let before = table.clone();
        let mut table = Table::clone(table);
        match &self.change {
            TableAlteration::Add {
                columns,
                if_not_exists,
            } => {
                for column in columns {
                    add_column(&mut table, keyspace, column, *if_not_exists)?;
                }
            }
            TableAlteration::Drop {
                columns,
                if_exists,
                timestamp_micros,
            } => {
                let dropped_at_micros =
                    timestamp_micros.unwrap_or_else(|| clock.next_write_micros());
                for column in columns {
                    drop_column(&mut table, column, *if_exists, dropped_at_micros)?;
                }
            }
            TableAlteration::Rename(renames) => {
                for (from, to) in renames {
                    rename_column(&mut table, from, to)?;
                }
            }
            TableAlteration::RowTtl(column) => {
                let version = query::statement_clock::timeuuid(clock);
                row_ttl::alter(&mut table, column.as_deref(), version)?;
            }
            TableAlteration::Options(options) => {
                if let Some(new) = &options.cdc {
                    cdc::check_alter(&table, new)?;
                }
                options.apply(&mut table)?;
                if table.is_in_memory() != before.is_in_memory() {
                    return Err(CqlError::invalid(
                        "in_memory can be given by CREATE TABLE alone: make a new table and copy \
                         the rows",
                    ));
                }
                counters::check_table(&table)?;
            }
        }
        if table == *before {
            return Ok(ApplyOutcome::Nothing);
        }
        catalog.put_table(table);
        Ok(ApplyOutcome::table(
            CatalogChangeKind::Updated,
            &self.keyspace,
            &self.name,
        ))
    }
}

impl DropTablePlan {
    pub fn apply(&self, catalog: &mut Catalog) -> Result<ApplyOutcome, CqlError> {
        let Some(table) = catalog.table(&self.keyspace, &self.name) else {
            return super::missing_table(catalog, &self.keyspace, &self.name, self.if_exists);
        };
        super::refuse_log(table)?;
        catalog.remove_table(&self.keyspace, &self.name);
        Ok(ApplyOutcome::table(
            CatalogChangeKind::Dropped,
            &self.keyspace,
            &self.name,
        ))
    }
}

fn add_column(
    table: &mut Table,
    keyspace: &Keyspace,
    definition: &ColumnDefinition,
    if_not_exists: bool,
) -> Result<(), CqlError> {
    let name = &definition.name;
    if table.column(name).is_some() {
        if if_not_exists {
            return Ok(());
        }
        return Err(CqlError::invalid(format!(
            "Column with name '{name}' already exists"
        )));
    }
    let cql_type = user_type::resolve(&definition.data_type, keyspace)?;
    check_column_type(name, &cql_type)?;
    if definition.is_static && table.clustering_key().is_empty() {
        return Err(useless_static());
    }
    if let Some(dropped) = table.dropped_columns.get(name) {
        let kind = |is_static| if is_static { "STATIC" } else { "REGULAR" };
        if dropped.is_static != definition.is_static {
            return Err(CqlError::invalid(format!(
                "Cannot re-add previously dropped column '{name}' of kind {}, incompatible with \
                 previous kind {}",
                kind(definition.is_static),
                kind(dropped.is_static)
            )));
        }
        if !readded_columns::is_read_as(&dropped.cql_type, &cql_type) {
            return Err(CqlError::invalid(format!(
                "Cannot add a column '{name}' of type {cql_type}, incompatible with previously \
                 dropped column '{name}' of type {}",
                dropped.cql_type
            )));
        }
    }
    counters::check_added(table, name, &cql_type)?;
    check_column_count(table.columns.len() + 1)?;
    // The column takes its former id. Cells under this id that are newer than the drop show again.
    let former = table
        .dropped_columns
        .get(name)
        .and_then(|dropped| dropped.id);
    let id = former.unwrap_or_else(|| {
        let id = table.next_column;
        table.next_column = ColumnId(id.0 + 1);
        id
    });
    table.columns.push(Column {
        id,
        name: name.clone(),
        kind: if definition.is_static {
            ColumnKind::Static
        } else {
            ColumnKind::Regular
        },
        cql_type,
    });
    Ok(())
}

fn drop_column(
    table: &mut Table,
    name: &str,
    if_exists: bool,
    dropped_at_micros: i64,
) -> Result<(), CqlError> {
    let Some(column) = table.column(name) else {
        return match if_exists {
            true => Ok(()),
            false => Err(column_not_found(table, name)),
        };
    };
    let is_static = match column.kind {
        ColumnKind::Static => true,
        ColumnKind::Regular => false,
        ColumnKind::PartitionKey { .. } | ColumnKind::Clustering { .. } => {
            return Err(CqlError::invalid(format!(
                "Cannot drop PRIMARY KEY column {name}"
            )));
        }
    };
    if let Some(definition) = column.cql_type.user_type()
        && column.cql_type.is_multi_cell()
    {
        return Err(CqlError::invalid(format!(
            "Cannot drop non-frozen column {name} of user type {}",
            Identifier(&definition.name)
        )));
    }
    row_ttl::check_dropped(table, name)?;
    let dependents = dependent_indexes(table, name);
    if !dependents.is_empty() {
        return Err(CqlError::invalid(format!(
            "Cannot drop column {name} because it has dependent secondary indexes ({dependents})"
        )));
    }
    // An earlier time never replaces that of the last drop, so hidden cells stay hidden.
    let former = table
        .dropped_columns
        .get(name)
        .filter(|former| former.id == Some(column.id))
        .map_or(i64::MIN, |former| former.dropped_at_micros);
    let dropped = DroppedColumn {
        id: Some(column.id),
        // The types may be dropped, too.
        cql_type: column.cql_type.without_user_types(),
        is_static,
        dropped_at_micros: dropped_at_micros.max(former),
    };
    table.dropped_columns.insert(name.to_owned(), dropped);
    table.columns.retain(|column| column.name != name);
    Ok(())
}

fn rename_column(table: &mut Table, from: &str, to: &str) -> Result<(), CqlError> {
    let Some(at) = table.columns.iter().position(|column| column.name == from) else {
        return Err(column_not_found(table, from));
    };
    if !matches!(
        table.columns[at].kind,
        ColumnKind::PartitionKey { .. } | ColumnKind::Clustering { .. }
    ) {
        return Err(CqlError::invalid(format!(
            "Cannot rename non PRIMARY KEY column {from}"
        )));
    }
    if table.column(to).is_some() {
        return Err(CqlError::invalid(format!(
            "Cannot rename column {from} to {to} in table '{}.{}'; another column with that name \
             already exists",
            table.keyspace, table.name
        )));
    }
    if table.dropped_columns.contains_key(to) {
        return Err(CqlError::invalid(format!(
            "Cannot rename column {from} to {to} in table '{}.{}'; a column of that name was \
             dropped before",
            table.keyspace, table.name
        )));
    }
    to.clone_into(&mut table.columns[at].name);
    for index in table.indexes.values_mut() {
        rename_in(index, from, to);
    }
    Ok(())
}

/// Gives a column another name in an index. It is one of the key and filter columns, or the one
/// that a full-text index is on.
fn rename_in(index: &mut Arc<SearchIndexMetadata>, from: &str, to: &str) {
    let mut target = StoredTarget::decode(&index.target);
    let names = target
        .local_key
        .iter_mut()
        .chain([&mut target.column])
        .chain(&mut target.filter_columns);
    let mut is_named = false;
    for name in names.filter(|name| *name == from) {
        to.clone_into(name);
        is_named = true;
    }
    if is_named {
        let index = Arc::make_mut(index);
        index.target = target.encode();
        index.column = target.column;
        index.local_key = target.local_key;
        index.filter_columns = target.filter_columns;
    }
}

/// The names of the indexes that are on a column, separated by commas.
fn dependent_indexes(table: &Table, column: &str) -> String {
    let of_services = table.indexes.values().filter(|index| {
        let others = index.local_key.iter().chain(&index.filter_columns);
        index.column == column || others.into_iter().any(|name| name == column)
    });
    let mut names: Vec<&str> = of_services.map(|index| index.name.as_str()).collect();
    if let Some(column) = table.column(column) {
        let secondary = table.secondary_indexes_on(column.id);
        names.extend(secondary.map(|index| index.name.as_str()));
    }
    names.join(", ")
}

fn column_not_found(table: &Table, name: &str) -> CqlError {
    CqlError::invalid(format!(
        "Column {name} was not found in table '{}.{}'",
        table.keyspace, table.name
    ))
}
