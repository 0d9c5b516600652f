//! Turns list operations by position or value into operations by path. Their meaning depends on the
//! list as it is before the write, and on the operations before them in the same change.
//!
//! A write may have thousands of such operations on one list. So a list is read once for a write
//! ([`LoadedList`]), and an operation finds its elements there without a pass over the others. A
//! change that first adds elements to a list and then looks at it is another matter, and rare: it
//! goes over the whole list for each such operation, up to a bound.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use schema::{Column, ColumnId, ColumnKind};

use super::apply::{CellTimes, CommitTime, gather};
use super::overlay::WriteOverlay;
use crate::StorageError;
use crate::engine::SpaceId;
use crate::layout::TableSchema;
use crate::mutation::{CellChange, CellOperation};
use crate::record::{
    CellContent, CellRecord, ContentView, LiveElements, Liveness, RowRecord, RowRecordBuilder,
    StoredColumn, work,
};

/// The most elements that the operations of a write look at one by one.
const LOOKS_MAX: usize = 4 << 20;

/// The times of a change.
#[derive(Clone, Copy)]
pub(super) struct ChangeTimes {
    pub timestamp: i64,
    pub ttl_s: Option<u32>,
    pub moment: CommitTime,
}

/// The place of a list: a row of a partition by its suffix, or its head.
#[derive(Clone, Copy)]
pub(super) struct ListRow<'a> {
    pub table: &'a TableSchema,
    pub partition: &'a [u8],
    /// `None` for the head.
    pub suffix: Option<&'a [u8]>,
}

/// The lists that a write has looked at.
#[derive(Default)]
pub(super) struct LoadedLists {
    known: HashMap<ListKey, LoadedList>,
    /// The elements that operations have looked at one by one.
    looks: usize,
}

/// A table's space, the key of a partition there, the suffix of a row's key, `None` for the head,
/// and a column.
type ListKey = (SpaceId, Vec<u8>, Option<Vec<u8>>, ColumnId);

/// A list as it is before the write.
struct LoadedList {
    elements: LiveElements,
    /// The list as it is stored, with what is deleted of it and of the row or the head.
    stored: RowRecord,
    /// Deletions around the row or the head, and the present.
    liveness: Liveness,
    /// Which elements are left, while a change removes some.
    left: Option<RemainingElements>,
    /// The positions in the order of their values, once a second operation looks for values.
    by_value: Option<Vec<u32>>,
    was_searched: bool,
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

impl LoadedLists {
    /// Turns every operation of a change into its form by path. As in Cassandra, each finds the
    /// list as those before it in the same change leave it.
    ///
    /// # Errors
    /// A position that the list does not have, and too many looks.
    pub(super) fn resolve(
        &mut self,
        overlay: &WriteOverlay<'_>,
        of: ListRow<'_>,
        mut cells: Vec<CellChange>,
        times: ChangeTimes,
    ) -> Result<Vec<CellChange>, StorageError> {
        // The place of the last operation on each column that has to see the list.
        let last: HashMap<ColumnId, usize> = (cells.iter().enumerate())
            .filter(|(_, cell)| is_by_list(cell))
            .map(|(at, cell)| (cell.column, at))
            .collect();
        let mut states: HashMap<ColumnId, ListEdits> = HashMap::new();
        let resolved = cells.iter_mut().enumerate().try_for_each(|(at, cell)| {
            let Some(last) = last.get(&cell.column) else {
                return Ok(());
            };
            let place = (
                of.table.space,
                of.partition.to_vec(),
                of.suffix.map(<[u8]>::to_vec),
                cell.column,
            );
            let list = match self.known.entry(place) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(vacant) => {
                    vacant.insert(LoadedList::read(overlay, of, cell.column, times.moment)?)
                }
            };
            let state = states.entry(cell.column).or_default();
            let mut step = ListOperation {
                of,
                list,
                state,
                times,
                looks: &mut self.looks,
                is_last: at >= *last,
            };
            step.resolve(cell)
        });
        // The next change finds the lists as they are before the write.
        for (column, state) in states {
            let place = (
                of.table.space,
                of.partition.to_vec(),
                of.suffix.map(<[u8]>::to_vec),
                column,
            );
            if let Some(list) = self.known.get_mut(&place) {
                list.restore(&state);
            }
        }
        resolved.map(|()| cells)
    }
}

/// The changes that a change has made to a list so far.
#[derive(Default)]
struct ListEdits {
    /// The positions that were removed.
    gone: HashSet<u32>,
    /// The cells that have come in the place of others, by their positions.
    set: HashMap<u32, CellRecord>,
    /// All elements, once some have been added: the list is changed as a whole then.
    whole: Option<RowRecord>,
}

