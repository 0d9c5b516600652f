//! Views of a table as it was at one moment.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;

use super::context::ReadContext;
use super::stream::{self, RowStream};
use crate::StorageError;
use crate::key::{self, ROW};
use crate::read::{ReadRequest, Row};

/// A view of a table as it was at one moment. All reads see the same state, whatever is written
/// meanwhile. Cheap to clone.
#[derive(Clone)]
pub struct View {
    context: Arc<ReadContext>,
}

impl View {
    pub(crate) fn new(context: ReadContext) -> View {
        View {
            context: Arc::new(context),
        }
    }

    /// Reads the rows of a request for this table. The stream does blocking file reads when it is
    /// advanced.
    pub(crate) fn read(&self, request: &ReadRequest) -> Result<RowStream, StorageError> {
        stream::open(Arc::clone(&self.context), request)
    }

    /// The live row with a primary key, given as the serialised values of its columns; `None` if
    /// there is none. `clustering` is empty for a table without clustering columns. This is less
    /// work than a stream for one row. Does blocking file reads.
    pub fn row(
        &self,
        partition: Vec<Bytes>,
        clustering: &[Bytes],
    ) -> Result<Option<Row>, StorageError> {
        let context = &self.context;
        let looked_up = context.engine.rows_looked_up();
        looked_up.fetch_add(1, Ordering::Relaxed);
        let (token, prefix) = context.table.keys.partition(&partition)?;
        let suffix = context.table.keys.clustering(clustering)?;
        let row_key = key::bound(&prefix, ROW, &suffix);
        let Some(record) = context.get(&row_key)? else {
            return Ok(None);
        };
        let head = context.head(&prefix)?;
        let mut entered = context.enter(token, partition, head.as_ref());
        context.row(&mut entered, prefix.len(), row_key.into(), record)
    }
}
