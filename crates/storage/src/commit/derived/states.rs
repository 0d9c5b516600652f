//! The states of the changed rows before and after a write.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use bytes::Bytes;
use schema::ColumnId;

use crate::StorageError;
use crate::commit::apply::Moment;
use crate::commit::lists;
use crate::commit::overlay::Overlay;
use crate::commit::resolve::ResolvedMutation;
use crate::engine::SpaceId;
use crate::layout::TableSchema;
use crate::mutation::Change;
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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    /// The state before the write.
    pub before: bool,
    /// The state after the write.
    pub after: bool,
}

/// The states of the changed rows that were needed.
#[derive(Default)]
pub(super) struct RowStates<'w> {
    /// The states before the write.
    pub before: States<'w>,
    /// The states after the write.
    pub after: States<'w>,
}

/// The states of rows at one time.
#[derive(Default)]
pub(super) struct States<'w>(HashMap<(SpaceId, &'w [u8], ChangedRow<'w>), LiveCells>);

impl<'w> ChangedRow<'w> {
    /// The row that a change names; `None` for a deletion of a range or of a partition of many
    /// rows.
    pub(super) fn of(table: &TableSchema, change: &'w Change) -> Option<ChangedRow<'w>> {
        match change {
            Change::Row { clustering, .. } | Change::DeleteRow { clustering, .. } => {
                Some(ChangedRow::Row(clustering))
            }
            Change::Static { .. } => Some(ChangedRow::Static),
            // Without clustering columns the row is the partition.
            Change::DeletePartition { .. } if !table.keys.has_clustering() => {
                Some(ChangedRow::Row(&[]))
            }
            Change::DeletePartition { .. } | Change::DeleteRange { .. } => None,
        }
    }
}

impl<'w> States<'w> {
    /// Reads the state of a row as the overlay has it now, unless it was read before.
    pub(super) fn read(
        &mut self,
        mutation: &'w ResolvedMutation<'_>,
        row: ChangedRow<'w>,
        overlay: &Overlay<'_>,
        moment: Moment,
    ) -> Result<(), StorageError> {
        let key = (mutation.table.space, &mutation.partition[..], row);
        if let Entry::Vacant(vacant) = self.0.entry(key) {
            vacant.insert(live_cells(mutation, row, overlay, moment)?);
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
    overlay: &Overlay<'_>,
    moment: Moment,
) -> Result<LiveCells, StorageError> {
    let (table, partition) = (mutation.table, &mutation.partition[..]);
    match row {
        ChangedRow::Row(clustering) => {
            let suffix = table.keys.clustering(clustering)?;
            let (record, liveness) =
                lists::find_row(overlay, table, partition, &suffix, moment.now_s)?;
            Ok(liveness.row(&record, &table.live))
        }
        ChangedRow::Static => {
            let head = overlay.head(table, partition)?;
            let liveness = Liveness {
                deleted_to: i64::MIN,
                now_s: moment.now_s,
            };
            let cells = liveness.statics(&head, &table.live);
            Ok((!cells.is_empty()).then_some(cells))
        }
    }
}
