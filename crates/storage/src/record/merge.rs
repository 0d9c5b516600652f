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

use super::{
    CellRecord, CellView, ContentView, DeletionTime, RowMarker, RowRecord, StoredColumn, work,
};

impl CellView<'_> {
    pub(crate) fn wins_over(&self, other: CellView<'_>) -> bool {
        self.timestamp
            .cmp(&other.timestamp)
            .then_with(|| self.content.rank(&other.content))
            .is_gt()
    }
}

impl ContentView<'_> {
    /// The time at which the cell dies or died, in seconds since the epoch; `None` if it lives for
    /// ever.
    fn death(&self) -> Option<i64> {
        match self {
            ContentView::Value { lifetime, .. } => lifetime.map(|expiry| expiry.at_s),
            ContentView::Tombstone { local_s } => Some(*local_s),
        }
    }

    fn value(&self) -> &[u8] {
        match self {
            ContentView::Value { value, .. } => value,
            ContentView::Tombstone { .. } => &[],
        }
    }

    fn is_tombstone(&self) -> bool {
        matches!(self, ContentView::Tombstone { .. })
    }

    /// `Greater` if this content wins over the other at equal timestamps.
    fn rank(&self, other: &ContentView<'_>) -> Ordering {
        (self.death().is_some().cmp(&other.death().is_some()))
            .then(self.is_tombstone().cmp(&other.is_tombstone()))
            .then(self.death().cmp(&other.death()))
            .then_with(|| self.value().cmp(other.value()))
    }
}

impl CellRecord {
    /// Takes the other cell in its place if that one wins.
    pub(super) fn merge(&mut self, other: CellRecord) {
        if other.view().wins_over(self.view()) {
            *self = other;
        }
    }
}

impl RowMarker {
    pub(super) fn supersedes(&self, other: &RowMarker) -> bool {
        self.timestamp
            .cmp(&other.timestamp)
            .then_with(|| {
                let at = |marker: &RowMarker| marker.lifetime.map(|expiry| expiry.at_s);
                // `None` is the smallest: an expiring marker wins over one that is not.
                at(self).cmp(&at(other))
            })
            .is_gt()
    }
}

impl RowRecord {
    /// Merges a change into the record. `type_of` gives the type of a column; `None` for a dropped
    /// column, whose cells are left as they are.
    pub(crate) fn merge<'t>(
        &mut self,
        change: RowRecord,
        type_of: impl Fn(ColumnId) -> Option<&'t CqlType>,
    ) {
        let RowRecord {
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
        self.merge_cells(cells, type_of);
        if let Some(deletion) = self.deletion {
            self.apply_deletion(deletion.timestamp);
        }
    }

    /// Merges columns, which are in the order of their ids, in one pass.
    fn merge_cells<'t>(
        &mut self,
        new: Vec<(ColumnId, StoredColumn)>,
        type_of: impl Fn(ColumnId) -> Option<&'t CqlType>,
    ) {
        work::count(self.cells.len() + new.len());
        let mut old = std::mem::take(&mut self.cells).into_iter().peekable();
        self.cells.reserve_exact(old.len() + new.len());
        for (id, column) in new {
            let Some(cql_type) = type_of(id) else {
                continue;
            };
            while let Some(before) = old.next_if(|(other, _)| *other < id) {
                self.cells.push(before);
            }
            match old.next_if(|(other, _)| *other == id) {
                Some((_, mut merged)) => {
                    merge_columns(&mut merged, column, cql_type);
                    self.cells.push((id, merged));
                }
                None => {
                    if let Some(first) = first(column, cql_type) {
                        self.cells.push((id, first));
                    }
                }
            }
        }
        self.cells.extend(old);
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
            StoredColumn::Simple(cell) => cell.timestamp > timestamp,
            StoredColumn::Elements { deletion, cells } => {
                cells.retain(|(_, cell)| cell.timestamp > timestamp);
                if deletion.is_some_and(|deletion| deletion.timestamp <= timestamp) {
                    *deletion = None;
                }
                deletion.is_some() || !cells.is_empty()
            }
            StoredColumn::Packed { deletion, packed } => {
                packed.drop_to(timestamp);
                if deletion.is_some_and(|deletion| deletion.timestamp <= timestamp) {
                    *deletion = None;
                }
                deletion.is_some() || packed.len() > 0
            }
        });
    }

    /// Does [`RowRecord::apply_deletion`] for a deletion that is stored elsewhere, so that the
    /// row's own deletion is dropped too if it is covered.
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
pub(super) fn merge_deletion(old: &mut Option<DeletionTime>, new: DeletionTime) -> bool {
    let wins = old.is_none_or(|old| new.supersedes(&old));
    if wins {
        *old = Some(new);
    }
    wins
}

