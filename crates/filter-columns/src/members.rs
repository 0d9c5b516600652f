//! The members of an IN, to be found by their order.

use std::cmp::Ordering;

use value::{CqlType, compare, validate};

use crate::FilterColumns;

/// The tuples of an IN on one or several columns, in order, so that a row takes no longer to look
/// up where there are many.
#[derive(Debug)]
pub(crate) struct SortedTuples<'a> {
    columns: &'a [usize],
    types: &'a [CqlType],
    tuples: Vec<Vec<&'a [u8]>>,
    /// Those with bytes that are no values of their types. They have no order, and equal the same
    /// bytes alone.
    strays: Vec<Vec<&'a [u8]>>,
}

impl<'a> SortedTuples<'a> {
    /// Sorts tuples that have a value for each column; `None` if some have not.
    pub fn new(
        columns: &'a [usize],
        types: &'a [CqlType],
        tuples: Vec<Vec<&'a [u8]>>,
    ) -> Option<Self> {
        let len = types.len();
        if columns.len() != len || tuples.iter().any(|tuple| tuple.len() != len) {
            return None;
        }
        let (mut tuples, strays): (Vec<_>, Vec<_>) = tuples.into_iter().partition(|tuple| {
            let mut values = types.iter().zip(tuple);
            values.all(|(cql_type, value)| validate(cql_type, value).is_ok())
        });
        tuples.sort_unstable_by(|a, b| order(types, a, b));
        Some(SortedTuples {
            columns,
            types,
            tuples,
            strays,
        })
    }

    /// Whether the row of an id has the values of a tuple.
    pub fn contain(&self, columns: &FilterColumns, id: u32) -> bool {
        let values = self.columns.iter().map(|column| columns.value(*column, id));
        let Some(values) = values.collect::<Option<Vec<_>>>() else {
            return false;
        };
        let order = |tuple: &Vec<&[u8]>| order(self.types, tuple, &values);
        let is_equal = |tuple: &Vec<&[u8]>| order(tuple).is_eq();
        self.tuples.binary_search_by(order).is_ok() || self.strays.iter().any(is_equal)
    }
}

/// The order of two tuples, by the first value that differs.
fn order(types: &[CqlType], a: &[impl AsRef<[u8]>], b: &[impl AsRef<[u8]>]) -> Ordering {
    let pairs = types.iter().zip(a.iter().zip(b));
    let mut orders = pairs.map(|(cql_type, (a, b))| compare(cql_type, a.as_ref(), b.as_ref()));
    orders
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
