//! The states of the changed rows before and after a write.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

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
#[derive(Clone, Debug, Default)]
pub(super) struct Needs {
    /// The columns of the state before the write; `None` if that state is not needed.
    pub before: Option<Wanted>,
    /// The state after the write.
    pub after: bool,
}

/// The columns of a row that are needed.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    All,
    Columns(HashSet<ColumnId>),
}

impl Wanted {
    /// Adds what else is needed.
    pub(super) fn add(&mut self, more: Wanted) {
        match (&mut *self, more) {
            (Wanted::Columns(columns), Wanted::Columns(more)) => columns.extend(more),
            _ => *self = Wanted::All,
        }
    }

    fn has(&self, id: ColumnId) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Columns(columns) => columns.contains(&id),
        }
    }
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
    /// Reads the wanted columns of a row as the overlay has it now, unless it was read before.
    pub(super) fn read(
        &mut self,
        mutation: &'w ResolvedMutation<'_>,
        row: ChangedRow<'w>,
        wanted: &Wanted,
        overlay: &Overlay<'_>,
        moment: Moment,
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
    wanted: &Wanted,
    overlay: &Overlay<'_>,
    moment: Moment,
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
