//! A page of rows in the form of the wire.

use bytes::BytesMut;
use client_memory::{Account, Charge};
use cql::error::{CqlError, ErrorKind};

use super::expression::{Expression, Scope};

/// A page ends here even if its rows are fewer than asked for, so that neither side has to hold
/// more of rows whose size nobody foresaw.
pub(super) const PAGE_BYTES_MAX: usize = 16 << 20;

/// Without paging the whole result is one frame, and frames of the protocol end here.
pub(super) const RESULT_BYTES_MAX: usize = 256 << 20;

/// A body is charged for so much more than it needs at the moment: an eighth, and no less than this.
const AHEAD_BYTES_MIN: usize = 4 << 10;

#[derive(Debug)]
pub(super) struct Page {
    pub body: BytesMut,
    pub count: u32,
    /// `None` without paging.
    rows_max: Option<usize>,
    /// What the body is charged for.
    pub charge: Charge,
}

impl Page {
    /// `expected_rows`: as many as there may be, if it is known.
    pub(super) fn new(rows_max: Option<usize>, memory: &Account) -> Page {
        Page {
            body: BytesMut::new(),
            count: 0,
            rows_max,
            charge: memory.charge(),
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
    /// What the expressions refuse, a result too large for a frame, and one for which there is no memory.
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
        if self.body.len() > self.charge.bytes() {
            let ahead = AHEAD_BYTES_MIN.max(self.body.len() / 8);
            self.charge
                .resize(self.body.len() + ahead)
                .map_err(|_| no_room(self.body.len()))?;
        }
        Ok(())
    }

    /// The body, and the charge of exactly that.
    pub(super) fn into_body(mut self) -> (BytesMut, Charge) {
        // To make it smaller never fails.
        let _ = self.charge.resize(self.body.len());
        (self.body, self.charge)
    }
}

fn no_room(bytes: usize) -> CqlError {
    let message = format!(
        "Overloaded: after {} KiB there is no memory for more of this answer, as others are not read yet; read them first, \
         use paging or a LIMIT, or start the server with a larger --memory-limit",
        bytes >> 10
    );
    CqlError::new(ErrorKind::Overloaded, message)
}
