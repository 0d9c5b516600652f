//! A page of rows in the form of the wire.

use bytes::BytesMut;
use cql::error::CqlError;

use super::expression::{Expression, Scope};

/// A page ends here even if its rows are fewer than asked for, so that neither side has to hold
/// more of rows whose size nobody foresaw.
pub(super) const PAGE_BYTES_MAX: usize = 16 << 20;

/// Without paging the whole result is one frame, and frames of the protocol end here.
pub(super) const RESULT_BYTES_MAX: usize = 256 << 20;

#[derive(Debug)]
pub(super) struct Page {
    pub body: BytesMut,
    pub count: u32,
    /// `None` without paging.
    rows_max: Option<usize>,
}

impl Page {
    /// `expected_rows`: as many as there may be, if it is known.
    pub(super) fn new(rows_max: Option<usize>) -> Page {
        Page {
            body: BytesMut::new(),
            count: 0,
            rows_max,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows_max.is_some_and(|rows_max| {
            self.count as usize >= rows_max || self.body.len() >= PAGE_BYTES_MAX
        })
    }

    /// Whether more can follow on another page.
    pub(super) fn is_paged(&self) -> bool {
        self.rows_max.is_some()
    }

    /// Appends a row.
    ///
    /// # Errors
    /// What the expressions refuse, and a result too large for a frame.
    pub(super) fn push(
        &mut self,
        outputs: &[Expression],
        scope: Scope<'_>,
    ) -> Result<(), CqlError> {
        for output in outputs {
            output.put(scope, &mut self.body)?;
        }
        self.count += 1;
        if self.body.len() > RESULT_BYTES_MAX {
            return Err(CqlError::invalid(format!(
                "The result is larger than {} MiB; use paging, a LIMIT or fewer columns",
                RESULT_BYTES_MAX >> 20
            )));
        }
        Ok(())
    }
}
