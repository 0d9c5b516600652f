//! Result sets: written cell by cell into one buffer, and read back.

use bytes::Bytes;

use super::metadata::Metadata;
use super::primitives::DecodeError;

/// A result set in its encoded form.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Where the next page begins; `None` on the last page.
    pub paging_state: Option<Bytes>,
}

/// A result set taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedRows {
    /// The columns; `None` if the server was asked to leave them out.
    pub metadata: Option<Metadata>,
    /// Where the next page begins; `None` on the last page.
    pub paging_state: Option<Bytes>,
    /// The cells, row by row, `None` for null. They share the frame's memory.
    pub rows: Vec<Vec<Option<Bytes>>>,
}

impl Rows {
    /// How many rows there are.
    pub fn row_count(&self) -> usize {
        todo!()
    }

    /// Takes the result set apart.
    ///
    /// # Errors
    /// If it is malformed; never for what a [`RowsEncoder`] made.
    pub fn decode(&self) -> Result<DecodedRows, DecodeError> {
        todo!()
    }
}

/// Writes a result set row by row.
///
/// Cells are copied once, into one growing buffer; there is no allocation for a cell or a row.
#[derive(Debug)]
pub struct RowsEncoder {}

impl RowsEncoder {
    /// Begins a result set of the given columns. With `skip_metadata` only their number is sent.
    pub fn new(metadata: &Metadata, skip_metadata: bool) -> Self {
        let _ = (metadata, skip_metadata);
        todo!()
    }

    /// Appends the next cell of the current row: a serialised value, or `None` for null.
    pub fn cell(&mut self, value: Option<&[u8]>) {
        let _ = value;
        todo!()
    }

    /// Ends the current row.
    ///
    /// # Panics
    /// If the row has not as many cells as there are columns: that is a bug of the caller.
    pub fn end_row(&mut self) {
        todo!()
    }

    /// Takes back the cells of the row that was not ended yet.
    pub fn abandon_row(&mut self) {
        todo!()
    }

    /// Rows ended so far.
    pub fn row_count(&self) -> usize {
        todo!()
    }

    /// Bytes written so far, metadata included: what a page bounded by size is measured by.
    pub fn encoded_length(&self) -> usize {
        todo!()
    }

    /// Ends the result set; `paging_state` tells where the next page begins, `None` that this is the last.
    pub fn finish(self, paging_state: Option<Bytes>) -> Rows {
        let _ = paging_state;
        todo!()
    }
}
