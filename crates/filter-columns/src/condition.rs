//! A condition on the columns of a row.

use value::predicate::{ColumnObservation, Predicate, TuplePredicate};

use crate::FilterColumns;

/// A condition on the columns of a row. Columns are named by their position in
/// [`crate::FilterColumns::types`].
#[derive(Clone, Debug, PartialEq)]
pub enum FilterCondition {
    /// A predicate on one column.
    Column {
        /// The column.
        column: usize,
        /// The predicate that its value must satisfy.
        predicate: Predicate,
    },
    /// A predicate on several columns together.
    Tuple {
        /// The columns, in the order in which the predicate compares them.
        columns: Vec<usize>,
        /// The predicate that their values must satisfy.
        predicate: TuplePredicate,
    },
}

impl FilterCondition {
    /// Whether the condition holds for the row of an id.
    pub(crate) fn holds(&self, columns: &FilterColumns, id: u32) -> bool {
        match self {
            FilterCondition::Column { column, predicate } => {
                let value = columns.value(*column, id);
                predicate.holds(observed(value.as_deref()))
            }
            FilterCondition::Tuple {
                columns: compared,
                predicate,
            } => {
                let values = compared.iter().map(|column| columns.value(*column, id));
                let values = values.collect::<Vec<_>>();
                predicate.holds(|position| values.get(position)?.as_deref())
            }
        }
    }
}

/// A value as predicates look at it: whole, or null.
fn observed(value: Option<&[u8]>) -> ColumnObservation<'_, std::iter::Empty<(&[u8], &[u8])>> {
    value.map_or(ColumnObservation::Null, ColumnObservation::Value)
}
