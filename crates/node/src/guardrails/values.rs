//! The guardrails of rows and values, which look at mutations before they are committed.

use bytes::Bytes;
use cql::error::CqlError;
use schema::{Catalog, Column, Table};
use storage::mutation::{CellChange, CellOperation, PartitionChange, PartitionMutation};
use value::CqlType;

use super::{Guardrail, Guardrails, ThresholdViolation, ValueLocation};

/// The guardrails that look at rows and values.
const OF_VALUES: [Guardrail; 4] = [
    Guardrail::RowSize,
    Guardrail::ColumnValueSize,
    Guardrail::CollectionSize,
    Guardrail::ItemsPerCollection,
];

/// Looks at the rows and values of a write.
///
/// # Errors
/// If one of them is above a threshold for refusals.
pub(crate) fn check_values(
    guardrails: &Guardrails,
    catalog: &Catalog,
    mutations: &[PartitionMutation],
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    guardrails.large_data.look(catalog, mutations);
    let is_set = |guardrail| guardrails.limits(guardrail).is_set();
    if !OF_VALUES.into_iter().any(is_set) {
        return Ok(());
    }
    for mutation in mutations {
        // A table that was dropped meanwhile fails the write itself.
        let Some(table) = catalog.table_by_id(mutation.table) else {
            continue;
        };
        let mut values = ValueChecks {
            guardrails,
            table,
            warnings,
        };
        values.keys(&table.partition_key(), &mutation.partition_key)?;
        for change in &mutation.changes {
            values.change(change)?;
        }
    }
    Ok(())
}

struct ValueChecks<'a> {
    guardrails: &'a Guardrails,
    table: &'a Table,
    warnings: &'a mut Vec<String>,
}

impl ValueChecks<'_> {
    fn change(&mut self, change: &PartitionChange) -> Result<(), CqlError> {
        let (clustering, cells) = match change {
            PartitionChange::Row {
                clustering, cells, ..
            } => (&clustering[..], cells),
            PartitionChange::Static { cells, .. } => (&[][..], cells),
            PartitionChange::DeleteRow { .. }
            | PartitionChange::DeleteRange { .. }
            | PartitionChange::DeletePartition { .. } => return Ok(()),
        };
        self.keys(&self.table.clustering_key(), clustering)?;
        let mut bytes: usize = clustering.iter().map(Bytes::len).sum();
        for cell in cells {
            bytes += self.cell(cell)?;
        }
        let name = format!("{}.{}", self.table.keyspace, self.table.name);
        self.check(Guardrail::RowSize, "", bytes, |violation| {
            format!(
                "A row of table {name} has size {bytes} in one write, this exceeds the {} threshold of {}.",
                violation.word(),
                violation.threshold
            )
        })
    }

    fn keys(&mut self, columns: &[&Column], values: &[Bytes]) -> Result<(), CqlError> {
        for (column, value) in columns.iter().zip(values) {
            self.value(&column.name, value.len())?;
        }
        Ok(())
    }

    /// Looks at the values of a cell. Returns their bytes.
    fn cell(&mut self, cell: &CellChange) -> Result<usize, CqlError> {
        let table = self.table;
        let Some(column) = table.column_by_id(cell.column) else {
            return Ok(0);
        };
        let name = &column.name;
        match &cell.change {
            CellOperation::Set(value) => {
                self.value(name, value.len())?;
                if let Some(items) = items(&column.cql_type, value) {
                    self.collection(name, items, value.len())?;
                }
                Ok(value.len())
            }
            CellOperation::ReplaceElements(elements) | CellOperation::PutElements(elements) => {
                let mut bytes = 0;
                for (path, value) in elements {
                    // The path of a list's element is no value.
                    let is_list = matches!(column.cql_type, CqlType::List { .. });
                    let path = if is_list { 0 } else { path.len() };
                    self.value(name, path.max(value.len()))?;
                    bytes += path + value.len();
                }
                self.collection(name, elements.len(), bytes)?;
                Ok(bytes)
            }
            CellOperation::SetListIndex { value, .. } => {
                self.value(name, value.len())?;
                Ok(value.len())
            }
            CellOperation::AddToCounter(_)
            | CellOperation::Delete
            | CellOperation::DeleteElements(_)
            | CellOperation::DeleteListIndex { .. }
            | CellOperation::RemoveListValues(_) => Ok(0),
        }
    }

    fn value(&mut self, column: &str, bytes: usize) -> Result<(), CqlError> {
        self.check(Guardrail::ColumnValueSize, column, bytes, |violation| {
            format!(
                "Value of column '{column}' has size {bytes}, this exceeds the {} threshold of {}.",
                violation.word(),
                violation.threshold
            )
        })
    }

    fn collection(&mut self, column: &str, items: usize, bytes: usize) -> Result<(), CqlError> {
        self.check(Guardrail::ItemsPerCollection, column, items, |violation| {
            format!(
                "Detected collection {column} with {items} items, this exceeds the {} threshold of {}.",
                violation.word(),
                violation.threshold
            )
        })?;
        self.check(Guardrail::CollectionSize, column, bytes, |violation| {
            format!(
                "Detected collection {column} of size {bytes}, this exceeds the {} threshold of {}.",
                violation.word(),
                violation.threshold
            )
        })
    }

    fn check(
        &mut self,
        guardrail: Guardrail,
        column: &str,
        value: usize,
        message: impl FnOnce(ThresholdViolation) -> String,
    ) -> Result<(), CqlError> {
        let place = ValueLocation {
            keyspace: &self.table.keyspace,
            table: &self.table.name,
            column,
            ..ValueLocation::default()
        };
        self.guardrails
            .check(guardrail, value as u64, place, message, self.warnings)
    }
}

/// The number of elements of a frozen collection; `None` for another value.
pub(super) fn items(cql_type: &CqlType, value: &Bytes) -> Option<usize> {
    match cql_type {
        CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. } => {
            let count = i32::from_be_bytes(*value.first_chunk()?);
            usize::try_from(count).ok()
        }
        _ => None,
    }
}