/// The first content of a column; `None` if it says nothing.
fn first(column: StoredColumn, cql_type: &CqlType) -> Option<StoredColumn> {
    match column {
        StoredColumn::Elements { deletion, cells } => {
            let mut cells = in_order(cells, cql_type.path_type());
            drop_covered(&mut cells, deletion);
            let says_something = deletion.is_some() || !cells.is_empty();
            says_something.then_some(StoredColumn::Elements { deletion, cells })
        }
        other => Some(other),
    }
}

fn merge_columns(old: &mut StoredColumn, new: StoredColumn, cql_type: &CqlType) {
    let path_type = cql_type.path_type();
    match (&mut *old, new) {
        (StoredColumn::Simple(old), StoredColumn::Simple(new)) => old.merge(new),
        (
            StoredColumn::Elements { deletion, cells },
            StoredColumn::Elements {
                deletion: new_deletion,
                cells: new,
            },
        ) => {
            if let Some(new_deletion) = new_deletion {
                merge_deletion(deletion, new_deletion);
            }
            // What the deletion covers goes first: mostly it is all that is there.
            drop_covered(cells, *deletion);
            let mut new = in_order(new, path_type);
            drop_covered(&mut new, *deletion);
            merge_elements(cells, new, path_type);
        }
        (
            StoredColumn::Packed { deletion, packed },
            StoredColumn::Elements {
                deletion: new_deletion,
                cells: new,
            },
        ) => {
            if let Some(new_deletion) = new_deletion {
                merge_deletion(deletion, new_deletion);
            }
            let mut new = in_order(new, path_type);
            drop_covered(&mut new, *deletion);
            if let Some(deletion) = deletion {
                packed.drop_to(deletion.timestamp);
            }
            match packed.len() {
                0 => {
                    *old = StoredColumn::Elements {
                        deletion: *deletion,
                        cells: new,
                    };
                }
                _ => packed.merge(&new, path_type),
            }
        }
        // A column id never changes its type. If it did, the newer change would count.
        (old, new) => *old = new,
    }
}

/// Drops the elements that a deletion of their collection covers.
fn drop_covered(cells: &mut Vec<(Bytes, CellRecord)>, deletion: Option<DeletionTime>) {
    if let Some(deletion) = deletion {
        work::count(cells.len());
        cells.retain(|(_, cell)| cell.timestamp > deletion.timestamp);
    }
}

/// The elements in the order of their paths, each path once: of those with one path the cell that
/// wins.
pub(super) fn in_order(
    mut cells: Vec<(Bytes, CellRecord)>,
    path_type: &CqlType,
) -> Vec<(Bytes, CellRecord)> {
    work::count(cells.len());
    let compare = |a: &Bytes, b: &Bytes| value::compare(path_type, a, b);
    // Elements mostly come in order, in particular those of lists.
    if cells.is_sorted_by(|(a, _), (b, _)| compare(a, b).is_lt()) {
        return cells;
    }
    cells.sort_by(|(a, _), (b, _)| compare(a, b));
    cells.dedup_by(|(path, cell), (kept_path, kept)| {
        let is_same = compare(path, kept_path).is_eq();
        if is_same && cell.view().wins_over(kept.view()) {
            std::mem::swap(cell, kept);
            std::mem::swap(path, kept_path);
        }
        is_same
    });
    cells
}

