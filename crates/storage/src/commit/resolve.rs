//! Resolves the mutations of a write against the state before it.

use bytes::Bytes;
use value::token::Token;

use super::apply::CommitTime;
use super::lists::{self, ChangeTimes, ListRow, LoadedLists};
use super::overlay::WriteOverlay;
use crate::StorageError;
use crate::layout::{ResolvedSchema, TableSchema};
use crate::mutation::{PartitionChange, PartitionMutation};

/// A mutation with its table and the place of its partition. Its changes name elements of lists by
/// their paths, and have their final timestamps.
pub(super) struct ResolvedMutation<'s> {
    pub table: &'s TableSchema,
    /// Serialised values of the partition key columns.
    pub partition_key: Vec<Bytes>,
    /// Token and partition key, as keys of records begin.
    pub partition: Vec<u8>,
    pub token: Token,
    pub changes: Vec<PartitionChange>,
}

/// Finds the table, sets the timestamps of a conditional write, and turns list operations into
/// operations by path, according to the state before the write and the operations before them in
/// the same change.
///
/// Timestamps of a conditional write are raised to at least `floor`, which is `None` for other
/// writes. As in Cassandra, its deletions of partitions and ranges get a timestamp just below: they
/// cover all that is stored, and leave what the other statements of the batch write.
pub(super) fn resolve<'s>(
    overlay: &WriteOverlay<'_>,
    schema: &'s ResolvedSchema,
    mutation: PartitionMutation,
    floor: Option<i64>,
    moment: CommitTime,
    lists: &mut LoadedLists,
) -> Result<ResolvedMutation<'s>, StorageError> {
    let table = schema.table(mutation.table)?;
    let (token, partition) = table.keys.partition(&mutation.partition_key)?;
    let raised = |timestamp: i64| floor.unwrap_or(timestamp).max(timestamp);
    let times = |timestamp: i64, ttl_s: Option<u32>| ChangeTimes {
        timestamp,
        ttl_s,
        moment,
    };
    let mut changes = mutation.changes;
    for change in &mut changes {
        match change {
            PartitionChange::Row {
                clustering,
                cells,
                timestamp,
                ttl_s,
                ..
            } => {
                *timestamp = raised(*timestamp);
                if lists::needs_list(cells) {
                    let suffix = table.keys.clustering(clustering)?;
                    let row = ListRow {
                        table,
                        partition: &partition,
                        suffix: Some(&suffix),
                    };
                    let times = times(*timestamp, *ttl_s);
                    *cells = lists.resolve(overlay, row, std::mem::take(cells), times)?;
                }
            }
            PartitionChange::Static {
                cells,
                timestamp,
                ttl_s,
            } => {
                *timestamp = raised(*timestamp);
                if lists::needs_list(cells) {
                    let head = ListRow {
                        table,
                        partition: &partition,
                        suffix: None,
                    };
                    let times = times(*timestamp, *ttl_s);
                    *cells = lists.resolve(overlay, head, std::mem::take(cells), times)?;
                }
            }
            PartitionChange::DeleteRow { timestamp, .. } => *timestamp = raised(*timestamp),
            PartitionChange::DeleteRange { timestamp, .. }
            | PartitionChange::DeletePartition { timestamp } => {
                *timestamp = raised(*timestamp).saturating_sub(i64::from(floor.is_some()));
            }
        }
    }
    Ok(ResolvedMutation {
        table,
        partition_key: mutation.partition_key,
        partition,
        token,
        changes,
    })
}
