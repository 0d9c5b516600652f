//! Declarations of system tables: the CQL that defines a table, and the function that makes its
//! rows.

use std::collections::BTreeMap;

use cql::ast::data_type::no_user_types;
use cql::ast::{CreateTable, SortDirection, Statement};
use schema::{Column, ColumnId, ColumnKind, Table, TableId};
use uuid::Uuid;
use value::token::Partitioner;

use super::VirtualTableInputs;
use super::record::NamedValues;

/// A system table.
pub(super) struct VirtualTable {
    /// A `CREATE TABLE` statement with the keyspace in the name, and with no option except the
    /// clustering order.
    pub cql: &'static str,
    /// Makes the rows of the table, at least the wanted ones, in any order.
    pub records: fn(&VirtualTableInputs<'_>) -> Vec<NamedValues>,
}

/// Makes no rows. It is for tables that drivers read, and for which this database has nothing to
/// show.
pub(super) fn none(_: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    Vec::new()
}

impl VirtualTable {
    /// The table in the form of the catalog.
    ///
    /// # Panics
    /// If the CQL is not a valid `CREATE TABLE` statement. This is a bug that shows at every start.
    pub fn table(&self) -> Table {
        let parsed = cql::parser::parse_statement(self.cql)
            .unwrap_or_else(|error| panic!("bug: {error} in {}", self.cql));
        let Statement::CreateTable(create) = parsed.statement else {
            panic!("bug: no CREATE TABLE: {}", self.cql);
        };
        table(create)
    }
}

fn table(create: CreateTable) -> Table {
    let keyspace = create
        .table
        .keyspace
        .clone()
        .expect("bug: a system table without its keyspace");
    let name = create.table.name.clone();
    let columns: Vec<Column> = create
        .columns
        .iter()
        .zip(1..)
        .map(|(column, id)| Column {
            id: ColumnId(id),
            name: column.name.clone(),
            kind: kind(&create, &column.name, column.is_static),
            cql_type: column
                .data_type
                .resolve(&no_user_types)
                .expect("bug: a system table with a wrong type"),
        })
        .collect();
    Table {
        id: TableId(Uuid::new_v5(
            &Uuid::nil(),
            format!("{keyspace}.{name}").as_bytes(),
        )),
        next_column: ColumnId(columns.len() as u32 + 1),
        keyspace,
        name,
        columns,
        dropped_columns: BTreeMap::new(),
        partitioner: Partitioner::Murmur3,
        default_ttl_s: 0,
        row_ttl: None,
        gc_grace_s: 0,
        options: BTreeMap::new(),
        indexes: BTreeMap::new(),
        secondary_indexes: BTreeMap::new(),
        cdc: None,
        log: None,
        log_of: None,
        truncated_at_ms: None,
    }
}

fn kind(create: &CreateTable, name: &str, is_static: bool) -> ColumnKind {
    let position_in = |key: &[String]| key.iter().position(|column| column == name);
    if let Some(position) = position_in(&create.partition_key) {
        ColumnKind::PartitionKey { position }
    } else if let Some(position) = position_in(&create.clustering_key) {
        let descending = create
            .clustering_order
            .iter()
            .any(|(column, direction)| column == name && *direction == SortDirection::Descending);
        ColumnKind::Clustering {
            position,
            descending,
        }
    } else if is_static {
        ColumnKind::Static
    } else {
        ColumnKind::Regular
    }
}
