//! Changes of counters. The cell of a counter holds its total: the commit reads the stored total,
//! adds to it, and writes the sum. So the journal has only sums, and to replay it twice counts
//! nothing twice. As one thread commits all writes, no other sum comes between.
//!
//! A write sees its own earlier changes, so two updates of one counter in a batch both count. A
//! deletion resets the counter to null, and the next update adds to 0. Additions to one row are
//! gathered up to the next deletion, so that the row is read and merged once for all of them.
//!
//! An update of a counter never loses to stored changes: each change gets a timestamp above those
//! in the record. Only the deletion of a range, and that of a partition of many rows, keep the
//! timestamp that they were given.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use schema::ColumnId;

use super::apply::{CommitTime, RowChanges};
use super::overlay::WriteOverlay;
use crate::StorageError;
use crate::engine::SpaceId;
use crate::layout::TableSchema;
use crate::mutation::{CellChange, CellOperation, PartitionChange};
use crate::read::Cell;
use crate::record::{Liveness, RowRecord};

/// The additions to counters that a write has not carried out yet.
#[derive(Default)]
pub(super) struct PendingAdditions<'w> {
    rows: Vec<CounterAddition<'w>>,
    /// The places in `rows`.
    places: HashMap<CounterRow<'w>, usize>,
}

/// A table's space, the key of a partition there, and the clustering values of a row; `None` for
/// statics.
type CounterRow<'w> = (SpaceId, &'w [u8], Option<&'w [Bytes]>);

struct CounterAddition<'w> {
    table: &'w TableSchema,
    partition: &'w [u8],
    change: PartitionChange,
}

impl<'w> PendingAdditions<'w> {
    /// Takes a change of a table of counters. Anything but additions is carried out at once, after
    /// the additions before it.
    pub(super) fn take(
        &mut self,
        overlay: &mut WriteOverlay<'_>,
        table: &'w TableSchema,
        partition: &'w [u8],
        change: &'w PartitionChange,
        moment: CommitTime,
    ) -> Result<(), StorageError> {
        let (row, cells, timestamp) = match change {
            PartitionChange::Row {
                clustering,
                cells,
                timestamp,
                ..
            } if adds_alone(cells) => (Some(&clustering[..]), cells, *timestamp),
            PartitionChange::Static {
                cells, timestamp, ..
            } if adds_alone(cells) => (None, cells, *timestamp),
            _ => {
                self.carry_out(overlay, moment)?;
                return carry_out(overlay, table, partition, change.clone(), moment);
            }
        };
        match self.places.get(&(table.space, partition, row)) {
            Some(at) => self.rows[*at].add(cells, timestamp),
            None => {
                let place = (table.space, partition, row);
                self.places.insert(place, self.rows.len());
                self.rows.push(CounterAddition {
                    table,
                    partition,
                    change: change.clone(),
                });
            }
        }
        Ok(())
    }

    /// Carries out the additions so far.
    pub(super) fn carry_out(
        &mut self,
        overlay: &mut WriteOverlay<'_>,
        moment: CommitTime,
    ) -> Result<(), StorageError> {
        self.places.clear();
        for CounterAddition {
            table,
            partition,
            change,
        } in self.rows.drain(..)
        {
            carry_out(overlay, table, partition, change, moment)?;
        }
        Ok(())
    }
}

impl CounterAddition<'_> {
    fn add(&mut self, more: &[CellChange], later: i64) {
        if let PartitionChange::Row {
            cells, timestamp, ..
        }
        | PartitionChange::Static {
            cells, timestamp, ..
        } = &mut self.change
        {
            cells.extend_from_slice(more);
            *timestamp = later.max(*timestamp);
        }
    }
}

fn adds_alone(cells: &[CellChange]) -> bool {
    let is_addition = |cell: &CellChange| matches!(cell.change, CellOperation::AddToCounter(_));
    cells.iter().all(is_addition)
}

fn carry_out(
    overlay: &mut WriteOverlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    change: PartitionChange,
    moment: CommitTime,
) -> Result<(), StorageError> {
    let change = resolve(overlay, table, partition, change, moment)?;
    let mut rows = RowChanges::default();
    rows.take(overlay, table, partition, &change, moment)?;
    rows.apply(overlay, moment)
}

