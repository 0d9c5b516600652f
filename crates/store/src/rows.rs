//! Rows of a table as far as indexes need them: the primary key and the vector columns.

use crate::identity::TableIdentity;
use crate::items::Cell;
use crate::keys::{KeySchema, PrimaryKey, shown};

/// About what a row takes on the wire beside its vectors: keys, write times, lengths.
const ROW_OVERHEAD_BYTES: usize = 64;

/// Pages hold at least so many rows, however long they are.
const PAGE_ROWS_MIN: usize = 16;

/// And no more than so many, the driver's default, however short they are.
const PAGE_ROWS_MAX: usize = 5000;

/// A vector column that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VectorColumn {
    /// Its name, case preserved.
    pub name: String,
    /// Elements of its vectors.
    pub dimensions: usize,
}

/// What reads a table's rows: the same columns in the same order in every statement.
#[derive(Clone, Debug)]
pub struct RowReader {
    /// The table.
    pub table: TableIdentity,
    /// Its primary key.
    pub keys: KeySchema,
    /// The vector columns that are read.
    pub columns: Vec<VectorColumn>,
}

/// A row that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadRow {
    /// Its primary key.
    pub key: PrimaryKey,
    /// For each vector column what it holds.
    pub cells: Vec<ReadCell>,
}

/// What a vector column holds.
#[derive(Clone, Debug, PartialEq)]
pub enum ReadCell {
    /// Nothing.
    Null,
    /// A vector.
    Vector(Cell),
    /// Something that can't be indexed.
    Unusable(Unusable),
}

/// Why a vector can't be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It has another length.
    #[error("the vector has {actual_bytes} bytes where {expected_bytes} were expected")]
    Length {
        /// Four for each dimension.
        expected_bytes: usize,
        /// What was read.
        actual_bytes: usize,
    },
    /// An element is NaN or infinite.
    #[error("element {position} of the vector is not a finite number")]
    NotFinite {
        /// The first such element.
        position: usize,
    },
    /// The key has no form in an answer.
    #[error("column {column} of the key can't be shown: {error}")]
    Key {
        /// Which column, from 0.
        column: usize,
        /// Why not.
        error: crate::keys::KeyError,
    },
}

/// A vector cell as the database has it.
#[derive(Clone, Copy, Debug)]
pub struct RawCell<'a> {
    /// The serialised vector.
    pub vector: &'a [u8],
    /// The cell's write timestamp, microseconds since the epoch.
    pub written_us: i64,
    /// When the cell expires, seconds since the epoch.
    pub expires_s: Option<u32>,
}

impl RowReader {
    /// How many rows fill a page of about that many bytes.
    pub fn page_rows(&self, page_bytes: usize) -> usize {
        let vectors: usize = self
            .columns
            .iter()
            .map(|column| 4 * column.dimensions)
            .sum();
        (page_bytes / (vectors + ROW_OVERHEAD_BYTES)).clamp(PAGE_ROWS_MIN, PAGE_ROWS_MAX)
    }

    /// A row of the serialised values of its key, and what stands in each of the columns.
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
                    let error = shown(&column.typ, value).err()?;
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

/// Sorts the cells of rows by the vector column that they belong to.
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

/// What monitors are told of a row that isn't there.
pub fn absent(key: PrimaryKey, columns: usize) -> ReadRow {
    ReadRow {
        key,
        cells: vec![ReadCell::Null; columns],
    }
}

#[cfg(test)]
pub(crate) mod tests;
