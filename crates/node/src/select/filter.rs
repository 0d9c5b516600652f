//! Rows of the storage as filters look at them.

use cql::error::CqlError;
use index::Analysis;
use query::relation::{PreparedRelation, RelationKind};
use query::row_filter::{self, BoundRelation, FilteredRow};
use query::values::EvaluationInputs;
use storage::read::Row;
use store_api::ColumnsPredicate;
use value::predicate::Predicate;

use super::column_location::ColumnLocation;
use super::composed_condition::PlacedCondition;
use super::terms::TermPredicate;

/// A condition that each row is checked for after it is read.
#[derive(Clone, Debug)]
pub(super) enum ResidualFilter {
    /// The condition of a relation, unchanged.
    Plain(BoundRelation<ColumnLocation>),
    /// A predicate on the terms of a column's texts, as an index with an analysis has them.
    Terms {
        /// The place of the column in a row.
        place: ColumnLocation,
        /// The condition on its terms.
        terms: TermPredicate,
    },
    /// A condition with OR and NOT.
    Composed(PlacedCondition),
}

/// Makes filters of relations and their values.
///
/// # Errors
/// Null and unset values.
pub(super) fn bind_all<'r>(
    relations: impl IntoIterator<Item = &'r PreparedRelation>,
    values: EvaluationInputs<'_>,
) -> Result<Vec<ResidualFilter>, CqlError> {
    let relations: Vec<&PreparedRelation> = relations.into_iter().collect();
    let filters = row_filter::bind_all(relations.iter().copied(), ColumnLocation::of, values)?;
    let filters = relations.into_iter().zip(filters);
    Ok(filters
        .map(|(relation, filter)| of_terms(relation, filter))
        .collect())
}

/// The filter on terms, if an index with an analysis serves the relation.
fn of_terms(relation: &PreparedRelation, filter: BoundRelation<ColumnLocation>) -> ResidualFilter {
    let indexes = relation.indexes.iter();
    let mut analyses = indexes.map(|index| Analysis::of(&index.options));
    let analysis = analyses.find(|analysis| !analysis.is_plain());
    match (filter, &relation.kind, analysis) {
        (
            BoundRelation::Column { place, predicate },
            RelationKind::Column { column, .. },
            Some(analysis),
        ) => ResidualFilter::Terms {
            place,
            terms: TermPredicate::new(&column.cql_type, predicate, analysis),
        },
        (filter, _, _) => ResidualFilter::Plain(filter),
    }
}

impl ResidualFilter {
    /// The filter as a search goes by it; `None` for one that no index searches by. `relation` is
    /// the one that the filter was made of, and `partition_key` names the columns of that key.
    pub(super) fn predicate(
        &self,
        relation: &PreparedRelation,
        partition_key: &[String],
    ) -> Option<ColumnsPredicate> {
        match self {
            ResidualFilter::Plain(filter) => filter.predicate(relation, partition_key),
            // The index service knows no terms.
            ResidualFilter::Terms { .. } => None,
            // It is of no relation: the search has it as it came.
            ResidualFilter::Composed(_) => None,
        }
    }

    /// Whether the row passes the filter.
    pub(super) fn accepts(&self, row: &Row) -> bool {
        match self {
            ResidualFilter::Plain(filter) => filter.accepts(row),
            ResidualFilter::Terms { place, terms } => terms.hold(place.content(row)),
            ResidualFilter::Composed(condition) => condition.truth(row) == Some(true),
        }
    }
}

impl FilteredRow<ColumnLocation> for Row {
    fn satisfies(&self, place: &ColumnLocation, predicate: &Predicate) -> bool {
        predicate.holds(place.content(self).observed())
    }

    fn value(&self, place: &ColumnLocation) -> Option<&[u8]> {
        place.value(self).map(|value| &value[..])
    }

    fn token(&self) -> i64 {
        self.partition.token.0
    }
}
