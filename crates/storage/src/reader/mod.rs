//! Reading: from records to live rows.

mod plan;
mod stream;

use std::sync::Arc;

use bytes::Bytes;

use crate::catalog::ColumnId;
use crate::read::{Cell, Partition, Position, Row};

pub use stream::RowStream;
pub(crate) use stream::{ReadContext, open};

/// What a row is put together from.
pub(crate) struct RowParts {
    pub partition: Arc<Partition>,
    pub clustering: Option<Vec<Bytes>>,
    pub cells: Vec<(ColumnId, Cell)>,
    /// The row's key in the engine; its position.
    pub key: Bytes,
}

pub(crate) fn build_row(parts: RowParts) -> Row {
    Row {
        partition: parts.partition,
        clustering: parts.clustering,
        cells: parts.cells,
        position: Position(parts.key),
    }
}