/// An operation of a change on a list.
struct ListOperation<'a> {
    of: ListRow<'a>,
    list: &'a mut LoadedList,
    state: &'a mut ListEdits,
    times: ChangeTimes,
    looks: &'a mut usize,
    /// Whether no later operation of the change looks at the list.
    is_last: bool,
}

impl ListOperation<'_> {
    fn resolve(&mut self, cell: &mut CellChange) -> Result<(), StorageError> {
        let column = cell.column;
        let before = std::mem::replace(&mut cell.change, CellOperation::Delete);
        cell.change = match before {
            CellOperation::SetListIndex { index, value } => {
                let (position, path) = self.at(column, index, "set an element on")?;
                if let Some(position) = position {
                    self.put(position, &value);
                }
                CellOperation::PutElements(vec![(path, value)])
            }
            CellOperation::DeleteListIndex { index } => {
                let (position, path) = self.at(column, index, "delete an element from")?;
                if let Some(position) = position {
                    self.remove(position);
                }
                CellOperation::DeleteElements(vec![path])
            }
            CellOperation::RemoveListValues(values) => {
                CellOperation::DeleteElements(self.remove_values(column, &values)?)
            }
            // Elements that come or go by their paths.
            other => {
                if !self.is_last && self.state.whole.is_none() {
                    self.state.whole = Some(self.whole(column)?);
                }
                other
            }
        };
        if self.is_last || self.state.whole.is_none() {
            return Ok(());
        }
        self.merge(cell)
    }

    /// The position of the element that has an index now, and its path. No position is known once
    /// the list is changed as a whole.
    fn at(
        &mut self,
        column: ColumnId,
        index: u32,
        doing: &str,
    ) -> Result<(Option<u32>, Bytes), StorageError> {
        let whole = match &self.state.whole {
            Some(_) => Some(self.elements(column)?),
            None => None,
        };
        let size = match &whole {
            Some(whole) => whole.len(),
            None => self.list.elements.len() - self.state.gone.len(),
        };
        if size == 0 {
            let column = self.of.table.column(column);
            let name = column.map_or("", |column: &Column| &column.name);
            return Err(StorageError::Invalid(format!(
                "Attempted to {doing} a list which is null (column {name})"
            )));
        }
        let out_of_bound = || {
            StorageError::Invalid(format!(
                "List index {index} out of bound, list has size {size}"
            ))
        };
        if index as usize >= size {
            return Err(out_of_bound());
        }
        if let Some(whole) = whole {
            let path = whole.path(index as usize).ok_or_else(out_of_bound)?;
            return Ok((None, path));
        }
        let position = match &self.list.left {
            Some(left) if !self.state.gone.is_empty() => left.position(index),
            _ => index,
        };
        let path = self.list.elements.path(position as usize);
        Ok((Some(position), path.ok_or_else(out_of_bound)?))
    }

    /// Notes that a value comes in the place of an element, unless that one is newer.
    fn put(&mut self, position: u32, value: &Bytes) {
        if self.is_last {
            return;
        }
        let new = CellRecord {
            timestamp: self.times.timestamp,
            content: CellContent::Value {
                value: value.clone(),
                lifetime: self.times.moment.lifetime(self.times.ttl_s),
            },
        };
        let old = match self.state.set.get(&position) {
            Some(set) => Some(set.view()),
            None => {
                let element = self.list.elements.get(position as usize);
                element.map(|element| element.cell)
            }
        };
        if old.is_none_or(|old| new.view().wins_over(old)) {
            self.state.set.insert(position, new);
        }
    }

    /// Notes that an element goes, unless it is newer than the operation.
    fn remove(&mut self, position: u32) {
        if self.is_last {
            return;
        }
        let stands_to = match self.state.set.get(&position) {
            Some(set) => Some(set.timestamp),
            None => {
                let element = self.list.elements.get(position as usize);
                element.map(|element| element.cell.timestamp)
            }
        };
        if stands_to.is_none_or(|stands_to| stands_to <= self.times.timestamp)
            && self.state.gone.insert(position)
        {
            let elements = self.list.elements.len();
            let left = self
                .list
                .left
                .get_or_insert_with(|| RemainingElements::all(elements));
            left.remove(position);
        }
    }

    /// The paths of the elements that have one of these values now, in the order of the list. They
    /// go.
    fn remove_values(
        &mut self,
        column: ColumnId,
        values: &[Bytes],
    ) -> Result<Vec<Bytes>, StorageError> {
        let values: HashSet<&[u8]> = values.iter().map(|value| &value[..]).collect();
        if self.state.whole.is_some() {
            let elements = self.elements(column)?;
            let positions = 0..elements.len();
            let wanted = positions.filter(|at| elements.has_value(*at, &values));
            return Ok(wanted.filter_map(|at| elements.path(at)).collect());
        }
        let state = &mut *self.state;
        let mut positions = self.list.with_values(&values);
        work::count(state.set.len());
        positions.retain(|at| !state.gone.contains(at) && !state.set.contains_key(at));
        for (at, cell) in &state.set {
            if !state.gone.contains(at)
                && matches!(&cell.content, CellContent::Value { value, .. } if values.contains(&value[..]))
            {
                positions.push(*at);
            }
        }
        *self.looks += state.set.len();
        check_looks(*self.looks)?;
        positions.sort_unstable();
        for position in &positions {
            self.remove(*position);
        }
        let elements = &self.list.elements;
        let paths = positions.iter();
        Ok(paths.filter_map(|at| elements.path(*at as usize)).collect())
    }

    /// The list as a record of its own, with the changes so far. What is deleted stays in it, as an
    /// operation may be older.
    fn whole(&mut self, column: ColumnId) -> Result<RowRecord, StorageError> {
        let LoadedList {
            elements, stored, ..
        } = &*self.list;
        let mut whole = stored.clone();
        *self.looks += whole.column(column).map_or(0, StoredColumn::count);
        check_looks(*self.looks)?;
        let ListEdits { gone, set, .. } = &*self.state;
        let path = |at: &u32| elements.path(*at as usize);
        let deleted = gone.iter().filter_map(path).collect();
        let set = set.iter().filter(|(at, _)| !gone.contains(*at));
        let set = set.filter_map(|(at, cell)| match &cell.content {
            CellContent::Value { value, .. } => Some((path(at)?, value.clone())),
            CellContent::Tombstone { .. } => None,
        });
        let operations = [
            CellOperation::DeleteElements(deleted),
            CellOperation::PutElements(set.collect()),
        ];
        let cells = operations.map(|change| CellChange { column, change });
        merge(&mut whole, self.of, &cells, self.times)?;
        Ok(whole)
    }

    /// The elements of the list that is changed as a whole.
    fn elements(&mut self, column: ColumnId) -> Result<LiveElements, StorageError> {
        let whole = self.state.whole.as_ref();
        let liveness = self.list.liveness;
        let none = RowRecord::default();
        let live = &self.of.table.live;
        let elements = liveness.elements(whole.unwrap_or(&none), live, column);
        *self.looks += 1 + elements.len();
        check_looks(*self.looks)?;
        Ok(elements)
    }

    /// Merges an operation by path into the list that is changed as a whole.
    fn merge(&mut self, cell: &CellChange) -> Result<(), StorageError> {
        let Some(whole) = &mut self.state.whole else {
            return Ok(());
        };
        merge(whole, self.of, std::slice::from_ref(cell), self.times)?;
        *self.looks += 1 + whole.column(cell.column).map_or(0, StoredColumn::count);
        check_looks(*self.looks)
    }
}

