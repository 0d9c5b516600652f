//! The part of table rows that indexes need: the primary key and the columns that they observe.

use value::to_key_json;

use crate::identity::TableIdentity;
use crate::keys::{KeySchema, PrimaryKey};
use crate::observed::{
    ColumnCell, IndexableValue, ObservedColumn, RawCell, ReadCell, TimestampedValue,
    UnindexableValue,
};

/// The approximate bytes that a row takes on the wire in addition to its values, for keys, write
/// times and lengths.
const ROW_OVERHEAD_BYTES: usize = 64;

/// The smallest number of rows in a page, however long they are.
const PAGE_ROWS_MIN: usize = 16;

/// The largest number of rows in a page, however short they are. It is the driver's default.
const PAGE_ROWS_MAX: usize = 5000;

/// The description of a read: the table, and the same columns in the same order in every statement.
#[derive(Clone, Debug)]
pub struct RowReader {
    /// The table.
    pub table: TableIdentity,
    /// The primary key of the table.
    pub keys: KeySchema,
    /// The columns that are read, in addition to the primary key.
    pub columns: Vec<ObservedColumn>,
}

/// A row that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct FetchedRow {
    /// The primary key of the row.
    pub key: PrimaryKey,
    /// The content of each column, in the order of [`RowReader::columns`].
    pub cells: Vec<ColumnCell>,
}

impl RowReader {
    /// The number of rows that fill a page of about that many bytes.
    pub fn page_rows(&self, page_bytes: usize) -> usize {
        let columns = self.columns.iter();
        let values: usize = columns.map(|column| column.form.value_bytes()).sum();
        (page_bytes / (values + ROW_OVERHEAD_BYTES)).clamp(PAGE_ROWS_MIN, PAGE_ROWS_MAX)
    }

    /// The columns whose cells are read: all but those that the key has.
    pub fn stored_columns(&self) -> impl Iterator<Item = &ObservedColumn> {
        let columns = self.columns.iter();
        columns.filter(|column| column.in_key.is_none())
    }

    /// Makes a row of the serialised values of its key and the cell of each of the
    /// [stored columns](RowReader::stored_columns).
    pub fn row<'a>(
        &self,
        key: &[&[u8]],
        cells: impl IntoIterator<Item = Option<RawCell<'a>>>,
    ) -> FetchedRow {
        self.row_that_may_end(key, cells, None)
    }

    /// As [`RowReader::row`], for a row that may end by itself at `ends_s`, in seconds since the
    /// epoch, as all of its cells and its marker have expired by then. An index on a key column has
    /// it read again then.
    pub fn row_that_may_end<'a>(
        &self,
        key: &[&[u8]],
        cells: impl IntoIterator<Item = Option<RawCell<'a>>>,
        ends_s: Option<u32>,
    ) -> FetchedRow {
        let unusable_key =
            self.keys
                .columns()
                .zip(key)
                .enumerate()
                .find_map(|(at, (column, value))| {
                    let error = to_key_json(&column.cql_type, value).err()?;
                    Some(UnindexableValue::Key { column: at, error })
                });
        let mut stored = cells.into_iter();
        let cells = self.columns.iter().map(|column| {
            let cell = match column.in_key {
                Some(at) => key.get(at).map(|value| RawCell {
                    value,
                    written_us: 0,
                    expires_s: None,
                }),
                None => stored.next().flatten(),
            };
            let decoded = match (cell, unusable_key) {
                (None, _) => ColumnCell::Null,
                (Some(_), Some(unusable)) => ColumnCell::Unusable(unusable),
                (Some(cell), None) => column.form.decode(cell),
            };
            match decoded {
                ColumnCell::Value(value) if column.in_key.is_some() => {
                    ColumnCell::Value(TimestampedValue {
                        filters_change_s: ends_s,
                        ..value
                    })
                }
                decoded => decoded,
            }
        });
        FetchedRow {
            cells: cells.collect(),
            key: self.keys.encode(key.iter().copied()),
        }
    }
}

impl FetchedRow {
    /// About the bytes of the values.
    pub fn value_bytes(&self) -> usize {
        let cells = self.cells.iter().map(|cell| match cell {
            ColumnCell::Value(TimestampedValue { value, .. }) => match value {
                IndexableValue::Vector(vector) => size_of_val(vector.as_slice()),
                IndexableValue::Text(text) => text.len(),
            },
            ColumnCell::Filter { value, .. } => value.len(),
            ColumnCell::Null | ColumnCell::Unusable(_) => 0,
        });
        cells.sum()
    }
}

/// The content of the columns at these positions, of which the first has the vector, by row. Each
/// of the next `required` ones must have a value ([`ReadCell::joined`]).
pub(crate) fn joined(
    rows: &[FetchedRow],
    columns: &[usize],
    required: usize,
) -> Vec<(PrimaryKey, ReadCell)> {
    let joined = rows.iter().map(|row| {
        let cells = columns.iter().map(|at| row.cells[*at].clone());
        (row.key.clone(), ReadCell::joined(cells, required))
    });
    joined.collect()
}

/// Makes the row that represents a key without a row: none of its columns has a value.
pub(crate) fn absent(key: PrimaryKey, columns: usize) -> FetchedRow {
    FetchedRow {
        key,
        cells: vec![ColumnCell::Null; columns],
    }
}

#[cfg(test)]
pub(crate) mod tests;
