//! The states of the changed rows before and after a write.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use schema::ColumnId;

use crate::StorageError;
use crate::commit::apply::CommitTime;
use crate::commit::lists;
use crate::commit::overlay::WriteOverlay;
use crate::commit::resolve::ResolvedMutation;
use crate::engine::SpaceId;
use crate::layout::TableSchema;
use crate::mutation::PartitionChange;
use crate::read::Cell;
use crate::record::Liveness;

/// The live cells of a row; `None` if the row is dead.
pub(super) type LiveCells = Option<Vec<(ColumnId, Cell)>>;

/// A row that a change names by its whole key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ChangedRow<'w> {
    /// The row with these clustering values.
    Row(&'w [Bytes]),
    /// The static row.
    Static,
}

/// The states of a changed row that a kind of derived rows needs.
#[derive(Clone, Debug, Default)]
pub(super) struct NeededStates {
    /// The columns of the state before the write; `None` if that state is not needed.
    pub before: Option<RequiredColumns>,
    /// The state after the write.
    pub after: bool,
}

/// The columns of a row that are needed.
#[derive(Clone, Debug)]
pub(super) enum RequiredColumns {
    All,
    Columns(HashSet<ColumnId>),
}

impl RequiredColumns {
    /// Adds what else is needed.
    pub(super) fn add(&mut self, more: RequiredColumns) {
        match (&mut *self, more) {
            (RequiredColumns::Columns(columns), RequiredColumns::Columns(more)) => {
                columns.extend(more);
            }
            _ => *self = RequiredColumns::All,
        }
    }

    fn has(&self, id: ColumnId) -> bool {
        match self {
            RequiredColumns::All => true,
            RequiredColumns::Columns(columns) => columns.contains(&id),
        }
    }
}

/// The states of the changed rows that were needed.
#[derive(Default)]
pub(super) struct RowStates<'w> {
    /// The states before the write.
    pub before: LiveRowStates<'w>,
    /// The states after the write.
    pub after: LiveRowStates<'w>,
}

/// The states of rows at one time.
#[derive(Default)]
pub(super) struct LiveRowStates<'w>(HashMap<(SpaceId, &'w [u8], ChangedRow<'w>), LiveCells>);

impl<'w> ChangedRow<'w> {
    /// The row that a change names; `None` for a deletion of a range or of a partition of many
    /// rows.
    pub(super) fn of(table: &TableSchema, change: &'w PartitionChange) -> Option<ChangedRow<'w>> {
        match change {
            PartitionChange::Row { clustering, .. }
            | PartitionChange::DeleteRow { clustering, .. } => Some(ChangedRow::Row(clustering)),
            PartitionChange::Static { .. } => Some(ChangedRow::Static),
            // Without clustering columns the row is the partition.
            PartitionChange::DeletePartition { .. } if !table.keys.has_clustering() => {
                Some(ChangedRow::Row(&[]))
            }
            PartitionChange::DeletePartition { .. } | PartitionChange::DeleteRange { .. } => None,
        }
    }
}

impl<'w> LiveRowStates<'w> {
    /// Reads the wanted columns of a row as the overlay has it now, unless it was read before.
    pub(super) fn read(
        &mut self,
        mutation: &'w ResolvedMutation<'_>,
        row: ChangedRow<'w>,
        wanted: &RequiredColumns,
        overlay: &WriteOverlay<'_>,
        moment: CommitTime,
    ) -> Result<(), StorageError> {
        let key = (mutation.table.space, &mutation.partition[..], row);
        if let Entry::Vacant(vacant) = self.0.entry(key) {
            vacant.insert(live_cells(mutation, row, wanted, overlay, moment)?);
        }
        Ok(())
    }

    /// The live cells of a row; `None` if the row is dead or was not read.
    pub(super) fn get(
        &self,
        mutation: &'w ResolvedMutation<'w>,
        row: ChangedRow<'w>,
    ) -> Option<&Vec<(ColumnId, Cell)>> {
        let key = (mutation.table.space, &mutation.partition[..], row);
        self.0.get(&key)?.as_ref()
    }
}

fn live_cells(
    mutation: &ResolvedMutation<'_>,
    row: ChangedRow<'_>,
    wanted: &RequiredColumns,
    overlay: &WriteOverlay<'_>,
    moment: CommitTime,
) -> Result<LiveCells, StorageError> {
    let (table, partition) = (mutation.table, &mutation.partition[..]);
    match row {
        ChangedRow::Row(clustering) => {
            let suffix = table.keys.clustering(clustering)?;
            let (record, liveness) =
                lists::find_row(overlay, table, partition, &suffix, moment.now_s)?;
            Ok(liveness.row_with(&record, &table.live, |id| wanted.has(id)))
        }
        ChangedRow::Static => {
            let head = overlay.head(table, partition)?;
            let liveness = Liveness {
                deleted_to: i64::MIN,
                now_s: moment.now_s,
            };
            Ok(liveness.static_row_with(&head, &table.live, |id| wanted.has(id)))
        }
    }
}
