//! Merges the changes of a write into the stored records.
//!
//! Changes of one row are gathered and merged at once, after the deletions of the write that cover
//! more than a row: merging gives the same in any order.

use std::collections::HashMap;

use bytes::Bytes;
use schema::ColumnKind;

use super::overlay::WriteOverlay;
use super::sweep::DeletionSweep;
use crate::StorageError;
use crate::engine::SpaceId;
use crate::key::SuffixRange;
use crate::layout::TableSchema;
use crate::mutation::{CellChange, CellOperation, PartitionChange};
use crate::ranges;
use crate::read::CellExpiry;
use crate::record::{
    CellContent, CellLifetime, CellRecord, DeletionTime, RowMarker, RowRecord, RowRecordBuilder,
};

/// The time of a commit, which all its changes share but for the present that clients tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommitTime {
    pub now_micros: i64,
    pub now_s: i64,
    /// The present by which a write's values expire, and by which it sees stored ones: that of the
    /// commit, or the one that its client sent. Seconds since the epoch.
    pub client_now_s: i64,
}

impl CommitTime {
    /// This moment for a write whose client may have sent its present.
    pub(super) fn with_client_now(self, client_now_s: Option<i64>) -> Self {
        CommitTime {
            client_now_s: client_now_s.unwrap_or(self.now_s),
            ..self
        }
    }

    pub(super) fn lifetime(self, ttl_s: Option<u32>) -> CellLifetime {
        ttl_s.filter(|ttl| *ttl > 0).map(|ttl_s| CellExpiry {
            ttl_s,
            at_s: self.client_now_s.saturating_add(i64::from(ttl_s)),
        })
    }

    fn deletion(self, timestamp: i64) -> DeletionTime {
        DeletionTime {
            timestamp,
            local_s: self.now_s,
        }
    }
}

/// The changes of rows and heads that a write has so far.
#[derive(Default)]
pub(super) struct RowChanges<'w> {
    rows: Vec<RowChange<'w>>,
    /// The places in `rows`.
    places: HashMap<(SpaceId, &'w [u8], RowOrHead), usize>,
}

/// A row of a partition by its suffix, or the head.
#[derive(Clone, PartialEq, Eq, Hash)]
enum RowOrHead {
    Suffix(Vec<u8>),
    Head,
}

struct RowChange<'w> {
    table: &'w TableSchema,
    partition: &'w [u8],
    row: RowOrHead,
    gathered: RowRecordBuilder,
}

impl<'w> RowChanges<'w> {
    /// Takes a change of one row or of a partition's statics. Deletions of more are applied at
    /// once. List operations by position or value must be resolved already ([`super::lists`]).
    pub(super) fn take(
        &mut self,
        overlay: &mut WriteOverlay<'_>,
        table: &'w TableSchema,
        partition: &'w [u8],
        change: &PartitionChange,
        moment: CommitTime,
    ) -> Result<(), StorageError> {
        match change {
            PartitionChange::Row {
                clustering,
                cells,
                timestamp,
                ttl_s,
                marker,
            } => {
                let lifetime = lifetime(overlay, table, *ttl_s, moment);
                let times = CellTimes {
                    timestamp: *timestamp,
                    lifetime,
                    moment,
                };
                let row = self.row(table, partition, clustering)?;
                gather(row, table, ColumnKind::Regular, cells, times)?;
                if *marker {
                    row.mark(RowMarker {
                        timestamp: *timestamp,
                        lifetime,
                    });
                }
                Ok(())
            }
            PartitionChange::Static {
                cells,
                timestamp,
                ttl_s,
            } => {
                let times = CellTimes {
                    timestamp: *timestamp,
                    lifetime: lifetime(overlay, table, *ttl_s, moment),
                    moment,
                };
                let head = self.gathered(table, partition, RowOrHead::Head);
                gather(head, table, ColumnKind::Static, cells, times)
            }
            PartitionChange::DeleteRow {
                clustering,
                timestamp,
            } => {
                let row = self.row(table, partition, clustering)?;
                row.delete(moment.deletion(*timestamp));
                Ok(())
            }
            PartitionChange::DeleteRange {
                start,
                end,
                timestamp,
            } => {
                let range = table.keys.suffix_range(start, end)?;
                let deletion = moment.deletion(*timestamp);
                delete_range(overlay, table, partition, range, deletion)
            }
            PartitionChange::DeletePartition { timestamp } if !table.has_heads() => {
                let row = self.row(table, partition, &[])?;
                row.delete(moment.deletion(*timestamp));
                Ok(())
            }
            PartitionChange::DeletePartition { timestamp } => {
                delete_partition(overlay, table, partition, moment.deletion(*timestamp))
            }
        }
    }

