//! The context of a read, which turns records into rows.

use std::sync::Arc;

use bytes::Bytes;
use value::token::Token;

use crate::StorageError;
use crate::engine::{Engine, SpacesSnapshot};
use crate::key::{self, HEADER};
use crate::layout::TableSchema;
use crate::ranges::{StoredRanges, TombstoneCursor};
use crate::read::{Partition, Row, RowPosition};
use crate::record::{self, Liveness, RowRecord};

/// The state that a read sees.
pub(crate) struct ReadContext {
    pub engine: Arc<Engine>,
    pub snapshot: SpacesSnapshot,
    pub table: Arc<TableSchema>,
    /// Everything that is dead at this time is hidden. Seconds since the epoch.
    pub now_s: i64,
    /// Held so that nothing that the read may see is forgotten meanwhile.
    #[expect(dead_code, reason = "held for its drop")]
    pub hold: crate::active_reads::OldestReadGuard,
    /// Held so that the files stay when the table is dropped meanwhile.
    #[expect(dead_code, reason = "held for its drop")]
    pub lease: Arc<()>,
}

/// The state of a partition that counts for all its rows.
pub(super) struct PartitionContext {
    partition: Arc<Partition>,
    deleted_to: i64,
    /// Finds the range deletion over a row; `None` if the partition has no range deletions.
    ranges: Option<TombstoneCursor>,
    /// The tombstones that were found in the partition's rows.
    pub tombstones: u64,
}

impl PartitionContext {
    /// The serialised values of the partition key columns.
    pub(super) fn key(&self) -> &[Bytes] {
        &self.partition.key
    }

    /// The serialised values of the partition key columns.
    pub(super) fn into_key(self) -> Vec<Bytes> {
        match Arc::try_unwrap(self.partition) {
            Ok(partition) => partition.key,
            Err(shared) => shared.key.clone(),
        }
    }
}

impl ReadContext {
    /// The record of a key, not decoded yet.
    pub(super) fn stored(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        self.engine.get_at(&self.snapshot, self.table.space, key)
    }

    pub(super) fn head(&self, partition: &[u8]) -> Result<Option<RowRecord>, StorageError> {
        self.stored_head(partition)?.map(record::decode).transpose()
    }

    /// The record of a partition's head, not decoded yet.
    pub(super) fn stored_head(&self, partition: &[u8]) -> Result<Option<Bytes>, StorageError> {
        if self.table.has_heads() {
            self.stored(&key::bound(partition, HEADER, &[]))
        } else {
            Ok(None)
        }
    }

    pub(super) fn enter(
        &self,
        token: Token,
        key: Vec<Bytes>,
        head: Option<&RowRecord>,
    ) -> PartitionContext {
        let liveness = Liveness {
            deleted_to: i64::MIN,
            now_s: self.now_s,
        };
        PartitionContext {
            partition: Arc::new(Partition {
                token,
                key,
                static_cells: head
                    .map(|head| liveness.statics(head, &self.table.live))
                    .unwrap_or_default(),
            }),
            deleted_to: head
                .and_then(|head| head.deletion)
                .map_or(i64::MIN, |deletion| deletion.timestamp),
            ranges: head
                .is_some_and(|head| head.has_ranges)
                .then(TombstoneCursor::default),
            tombstones: 0,
        }
    }

    pub(super) fn decode_partition(
        &self,
        partition: &[u8],
    ) -> Result<(Token, Vec<Bytes>), StorageError> {
        self.table
            .keys
            .decode_partition(partition)
            .ok_or_else(damaged_key)
    }

    /// The facts that decide about a row of the partition. The first `partition` bytes of `key` are
    /// token and partition key.
    pub(super) fn liveness(
        &self,
        entered: &mut PartitionContext,
        partition: usize,
        key: &[u8],
    ) -> Result<Liveness, StorageError> {
        let mut deleted_to = entered.deleted_to;
        if let Some(cursor) = &mut entered.ranges {
            let stored = StoredRanges {
                engine: &self.engine,
                snapshot: &self.snapshot,
                space: self.table.space,
                partition: &key[..partition],
            };
            if let Some(deletion) = cursor.covering(stored, &key[partition + 1..])? {
                deleted_to = deleted_to.max(deletion.timestamp);
            }
        }
        Ok(Liveness {
            deleted_to,
            now_s: self.now_s,
        })
    }

    /// The live row of a record; `None` if it is dead. The first `partition` bytes of `key` are
    /// token and partition key.
    pub(super) fn row(
        &self,
        entered: &mut PartitionContext,
        partition: usize,
        key: Bytes,
        record: RowRecord,
    ) -> Result<Option<Row>, StorageError> {
        let liveness = self.liveness(entered, partition, &key)?;
        let found = liveness.find(record, &self.table.live);
        entered.tombstones += found.tombstones;
        let Some(cells) = found.cells else {
            return Ok(None);
        };
        let clustering = match found.clustering {
            Some(values) => values,
            None => self
                .table
                .keys
                .decode_clustering(&key[partition + 1..])
                .ok_or_else(damaged_key)?,
        };
        Ok(Some(Row {
            partition: Arc::clone(&entered.partition),
            clustering: Some(clustering),
            cells,
            marker: found.marker,
            position: RowPosition(key),
        }))
    }

    /// The row that represents a partition without live rows: its static cells, if it has any.
    pub(super) fn static_only(&self, entered: &PartitionContext, prefix: &[u8]) -> Option<Row> {
        if entered.partition.static_cells.is_empty() {
            return None;
        }
        Some(Row {
            partition: Arc::clone(&entered.partition),
            clustering: None,
            cells: Vec::new(),
            marker: None,
            position: RowPosition(key::bound(prefix, HEADER, &[]).into()),
        })
    }
}

pub(super) fn damaged_key() -> StorageError {
    StorageError::Corrupt("a stored key can't be read: its bytes are damaged".to_owned())
}
