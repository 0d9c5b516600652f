//! Rows that a query holds from one step to the next.
//!
//! A step reads rows in a turn ([`cpu_scheduler::WorkClass::Read`]), and the number of turns bounds
//! what is in memory of all steps. What a query holds between two steps is no part of that. So it
//! is charged to the client's memory, as the answer is, and holds no blocks of the disk.

use bytes::Bytes;
use client_memory::MemoryCharge;
use cql::error::{CqlError, ErrorKind};
use storage::read::Row;

/// The bytes of a row or record from which on it is large. What is smaller is read on the async
/// thread, too, and is copied where it is held. A block of the disk has one large row at most, and
/// then hardly more.
pub(super) const LARGE_BYTES: usize = 64 << 10;

/// A row that may be held from one step to the next.
pub(super) struct HeldRow {
    row: Row,
    /// The bytes that the row takes; `None` as long as it may be part of a block that does not
    /// belong to it.
    own_bytes: Option<usize>,
}

impl HeldRow {
    /// A row as it was read.
    pub(super) fn new(row: Row) -> HeldRow {
        HeldRow {
            row,
            own_bytes: None,
        }
    }

    /// The row.
    pub(super) fn row(&self) -> &Row {
        &self.row
    }

    /// The row by itself.
    pub(super) fn into_row(self) -> Row {
        self.row
    }

    /// Copies a small row out of the block that it was read from. Returns the bytes that the row
    /// takes.
    pub(super) fn own(&mut self) -> usize {
        if let Some(bytes) = self.own_bytes {
            return bytes;
        }
        let bytes = self.row.memory_bytes();
        if bytes < LARGE_BYTES {
            self.row.detach();
        }
        self.own_bytes = Some(bytes);
        bytes
    }
}

/// A copy of a value that is small, which holds no block of the disk; a large value itself.
pub(super) fn own_value(value: &Bytes) -> Bytes {
    match value.len() < LARGE_BYTES {
        true => Bytes::copy_from_slice(value),
        false => value.clone(),
    }
}

/// Charges rows that are held.
///
/// # Errors
/// Rows for which there is no memory.
pub(super) fn charge_rows(charge: &mut MemoryCharge, bytes: usize) -> Result<(), CqlError> {
    charge.resize(bytes).map_err(|_| {
        let message = format!(
            "Overloaded: there is no memory for the {} KiB of rows that this query has to hold, as other answers are \
             not read yet; read them first, use a LIMIT, or start the server with a larger --memory-limit",
            bytes >> 10
        );
        CqlError::new(ErrorKind::Overloaded, message)
    })
}
