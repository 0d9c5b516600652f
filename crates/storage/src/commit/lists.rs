//! Turns list operations by position or value into operations by path. Their meaning depends on the
//! list as it stands when the write commits, and on the operations before them.

use bytes::Bytes;
use schema::{Column, ColumnId, ColumnKind};

use super::apply::{Moment, cells_record};
use super::overlay::Overlay;
use crate::StorageError;
use crate::layout::TableSchema;
use crate::mutation::{CellChange, CellOperation};
use crate::read::{Cell, LiveCell};
use crate::record::{Liveness, Record};

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
pub(super) fn resolve(
    table: &TableSchema,
    mut found: Found,
    mut cells: Vec<CellChange>,
    times: Times,
    looks: &mut Looks,
) -> Result<Vec<CellChange>, StorageError> {
    let lifetime = times.moment.lifetime(times.ttl_s);
    for at in 0..cells.len() {
        let (done, next) = cells.split_at_mut(at + 1);
        let cell = &mut done[at];
        by_path(table, &found, cell, looks)?;
        let mut next = next.iter();
        if next.any(|next| next.column == cell.column && is_by_list(next)) {
            let one = std::slice::from_ref(&*cell);
            let Times {
                timestamp, moment, ..
            } = times;
            let change = cells_record(table, found.kind, one, timestamp, lifetime, moment)?;
            found.record.merge(change, |id| table.type_of(id));
        }
    }
    Ok(cells)
}

fn by_path(
    table: &TableSchema,
    found: &Found,
    cell: &mut CellChange,
    looks: &mut Looks,
) -> Result<(), StorageError> {
    let column = cell.column;
    cell.change = match &cell.change {
        CellOperation::SetListIndex { index, value } => {
            let path = path_at(table, found, column, *index, "set an element on", looks)?;
            CellOperation::PutElements(vec![(path, value.clone())])
        }
        CellOperation::DeleteListIndex { index } => {
            let path = path_at(
                table,
                found,
                column,
                *index,
                "delete an element from",
                looks,
            )?;
            CellOperation::DeleteElements(vec![path])
        }
        CellOperation::RemoveListValues(values) => CellOperation::DeleteElements(
            elements(table, found, column, looks)?
                .into_iter()
                .filter(|(_, cell)| values.contains(&cell.value))
                .map(|(path, _)| path)
                .collect(),
        ),
        _ => return Ok(()),
    };
    Ok(())
}

fn path_at(
    table: &TableSchema,
    found: &Found,
    column: ColumnId,
    index: u32,
    doing: &str,
    looks: &mut Looks,
) -> Result<Bytes, StorageError> {
    let mut elements = elements(table, found, column, looks)?;
    let size = elements.len();
    if size == 0 {
        let name = table
            .column(column)
            .map_or("", |column: &Column| &column.name);
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

fn elements(
    table: &TableSchema,
    found: &Found,
    column: ColumnId,
    looks: &mut Looks,
) -> Result<Vec<(Bytes, LiveCell)>, StorageError> {
    let live = match found.kind {
        ColumnKind::Static => found.liveness.statics(&found.record, &table.live),
        _ => {
            let row = found.liveness.row(&found.record, &table.live);
            row.unwrap_or_default()
        }
    };
    let mut lists = live.into_iter().filter_map(|(id, cell)| match cell {
        Cell::Elements(elements) => {
            looks.0 += elements.len();
            (id == column).then_some(elements)
        }
        _ => None,
    });
    let elements = lists.next().unwrap_or_default();
    if looks.0 > LOOKS_MAX {
        return Err(StorageError::Invalid(format!(
            "the operations on lists by position or value look at more than {LOOKS_MAX} elements: use fewer in a statement"
        )));
    }
    Ok(elements)
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
