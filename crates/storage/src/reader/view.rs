//! Views of a table as it was at one moment.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use uuid::Uuid;

use super::context::ReadContext;
use super::entries::{self, EntryStream};
use super::plan;
use super::sizes::{PartitionSize, PartitionWalk, WalkStep};
use super::stream::{self, RowStream};
use crate::StorageError;
use crate::key::{self, HEADER, ROW};
use crate::read::{IndexRequest, Position, ReadRequest, Row, RowKey};

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

    /// The live row at a position, and the number of tombstones there; `None` if there is no such
    /// row, and for the position of a partition as a whole, whose rows [`View::read`] gives. Does
    /// blocking file reads.
    pub fn row_at(&self, position: &Position) -> Result<(Option<Row>, u64), StorageError> {
        let context = &self.context;
        let parts = plan::split(&context.table, position)?;
        if parts.kind != ROW {
            return Ok((None, 0));
        }
        let Some(record) = context.get(&position.0)? else {
            return Ok((None, 0));
        };
        let (token, key) = context.decode_partition(parts.partition)?;
        let head = context.head(parts.partition)?;
        let mut entered = context.enter(token, key, head.as_ref());
        let partition = parts.partition.len();
        let row = context.row(&mut entered, partition, position.0.clone(), record)?;
        Ok((row, entered.tombstones))
    }

    /// The position of the partition that a position is in, as a whole.
    pub fn partition_at(&self, position: &Position) -> Result<Position, StorageError> {
        let parts = plan::split(&self.context.table, position)?;
        Ok(Position(key::bound(parts.partition, HEADER, &[]).into()))
    }

    /// The primary key at a position.
    pub fn key_at(&self, position: &Position) -> Result<RowKey, StorageError> {
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