/// Merges operations by path into a list.
fn merge(
    list: &mut RowRecord,
    of: ListRow<'_>,
    cells: &[CellChange],
    times: ChangeTimes,
) -> Result<(), StorageError> {
    let table = of.table;
    let kind = match of.suffix {
        Some(_) => ColumnKind::Regular,
        None => ColumnKind::Static,
    };
    let mut gathered = RowRecordBuilder::default();
    let times = CellTimes {
        timestamp: times.timestamp,
        lifetime: times.moment.lifetime(times.ttl_s),
        moment: times.moment,
    };
    gather(&mut gathered, table, kind, cells, times)?;
    let change = gathered.into_record(|id| table.type_of(id));
    list.merge(change, |id| table.type_of(id));
    Ok(())
}

impl LoadedList {
    /// Reads a list of the row or head as it is before the write.
    fn read(
        overlay: &WriteOverlay<'_>,
        of: ListRow<'_>,
        column: ColumnId,
        moment: CommitTime,
    ) -> Result<LoadedList, StorageError> {
        let (table, partition) = (of.table, of.partition);
        let (record, liveness) = match of.suffix {
            Some(suffix) => find_row(overlay, table, partition, suffix, moment.client_now_s)?,
            None => {
                let liveness = Liveness {
                    deleted_to: i64::MIN,
                    now_s: moment.client_now_s,
                };
                (overlay.head(table, partition)?, liveness)
            }
        };
        let elements = liveness.elements(&record, &table.live, column);
        let mut stored = record;
        stored.marker = None;
        stored.cells.retain(|(id, _)| *id == column);
        Ok(LoadedList {
            elements,
            stored,
            liveness,
            left: None,
            by_value: None,
            was_searched: false,
        })
    }

