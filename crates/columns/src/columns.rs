//! The columns of all rows.

use std::borrow::Cow;

use ann::IdSet;
use value::CqlType;

use crate::{Condition, Conjunction};

/// The values of filter columns by row id.
#[derive(Debug)]
pub struct Columns {
    types: Vec<CqlType>,
    /// Ids that have a row, with or without values.
    ids: IdSet,
    rows: Vec<Vec<Option<Box<[u8]>>>>,
}

impl Columns {
    /// Makes columns of these types, without rows.
    pub fn new(types: Vec<CqlType>) -> Self {
        Columns {
            types,
            ids: IdSet::default(),
            rows: Vec::new(),
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
    /// The row replaces the one that the id had. A collection whose bytes are malformed becomes
    /// null, as it holds nothing.
    ///
    /// # Panics
    /// If there are not as many values as columns.
    pub fn set(&mut self, id: u32, values: &[Option<&[u8]>]) {
        assert_eq!(values.len(), self.types.len(), "a value for each column");
        self.ids.insert(id);
        let at = id as usize;
        if self.rows.len() <= at {
            self.rows.resize_with(at + 1, Vec::new);
        }
        self.rows[at] = values.iter().map(|value| value.map(Box::from)).collect();
    }

    /// Removes the row of an id, so that the id can be given to another row.
    pub fn remove(&mut self, id: u32) {
        if self.ids.remove(id) {
            self.rows[id as usize] = Vec::new();
        }
    }

    /// The serialised value of a column in the row of an id; `None` if it is null or the id has
    /// no row. The bytes are those that were set. Collections are put together from their
    /// elements, all else is borrowed.
    pub fn value(&self, column: usize, id: u32) -> Option<Cow<'_, [u8]>> {
        let row = self.rows.get(id as usize)?;
        row.get(column)?.as_deref().map(Cow::Borrowed)
    }

    /// Looks up the values that conditions name, all of which a row must satisfy. No condition
    /// is satisfied by every id that has a row.
    pub fn resolve<'a>(&'a self, conditions: &'a [Condition]) -> Conjunction<'a> {
        Conjunction::new(self, conditions)
    }

    /// Whether the row of an id satisfies all conditions. Of several ids [`Columns::resolve`] asks
    /// faster.
    pub fn matches(&self, id: u32, conditions: &[Condition]) -> bool {
        self.ids.contains(id)
            && conditions
                .iter()
                .all(|condition| condition.holds(|column| self.value(column, id)))
    }

    /// Number of bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let values = self.rows.iter().flatten().flatten();
        self.ids.memory_bytes() + values.map(|value| value.len()).sum::<usize>()
    }
}
