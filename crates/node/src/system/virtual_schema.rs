//! `system_virtual_schema`: the keyspace in which drivers of Cassandra 4 and later look for tables
//! without storage. It lists only itself, since `system_schema` lists all others.

use super::definition::Declaration;
use super::record::{Record, record, text};
use super::schema::column_record;
use super::{Source, VIRTUAL_SCHEMA};

pub(super) const TABLES: &[Declaration] = &[
    Declaration {
        cql: "CREATE TABLE system_virtual_schema.keyspaces (keyspace_name text PRIMARY KEY)",
        records: keyspaces,
    },
    Declaration {
        cql: "CREATE TABLE system_virtual_schema.tables (
            keyspace_name text,
            table_name text,
            comment text,
            PRIMARY KEY (keyspace_name, table_name))",
        records: tables,
    },
    Declaration {
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

fn keyspaces(_: &Source<'_>) -> Vec<Record> {
    vec![record([("keyspace_name", text(VIRTUAL_SCHEMA))])]
}

fn tables(source: &Source<'_>) -> Vec<Record> {
    let tables = source.system.keyspaces[VIRTUAL_SCHEMA].tables.values();
    tables
        .map(|table| {
            record([
                ("keyspace_name", text(&table.keyspace)),
                ("table_name", text(&table.name)),
                ("comment", text("")),
            ])
        })
        .collect()
}

fn columns(source: &Source<'_>) -> Vec<Record> {
    let tables = source.system.keyspaces[VIRTUAL_SCHEMA].tables.values();
    tables
        .flat_map(|table| {
            table
                .columns
                .iter()
                .map(|column| column_record(table, column))
        })
        .collect()
}
