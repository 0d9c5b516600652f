//! Rows of system tables: written by column name, then assembled into the form of the storage.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use schema::{Column, ColumnKind, Table};
use storage::read::{Cell, LiveCell, Partition, Row, RowPosition};
use value::{CqlType, Value, compare, token::routing_key};

/// A row as values by column name. A column that is left out is null.
pub(super) struct NamedValues(pub Vec<(&'static str, Value)>);

/// A record from its columns.
pub(super) fn record<const N: usize>(columns: [(&'static str, Value); N]) -> NamedValues {
    NamedValues(columns.into())
}

impl NamedValues {
    /// Adds a column if there is a value for it.
    pub fn with(mut self, name: &'static str, value: Option<Value>) -> NamedValues {
        self.0.extend(value.map(|value| (name, value)));
        self
    }

    fn get(&self, name: &str) -> Option<&Value> {
        let (_, value) = self.0.iter().find(|(column, _)| *column == name)?;
        Some(value)
    }

    /// The serialised values of these key columns.
    ///
    /// # Panics
    /// If a key column has no value.
    fn key(&self, columns: &[&Column]) -> Vec<Bytes> {
        columns
            .iter()
            .map(|column| match self.get(&column.name) {
                Some(value) => value.serialize(),
                None => panic!("bug: no value for key column {}", column.name),
            })
            .collect()
    }
}

/// A value of type `text`.
pub(super) fn text(value: impl Into<String>) -> Value {
    Value::Text(value.into())
}

/// A value of type `map<text, text>`. The pairs must come in the order of their keys.
pub(super) fn text_map<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a String)>) -> Value {
    let pairs = pairs.into_iter();
    Value::Map(pairs.map(|(key, value)| (text(key), text(value))).collect())
}

/// The rows of `table`, by partition in token order, then in clustering order. They have no
/// positions; readers page through them by their keys.
///
/// # Panics
/// If a record names a column that the table does not have, or lacks a key column.
pub(super) fn assemble(table: &Table, records: &[NamedValues], written_at_micros: i64) -> Vec<Row> {
    for (name, _) in records.iter().flat_map(|record| &record.0) {
        assert!(
            table.column(name).is_some(),
            "bug: no column {name} in {}.{}",
            table.keyspace,
            table.name
        );
    }
    let partition_columns = table.partition_key();
    let clustering_columns = table.clustering_key();
    let mut rows: Vec<Row> = records
        .iter()
        .map(|record| {
            let key = record.key(&partition_columns);
            let clustering = record.key(&clustering_columns);
            let token = table.partitioner.token(&routing_key(&key));
            let partition = Partition {
                token,
                key,
                static_cells: cells(table, record, ColumnKind::Static, written_at_micros),
            };
            Row {
                partition: Arc::new(partition),
                clustering: Some(clustering),
                cells: cells(table, record, ColumnKind::Regular, written_at_micros),
                marker: None,
                position: RowPosition(Bytes::new()),
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let by_partition = (a.partition.token, &a.partition.key);
        by_partition
            .cmp(&(b.partition.token, &b.partition.key))
            .then_with(|| compare_clustering(&clustering_columns, a, b))
    });
    share_partitions(&mut rows);
    rows
}

fn compare_clustering(columns: &[&Column], a: &Row, b: &Row) -> Ordering {
    let values = |row: &Row| row.clustering.clone().unwrap_or_default();
    let (a, b) = (values(a), values(b));
    for (column, (a, b)) in columns.iter().zip(a.iter().zip(&b)) {
        let ascending = compare(&column.cql_type, a, b);
        let ordering = match column.kind {
            ColumnKind::Clustering {
                descending: true, ..
            } => ascending.reverse(),
            _ => ascending,
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}

/// Makes the rows of one partition share it, as rows from the storage do.
fn share_partitions(rows: &mut [Row]) {
    for at in 1..rows.len() {
        if rows[at].partition.key == rows[at - 1].partition.key {
            rows[at].partition = rows[at - 1].partition.clone();
        }
    }
}

fn cells(
    table: &Table,
    record: &NamedValues,
    kind: ColumnKind,
    written_at_micros: i64,
) -> Vec<(schema::ColumnId, Cell)> {
    let of_kind = table.columns.iter().filter(|column| column.kind == kind);
    let mut cells: Vec<_> = of_kind
        .filter_map(|column| {
            let value = record.get(&column.name)?;
            Some((column.id, cell(&column.cql_type, value, written_at_micros)))
        })
        .collect();
    cells.sort_by_key(|(id, _)| *id);
    cells
}

fn cell(cql_type: &CqlType, value: &Value, written_at_micros: i64) -> Cell {
    let live = |value: Bytes| LiveCell {
        value,
        timestamp: written_at_micros,
        expiry: None,
    };
    match value {
        Value::Set(elements) if cql_type.is_multi_cell() => Cell::Elements(
            elements
                .iter()
                .map(|element| (element.serialize(), live(Bytes::new())))
                .collect(),
        ),
        Value::Map(entries) if cql_type.is_multi_cell() => Cell::Elements(
            entries
                .iter()
                .map(|(key, value)| (key.serialize(), live(value.serialize())))
                .collect(),
        ),
        _ => Cell::Simple(live(value.serialize())),
    }
}
