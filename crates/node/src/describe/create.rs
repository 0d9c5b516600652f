//! The `CREATE` statements of the keyspaces, user types, tables and indexes in the catalog.

use std::fmt::{self, Write};

use cql::quote::{Identifier, MapLiteral, StringLiteral};
use index::definition;
use index::target::StoredTarget;
use schema::{
    Column, ColumnKind, DroppedColumn, Keyspace, SearchIndexMetadata, SecondaryIndex, Table,
};
use value::UserType;

use crate::system::cdc_options;

/// The `CREATE KEYSPACE` statement.
pub(super) fn keyspace(keyspace: &Keyspace) -> String {
    let mut class_first = String::new();
    if let Some(class) = keyspace.replication.get("class") {
        let _ = write!(class_first, "'class': {}", StringLiteral(class));
    }
    for (key, value) in &keyspace.replication {
        if key != "class" {
            let _ = write!(
                class_first,
                ", {}: {}",
                StringLiteral(key),
                StringLiteral(value)
            );
        }
    }
    // They are off by default, and Cassandra does not know the word.
    let tablets = match keyspace.tablets {
        true => " AND tablets = {'enabled': true}",
        false => "",
    };
    format!(
        "CREATE KEYSPACE {} WITH replication = {{{class_first}}} AND durable_writes = {}{tablets};",
        Identifier(&keyspace.name),
        keyspace.durable_writes,
    )
}

/// The `CREATE TYPE` statement.
pub(super) fn user_type(definition: &UserType) -> String {
    let fields: Vec<String> = definition
        .fields()
        .map(|(name, cql_type)| format!("    {} {cql_type}", Identifier(name)))
        .collect();
    format!(
        "CREATE TYPE {}.{} (\n{}\n);",
        Identifier(&definition.keyspace),
        Identifier(&definition.name),
        fields.join(",\n")
    )
}

/// The `CREATE TABLE` statement. If `internals` is set, it has the table's id and the columns that
/// were dropped, and the statements follow that drop them again and add those that came back.
pub(super) fn table(table: &Table, internals: bool) -> String {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write_table(&mut text, table, internals);
    text
}

fn write_table(out: &mut String, table: &Table, internals: bool) -> fmt::Result {
    write!(out, "CREATE TABLE {} (", table_name(table))?;
    let partition_key = table.partition_key();
    let clustering_key = table.clustering_key();
    let key_inline = partition_key.len() == 1 && clustering_key.is_empty();
    for (position, column) in table.columns_in_select_order().into_iter().enumerate() {
        let separator = if position == 0 { "" } else { "," };
        let former = table.dropped_columns.get(&column.name);
        if let Some(former) = former.filter(|_| internals) {
            write!(out, "{separator}\n    {}", dropped(&column.name, former))?;
            continue;
        }
        write!(out, "{separator}\n    {}", definition(column))?;
        if table.row_ttl_column() == Some(column) {
            out.push_str(" TTL");
        }
        if key_inline && matches!(column.kind, ColumnKind::PartitionKey { .. }) {
            out.push_str(" PRIMARY KEY");
        }
    }
    let gone = table.dropped_columns.iter();
    let gone = gone.filter(|(name, _)| internals && table.column(name).is_none());
    for (name, former) in gone {
        write!(out, ",\n    {}", dropped(name, former))?;
    }
    if !key_inline {
        let partition = names(&partition_key);
        let partition = match partition_key.len() {
            1 => partition,
            _ => format!("({partition})"),
        };
        write!(out, ",\n    PRIMARY KEY ({partition}")?;
        for column in &clustering_key {
            write!(out, ", {}", Identifier(&column.name))?;
        }
        out.push(')');
    }
    out.push_str("\n)");
    let mut options = Vec::new();
    if internals {
        options.push(format!("ID = {}", table.id.0));
    }
    if !clustering_key.is_empty() {
        options.push(format!("CLUSTERING ORDER BY ({})", order(&clustering_key)));
    }
    options.extend(table_options(table));
    write!(out, " WITH {};", options.join("\n    AND "))?;
    for (name, former) in table.dropped_columns.iter().filter(|_| internals) {
        let (table_name, column) = (table_name(table), Identifier(name));
        let at = former.dropped_at_micros;
        write!(
            out,
            "\nALTER TABLE {table_name} DROP {column} USING TIMESTAMP {at};"
        )?;
        if let Some(column) = table.column(name) {
            write!(
                out,
                "\nALTER TABLE {table_name} ADD {};",
                definition(column)
            )?;
            if table.row_ttl_column() == Some(column) {
                write!(out, "\nALTER TABLE {table_name} TTL {};", Identifier(name))?;
            }
        }
    }
    Ok(())
}

fn definition(column: &Column) -> String {
    let is_static = if column.kind == ColumnKind::Static {
        " static"
    } else {
        ""
    };
    format!(
        "{} {}{is_static}",
        Identifier(&column.name),
        column.cql_type
    )
}

/// The definition of a column that was dropped.
fn dropped(name: &str, column: &DroppedColumn) -> String {
    let is_static = if column.is_static { " static" } else { "" };
    format!("{} {}{is_static}", Identifier(name), column.cql_type)
}

fn names(columns: &[&Column]) -> String {
    let names: Vec<String> = columns
        .iter()
        .map(|column| Identifier(&column.name).to_string())
        .collect();
    names.join(", ")
}

fn order(clustering_key: &[&Column]) -> String {
    let columns: Vec<String> = clustering_key
        .iter()
        .map(|column| {
            let direction = match column.kind {
                ColumnKind::Clustering {
                    descending: true, ..
                } => "DESC",
                _ => "ASC",
            };
            format!("{} {direction}", Identifier(&column.name))
        })
        .collect();
    columns.join(", ")
}

/// The table's options as `name = value`, by name: the options that have an effect here, and all
/// others that the user gave.
fn table_options(table: &Table) -> Vec<String> {
    let mut options = table.options.clone();
    options
        .entry("comment".to_owned())
        .or_insert_with(|| "''".to_owned());
    options.insert(
        "default_time_to_live".to_owned(),
        table.default_ttl_s.to_string(),
    );
    options.insert("gc_grace_seconds".to_owned(), table.gc_grace_s.to_string());
    // Without a log the option says nothing, and Cassandra refuses the map.
    if let Some(cdc) = table.cdc.as_ref().filter(|_| table.log.is_some()) {
        options.insert("cdc".to_owned(), MapLiteral(&cdc_options(cdc)).to_string());
    }
    options
        .into_iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect()
}

/// The `CREATE CUSTOM INDEX` statement, with only the options that the user gave.
pub(super) fn index(table: &Table, index: &SearchIndexMetadata) -> String {
    definition::create_statement(
        (&table.keyspace, &table.name),
        &index.name,
        &StoredTarget::decode(&index.target).to_string(),
        &index.class_name,
        &index.options,
    )
}

/// The statement that creates a secondary index.
pub(super) fn secondary_index(table: &Table, index: &SecondaryIndex) -> String {
    let names = (&*table.keyspace, &*table.name);
    let target = index.target_list(table);
    match &index.class_name {
        Some(class) => {
            definition::create_statement(names, &index.name, &target, class, &index.options)
        }
        None => definition::create_plain_statement(names, &index.name, &target),
    }
}

fn table_name(table: &Table) -> String {
    format!(
        "{}.{}",
        Identifier(&table.keyspace),
        Identifier(&table.name)
    )
}
