//! `system_virtual_schema`: the keyspace in which drivers of Cassandra 4 and later look for tables
//! without storage. It lists itself and `system_views`, and `system_schema` lists all others.

use std::sync::Arc;

use schema::Table;

use super::definition::VirtualTable;
use super::record::{NamedValues, record, text};
use super::schema_tables::column_record;
use super::{VIRTUAL, VirtualTableInputs};

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable {
        cql: "CREATE TABLE system_virtual_schema.keyspaces (keyspace_name text PRIMARY KEY)",
        records: keyspaces,
    },
    VirtualTable {
        cql: "CREATE TABLE system_virtual_schema.tables (
            keyspace_name text,
            table_name text,
            comment text,
            PRIMARY KEY (keyspace_name, table_name))",
        records: tables,
    },
    VirtualTable {
        cql: "CREATE TABLE system_virtual_schema.columns (
            keyspace_name text,
            table_name text,
            column_name text,
            clustering_order text,
            column_name_bytes blob,
            kind text,
            position int,
            type text,
            PRIMARY KEY (keyspace_name, table_name, column_name))",
        records: columns,
    },
];

fn keyspaces(_: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    let keyspaces = VIRTUAL.into_iter();
    keyspaces
        .map(|name| record([("keyspace_name", text(name))]))
        .collect()
}

/// The tables without storage.
fn listed<'a>(source: &'a VirtualTableInputs<'_>) -> impl Iterator<Item = &'a Arc<Table>> {
    let keyspaces = VIRTUAL.into_iter();
    keyspaces.flat_map(|name| source.system.keyspaces[name].tables.values())
}

fn tables(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    listed(source)
        .map(|table| {
            record([
                ("keyspace_name", text(&table.keyspace)),
                ("table_name", text(&table.name)),
                ("comment", text("")),
            ])
        })
        .collect()
}

fn columns(source: &VirtualTableInputs<'_>) -> Vec<NamedValues> {
    listed(source)
        .flat_map(|table| {
            table
                .columns
                .iter()
                .map(|column| column_record(table, column))
        })
        .collect()
}