    /// Merges the changes into the stored records.
    pub(super) fn apply(
        self,
        overlay: &mut WriteOverlay<'_>,
        moment: CommitTime,
    ) -> Result<(), StorageError> {
        for RowChange {
            table,
            partition,
            row,
            gathered,
        } in self.rows
        {
            let change = gathered.into_record(|id| table.type_of(id));
            match row {
                RowOrHead::Suffix(suffix) => {
                    merge_row(overlay, table, partition, &suffix, change, moment)?;
                }
                RowOrHead::Head => {
                    let mut head = overlay.head(table, partition)?;
                    head.merge(change, |id| table.type_of(id));
                    overlay.put_head(table, partition, head)?;
                }
            }
        }
        Ok(())
    }

    fn row(
        &mut self,
        table: &'w TableSchema,
        partition: &'w [u8],
        clustering: &[Bytes],
    ) -> Result<&mut RowRecordBuilder, StorageError> {
        let suffix = table.keys.clustering(clustering)?;
        let given = table.keys.original_clustering(clustering, &suffix);
        let gathered = self.gathered(table, partition, RowOrHead::Suffix(suffix));
        gathered.name(given);
        Ok(gathered)
    }

    fn gathered(
        &mut self,
        table: &'w TableSchema,
        partition: &'w [u8],
        row: RowOrHead,
    ) -> &mut RowRecordBuilder {
        let rows = &mut self.rows;
        let place = self.places.entry((table.space, partition, row.clone()));
        let at = *place.or_insert_with(|| {
            rows.push(RowChange {
                table,
                partition,
                row,
                gathered: RowRecordBuilder::default(),
            });
            rows.len() - 1
        });
        &mut self.rows[at].gathered
    }
}

/// A record that is nothing but a deletion.
fn deleted(deletion: DeletionTime) -> RowRecord {
    RowRecord {
        deletion: Some(deletion),
        ..RowRecord::default()
    }
}

fn delete_range(
    overlay: &mut WriteOverlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    range: SuffixRange,
    deletion: DeletionTime,
) -> Result<(), StorageError> {
    let mut head = overlay.head(table, partition)?;
    // A deletion of the whole partition that is as new hides the range already.
    let covered = head
        .deletion
        .is_some_and(|of_all| of_all.timestamp >= deletion.timestamp);
    if range.is_empty() || covered {
        return Ok(());
    }
    // The ends become parts of keys, so their lengths are checked.
    crate::key::join(partition, crate::key::RANGE, &range.low)?;
    crate::key::join(partition, crate::key::RANGE, &range.high)?;
    let old = if head.has_ranges {
        overlay.ranges_over(table, partition, &range)?
    } else {
        Vec::new()
    };
    let new = ranges::add(&old, &range, deletion);
    if new == old {
        // Newer deletions cover the whole range.
        return Ok(());
    }
    overlay.replace_ranges(table, partition, old, new);
    overlay
        .write
        .sweeps
        .push(DeletionSweep::new(table.space, partition, range, deletion));
    // Reads look for range deletions only where the head says that there are some.
    if head.has_ranges {
        return Ok(());
    }
    head.has_ranges = true;
    overlay.put_head(table, partition, head)
}

