//! Picks the live cells of a record.

use std::collections::BTreeMap;

use bytes::Bytes;
use schema::{Column, ColumnId, ColumnKind, Table};

use super::{
    CellContent, CellRecord, CellView, CollectionElement, ContentView, EncodedElements, RowRecord,
    StoredColumn, is_expired,
};
use crate::read::{Cell, LiveCell, LiveMarker};

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
pub(crate) struct VisibleRow {
    /// The live cells; `None` if the row is dead.
    pub cells: Option<Vec<(ColumnId, Cell)>>,
    /// The live marker.
    pub marker: Option<LiveMarker>,
    /// The clustering values as given, if the key does not give the same bytes.
    pub clustering: Option<Vec<Bytes>>,
    /// The deleted and expired cells, or one if nothing is left but the deletion of the row. What
    /// a deletion of the partition or of a range covers counts nothing.
    pub tombstones: u64,
}

/// The live elements of a collection, found by their positions.
pub(crate) struct LiveElements {
    packed: EncodedElements,
    /// The place at which each live element begins.
    places: Vec<u32>,
}

impl LiveElements {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The element at a position; `None` after the last.
    pub(crate) fn get(&self, position: usize) -> Option<CollectionElement<'_>> {
        self.packed.at(*self.places.get(position)? as usize)
    }

    /// The path at a position.
    pub(crate) fn path(&self, position: usize) -> Option<Bytes> {
        Some(self.packed.share(self.get(position)?.path))
    }
}

impl Liveness {
    /// The live elements of a column of a row or head.
    pub(crate) fn elements(
        &self,
        record: &RowRecord,
        columns: &LiveColumns,
        id: ColumnId,
    ) -> LiveElements {
        let regular = columns.regular.get(&id);
        let live = regular.or_else(|| columns.statics.get(&id));
        let found = live.zip(record.column(id)).and_then(|(live, column)| {
            let (deletion, packed) = column.to_packed()?;
            let deleted_to = self.deleted_in(record).max(live.dropped_to);
            Some((
                deletion.map_or(deleted_to, |d| deleted_to.max(d.timestamp)),
                packed,
            ))
        });
        let (deleted_to, packed) = found.unwrap_or_default();
        let live = packed.places(|cell| {
            cell.timestamp > deleted_to
                && matches!(cell.content, ContentView::Value { lifetime, .. }
                    if !is_expired(&lifetime, self.now_s))
        });
        LiveElements {
            places: live,
            packed,
        }
    }

    fn cell(&self, deleted_to: i64, cell: CellRecord) -> Option<LiveCell> {
        if cell.timestamp <= deleted_to {
            return None;
        }
        match cell.content {
            CellContent::Value { value, lifetime } if !is_expired(&lifetime, self.now_s) => {
                Some(LiveCell {
                    value,
                    timestamp: cell.timestamp,
                    expiry: lifetime,
                })
            }
            _ => None,
        }
    }

    fn column(&self, deleted_to: i64, column: StoredColumn, multi_cell: bool) -> Option<Cell> {
        match column {
            StoredColumn::Simple(cell) if !multi_cell => {
                self.cell(deleted_to, cell).map(Cell::Simple)
            }
            StoredColumn::Elements { deletion, cells } if multi_cell => {
                let deleted_to = deletion.map_or(deleted_to, |d| deleted_to.max(d.timestamp));
                let live: Vec<_> = cells
                    .into_iter()
                    .filter_map(|(path, cell)| Some((path, self.cell(deleted_to, cell)?)))
                    .collect();
                (!live.is_empty()).then_some(Cell::Elements(live))
            }
            StoredColumn::Packed { deletion, packed } if multi_cell => {
                let deleted_to = deletion.map_or(deleted_to, |d| deleted_to.max(d.timestamp));
                let cells = packed.unpack().into_iter();
                let live: Vec<_> = cells
                    .filter_map(|(path, cell)| Some((path, self.cell(deleted_to, cell)?)))
                    .collect();
                (!live.is_empty()).then_some(Cell::Elements(live))
            }
            _ => None,
        }
    }

