//! Conditions all of which a row must satisfy.

use ann::IdSet;

use crate::{Columns, Condition};

/// Conditions all of which a row must satisfy, resolved against the columns of all rows.
#[derive(Debug)]
pub struct Conjunction<'a> {
    columns: &'a Columns,
    conditions: &'a [Condition],
}

impl<'a> Conjunction<'a> {
    pub(crate) fn new(columns: &'a Columns, conditions: &'a [Condition]) -> Self {
        Conjunction {
            columns,
            conditions,
        }
    }

    /// An upper bound of the number of ids that [`Conjunction::select`] would find, without looking
    /// at each. It is exact for one condition on a column that is no collection.
    pub fn estimate(&self) -> usize {
        self.columns.ids().len()
    }

    /// The ids whose rows satisfy all conditions.
    pub fn select(&self) -> IdSet {
        let mut selected = IdSet::default();
        for id in self.columns.ids().iter().filter(|id| self.matches(*id)) {
            selected.insert(id);
        }
        selected
    }

    /// Whether the row of an id satisfies all conditions.
    pub fn matches(&self, id: u32) -> bool {
        self.columns.matches(id, self.conditions)
    }
}
