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
use super::{CellRecord, ColumnRecord, Deletion, Marker, Record};

/// The changes of one row or head so far, in any order.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    marker: Option<Marker>,
    deletion: Option<Deletion>,
    clustering: Option<Vec<Bytes>>,
    columns: BTreeMap<ColumnId, GatheredColumn>,
}

#[derive(Debug)]
enum GatheredColumn {
    Simple(CellRecord),
    /// The elements, in the order in which they came. A path may come several times.
    Elements {
        deletion: Option<Deletion>,
        cells: Vec<(Bytes, CellRecord)>,
    },
}

impl Gathered {
    pub(crate) fn mark(&mut self, marker: Marker) {
        if self.marker.is_none_or(|old| marker.supersedes(&old)) {
            self.marker = Some(marker);
        }
    }

    pub(crate) fn delete(&mut self, deletion: Deletion) {
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
                vacant.insert(GatheredColumn::Simple(cell));
            }
            Entry::Occupied(mut known) => match known.get_mut() {
                GatheredColumn::Simple(old) => old.merge(cell),
                // A column is one cell or many.
                GatheredColumn::Elements { .. } => {}
            },
        }
    }

    /// Adds elements of a collection, and its deletion.
    pub(crate) fn put(
        &mut self,
        id: ColumnId,
        new_deletion: Option<Deletion>,
        new: impl Iterator<Item = (Bytes, CellRecord)>,
    ) {
        let column = self.columns.entry(id);
        let column = column.or_insert_with(|| GatheredColumn::Elements {
            deletion: None,
            cells: Vec::new(),
        });
        if let GatheredColumn::Elements { deletion, cells } = column {
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
    ) -> Record {
        let columns = self.columns.into_iter().filter_map(|(id, column)| {
            let column = match column {
                GatheredColumn::Simple(cell) => ColumnRecord::Simple(cell),
                GatheredColumn::Elements { deletion, cells } => ColumnRecord::Elements {
                    deletion,
                    cells: in_order(cells, type_of(id)?.path_type()),
                },
            };
            Some((id, column))
        });
        Record {
            marker: self.marker,
            deletion: self.deletion,
            clustering: self.clustering,
            cells: columns.collect(),
            ..Record::default()
        }
    }
}
