//! Picks the live cells of a record.

use std::collections::BTreeMap;

use bytes::Bytes;
use schema::{Column, ColumnId, ColumnKind, Table};

use super::{CellRecord, ColumnRecord, Content, Record, is_expired};
use crate::read::{Cell, LiveCell};

/// The columns that exist, by id. Cells of dropped columns are hidden.
#[derive(Debug)]
pub(crate) struct LiveColumns {
    regular: BTreeMap<ColumnId, LiveColumn>,
    statics: BTreeMap<ColumnId, LiveColumn>,
}

#[derive(Clone, Copy, Debug)]
struct LiveColumn {
    /// Whether the column is a non-frozen collection.
    multi_cell: bool,
    /// Cells up to this timestamp were dropped with an earlier column of the same name; `i64::MIN`
    /// for none.
    dropped_to: i64,
}

impl LiveColumns {
    pub(crate) fn new(table: &Table) -> LiveColumns {
        let live = |column: &Column| LiveColumn {
            multi_cell: column.cql_type.is_multi_cell(),
            dropped_to: table
                .dropped_columns
                .get(&column.name)
                .filter(|dropped| dropped.id == Some(column.id))
                .map_or(i64::MIN, |dropped| dropped.dropped_at_micros),
        };
        let of_kind = |kind| {
            table
                .columns
                .iter()
                .filter(|column| column.kind == kind)
                .map(|column| (column.id, live(column)))
                .collect()
        };
        LiveColumns {
            regular: of_kind(ColumnKind::Regular),
            statics: of_kind(ColumnKind::Static),
        }
    }
}

/// The times that decide whether a cell is alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Liveness {
    /// The greatest timestamp of a deletion of the partition or of a range over the row; `i64::MIN`
    /// if there is none.
    pub deleted_to: i64,
    pub now_s: i64,
}

/// The part of a record that a read returns or counts.
pub(crate) struct Found {
    /// The live cells; `None` if the row is dead.
    pub cells: Option<Vec<(ColumnId, Cell)>>,
    /// The clustering values as given, if the key does not give the same bytes.
    pub clustering: Option<Vec<Bytes>>,
    /// The deleted and expired cells, or one if nothing is left but the deletion of the row. What
    /// a deletion of the partition or of a range covers counts nothing.
    pub tombstones: u64,
}

impl Liveness {
    fn cell(&self, deleted_to: i64, cell: CellRecord) -> Option<LiveCell> {
        if cell.timestamp <= deleted_to {
            return None;
        }
        match cell.content {
            Content::Value { value, lifetime } if !is_expired(&lifetime, self.now_s) => {
                Some(LiveCell {
                    value,
                    timestamp: cell.timestamp,
                    expiry: lifetime,
                })
            }
            _ => None,
        }
    }

    fn column(&self, deleted_to: i64, column: ColumnRecord, multi_cell: bool) -> Option<Cell> {
        match column {
            ColumnRecord::Simple(cell) if !multi_cell => {
                self.cell(deleted_to, cell).map(Cell::Simple)
            }
            ColumnRecord::Elements { deletion, cells } if multi_cell => {
                let deleted_to = deletion.map_or(deleted_to, |d| deleted_to.max(d.timestamp));
                let live: Vec<_> = cells
                    .into_iter()
                    .filter_map(|(path, cell)| Some((path, self.cell(deleted_to, cell)?)))
                    .collect();
                (!live.is_empty()).then_some(Cell::Elements(live))
            }
            _ => None,
        }
    }

    fn cells(
        &self,
        deleted_to: i64,
        cells: Vec<(ColumnId, ColumnRecord)>,
        columns: &BTreeMap<ColumnId, LiveColumn>,
    ) -> Vec<(ColumnId, Cell)> {
        let mut live_cells = Vec::with_capacity(cells.len());
        for (id, column) in cells {
            if let Some(live) = columns.get(&id)
                && let Some(cell) =
                    self.column(deleted_to.max(live.dropped_to), column, live.multi_cell)
            {
                live_cells.push((id, cell));
            }
        }
        live_cells
    }

    /// Everything up to this timestamp is deleted, in the row or head of this record.
    fn deleted_in(&self, record: &Record) -> i64 {
        record
            .deletion
            .map_or(self.deleted_to, |d| self.deleted_to.max(d.timestamp))
    }

    /// The live cells of a row, and its tombstones. Values are moved: a read takes many.
    pub(crate) fn find(&self, record: Record, columns: &LiveColumns) -> Found {
        let deleted_to = self.deleted_in(&record);
        let marked = record.marker.is_some_and(|marker| {
            marker.timestamp > deleted_to && !is_expired(&marker.lifetime, self.now_s)
        });
        let dead = self.dead_cells(deleted_to, &record);
        let cells = self.cells(deleted_to, record.cells, &columns.regular);
        let is_alive = marked || !cells.is_empty();
        let is_deleted = !is_alive
            && record
                .deletion
                .is_some_and(|d| d.timestamp > self.deleted_to);
        Found {
            cells: is_alive.then_some(cells),
            clustering: record.clustering,
            tombstones: dead.max(u64::from(is_deleted)),
        }
    }

    /// The number of cells that are deleted or have expired, each by itself.
    fn dead_cells(&self, deleted_to: i64, record: &Record) -> u64 {
        let is_dead = |cell: &CellRecord| {
            let is_value = matches!(&cell.content, Content::Value { lifetime, .. }
                if !is_expired(lifetime, self.now_s));
            cell.timestamp > deleted_to && !is_value
        };
        let cells = record.cells.iter().map(|(_, column)| match column {
            ColumnRecord::Simple(cell) => usize::from(is_dead(cell)),
            ColumnRecord::Elements { cells, .. } => {
                cells.iter().filter(|(_, cell)| is_dead(cell)).count()
            }
        });
        cells.sum::<usize>() as u64
    }

    /// The live cells of a row; `None` if the row is dead.
    pub(crate) fn row(
        &self,
        record: &Record,
        columns: &LiveColumns,
    ) -> Option<Vec<(ColumnId, Cell)>> {
        self.find(record.clone(), columns).cells
    }

    /// The live static cells of a partition's head.
    pub(crate) fn statics(&self, head: &Record, columns: &LiveColumns) -> Vec<(ColumnId, Cell)> {
        let deleted_to = self.deleted_in(head);
        self.cells(deleted_to, head.cells.clone(), &columns.statics)
    }
}
