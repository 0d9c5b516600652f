//! Changes of counters. The cell of a counter holds its total: the commit reads the total that
//! stands, adds to it, and writes the sum. So the journal has sums alone, and to replay it twice
//! counts nothing twice. As one thread commits all writes, no other sum comes between.
//!
//! A write sees its own earlier changes, so two updates of one counter in a batch both count. A
//! deletion begins the counter anew from null, and the next update adds to 0.
//!
//! Whoever updates a counter never loses to what stands: each change gets a timestamp above those
//! in the record. Only the deletion of a range, and that of a partition of many rows, keep the
//! timestamp that they were given.

use std::collections::BTreeMap;

use bytes::Bytes;
use schema::ColumnId;

use super::apply::Moment;
use super::overlay::Overlay;
use crate::StorageError;
use crate::layout::TableSchema;
use crate::mutation::{CellChange, CellOperation, Change};
use crate::read::Cell;
use crate::record::{Liveness, Record};

/// The part of a partition that a change is about, as the write finds it.
struct Standing {
    record: Record,
    liveness: Liveness,
    is_static: bool,
}

/// Turns additions into sums, and raises the timestamp above those that stand.
pub(super) fn resolve(
    overlay: &Overlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    change: &Change,
    moment: Moment,
) -> Result<Change, StorageError> {
    let mut change = change.clone();
    match &mut change {
        Change::Row {
            clustering,
            cells,
            timestamp,
            ..
        } => {
            let standing = Standing::row(overlay, table, partition, clustering, moment)?;
            standing.sum_up(table, cells);
            *timestamp = standing.above(*timestamp);
        }
        Change::Static {
            cells, timestamp, ..
        } => {
            let standing = Standing::statics(overlay, table, partition, moment)?;
            standing.sum_up(table, cells);
            *timestamp = standing.above(*timestamp);
        }
        Change::DeleteRow {
            clustering,
            timestamp,
        } => {
            let standing = Standing::row(overlay, table, partition, clustering, moment)?;
            *timestamp = standing.above(*timestamp);
        }
        Change::DeletePartition { timestamp } if !table.has_heads() => {
            let standing = Standing::row(overlay, table, partition, &[], moment)?;
            *timestamp = standing.above(*timestamp);
        }
        Change::DeletePartition { .. } | Change::DeleteRange { .. } => {}
    }
    Ok(change)
}

impl Standing {
    fn row(
        overlay: &Overlay<'_>,
        table: &TableSchema,
        partition: &[u8],
        clustering: &[Bytes],
        moment: Moment,
    ) -> Result<Standing, StorageError> {
        let suffix = table.keys.clustering(clustering)?;
        let head = overlay.head(table, partition)?;
        Ok(Standing {
            record: overlay.row(table, partition, &suffix)?,
            liveness: Liveness {
                deleted_to: overlay.deleted_to(table, partition, &head, &suffix)?,
                now_s: moment.told_s,
            },
            is_static: false,
        })
    }

    fn statics(
        overlay: &Overlay<'_>,
        table: &TableSchema,
        partition: &[u8],
        moment: Moment,
    ) -> Result<Standing, StorageError> {
        Ok(Standing {
            record: overlay.head(table, partition)?,
            liveness: Liveness {
                deleted_to: i64::MIN,
                now_s: moment.told_s,
            },
            is_static: true,
        })
    }

    fn sum_up(&self, table: &TableSchema, cells: &mut Vec<CellChange>) {
        let live = match self.is_static {
            true => self.liveness.statics(&self.record, &table.live),
            false => {
                let row = self.liveness.row(&self.record, &table.live);
                row.unwrap_or_default()
            }
        };
        let standing = |column: ColumnId| {
            let total = live.iter().find_map(|(id, cell)| match cell {
                Cell::Simple(cell) if *id == column => total_of(&cell.value),
                _ => None,
            });
            total.unwrap_or(0)
        };
        // A change may add to one counter several times, and leaves one sum.
        let mut sums: BTreeMap<ColumnId, i64> = BTreeMap::new();
        cells.retain(|CellChange { column, change }| {
            let CellOperation::AddToCounter(delta) = change else {
                return true;
            };
            let sum = sums.entry(*column).or_insert_with(|| standing(*column));
            *sum = sum.wrapping_add(*delta);
            false
        });
        cells.extend(sums.into_iter().map(|(column, sum)| CellChange {
            column,
            change: CellOperation::Set(Bytes::copy_from_slice(&sum.to_be_bytes())),
        }));
    }

    /// The timestamp, raised above all that stands.
    fn above(&self, timestamp: i64) -> i64 {
        let newest = self.record.newest().max(self.liveness.deleted_to);
        timestamp.max(newest.saturating_add(1))
    }
}

fn total_of(value: &[u8]) -> Option<i64> {
    value.first_chunk::<8>().copied().map(i64::from_be_bytes)
}
