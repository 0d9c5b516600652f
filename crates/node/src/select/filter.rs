//! Rows of the storage as filters look at them.

use cql::error::CqlError;
use index::Analysis;
use query::relation::{Relation, RelationKind};
use query::row_filter::{self, FilteredRow, RowFilter};
use query::values::Values;
use storage::read::Row;
use store_api::ColumnsPredicate;
use value::predicate::Predicate;

use super::place::Place;
use super::terms::Terms;

/// A condition that each row is checked for after it is read.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    /// The condition of a relation, unchanged.
    Plain(RowFilter<Place>),
    /// A predicate on the terms of a column's texts, as an index with an analysis has them.
    Terms {
        /// The place of the column in a row.
        place: Place,
        /// The condition on its terms.
        terms: Terms,
    },
}

/// Makes filters of relations and their values.
///
/// # Errors
/// Null and unset values.
pub(super) fn bind_all<'r>(
    relations: impl IntoIterator<Item = &'r Relation>,
    values: Values<'_>,
) -> Result<Vec<Filter>, CqlError> {
    let relations: Vec<&Relation> = relations.into_iter().collect();
    let filters = row_filter::bind_all(relations.iter().copied(), Place::of, values)?;
    let filters = relations.into_iter().zip(filters);
    Ok(filters
        .map(|(relation, filter)| of_terms(relation, filter))
        .collect())
}

/// The filter on terms, if an index with an analysis serves the relation.
fn of_terms(relation: &Relation, filter: RowFilter<Place>) -> Filter {
    let indexes = relation.indexes.iter();
    let mut analyses = indexes.map(|index| Analysis::of(&index.options));
    let analysis = analyses.find(|analysis| !analysis.is_plain());
    match (filter, &relation.kind, analysis) {
        (
            RowFilter::Column { place, predicate },
            RelationKind::Column { column, .. },
            Some(analysis),
        ) => Filter::Terms {
            place,
            terms: Terms::new(&column.cql_type, predicate, analysis),
        },
        (filter, _, _) => Filter::Plain(filter),
    }
}

impl Filter {
    /// The filter as a search goes by it; `None` for one that no index searches by. `relation` is
    /// the one that the filter was made of, and `partition_key` names the columns of that key.
    pub(super) fn predicate(
        &self,
        relation: &Relation,
        partition_key: &[String],
    ) -> Option<ColumnsPredicate> {
        match self {
            Filter::Plain(filter) => filter.predicate(relation, partition_key),
            // The index service knows no terms.
            Filter::Terms { .. } => None,
        }
    }

    /// Whether the row passes the filter.
    pub(super) fn accepts(&self, row: &Row) -> bool {
        match self {
            Filter::Plain(filter) => filter.accepts(row),
            Filter::Terms { place, terms } => terms.hold(place.content(row)),
        }
    }
}

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
