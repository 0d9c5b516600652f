//! A page of rows in the form of the native protocol.

mod json;

use std::ops::Range;

use bytes::BytesMut;
use client_memory::{MemoryAccount, MemoryCharge};
use cql::error::CqlError;

use super::expression::{EvaluationContext, OutputColumns};
use crate::statement::answer_memory_error;

/// The size in bytes at which a page ends, even with fewer rows than requested. It bounds the
/// memory that unexpectedly large rows take on both sides.
pub(super) const PAGE_BYTES_MAX: usize = 16 << 20;

/// The most bytes of a result without paging. Such a result is one frame, and no frame of the
/// protocol is larger.
pub(super) const RESULT_BYTES_MAX: usize = 256 << 20;

/// The least number of bytes that a body is charged beyond its present size. It is charged an
/// eighth of its size more, if that is greater.
const AHEAD_BYTES_MIN: usize = 4 << 10;

#[derive(Debug)]
/// A page under way: its rows in the form of the native protocol.
pub(super) struct ResultPage {
    /// The rows, as in [`crate::statement::ResultRows::body`].
    pub body: BytesMut,
    /// The number of rows.
    pub count: u32,
    /// The number of rows at which the page is full; `None` without paging.
    rows_max: Option<usize>,
    /// The memory that the body is charged for.
    pub charge: MemoryCharge,
}

impl ResultPage {
    /// Makes an empty page of at most `rows_max` rows; `None` means that there is no paging. The
    /// page is charged to `memory`.
    pub(super) fn new(rows_max: Option<usize>, memory: &MemoryAccount) -> ResultPage {
        ResultPage {
            body: BytesMut::new(),
            count: 0,
            rows_max,
            charge: memory.charge(),
        }
    }

    /// Whether the page has all the rows, or all the bytes, that it may have. Always false without
    /// paging.
    pub(super) fn is_full(&self) -> bool {
        self.rows_max.is_some_and(|rows_max| {
            self.count as usize >= rows_max || self.body.len() >= PAGE_BYTES_MAX
        })
    }

    /// The number of rows that the page has room for; `None` without paging.
    pub(super) fn room(&self) -> Option<usize> {
        let rows_max = self.rows_max?;
        Some(rows_max.saturating_sub(self.count as usize))
    }

    /// Whether more rows can follow on another page.
    pub(super) fn is_paged(&self) -> bool {
        self.rows_max.is_some()
    }

    /// Appends a row.
    ///
    /// # Errors
    /// An expression that fails, a result too large for a frame, and a result for which there is no
    /// memory.
    pub(super) fn push(
        &mut self,
        outputs: &OutputColumns,
        scope: EvaluationContext<'_>,
    ) -> Result<(), CqlError> {
        scope.clock.begin_row();
        match outputs {
            // A row can name a large value many times, so it is charged for as it grows.
            OutputColumns::Values(values) => {
                for value in values {
                    value.put(scope, &mut self.body)?;
                    self.charge(0)?;
                }
            }
            OutputColumns::Json(fields) => self.put_object(fields, scope)?,
        }
        self.count += 1;
        Ok(())
    }

    /// Charges the body, and as many bytes more as are about to follow.
    ///
    /// # Errors
    /// A body that is too large for a frame, and one for which there is no memory.
    pub(super) fn charge(&mut self, more: usize) -> Result<(), CqlError> {
        let bytes = self.body.len() + more;
        if bytes > RESULT_BYTES_MAX {
            return Err(CqlError::invalid(format!(
                "The result is larger than {} MiB; use paging, a LIMIT or fewer columns",
                RESULT_BYTES_MAX >> 20
            )));
        }
        if bytes > self.charge.bytes() {
            let ahead = AHEAD_BYTES_MIN.max(bytes / 8);
            self.charge
                .resize(bytes + ahead)
                .map_err(|_| answer_memory_error(self.body.len()))?;
        }
        Ok(())
    }

    /// Keeps these rows in this order. Each is a part of the body.
    ///
    /// # Errors
    /// Rows for which there is no memory, as the old and the new ones are held at the same time.
    pub(super) fn keep(
        &mut self,
        rows: impl ExactSizeIterator<Item = Range<usize>>,
    ) -> Result<(), CqlError> {
        self.charge
            .resize(2 * self.body.len())
            .map_err(|_| answer_memory_error(self.body.len()))?;
        self.count = rows.len() as u32;
        let mut body = BytesMut::with_capacity(self.body.len());
        for row in rows {
            body.extend_from_slice(&self.body[row]);
        }
        self.body = body;
        Ok(())
    }

    /// The body, with a charge of exactly its size.
    pub(super) fn into_body(mut self) -> (BytesMut, MemoryCharge) {
        // Shrinking a charge never fails.
        let _ = self.charge.resize(self.body.len());
        (self.body, self.charge)
    }
}
