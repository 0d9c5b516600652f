//! Turns list operations by position or value into operations by path. Their meaning depends on the
//! list as it stands when the write commits.

use bytes::Bytes;
use schema::{Column, ColumnId};

use super::overlay::Overlay;
use crate::StorageError;
use crate::layout::TableSchema;
use crate::mutation::{CellChange, CellOperation};
use crate::read::{Cell, LiveCell};
use crate::record::{Liveness, Record};

/// A row or head as the write finds it.
pub(super) struct Found<'a> {
    pub record: &'a Record,
    pub liveness: Liveness,
    pub is_static: bool,
}

pub(super) fn needs_list(cells: &[CellChange]) -> bool {
    cells.iter().any(|cell| {
        matches!(
            cell.change,
            CellOperation::SetListIndex { .. }
                | CellOperation::DeleteListIndex { .. }
                | CellOperation::RemoveListValues(_)
        )
    })
}

/// Turns every operation into its form by path.
pub(super) fn resolve(
    table: &TableSchema,
    found: &Found<'_>,
    cells: Vec<CellChange>,
) -> Result<Vec<CellChange>, StorageError> {
    cells
        .into_iter()
        .map(|CellChange { column, change }| {
            let change = match change {
                CellOperation::SetListIndex { index, value } => {
                    let path = path_at(table, found, column, index, "set an element on")?;
                    CellOperation::PutElements(vec![(path, value)])
                }
                CellOperation::DeleteListIndex { index } => {
                    let path = path_at(table, found, column, index, "delete an element from")?;
                    CellOperation::DeleteElements(vec![path])
                }
                CellOperation::RemoveListValues(values) => CellOperation::DeleteElements(
                    elements(table, found, column)
                        .into_iter()
                        .filter(|(_, cell)| values.contains(&cell.value))
                        .map(|(path, _)| path)
                        .collect(),
                ),
                by_path => by_path,
            };
            Ok(CellChange { column, change })
        })
        .collect()
}

fn path_at(
    table: &TableSchema,
    found: &Found<'_>,
    column: ColumnId,
    index: u32,
    doing: &str,
) -> Result<Bytes, StorageError> {
    let mut elements = elements(table, found, column);
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

fn elements(table: &TableSchema, found: &Found<'_>, column: ColumnId) -> Vec<(Bytes, LiveCell)> {
    let live = if found.is_static {
        found.liveness.statics(found.record, &table.live)
    } else {
        found
            .liveness
            .row(found.record, &table.live)
            .unwrap_or_default()
    };
    live.into_iter()
        .find_map(|(id, cell)| match cell {
            Cell::Elements(elements) if id == column => Some(elements),
            _ => None,
        })
        .unwrap_or_default()
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