    /// The positions of the elements with these values.
    fn with_values(&mut self, values: &HashSet<&[u8]>) -> Vec<u32> {
        let elements = &self.elements;
        let positions = 0..elements.len() as u32;
        // A sort pays only if there is a second search; the first one takes a pass.
        if !self.was_searched {
            self.was_searched = true;
            work::count(elements.len());
            let wanted = positions.filter(|at| elements.has_value(*at as usize, values));
            return wanted.collect();
        }
        let by_value = self.by_value.get_or_insert_with(|| {
            work::count(elements.len());
            let mut positions: Vec<u32> = positions.collect();
            positions.sort_by_key(|at| elements.value(*at as usize));
            positions
        });
        let mut found = Vec::new();
        for &value in values {
            let from = by_value.partition_point(|at| elements.value(*at as usize) < Some(value));
            let same = by_value[from..].iter();
            let same = same.take_while(|at| elements.value(**at as usize) == Some(value));
            found.extend(same.copied());
        }
        work::count(found.len());
        found
    }

    /// Takes back what a change has removed.
    fn restore(&mut self, state: &ListEdits) {
        if let Some(left) = &mut self.left {
            for position in &state.gone {
                left.put_back(*position);
            }
        }
    }
}

impl LiveElements {
    fn value(&self, position: usize) -> Option<&[u8]> {
        match self.get(position)?.cell.content {
            ContentView::Value { value, .. } => Some(value),
            ContentView::Tombstone { .. } => None,
        }
    }

    fn has_value(&self, position: usize, values: &HashSet<&[u8]>) -> bool {
        self.value(position)
            .is_some_and(|value| values.contains(value))
    }
}

fn check_looks(looks: usize) -> Result<(), StorageError> {
    match looks > LOOKS_MAX {
        true => Err(StorageError::Invalid(format!(
            "the operations on lists by position or value look at more than {LOOKS_MAX} elements: use fewer in a statement"
        ))),
        false => Ok(()),
    }
}

/// The elements of a list that are left, as a tree of sums (Fenwick): it finds the element with an
/// index, and takes elements out and back, in steps as many as the bits of their number.
struct RemainingElements {
    /// The sums, from 1 on: that of `at` counts the elements after `at` without its lowest bit, up
    /// to `at`.
    sums: Vec<u32>,
}

impl RemainingElements {
    fn all(elements: usize) -> RemainingElements {
        work::count(elements);
        let sums = (0..=elements as u32).map(|at| at & at.wrapping_neg());
        RemainingElements {
            sums: sums.collect(),
        }
    }

    fn remove(&mut self, position: u32) {
        self.add(position, u32::MAX);
    }

    fn put_back(&mut self, position: u32) {
        self.add(position, 1);
    }

    fn add(&mut self, position: u32, number: u32) {
        let mut at = position as usize + 1;
        while at < self.sums.len() {
            self.sums[at] = self.sums[at].wrapping_add(number);
            at += at & at.wrapping_neg();
        }
    }

    /// The position of the element with an index among those that are left. There must be one.
    fn position(&self, index: u32) -> u32 {
        let (mut at, mut rest) = (0, index);
        let mut step = self.sums.len().next_power_of_two();
        while step > 0 {
            if let Some(sum) = self.sums.get(at + step)
                && *sum <= rest
            {
                at += step;
                rest -= sum;
            }
            step /= 2;
        }
        at as u32
    }
}

/// The state of a row as the write finds it.
pub(super) fn find_row(
    overlay: &WriteOverlay<'_>,
    table: &TableSchema,
    partition: &[u8],
    suffix: &[u8],
    now_s: i64,
) -> Result<(RowRecord, Liveness), StorageError> {
    let head = overlay.head(table, partition)?;
    let record = overlay.row(table, partition, suffix)?;
    let deleted_to = overlay.deleted_to(table, partition, &head, suffix)?;
    Ok((record, Liveness { deleted_to, now_s }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_finds_each_element_that_is_left() {
        for elements in [1, 2, 3, 7, 8, 9, 100] {
            let mut left = RemainingElements::all(elements);
            let mut model: Vec<u32> = (0..elements as u32).collect();
            let mut random = 7_usize;
            while !model.is_empty() {
                for (index, position) in model.iter().enumerate() {
                    assert_eq!(left.position(index as u32), *position);
                }
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                left.remove(model.remove((random >> 33) % model.len()));
            }
            (0..elements as u32).for_each(|position| left.put_back(position));
            assert_eq!(left.position(elements as u32 - 1), elements as u32 - 1);
        }
    }
}