/// The part of a partition that a change is about, as the write finds it.
struct CounterRecord {
    record: RowRecord,
    liveness: Liveness,
    is_static: bool,
}

/// Turns additions into sums, and raises the timestamp above the stored ones.
fn resolve(
    overlay: &WriteOverlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    mut change: PartitionChange,
    moment: CommitTime,
) -> Result<PartitionChange, StorageError> {
    match &mut change {
        PartitionChange::Row {
            clustering,
            cells,
            timestamp,
            ..
        } => {
            let standing = CounterRecord::row(overlay, table, partition, clustering, moment)?;
            standing.sum_up(table, cells);
            *timestamp = standing.above(*timestamp);
        }
        PartitionChange::Static {
            cells, timestamp, ..
        } => {
            let standing = CounterRecord::statics(overlay, table, partition, moment)?;
            standing.sum_up(table, cells);
            *timestamp = standing.above(*timestamp);
        }
        PartitionChange::DeleteRow {
            clustering,
            timestamp,
        } => {
            let standing = CounterRecord::row(overlay, table, partition, clustering, moment)?;
            *timestamp = standing.above(*timestamp);
        }
        PartitionChange::DeletePartition { timestamp } if !table.has_heads() => {
            let standing = CounterRecord::row(overlay, table, partition, &[], moment)?;
            *timestamp = standing.above(*timestamp);
        }
        PartitionChange::DeletePartition { .. } | PartitionChange::DeleteRange { .. } => {}
    }
    Ok(change)
}

impl CounterRecord {
    fn row(
        overlay: &WriteOverlay<'_>,
        table: &TableSchema,
        partition: &[u8],
        clustering: &[Bytes],
        moment: CommitTime,
    ) -> Result<CounterRecord, StorageError> {
        let suffix = table.keys.clustering(clustering)?;
        let head = overlay.head(table, partition)?;
        Ok(CounterRecord {
            record: overlay.row(table, partition, &suffix)?,
            liveness: Liveness {
                deleted_to: overlay.deleted_to(table, partition, &head, &suffix)?,
                now_s: moment.client_now_s,
            },
            is_static: false,
        })
    }

    fn statics(
        overlay: &WriteOverlay<'_>,
        table: &TableSchema,
        partition: &[u8],
        moment: CommitTime,
    ) -> Result<CounterRecord, StorageError> {
        Ok(CounterRecord {
            record: overlay.head(table, partition)?,
            liveness: Liveness {
                deleted_to: i64::MIN,
                now_s: moment.client_now_s,
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
        let totals = live.iter().filter_map(|(id, cell)| match cell {
            Cell::Simple(cell) => Some((*id, total_of(&cell.value)?)),
            Cell::Elements(_) => None,
        });
        let totals: BTreeMap<ColumnId, i64> = totals.collect();
        let standing = |column: ColumnId| totals.get(&column).copied().unwrap_or(0);
        // A change may add to one counter several times, and leaves one sum.
        let mut sums: BTreeMap<ColumnId, i64> = BTreeMap::new();
        cells.retain(|CellChange { column, change }| {
            let CellOperation::AddToCounter(delta) = change else {
                return true;
            };
            let sum = sums.entry(*column).or_insert_with(|| standing(*column));
            // As in Cassandra, a counter wraps around beyond 64 bits.
            *sum = sum.wrapping_add(*delta);
            false
        });
        cells.extend(sums.into_iter().map(|(column, sum)| CellChange {
            column,
            change: CellOperation::Set(Bytes::copy_from_slice(&sum.to_be_bytes())),
        }));
    }

    /// The timestamp, raised above all stored ones.
    fn above(&self, timestamp: i64) -> i64 {
        let newest = self.record.newest().max(self.liveness.deleted_to);
        timestamp.max(newest.saturating_add(1))
    }
}

fn total_of(value: &[u8]) -> Option<i64> {
    value.first_chunk::<8>().copied().map(i64::from_be_bytes)
}
