//! Views of a table as it was at one moment.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use uuid::Uuid;

use super::cells::{self, CellStream};
use super::context::ReadContext;
use super::entries::{self, EntryStream};
use super::plan;
use super::sizes::{PartitionSize, PartitionWalk, WalkStep};
use super::stream::{self, RowStream};
use crate::StorageError;
use crate::key::{self, HEADER, ROW};
use crate::read::{IndexRequest, NextRow, ReadRequest, Row, RowKey, RowPosition};
use crate::record;

/// A view of a table as it was at one moment. All reads see the same state, whatever is written
/// meanwhile. Cheap to clone.
#[derive(Clone)]
pub struct TableView {
    context: Arc<ReadContext>,
}

impl TableView {
    pub(crate) fn new(context: ReadContext) -> TableView {
        TableView {
            context: Arc::new(context),
        }
    }

    /// Reads the rows of a request for this table. The stream does blocking file reads when it is
    /// advanced.
    pub fn read(&self, request: &ReadRequest) -> Result<RowStream, StorageError> {
        stream::open(Arc::clone(&self.context), request)
    }

    /// Takes a step of a walk over the partitions: passes the next entries, at most so many. Does
    /// blocking file reads.
    pub fn walk(
        &self,
        walk: &mut PartitionWalk,
        entries_max: usize,
        is_wanted: impl Fn(&PartitionSize) -> bool,
    ) -> Result<WalkStep, StorageError> {
        walk.step(&self.context, entries_max, is_wanted)
    }

    /// Starts a read of all live rows with the times of their cells.
    ///
    /// # Errors
    /// If the files can't be read.
    pub fn cells(&self) -> Result<CellStream, StorageError> {
        cells::open(Arc::clone(&self.context))
    }

    /// The state that all reads see.
    pub(crate) fn context(&self) -> &ReadContext {
        &self.context
    }

    /// Whether a secondary index has the entries of all rows. Until it has, a read by it lacks
    /// rows.
    pub fn is_index_ready(&self, index: Uuid) -> Result<bool, StorageError> {
        Ok(self.context.table.index(index)?.is_ready)
    }

    /// Starts a read of the positions that a secondary index has under some values. The stream
    /// does blocking file reads when it is advanced.
    pub fn positions(&self, request: &IndexRequest) -> Result<EntryStream, StorageError> {
        let index = self.context.table.index(request.index)?;
        entries::open(Arc::clone(&self.context), index, request)
    }

    /// The live row at a position, and the number of tombstones there. There is no such row at the
    /// position of a partition as a whole, whose rows [`TableView::read`] gives. A record that is
    /// longer than `record_bytes_max` is not decoded. Does blocking file reads.
    pub fn row_at(
        &self,
        position: &RowPosition,
        record_bytes_max: usize,
    ) -> Result<(NextRow, u64), StorageError> {
        let context = &self.context;
        let parts = plan::split(&context.table, position)?;
        if parts.kind != ROW {
            return Ok((NextRow::Nothing, 0));
        }
        let Some(stored) = context.stored(&position.0)? else {
            return Ok((NextRow::Nothing, 0));
        };
        let head = context.stored_head(parts.partition)?;
        if is_large(&stored, head.as_ref(), record_bytes_max) {
            return Ok((NextRow::Large, 0));
        }
        let record = record::decode(stored)?;
        let head = head.map(record::decode).transpose()?;
        let (token, key) = context.decode_partition(parts.partition)?;
        let mut entered = context.enter(token, key, head.as_ref());
        let partition = parts.partition.len();
        let row = context.row(&mut entered, partition, position.0.clone(), record)?;
        let next = row.map_or(NextRow::Nothing, NextRow::Row);
        Ok((next, entered.tombstones))
    }

    /// The position of the partition that a position is in, as a whole.
    pub fn partition_at(&self, position: &RowPosition) -> Result<RowPosition, StorageError> {
        let parts = plan::split(&self.context.table, position)?;
        Ok(RowPosition(key::bound(parts.partition, HEADER, &[]).into()))
    }

    /// The primary key at a position.
    pub fn key_at(&self, position: &RowPosition) -> Result<RowKey, StorageError> {
        let context = &self.context;
        let parts = plan::split(&context.table, position)?;
        let (token, partition_key) = context.decode_partition(parts.partition)?;
        let clustering = match parts.kind {
            ROW => context.table.keys.decode_clustering(parts.suffix),
            _ => None,
        };
        Ok(RowKey {
            token,
            partition_key,
            clustering,
        })
    }

    /// The live row with a primary key, given as the serialised values of its columns; `None` if
    /// there is none. `clustering` is empty for a table without clustering columns. This is less
    /// work than a stream for one row. Does blocking file reads.
    pub fn row(
        &self,
        partition: Vec<Bytes>,
        clustering: &[Bytes],
    ) -> Result<Option<Row>, StorageError> {
        Ok(match self.row_within(&partition, clustering, usize::MAX)? {
            NextRow::Row(row) => Some(row),
            NextRow::Nothing | NextRow::Large => None,
        })
    }

    /// As [`TableView::row`], but a record that is longer than `record_bytes_max` is not decoded.
    pub fn row_within(
        &self,
        partition: &[Bytes],
        clustering: &[Bytes],
        record_bytes_max: usize,
    ) -> Result<NextRow, StorageError> {
        let context = &self.context;
        let looked_up = context.engine.rows_looked_up();
        looked_up.fetch_add(1, Ordering::Relaxed);
        let (token, prefix) = context.table.keys.partition(partition)?;
        let suffix = context.table.keys.clustering(clustering)?;
        let row_key = key::bound(&prefix, ROW, &suffix);
        let Some(stored) = context.stored(&row_key)? else {
            return Ok(NextRow::Nothing);
        };
        let head = context.stored_head(&prefix)?;
        if is_large(&stored, head.as_ref(), record_bytes_max) {
            return Ok(NextRow::Large);
        }
        let record = record::decode(stored)?;
        let head = head.map(record::decode).transpose()?;
        let mut entered = context.enter(token, partition.to_vec(), head.as_ref());
        let row = context.row(&mut entered, prefix.len(), row_key.into(), record)?;
        Ok(row.map_or(NextRow::Nothing, NextRow::Row))
    }
}

/// Whether the record of a row or that of its partition is longer than this.
fn is_large(row: &Bytes, head: Option<&Bytes>, record_bytes_max: usize) -> bool {
    row.len() > record_bytes_max || head.is_some_and(|head| head.len() > record_bytes_max)
}
