//! Turns list operations by position or value into operations by path. Their meaning depends on the
//! list as it stands when the write commits, and on the operations before them.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use schema::{Column, ColumnId, ColumnKind};

use super::apply::{Moment, cells_record};
use super::overlay::Overlay;
use crate::StorageError;
use crate::layout::TableSchema;
use crate::mutation::{CellChange, CellOperation};
use crate::read::{Cell, LiveCell};
use crate::record::{ColumnRecord, Liveness, Record};

/// A row or head as the write finds it.
pub(super) struct Found {
    pub record: Record,
    pub liveness: Liveness,
    pub kind: ColumnKind,
}

/// The elements that the operations of a write have looked at. Other writes wait meanwhile.
#[derive(Default)]
pub(super) struct Looks(usize);

/// The most elements that the operations of a write look at. It takes a few tenths of a second.
const LOOKS_MAX: usize = 4 << 20;

/// The times of a change.
#[derive(Clone, Copy)]
pub(super) struct Times {
    pub timestamp: i64,
    pub ttl_s: Option<u32>,
    pub moment: Moment,
}

pub(super) fn needs_list(cells: &[CellChange]) -> bool {
    cells.iter().any(is_by_list)
}

fn is_by_list(cell: &CellChange) -> bool {
    matches!(
        cell.change,
        CellOperation::SetListIndex { .. }
            | CellOperation::DeleteListIndex { .. }
            | CellOperation::RemoveListValues(_)
    )
}

/// Turns every operation into its form by path. As in Cassandra, each finds the list as those
/// before it leave it.
///
/// # Errors
/// A position that the list does not have, and too many looks.
pub(super) fn resolve(
    table: &TableSchema,
    mut found: Found,
    mut cells: Vec<CellChange>,
    times: Times,
    looks: &mut Looks,
) -> Result<Vec<CellChange>, StorageError> {
    // The place of the last operation on each column that has to see the list.
    let last: HashMap<ColumnId, usize> = (cells.iter().enumerate())
        .filter(|(_, cell)| is_by_list(cell))
        .map(|(at, cell)| (cell.column, at))
        .collect();
    // A row with elements is alive by them, whatever else it has.
    found.record.cells.retain(|(id, _)| last.contains_key(id));
    let mut lists = Lists {
        table,
        found,
        looks,
    };
    for (at, cell) in cells.iter_mut().enumerate() {
        lists.turn_to_paths(cell)?;
        if last.get(&cell.column).is_some_and(|last| *last > at) {
            lists.carry_out(cell, times)?;
        }
    }
    Ok(cells)
}

/// The lists of a row or head, as the operations so far leave them.
struct Lists<'a> {
    table: &'a TableSchema,
    found: Found,
    looks: &'a mut Looks,
}

impl Lists<'_> {
    fn turn_to_paths(&mut self, cell: &mut CellChange) -> Result<(), StorageError> {
        let column = cell.column;
        cell.change = match &cell.change {
            CellOperation::SetListIndex { index, value } => {
                let path = self.path_at(column, *index, "set an element on")?;
                CellOperation::PutElements(vec![(path, value.clone())])
            }
            CellOperation::DeleteListIndex { index } => {
                let path = self.path_at(column, *index, "delete an element from")?;
                CellOperation::DeleteElements(vec![path])
            }
            CellOperation::RemoveListValues(values) => {
                let values: HashSet<&Bytes> = values.iter().collect();
                let elements = self.elements(column)?.into_iter();
                let removed = elements.filter(|(_, cell)| values.contains(&cell.value));
                CellOperation::DeleteElements(removed.map(|(path, _)| path).collect())
            }
            _ => return Ok(()),
        };
        Ok(())
    }

    fn carry_out(&mut self, cell: &CellChange, times: Times) -> Result<(), StorageError> {
        self.look()?;
        let Times {
            timestamp,
            ttl_s,
            moment,
        } = times;
        let (kind, lifetime) = (self.found.kind, moment.lifetime(ttl_s));
        let one = std::slice::from_ref(cell);
        let change = cells_record(self.table, kind, one, timestamp, lifetime, moment)?;
        (self.found.record).merge(change, |id| self.table.type_of(id));
        Ok(())
    }

    fn path_at(
        &mut self,
        column: ColumnId,
        index: u32,
        doing: &str,
    ) -> Result<Bytes, StorageError> {
        let mut elements = self.elements(column)?;
        let size = elements.len();
        if size == 0 {
            let column = self.table.column(column);
            let name = column.map_or("", |column: &Column| &column.name);
            return Err(StorageError::Invalid(format!(
                "Attempted to {doing} a list which is null (column {name})"
            )));
        }
        if index as usize >= size {
            return Err(StorageError::Invalid(format!(
                "List index {index} out of bound, list has size {size}"
            )));
        }
        Ok(elements.swap_remove(index as usize).0)
    }

    fn elements(&mut self, column: ColumnId) -> Result<Vec<(Bytes, LiveCell)>, StorageError> {
        self.look()?;
        let Found {
            record,
            liveness,
            kind,
        } = &self.found;
        let live = match kind {
            ColumnKind::Static => liveness.statics(record, &self.table.live),
            _ => (liveness.row(record, &self.table.live)).unwrap_or_default(),
        };
        let mut lists = live.into_iter().filter_map(|(id, cell)| match cell {
            Cell::Elements(elements) if id == column => Some(elements),
            _ => None,
        });
        Ok(lists.next().unwrap_or_default())
    }

    /// Counts the cells of the lists, dead ones as well, which one step goes over.
    fn look(&mut self) -> Result<(), StorageError> {
        let cells = self
            .found
            .record
            .cells
            .iter()
            .map(|(_, cells)| match cells {
                ColumnRecord::Simple(_) => 1,
                ColumnRecord::Elements { cells, .. } => cells.len(),
            });
        self.looks.0 += 1 + cells.sum::<usize>();
        match self.looks.0 > LOOKS_MAX {
            true => Err(StorageError::Invalid(format!(
                "the operations on lists by position or value look at more than {LOOKS_MAX} elements: use fewer in a statement"
            ))),
            false => Ok(()),
        }
    }
}

/// The state of a row as the write finds it.
pub(super) fn find_row(
    overlay: &Overlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    suffix: &[u8],
    now_s: i64,
) -> Result<(Record, Liveness), StorageError> {
    let head = overlay.head(table, partition)?;
    let record = overlay.row(table, partition, suffix)?;
    let deleted_to = overlay.deleted_to(table, partition, &head, suffix)?;
    Ok((record, Liveness { deleted_to, now_s }))
}
