//! Rows of a table as far as indexes need them: the primary key and the vector columns.

use std::time::{SystemTime, UNIX_EPOCH};

use scylla::deserialize::row::{ColumnIterator, RawColumn};
use scylla::errors::{DeserializationError, RowsError};
use scylla::frame::response::result::ColumnType;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::SerializationError;
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::{CellWriter, WrittenCellProof};

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

/// An answer that isn't what the statement asks for.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// The driver doesn't understand it.
    #[error(transparent)]
    Rows(#[from] RowsError),
    /// The driver doesn't understand a row.
    #[error(transparent)]
    Row(#[from] DeserializationError),
    /// A row ends early, or a time has the wrong length.
    #[error("malformed row")]
    Malformed,
}

impl RowReader {
    /// `SELECT <columns> FROM <table> WHERE <condition>`.
    pub fn select(&self, condition: &str) -> String {
        let mut list: Vec<String> = self
            .keys
            .columns()
            .map(|column| quoted(&column.name))
            .collect();
        for column in &self.columns {
            let name = quoted(&column.name);
            list.push(format!("{name}, WRITETIME({name}), TTL({name})"));
        }
        format!(
            "SELECT {} FROM {}.{} WHERE {condition}",
            list.join(", "),
            quoted(&self.table.keyspace),
            quoted(&self.table.table)
        )
    }

    /// `token(<partition key>)`.
    pub fn token(&self) -> String {
        let columns: Vec<String> = self
            .keys
            .partition
            .iter()
            .map(|column| quoted(&column.name))
            .collect();
        format!("token({})", columns.join(", "))
    }

    /// `<column> = ?` for each of these columns.
    pub fn equals<'a>(columns: impl IntoIterator<Item = &'a str>) -> String {
        let terms: Vec<String> = columns
            .into_iter()
            .map(|name| format!("{} = ?", quoted(name)))
            .collect();
        terms.join(" AND ")
    }

    /// How many rows fill a page of about that many bytes.
    pub fn page_rows(&self, page_bytes: usize) -> usize {
        let vectors: usize = self
            .columns
            .iter()
            .map(|column| 4 * column.dimensions)
            .sum();
        (page_bytes / (vectors + ROW_OVERHEAD_BYTES)).clamp(PAGE_ROWS_MIN, PAGE_ROWS_MAX)
    }

    /// The rows of an answer. A row without a full primary key is left out: a partition that has
    /// static columns alone shows as one.
    pub fn decode(&self, rows: &QueryRowsResult) -> Result<Vec<ReadRow>, RowError> {
        let now_s = now_s();
        let mut out = Vec::with_capacity(rows.rows_num());
        for row in rows.rows::<ColumnIterator>()? {
            if let Some(row) = self.decode_row(row?, now_s)? {
                out.push(row);
            }
        }
        Ok(out)
    }

    fn decode_row(
        &self,
        mut columns: ColumnIterator<'_, '_>,
        now_s: u32,
    ) -> Result<Option<ReadRow>, RowError> {
        let mut values = Vec::with_capacity(self.keys.len());
        for _ in 0..self.keys.len() {
            match next(&mut columns)?.slice {
                Some(slice) => values.push(slice.as_slice()),
                None => return Ok(None),
            }
        }
        let unusable_key =
            self.keys
                .columns()
                .zip(&values)
                .enumerate()
                .find_map(|(at, (column, value))| {
                    let error = shown(&column.typ, value).err()?;
                    Some(Unusable::Key { column: at, error })
                });
        let key = self.keys.encode(values);
        let mut cells = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let vector = next(&mut columns)?.slice;
            let written_us = fixed(&next(&mut columns)?)?.map_or(0, i64::from_be_bytes);
            let ttl_s = fixed(&next(&mut columns)?)?.map(i32::from_be_bytes);
            let cell = match (vector, unusable_key) {
                (None, _) => ReadCell::Null,
                (Some(_), Some(unusable)) => ReadCell::Unusable(unusable),
                (Some(vector), None) => match decode_vector(column, vector.as_slice()) {
                    Ok(vector) => ReadCell::Vector(Cell {
                        vector,
                        written_us,
                        expires_s: ttl_s.map(|ttl_s| expiry_s(now_s, ttl_s)),
                    }),
                    Err(unusable) => ReadCell::Unusable(unusable),
                },
            };
            cells.push(cell);
        }
        Ok(Some(ReadRow { key, cells }))
    }
}

fn next<'frame, 'metadata>(
    columns: &mut ColumnIterator<'frame, 'metadata>,
) -> Result<RawColumn<'frame, 'metadata>, RowError> {
    Ok(columns.next().ok_or(RowError::Malformed)??)
}

fn fixed<const N: usize>(column: &RawColumn<'_, '_>) -> Result<Option<[u8; N]>, RowError> {
    column
        .slice
        .map(|slice| slice.as_slice().try_into().map_err(|_| RowError::Malformed))
        .transpose()
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

/// A TTL is told in whole seconds, so a second more makes sure that the row has expired when it
/// is read again.
fn expiry_s(now_s: u32, ttl_s: i32) -> u32 {
    now_s
        .saturating_add(u32::try_from(ttl_s).unwrap_or(0))
        .saturating_add(1)
}

/// Seconds since the epoch. As `u32` they last until 2106.
pub fn now_s() -> u32 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
        })
}

/// An identifier as CQL reads it back, whatever is in it.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A serialised value, bound as it is.
#[derive(Clone, Copy, Debug)]
pub struct Serialised<'a>(pub &'a [u8]);

impl SerializeValue for Serialised<'_> {
    fn serialize<'b>(
        &self,
        _: &ColumnType,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        writer.set_value(self.0).map_err(SerializationError::new)
    }
}

/// Serialised values, bound as a list of them.
#[derive(Clone, Debug)]
pub struct SerialisedList<'a>(pub Vec<&'a [u8]>);

impl SerializeValue for SerialisedList<'_> {
    fn serialize<'b>(
        &self,
        _: &ColumnType,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        let mut builder = writer.into_value_builder();
        let count = i32::try_from(self.0.len()).map_err(SerializationError::new)?;
        builder.append_bytes(&count.to_be_bytes());
        for value in &self.0 {
            builder
                .make_sub_writer()
                .set_value(value)
                .map_err(SerializationError::new)?;
        }
        builder.finish().map_err(SerializationError::new)
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
mod tests;
