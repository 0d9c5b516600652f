//! Merges changes into records by Cassandra's rules. The result is the same in any order of
//! arrival.
//!
//! The greater timestamp wins. At equal timestamps a tombstone or an expiring value wins over a
//! value that lives for ever, a tombstone over an expiring value, the later death over the earlier,
//! and last the greater value by bytes (`Cells.reconcile`, `LivenessInfo.supersedes` and
//! `DeletionTime.supersedes` of Cassandra 4). None of it depends on the clock.

use std::cmp::Ordering;

use bytes::Bytes;
use schema::ColumnId;
use value::CqlType;

use super::{CellRecord, ColumnRecord, Content, Deletion, Marker, Record};

impl CellRecord {
    fn wins_over(&self, other: &CellRecord) -> bool {
        self.timestamp
            .cmp(&other.timestamp)
            .then_with(|| self.content.rank(&other.content))
            .is_gt()
    }
}

impl Content {
    /// The time at which the cell dies or died, in seconds since the epoch; `None` if it lives for
    /// ever.
    fn death(&self) -> Option<i64> {
        match self {
            Content::Value { lifetime, .. } => lifetime.map(|expiry| expiry.at_s),
            Content::Tombstone { local_s } => Some(*local_s),
        }
    }

    fn value(&self) -> &[u8] {
        match self {
            Content::Value { value, .. } => value,
            Content::Tombstone { .. } => &[],
        }
    }

    fn is_tombstone(&self) -> bool {
        matches!(self, Content::Tombstone { .. })
    }

    /// `Greater` if this content wins over the other at equal timestamps.
    fn rank(&self, other: &Content) -> Ordering {
        (self.death().is_some().cmp(&other.death().is_some()))
            .then(self.is_tombstone().cmp(&other.is_tombstone()))
            .then(self.death().cmp(&other.death()))
            .then_with(|| self.value().cmp(other.value()))
    }
}

impl Marker {
    fn supersedes(&self, other: &Marker) -> bool {
        self.timestamp
            .cmp(&other.timestamp)
            .then_with(|| {
                let at = |marker: &Marker| marker.lifetime.map(|expiry| expiry.at_s);
                // `None` is the smallest: an expiring marker wins over one that is not.
                at(self).cmp(&at(other))
            })
            .is_gt()
    }
}

impl Record {
    /// Merges a change into the record. `type_of` gives the type of a column; `None` for a dropped
    /// column, whose cells are left as they are.
    pub(crate) fn merge<'t>(
        &mut self,
        change: Record,
        type_of: impl Fn(ColumnId) -> Option<&'t CqlType>,
    ) {
        let Record {
            marker,
            deletion,
            clustering,
            cells,
            has_ranges,
            swept: _,
        } = change;
        if let Some(deletion) = deletion {
            self.swept &= !merge_deletion(&mut self.deletion, deletion);
        }
        if let Some(marker) = marker
            && self.marker.is_none_or(|old| marker.supersedes(&old))
        {
            self.marker = Some(marker);
        }
        if self.clustering.is_none() {
            self.clustering = clustering;
        }
        self.has_ranges |= has_ranges;
        for (id, column) in cells {
            if let Some(cql_type) = type_of(id) {
                self.merge_column(id, column, cql_type);
            }
        }
        if let Some(deletion) = self.deletion {
            self.apply_deletion(deletion.timestamp);
        }
    }

    /// Merges one column of a change into the record. Deletions of the row are not looked at.
    pub(crate) fn merge_column(&mut self, id: ColumnId, column: ColumnRecord, cql_type: &CqlType) {
        match self.cells.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(at) => merge_columns(&mut self.cells[at].1, column, cql_type),
            Err(at) => {
                let mut first = match column {
                    ColumnRecord::Simple(_) => column,
                    // Merged into an empty column, so that its cells come in order and without
                    // repeats.
                    ColumnRecord::Elements { deletion, cells } => {
                        let mut first = ColumnRecord::Elements {
                            deletion,
                            cells: Vec::with_capacity(cells.len()),
                        };
                        let all = ColumnRecord::Elements {
                            deletion: None,
                            cells,
                        };
                        merge_columns(&mut first, all, cql_type);
                        first
                    }
                };
                if let ColumnRecord::Elements { deletion, cells } = &mut first
                    && cells.is_empty()
                    && deletion.is_none()
                {
                    return;
                }
                self.cells.insert(at, (id, first));
            }
        }
    }

    /// Drops the marker, the cells and the collections' deletions that a deletion of the row, or of
    /// more, covers. The row's own deletion stays.
    pub(crate) fn apply_deletion(&mut self, timestamp: i64) {
        if self
            .marker
            .is_some_and(|marker| marker.timestamp <= timestamp)
        {
            self.marker = None;
        }
        self.cells.retain_mut(|(_, column)| match column {
            ColumnRecord::Simple(cell) => cell.timestamp > timestamp,
            ColumnRecord::Elements { deletion, cells } => {
                cells.retain(|(_, cell)| cell.timestamp > timestamp);
                if deletion.is_some_and(|deletion| deletion.timestamp <= timestamp) {
                    *deletion = None;
                }
                deletion.is_some() || !cells.is_empty()
            }
        });
    }

    /// Does [`Record::apply_deletion`] for a deletion that is kept elsewhere, so that the row's own
    /// deletion is dropped too if it is covered.
    pub(crate) fn apply_wider_deletion(&mut self, timestamp: i64) {
        self.apply_deletion(timestamp);
        if self
            .deletion
            .is_some_and(|deletion| deletion.timestamp <= timestamp)
        {
            self.deletion = None;
        }
    }
}

/// Takes the new deletion if it wins. Returns whether it does.
fn merge_deletion(old: &mut Option<Deletion>, new: Deletion) -> bool {
    let wins = old.is_none_or(|old| new.supersedes(&old));
    if wins {
        *old = Some(new);
    }
    wins
}

fn merge_columns(old: &mut ColumnRecord, new: ColumnRecord, cql_type: &CqlType) {
    match (old, new) {
        (ColumnRecord::Simple(old), ColumnRecord::Simple(new)) => {
            if new.wins_over(old) {
                *old = new;
            }
        }
        (
            ColumnRecord::Elements { deletion, cells },
            ColumnRecord::Elements {
                deletion: new_deletion,
                cells: new_cells,
            },
        ) => {
            if let Some(new_deletion) = new_deletion {
                merge_deletion(deletion, new_deletion);
            }
            let path_type = cql_type.path_type();
            for (path, cell) in new_cells {
                merge_element(cells, path, cell, path_type);
            }
            if let Some(deletion) = deletion {
                cells.retain(|(_, cell)| cell.timestamp > deletion.timestamp);
            }
        }
        // A column id never changes its type. If it did, the newer change would count.
        (old, new) => *old = new,
    }
}

fn merge_element(
    cells: &mut Vec<(Bytes, CellRecord)>,
    path: Bytes,
    cell: CellRecord,
    path_type: &CqlType,
) {
    // Elements mostly come in order, in particular those of lists.
    let at = match cells.last() {
        Some((last, _)) if value::compare(path_type, last, &path).is_lt() => Err(cells.len()),
        _ => cells.binary_search_by(|(other, _)| value::compare(path_type, other, &path)),
    };
    match at {
        Ok(at) if cell.wins_over(&cells[at].1) => cells[at] = (path, cell),
        Ok(_) => {}
        Err(at) => cells.insert(at, (path, cell)),
    }
}