/// Merges elements into others in one pass. Both are in the order of their paths, each path once.
fn merge_elements(
    old: &mut Vec<(Bytes, CellRecord)>,
    new: Vec<(Bytes, CellRecord)>,
    path_type: &CqlType,
) {
    let compare = |a: &Bytes, b: &Bytes| value::compare(path_type, a, b);
    let (Some((last, _)), Some((first, _))) = (old.last(), new.first()) else {
        old.extend(new);
        return;
    };
    work::count(new.len());
    if compare(last, first).is_lt() {
        old.extend(new);
        return;
    }
    work::count(old.len());
    let mut merged = Vec::with_capacity(old.len() + new.len());
    let mut rest = std::mem::take(old).into_iter().peekable();
    for (path, cell) in new {
        while let Some(before) = rest.next_if(|(other, _)| compare(other, &path).is_lt()) {
            merged.push(before);
        }
        match rest.next_if(|(other, _)| compare(other, &path).is_eq()) {
            Some(same) if !cell.view().wins_over(same.1.view()) => merged.push(same),
            _ => merged.push((path, cell)),
        }
    }
    merged.extend(rest);
    *old = merged;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use schema::ColumnId;

    use super::super::{CellContent, RowRecordBuilder, decode, decode_packed, encode, pack};
    use super::*;
    use crate::read::CellExpiry;

    const COLUMN: ColumnId = ColumnId(3);

    /// Elements of a change with the deletion of their collection.
    type Change = (Option<DeletionTime>, Vec<(Bytes, CellRecord)>);

    fn set_of_ints() -> CqlType {
        CqlType::Set {
            element: Box::new(CqlType::Int),
            frozen: false,
        }
    }

    fn cells() -> impl Strategy<Value = CellRecord> {
        let content = prop_oneof![
            (0..3_i64).prop_map(|local_s| CellContent::Tombstone { local_s }),
            (0..3_u8, prop::option::of(0..3_i64)).prop_map(|(value, at_s)| CellContent::Value {
                value: Bytes::copy_from_slice(&[value]),
                lifetime: at_s.map(|at_s| CellExpiry { ttl_s: 1, at_s }),
            }),
        ];
        (0..6_i64, content).prop_map(|(timestamp, content)| CellRecord { timestamp, content })
    }

    fn changes(size: usize) -> impl Strategy<Value = Change> {
        let deletion = (0..6_i64, 0..3_i64)
            .prop_map(|(timestamp, local_s)| DeletionTime { timestamp, local_s });
        let element = (-40..40_i32, cells())
            .prop_map(|(path, cell)| (Bytes::copy_from_slice(&path.to_be_bytes()), cell));
        (prop::option::weighted(0.2, deletion), vec(element, 0..size))
    }

    fn record_of((deletion, cells): Change, cql_type: &CqlType) -> RowRecord {
        let mut gathered = RowRecordBuilder::default();
        gathered.put(COLUMN, deletion, cells.into_iter());
        gathered.into_record(|_| Some(cql_type))
    }

    /// The collection that all changes leave, by nothing but the rules.
    fn expected(changes: &[Change]) -> (Option<DeletionTime>, Vec<(Bytes, CellRecord)>) {
        let mut deletion = None;
        let mut cells: BTreeMap<i32, (Bytes, CellRecord)> = BTreeMap::new();
        for (of_change, elements) in changes {
            if let Some(of_change) = of_change {
                merge_deletion(&mut deletion, *of_change);
            }
            for (path, cell) in elements {
                let number = i32::from_be_bytes(path[..].try_into().unwrap());
                let known = cells.entry(number);
                let known = known.or_insert_with(|| (path.clone(), cell.clone()));
                known.1.merge(cell.clone());
            }
        }
        let deleted_to = deletion.map_or(i64::MIN, |deletion: DeletionTime| deletion.timestamp);
        let left = cells
            .into_values()
            .filter(|(_, cell)| cell.timestamp > deleted_to);
        (deletion, left.collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 500,
            failure_persistence: None,
            ..Default::default()
        })]

        #[test]
        fn packed_collections_merge_by_the_same_rules(
            changes in vec(prop_oneof![changes(4), changes(100)], 1..6),
            stored in vec(any::<bool>(), 6),
            forgotten_s in -1..3_i64,
        ) {
            let cql_type = set_of_ints();
            let mut record = RowRecord::default();
            for (change, is_stored) in changes.iter().zip(stored) {
                record.merge(record_of(change.clone(), &cql_type), |_| Some(&cql_type));
                pack(&mut record);
                if is_stored {
                    record = decode_packed(encode(&record)).unwrap();
                }
            }
            let (deletion, cells) = expected(&changes);
            let expected = RowRecord {
                cells: match deletion.is_some() || !cells.is_empty() {
                    true => vec![(COLUMN, StoredColumn::Elements { deletion, cells })],
                    false => Vec::new(),
                },
                ..RowRecord::default()
            };
            let unpacked = decode(encode(&record)).unwrap();
            prop_assert_eq!(&unpacked, &expected);
            prop_assert_eq!(record.newest(), expected.newest());
            prop_assert_eq!(record.bytes(), expected.bytes());
            let (mut packed, mut loose) = (record, unpacked);
            prop_assert_eq!(packed.forget(forgotten_s), loose.forget(forgotten_s));
            prop_assert_eq!(&decode(encode(&packed)).unwrap(), &loose);
            packed.apply_deletion(2);
            loose.apply_deletion(2);
            prop_assert_eq!(decode(encode(&packed)).unwrap(), loose);
        }
    }

    #[test]
    fn a_merge_goes_over_both_lists_once() {
        let cql_type = set_of_ints();
        let elements = |numbers: std::ops::Range<i32>| {
            let cell = CellRecord {
                timestamp: 1,
                content: CellContent::Value {
                    value: Bytes::new(),
                    lifetime: None,
                },
            };
            let paths = numbers.map(|number| Bytes::copy_from_slice(&number.to_be_bytes()));
            (None, paths.map(|path| (path, cell.clone())).collect())
        };
        let (size, count) = (10_000, 10_000_u64);
        let mut record = record_of(elements(size..2 * size), &cql_type);
        pack(&mut record);
        let mut stored = decode_packed(encode(&record)).unwrap();
        let smaller = record_of(elements(0..size), &cql_type);
        work::take();
        stored.merge(smaller, |_| Some(&cql_type));
        // The new ones are checked for their order and written, the old ones passed.
        assert!(work::take() <= 3 * count + 10);
        let later = record_of(elements(2 * size..2 * size + 1), &cql_type);
        work::take();
        stored.merge(later, |_| Some(&cql_type));
        // What grows at its end is copied in one piece.
        assert!(work::take() <= 10);
        assert_eq!(stored.column(COLUMN).unwrap().count(), 20_001);
    }
}