/// Deletes a partition that has a head.
fn delete_partition(
    overlay: &mut WriteOverlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    deletion: DeletionTime,
) -> Result<(), StorageError> {
    let mut head = overlay.head(table, partition)?;
    head.merge(deleted(deletion), |id| table.type_of(id));
    // A newer deletion may have won, and has a sweep of its own.
    if head.deletion == Some(deletion) && !head.swept {
        let range = SuffixRange::whole();
        overlay
            .write
            .sweeps
            .push(DeletionSweep::new(table.space, partition, range, deletion));
    }
    if head.has_ranges {
        let old = overlay.ranges_over(table, partition, &SuffixRange::whole())?;
        let mut new = old.clone();
        new.retain(|range| range.deletion.timestamp > deletion.timestamp);
        head.has_ranges = !new.is_empty();
        overlay.replace_ranges(table, partition, old, new);
    }
    overlay.put_head(table, partition, head)
}

/// The lifetime of data that is written now with this time to live. Notes that the table has such
/// data.
fn lifetime(
    overlay: &mut WriteOverlay<'_>,
    table: &TableSchema,
    ttl_s: Option<u32>,
    moment: CommitTime,
) -> CellLifetime {
    let lifetime = moment.lifetime(ttl_s);
    if lifetime.is_some() {
        overlay.write.expiring.insert(table.table.id);
    }
    lifetime
}

fn merge_row(
    overlay: &mut WriteOverlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    suffix: &[u8],
    change: RowRecord,
    moment: CommitTime,
) -> Result<(), StorageError> {
    let key = crate::key::join(partition, crate::key::ROW, suffix)?;
    let head = overlay.head(table, partition)?;
    let deleted_to = overlay.deleted_to(table, partition, &head, suffix)?;
    let mut row = overlay.row(table, partition, suffix)?;
    row.merge(change, |id| table.type_of(id));
    row.apply_wider_deletion(deleted_to);
    // Reads under way see the version before this one, so the row may be trimmed at once.
    row.forget(moment.now_s - i64::from(table.table.gc_grace_s) - 1);
    if row.is_empty() {
        row = RowRecord::default();
    }
    overlay.put(table.space, key, row);
    Ok(())
}

/// The times of the cells of a change.
#[derive(Clone, Copy)]
pub(super) struct CellTimes {
    pub timestamp: i64,
    pub lifetime: CellLifetime,
    pub moment: CommitTime,
}

/// Gathers the cells of a change. Columns that were dropped meanwhile are left out.
pub(super) fn gather(
    gathered: &mut RowRecordBuilder,
    table: &TableSchema,
    kind: ColumnKind,
    cells: &[CellChange],
    times: CellTimes,
) -> Result<(), StorageError> {
    let CellTimes {
        timestamp,
        lifetime,
        moment,
    } = times;
    for CellChange { column: id, change } in cells {
        let Some(column) = table.column(*id) else {
            continue;
        };
        let wrong = || {
            StorageError::Invalid(format!(
                "column {} of type {} does not take this operation",
                column.name, column.cql_type
            ))
        };
        if column.kind != kind {
            return Err(wrong());
        }
        let value = |value: &Bytes| CellRecord {
            timestamp,
            content: CellContent::Value {
                value: value.clone(),
                lifetime,
            },
        };
        let tombstone = || CellRecord {
            timestamp,
            content: CellContent::Tombstone {
                local_s: moment.now_s,
            },
        };
        let mut put = |deletion, elements: &[(Bytes, Bytes)]| {
            let elements = elements.iter();
            let cells = elements.map(|(path, element)| (path.clone(), value(element)));
            gathered.put(*id, deletion, cells);
        };
        match (change, column.cql_type.is_multi_cell()) {
            (CellOperation::Set(bytes), false) => gathered.set(*id, value(bytes)),
            (CellOperation::Delete, false) => gathered.set(*id, tombstone()),
            (CellOperation::Delete, true) => put(Some(moment.deletion(timestamp)), &[]),
            (CellOperation::ReplaceElements(elements), true) => {
                // The deletion is just older than the new elements.
                let deletion = moment.deletion(timestamp.saturating_sub(1));
                put(Some(deletion), elements);
            }
            (CellOperation::PutElements(elements), true) => put(None, elements),
            (CellOperation::DeleteElements(paths), true) => {
                let paths = paths.iter();
                gathered.put(*id, None, paths.map(|path| (path.clone(), tombstone())));
            }
            _ => return Err(wrong()),
        }
    }
    Ok(())
}
