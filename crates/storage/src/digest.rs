//! Digests of tables, by which a copy is compared with its original.

use std::collections::HashMap;

use schema::{ColumnId, TableId};
use xxhash_rust::xxh3::xxh3_128;

use crate::reader::{CellRow, CellStream, CellTime, TableView};
use crate::{Storage, StorageError};

/// The rows after which a digest is asked whether it is still wanted.
const ROWS_A_LOOK: usize = 1024;

/// The number of live rows of a table, and a digest of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableDigest {
    /// The live rows, without partitions that have only static cells.
    pub rows: u64,
    /// The sum of the XXH3 hashes (128 bits) of all rows with their keys, values, write times and
    /// expiry times. It does not depend on the order of rows, nor on how they are stored.
    pub digest: u128,
}

impl Storage {
    /// Reads the live cells of a table with their times, in token order. Blocks when it is
    /// advanced, and holds the files that it reads.
    ///
    /// # Errors
    /// If there is no such table, or its files can't be read.
    pub fn cells(&self, table: TableId) -> Result<CellStream, StorageError> {
        self.view(table)?.cells()
    }

    /// Makes the digest of a table as it is now. Two tables of the same columns with the same live
    /// rows have the same one, a table and its restored copy among them. Blocks until all rows are
    /// read.
    ///
    /// # Errors
    /// If there is no such table, if its files can't be read, or if `is_wanted` says no.
    pub fn table_digest(
        &self,
        table: TableId,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<TableDigest, StorageError> {
        digest(&self.view(table)?, is_wanted)
    }

    /// As [`Storage::table_digest`], of the cells that are alive at a time, in seconds since the
    /// epoch. So a copy can be compared later than its original, whose rows expire meanwhile. A
    /// storage that is open to read only still has what has expired since.
    ///
    /// # Errors
    /// As for [`Storage::table_digest`].
    pub fn table_digest_at(
        &self,
        table: TableId,
        at_s: i64,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<TableDigest, StorageError> {
        digest(&self.view_at(table, Some(at_s))?, is_wanted)
    }
}

fn digest(view: &TableView, is_wanted: &dyn Fn() -> bool) -> Result<TableDigest, StorageError> {
    let table = &view.context().table.table;
    let columns = table.columns.iter();
    let names: HashMap<ColumnId, &str> = columns.map(|column| (column.id, &*column.name)).collect();
    let mut sum = TableDigest::default();
    let mut buffer = Vec::new();
    for (looked_at, row) in view.cells()?.enumerate() {
        if looked_at.is_multiple_of(ROWS_A_LOOK) && !is_wanted() {
            return Err(StorageError::Invalid(
                "the digest of the table was stopped".to_owned(),
            ));
        }
        let row = row?;
        sum.rows += u64::from(!row.is_static);
        buffer.clear();
        put_row(&mut buffer, row, &names);
        sum.digest = sum.digest.wrapping_add(xxh3_128(&buffer));
    }
    Ok(sum)
}

/// Writes a row so that different rows have different bytes. Columns go by their names, as a copy
/// may number them otherwise.
fn put_row(out: &mut Vec<u8>, mut row: CellRow, names: &HashMap<ColumnId, &str>) {
    out.push(u8::from(row.is_static));
    put_length(out, row.key.len());
    for value in &row.key {
        put_bytes(out, value);
    }
    match row.marker {
        Some(marker) => {
            out.push(1);
            put_time(out, marker);
        }
        None => out.push(0),
    }
    let name_of = |column: ColumnId| names.get(&column).copied().unwrap_or_default();
    // Stable, so that elements stay in the order of their paths.
    row.cells.sort_by_key(|cell| name_of(cell.column));
    for cell in &row.cells {
        put_bytes(out, name_of(cell.column).as_bytes());
        match &cell.path {
            Some(path) => {
                out.push(1);
                put_bytes(out, path);
            }
            None => out.push(0),
        }
        put_bytes(out, &cell.value);
        put_time(out, cell.time);
    }
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&(length as u64).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_time(out: &mut Vec<u8>, time: CellTime) {
    out.extend_from_slice(&time.write_micros.to_le_bytes());
    let expires_at_s = time.expires_at_s.map_or((0, 0), |at_s| (1_u8, at_s));
    out.push(expires_at_s.0);
    out.extend_from_slice(&expires_at_s.1.to_le_bytes());
}