    /// Whether [`Liveness::column`] finds something.
    fn is_alive(&self, deleted_to: i64, column: &StoredColumn, multi_cell: bool) -> bool {
        let lives = |cell: CellView<'_>| {
            cell.timestamp > deleted_to
                && matches!(cell.content, ContentView::Value { lifetime, .. }
                    if !is_expired(&lifetime, self.now_s))
        };
        match column {
            StoredColumn::Simple(cell) => !multi_cell && lives(cell.view()),
            StoredColumn::Elements { deletion, .. } | StoredColumn::Packed { deletion, .. } => {
                let is_covered = |timestamp| deletion.is_some_and(|d| timestamp <= d.timestamp);
                let mut elements = column.elements();
                multi_cell && elements.any(|of| lives(of.cell) && !is_covered(of.cell.timestamp))
            }
        }
    }

    fn cells(
        &self,
        deleted_to: i64,
        cells: Vec<(ColumnId, StoredColumn)>,
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
    fn deleted_in(&self, record: &RowRecord) -> i64 {
        record
            .deletion
            .map_or(self.deleted_to, |d| self.deleted_to.max(d.timestamp))
    }

    /// The marker of a row, if it lives.
    pub(crate) fn marker(&self, record: &RowRecord) -> Option<LiveMarker> {
        let deleted_to = self.deleted_in(record);
        let live = record.marker.filter(|marker| {
            marker.timestamp > deleted_to && !is_expired(&marker.lifetime, self.now_s)
        });
        live.map(|marker| LiveMarker {
            expiry: marker.lifetime,
        })
    }

    /// The live cells of a row, and its tombstones. Values are moved: a read takes many.
    pub(crate) fn find(&self, record: RowRecord, columns: &LiveColumns) -> VisibleRow {
        let deleted_to = self.deleted_in(&record);
        let marker = self.marker(&record);
        let dead = self.dead_cells(deleted_to, &record);
        let cells = self.cells(deleted_to, record.cells, &columns.regular);
        let is_alive = marker.is_some() || !cells.is_empty();
        let is_deleted = !is_alive
            && record
                .deletion
                .is_some_and(|d| d.timestamp > self.deleted_to);
        VisibleRow {
            cells: is_alive.then_some(cells),
            marker,
            clustering: record.clustering,
            tombstones: dead.max(u64::from(is_deleted)),
        }
    }

    /// The number of cells that are deleted or have expired, each by itself.
    fn dead_cells(&self, deleted_to: i64, record: &RowRecord) -> u64 {
        let is_dead = |cell: &CellRecord| {
            let is_value = matches!(&cell.content, CellContent::Value { lifetime, .. }
                if !is_expired(lifetime, self.now_s));
            cell.timestamp > deleted_to && !is_value
        };
        let cells = record.cells.iter().map(|(_, column)| match column {
            StoredColumn::Simple(cell) => usize::from(is_dead(cell)),
            StoredColumn::Elements { cells, .. } => {
                cells.iter().filter(|(_, cell)| is_dead(cell)).count()
            }
            StoredColumn::Packed { packed, .. } if packed.lives_at(self.now_s) => 0,
            StoredColumn::Packed { packed, .. } => {
                let cells = packed.unpack();
                cells.iter().filter(|(_, cell)| is_dead(cell)).count()
            }
        });
        cells.sum::<usize>() as u64
    }

    /// The live cells of a row; `None` if the row is dead.
    pub(crate) fn row(
        &self,
        record: &RowRecord,
        columns: &LiveColumns,
    ) -> Option<Vec<(ColumnId, Cell)>> {
        self.row_with(record, columns, |_| true)
    }

    /// The live cells of the wanted columns of a row; `None` if the row is dead. Other columns are
    /// not read beyond the first cell that lives.
    pub(crate) fn row_with(
        &self,
        record: &RowRecord,
        columns: &LiveColumns,
        is_wanted: impl Fn(ColumnId) -> bool,
    ) -> Option<Vec<(ColumnId, Cell)>> {
        let deleted_to = self.deleted_in(record);
        let cells = self.wanted_cells(deleted_to, record, &columns.regular, &is_wanted);
        let is_alive = self.marker(record).is_some()
            || !cells.is_empty()
            || self.has_others(deleted_to, record, &columns.regular, is_wanted);
        is_alive.then_some(cells)
    }

    /// The live cells of the wanted static columns of a partition's head; `None` if no static cell
    /// lives.
    pub(crate) fn static_row_with(
        &self,
        head: &RowRecord,
        columns: &LiveColumns,
        is_wanted: impl Fn(ColumnId) -> bool,
    ) -> Option<Vec<(ColumnId, Cell)>> {
        let deleted_to = self.deleted_in(head);
        let cells = self.wanted_cells(deleted_to, head, &columns.statics, &is_wanted);
        let is_alive =
            !cells.is_empty() || self.has_others(deleted_to, head, &columns.statics, is_wanted);
        is_alive.then_some(cells)
    }

    /// Whether a cell of another column than the wanted ones lives.
    fn has_others(
        &self,
        deleted_to: i64,
        record: &RowRecord,
        columns: &BTreeMap<ColumnId, LiveColumn>,
        is_wanted: impl Fn(ColumnId) -> bool,
    ) -> bool {
        let mut others = record.cells.iter().filter(|(id, _)| !is_wanted(*id));
        others.any(|(id, column)| {
            columns.get(id).is_some_and(|live| {
                self.is_alive(deleted_to.max(live.dropped_to), column, live.multi_cell)
            })
        })
    }

    fn wanted_cells(
        &self,
        deleted_to: i64,
        record: &RowRecord,
        columns: &BTreeMap<ColumnId, LiveColumn>,
        is_wanted: impl Fn(ColumnId) -> bool,
    ) -> Vec<(ColumnId, Cell)> {
        let wanted = record.cells.iter().filter(|(id, _)| is_wanted(*id));
        self.cells(deleted_to, wanted.cloned().collect(), columns)
    }

    /// The live cells of the wanted static columns of a partition's head.
    pub(crate) fn statics_with(
        &self,
        head: &RowRecord,
        columns: &LiveColumns,
        is_wanted: impl Fn(ColumnId) -> bool,
    ) -> Vec<(ColumnId, Cell)> {
        self.wanted_cells(self.deleted_in(head), head, &columns.statics, is_wanted)
    }

    /// The live static cells of a partition's head.
    pub(crate) fn statics(&self, head: &RowRecord, columns: &LiveColumns) -> Vec<(ColumnId, Cell)> {
        let deleted_to = self.deleted_in(head);
        self.cells(deleted_to, head.cells.clone(), &columns.statics)
    }
}
