//! Merges one change into the stored records.

use bytes::Bytes;
use schema::ColumnKind;

use super::overlay::Overlay;
use super::sweep::Sweep;
use crate::StorageError;
use crate::key::SuffixRange;
use crate::layout::TableSchema;
use crate::mutation::{CellChange, CellOperation, Change};
use crate::ranges;
use crate::read::Expiry;
use crate::record::{CellRecord, ColumnRecord, Content, Deletion, Lifetime, Marker, Record};

/// The time of a commit, which all its changes share but for the present that clients tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub now_micros: i64,
    pub now_s: i64,
    /// The present by which a write's values expire, and by which it sees those that stand: that of
    /// the commit, or the one that its client tells. Seconds since the epoch.
    pub told_s: i64,
}

impl Moment {
    /// This moment for a write whose client may tell its present.
    pub(super) fn told(self, told_s: Option<i64>) -> Self {
        Moment {
            told_s: told_s.unwrap_or(self.now_s),
            ..self
        }
    }

    pub(super) fn lifetime(self, ttl_s: Option<u32>) -> Lifetime {
        ttl_s.filter(|ttl| *ttl > 0).map(|ttl_s| Expiry {
            ttl_s,
            at_s: self.told_s.saturating_add(i64::from(ttl_s)),
        })
    }

    fn deletion(self, timestamp: i64) -> Deletion {
        Deletion {
            timestamp,
            local_s: self.now_s,
        }
    }
}

/// Applies a change. List operations by position or value must be resolved already
/// ([`super::lists`]).
pub(super) fn apply(
    overlay: &mut Overlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    change: &Change,
    moment: Moment,
) -> Result<(), StorageError> {
    match change {
        Change::Row {
            clustering,
            cells,
            timestamp,
            ttl_s,
            marker,
        } => {
            let lifetime = lifetime(overlay, table, *ttl_s, moment);
            let mut row = cells_record(
                table,
                ColumnKind::Regular,
                cells,
                *timestamp,
                lifetime,
                moment,
            )?;
            row.marker = marker.then_some(Marker {
                timestamp: *timestamp,
                lifetime,
            });
            merge_row(overlay, table, partition, clustering, row, moment)
        }
        Change::Static {
            cells,
            timestamp,
            ttl_s,
        } => {
            let lifetime = lifetime(overlay, table, *ttl_s, moment);
            let statics = cells_record(
                table,
                ColumnKind::Static,
                cells,
                *timestamp,
                lifetime,
                moment,
            )?;
            let mut head = overlay.head(table, partition)?;
            head.merge(statics, |id| table.type_of(id));
            overlay.put_head(table, partition, head)
        }
        Change::DeleteRow {
            clustering,
            timestamp,
        } => {
            let row = deleted(moment.deletion(*timestamp));
            merge_row(overlay, table, partition, clustering, row, moment)
        }
        Change::DeleteRange {
            start,
            end,
            timestamp,
        } => {
            let range = table.keys.suffix_range(start, end)?;
            delete_range(
                overlay,
                table,
                partition,
                range,
                moment.deletion(*timestamp),
            )
        }
        Change::DeletePartition { timestamp } if !table.has_heads() => {
            let row = deleted(moment.deletion(*timestamp));
            merge_row(overlay, table, partition, &[], row, moment)
        }
        Change::DeletePartition { timestamp } => {
            delete_partition(overlay, table, partition, moment.deletion(*timestamp))
        }
    }
}

/// A record that is nothing but a deletion.
fn deleted(deletion: Deletion) -> Record {
    Record {
        deletion: Some(deletion),
        ..Record::default()
    }
}

fn delete_range(
    overlay: &mut Overlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    range: SuffixRange,
    deletion: Deletion,
) -> Result<(), StorageError> {
    let mut head = overlay.head(table, partition)?;
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
        .push(Sweep::new(table.space, partition, range, deletion));
    if head.has_ranges {
        return Ok(());
    }
    head.has_ranges = true;
    overlay.put_head(table, partition, head)
}

/// Deletes a partition that has a head.
fn delete_partition(
    overlay: &mut Overlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    deletion: Deletion,
) -> Result<(), StorageError> {
    let mut head = overlay.head(table, partition)?;
    head.merge(deleted(deletion), |id| table.type_of(id));
    if head.deletion == Some(deletion) && !head.swept {
        let range = SuffixRange::whole();
        overlay
            .write
            .sweeps
            .push(Sweep::new(table.space, partition, range, deletion));
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
    overlay: &mut Overlay<'_>,
    table: &TableSchema,
    ttl_s: Option<u32>,
    moment: Moment,
) -> Lifetime {
    let lifetime = moment.lifetime(ttl_s);
    if lifetime.is_some() {
        overlay.write.expiring.insert(table.table.id);
    }
    lifetime
}

fn merge_row(
    overlay: &mut Overlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    clustering: &[Bytes],
    mut change: Record,
    moment: Moment,
) -> Result<(), StorageError> {
    let suffix = table.keys.clustering(clustering)?;
    let key = crate::key::join(partition, crate::key::ROW, &suffix)?;
    change.clustering = table.keys.original_clustering(clustering, &suffix);
    let head = overlay.head(table, partition)?;
    let deleted_to = overlay.deleted_to(table, partition, &head, &suffix)?;
    let mut row = overlay.row(table, partition, &suffix)?;
    row.merge(change, |id| table.type_of(id));
    row.apply_wider_deletion(deleted_to);
    // Reads under way see the version before this one, so the row may be trimmed at once.
    row.forget(moment.now_s - i64::from(table.table.gc_grace_s) - 1);
    if row.is_empty() {
        row = Record::default();
    }
    overlay.put(table.space, key, row);
    Ok(())
}

/// The cells of a change. Columns that were dropped meanwhile are left out.
pub(super) fn cells_record(
    table: &TableSchema,
    kind: ColumnKind,
    cells: &[CellChange],
    timestamp: i64,
    lifetime: Lifetime,
    moment: Moment,
) -> Result<Record, StorageError> {
    let mut record = Record::default();
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
            content: Content::Value {
                value: value.clone(),
                lifetime,
            },
        };
        let tombstone = CellRecord {
            timestamp,
            content: Content::Tombstone {
                local_s: moment.now_s,
            },
        };
        let put = |elements: &[(Bytes, Bytes)]| {
            elements
                .iter()
                .map(|(path, element)| (path.clone(), value(element)))
                .collect::<Vec<_>>()
        };
        let columns = match (change, column.cql_type.is_multi_cell()) {
            (CellOperation::Set(bytes), false) => ColumnRecord::Simple(value(bytes)),
            (CellOperation::Delete, false) => ColumnRecord::Simple(tombstone),
            (CellOperation::Delete, true) => ColumnRecord::Elements {
                deletion: Some(moment.deletion(timestamp)),
                cells: Vec::new(),
            },
            (CellOperation::ReplaceElements(elements), true) => ColumnRecord::Elements {
                // The deletion is just older than the new elements.
                deletion: Some(moment.deletion(timestamp.saturating_sub(1))),
                cells: put(elements),
            },
            (CellOperation::PutElements(elements), true) => ColumnRecord::Elements {
                deletion: None,
                cells: put(elements),
            },
            (CellOperation::DeleteElements(paths), true) => ColumnRecord::Elements {
                deletion: None,
                cells: paths
                    .iter()
                    .map(|path| (path.clone(), tombstone.clone()))
                    .collect(),
            },
            _ => return Err(wrong()),
        };
        record.merge_column(*id, columns, &column.cql_type);
    }
    Ok(record)
}
