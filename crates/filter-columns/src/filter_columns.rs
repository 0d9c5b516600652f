//! The columns of all rows.

use std::borrow::Cow;

use ann::IdSet;
use value::CqlType;

use crate::column::TermColumn;

/// The values of filter columns by row id.
#[derive(Debug)]
pub struct FilterColumns {
    types: Vec<CqlType>,
    columns: Vec<TermColumn>,
    /// Ids that have a row, with or without values.
    ids: IdSet,
}

impl FilterColumns {
    /// Makes columns of these types, without rows.
    pub fn new(types: Vec<CqlType>) -> Self {
        FilterColumns {
            columns: types.iter().cloned().map(TermColumn::new).collect(),
            types,
            ids: IdSet::default(),
        }
    }

    /// The types of the columns.
    pub fn types(&self) -> &[CqlType] {
        &self.types
    }

    /// The ids that have a row.
    pub fn ids(&self) -> &IdSet {
        &self.ids
    }

    /// Gives an id a row: a serialised value for each column, in their order, or `None` for null.
    /// The row replaces the one that the id had. Bytes that are no value of the column's type
    /// become null.
    ///
    /// # Panics
    /// If there are not as many values as columns.
    pub fn set(&mut self, id: u32, values: &[Option<&[u8]>]) {
        assert_eq!(values.len(), self.columns.len(), "a value for each column");
        self.ids.insert(id);
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.set(id, *value);
        }
    }

    /// Removes the row of an id, so that the id can be given to another row.
    pub fn remove(&mut self, id: u32) {
        if self.ids.remove(id) {
            self.columns.iter_mut().for_each(|column| column.clear(id));
        }
    }

    /// The serialised value of a column in the row of an id; `None` if it is null or the id has
    /// no row. The bytes are those that were set. Collections are put together from their
    /// elements, all else is borrowed.
    pub fn value(&self, column: usize, id: u32) -> Option<Cow<'_, [u8]>> {
        self.columns[column].value(id)
    }

    pub(crate) fn column(&self, column: usize) -> &TermColumn {
        &self.columns[column]
    }

    /// Number of bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        self.ids.memory_bytes()
            + self
                .columns
                .iter()
                .map(TermColumn::memory_bytes)
                .sum::<usize>()
    }
}
