//! Rows of the storage as filters look at them.

use query::row_filter::{FilteredRow, RowFilter};
use storage::read::Row;
use value::predicate::Predicate;

use super::place::Place;

/// A condition that each row is checked for after it is read.
pub(super) type Filter = RowFilter<Place>;

impl FilteredRow<Place> for Row {
    fn satisfies(&self, place: &Place, predicate: &Predicate) -> bool {
        predicate.holds(place.content(self).observed())
    }

    fn value(&self, place: &Place) -> Option<&[u8]> {
        place.value(self).map(|value| &value[..])
    }

    fn token(&self) -> i64 {
        self.partition.token.0
    }
}
