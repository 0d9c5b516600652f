//! Gathers the changes that a write makes to one row, so that they are merged into it at once.
//!
//! A merge goes over the whole of a collection. A write may have thousands of changes of one row,
//! each of an element: merged one by one they would go over the collection as many times.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use bytes::Bytes;
use schema::ColumnId;
use value::CqlType;

use super::merge::{in_order, merge_deletion};
use super::{CellRecord, DeletionTime, RowMarker, RowRecord, StoredColumn};

/// The changes of one row or head so far, in any order.
#[derive(Debug, Default)]
pub(crate) struct RowRecordBuilder {
    marker: Option<RowMarker>,
    deletion: Option<DeletionTime>,
    clustering: Option<Vec<Bytes>>,
    columns: BTreeMap<ColumnId, StoredColumnBuilder>,
}

#[derive(Debug)]
enum StoredColumnBuilder {
    Simple(CellRecord),
    /// The elements, in the order in which they came. A path may come several times.
    Elements {
        deletion: Option<DeletionTime>,
        cells: Vec<(Bytes, CellRecord)>,
    },
}

impl RowRecordBuilder {
    pub(crate) fn mark(&mut self, marker: RowMarker) {
        if self.marker.is_none_or(|old| marker.supersedes(&old)) {
            self.marker = Some(marker);
        }
    }

    pub(crate) fn delete(&mut self, deletion: DeletionTime) {
        merge_deletion(&mut self.deletion, deletion);
    }

    /// Notes the clustering values as they were given first.
    pub(crate) fn name(&mut self, clustering: Option<Vec<Bytes>>) {
        if self.clustering.is_none() {
            self.clustering = clustering;
        }
    }

    /// Adds a cell of a column that is one cell.
    pub(crate) fn set(&mut self, id: ColumnId, cell: CellRecord) {
        match self.columns.entry(id) {
            Entry::Vacant(vacant) => {
                vacant.insert(StoredColumnBuilder::Simple(cell));
            }
            Entry::Occupied(mut known) => match known.get_mut() {
                StoredColumnBuilder::Simple(old) => old.merge(cell),
                // A column is one cell or many.
                StoredColumnBuilder::Elements { .. } => {}
            },
        }
    }

    /// Adds elements of a collection, and its deletion.
    pub(crate) fn put(
        &mut self,
        id: ColumnId,
        new_deletion: Option<DeletionTime>,
        new: impl Iterator<Item = (Bytes, CellRecord)>,
    ) {
        let column = self.columns.entry(id);
        let column = column.or_insert_with(|| StoredColumnBuilder::Elements {
            deletion: None,
            cells: Vec::new(),
        });
        if let StoredColumnBuilder::Elements { deletion, cells } = column {
            if let Some(new_deletion) = new_deletion {
                merge_deletion(deletion, new_deletion);
            }
            cells.extend(new);
        }
    }

    /// All changes as one. `type_of` gives the type of a column.
    pub(crate) fn into_record<'t>(
        self,
        type_of: impl Fn(ColumnId) -> Option<&'t CqlType>,
    ) -> RowRecord {
        let columns = self.columns.into_iter().filter_map(|(id, column)| {
            let column = match column {
                StoredColumnBuilder::Simple(cell) => StoredColumn::Simple(cell),
                StoredColumnBuilder::Elements { deletion, cells } => StoredColumn::Elements {
                    deletion,
                    cells: in_order(cells, type_of(id)?.path_type()),
                },
            };
            Some((id, column))
        });
        RowRecord {
            marker: self.marker,
            deletion: self.deletion,
            clustering: self.clustering,
            cells: columns.collect(),
            ..RowRecord::default()
        }
    }
}
