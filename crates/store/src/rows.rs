//! The part of table rows that indexes need: the primary key and the vector columns.

use value::{KeyError, to_key_json};

use crate::identity::TableIdentity;
use crate::items::Cell;
use crate::keys::{KeySchema, PrimaryKey};

/// The approximate bytes that a row takes on the wire beside its vectors, for keys, write times and
/// lengths.
const ROW_OVERHEAD_BYTES: usize = 64;

/// The smallest number of rows in a page, however long they are.
const PAGE_ROWS_MIN: usize = 16;

/// The largest number of rows in a page, however short they are. It is the driver's default.
const PAGE_ROWS_MAX: usize = 5000;

/// A vector column that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorColumn {
    /// The name of the column, case preserved.
    pub name: String,
    /// The number of elements in its vectors.
    pub dimensions: usize,
}

/// The description of a read: the table, and the same columns in the same order in every statement.
#[derive(Clone, Debug)]
pub struct RowReader {
    /// The table.
    pub table: TableIdentity,
    /// The primary key of the table.
    pub keys: KeySchema,
    /// The vector columns that are read.
    pub columns: Vec<VectorColumn>,
}

/// A row that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadRow {
    /// The primary key of the row.
    pub key: PrimaryKey,
    /// The content of each vector column, in the order of [`RowReader::columns`].
    pub cells: Vec<ReadCell>,
}

/// The content of a vector column.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadCell {
    /// No value.
    Null,
    /// A vector.
    Vector(Cell),
    /// A value that can't be indexed.
    Unusable(Unusable),
}

/// The reason why a vector can't be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The vector has another length than its column.
    #[error("the vector has {actual_bytes} bytes where {expected_bytes} were expected")]
    Length {
        /// The expected length: four bytes for each dimension.
        expected_bytes: usize,
        /// The length that was read.
        actual_bytes: usize,
    },
    /// An element is NaN or infinite.
    #[error("element {position} of the vector is not a finite number")]
    NotFinite {
        /// The position of the first such element, from 0.
        position: usize,
    },
    /// The row's key can't be written in an answer.
    #[error("column {column} of the key can't be shown: {error}")]
    Key {
        /// The position of the key column, from 0.
        column: usize,
        /// The reason why the column can't be written.
        error: KeyError,
    },
}

/// A vector cell as the database stores it.
#[derive(Clone, Copy, Debug)]
pub struct RawCell<'a> {
    /// The serialised vector.
    pub vector: &'a [u8],
    /// The cell's write timestamp, microseconds since the epoch.
    pub written_us: i64,
    /// The time at which the cell expires, in seconds since the epoch; `None` for never.
    pub expires_s: Option<u32>,
}

impl RowReader {
    /// The number of rows that fill a page of about that many bytes.
    pub fn page_rows(&self, page_bytes: usize) -> usize {
        let vectors: usize = self
            .columns
            .iter()
            .map(|column| 4 * column.dimensions)
            .sum();
        (page_bytes / (vectors + ROW_OVERHEAD_BYTES)).clamp(PAGE_ROWS_MIN, PAGE_ROWS_MAX)
    }

    /// Makes a row of the serialised values of its key and the cell of each column.
    pub fn row<'a>(
        &self,
        key: &[&[u8]],
        cells: impl IntoIterator<Item = Option<RawCell<'a>>>,
    ) -> ReadRow {
        let unusable_key =
            self.keys
                .columns()
                .zip(key)
                .enumerate()
                .find_map(|(at, (column, value))| {
                    let error = to_key_json(&column.cql_type, value).err()?;
                    Some(Unusable::Key { column: at, error })
                });
        let cells = self.columns.iter().zip(cells);
        let cells = cells.map(|(column, cell)| match (cell, unusable_key) {
            (None, _) => ReadCell::Null,
            (Some(_), Some(unusable)) => ReadCell::Unusable(unusable),
            (Some(cell), None) => match decode_vector(column, cell.vector) {
                Ok(vector) => ReadCell::Vector(Cell {
                    vector,
                    written_us: cell.written_us,
                    expires_s: cell.expires_s,
                }),
                Err(unusable) => ReadCell::Unusable(unusable),
            },
        });
        ReadRow {
            cells: cells.collect(),
            key: self.keys.encode(key.iter().copied()),
        }
    }
}

fn decode_vector(column: &VectorColumn, bytes: &[u8]) -> Result<Vec<f32>, Unusable> {
    if bytes.len() != 4 * column.dimensions {
        return Err(Unusable::Length {
            expected_bytes: 4 * column.dimensions,
            actual_bytes: bytes.len(),
        });
    }
    let (elements, _) = bytes.as_chunks();
    let vector: Vec<f32> = elements
        .iter()
        .map(|element| f32::from_be_bytes(*element))
        .collect();
    match ann::first_not_finite(&vector) {
        Some(position) => Err(Unusable::NotFinite { position }),
        None => Ok(vector),
    }
}

/// Splits rows into one list of keys and cells for each vector column.
pub fn by_column(rows: Vec<ReadRow>, columns: usize) -> Vec<Vec<(PrimaryKey, ReadCell)>> {
    let mut out: Vec<Vec<_>> = (0..columns)
        .map(|_| Vec::with_capacity(rows.len()))
        .collect();
    for row in rows {
        for (cells, cell) in out.iter_mut().zip(row.cells) {
            cells.push((row.key.clone(), cell));
        }
    }
    out
}

/// Makes the row that stands for a key without a row: none of its columns has a vector.
pub fn absent(key: PrimaryKey, columns: usize) -> ReadRow {
    ReadRow {
        key,
        cells: vec![ReadCell::Null; columns],
    }
}

#[cfg(test)]
pub(crate) mod tests;
