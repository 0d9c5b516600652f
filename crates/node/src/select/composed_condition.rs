//! Conditions with AND, OR and NOT on the rows of a search, which WHERE has no form for.
//!
//! A row without a value in a column satisfies neither a condition on the column nor its negation,
//! as in the filters of indexes. So a condition is true, false or neither.

use cql::error::CqlError;
use query::condition::{is_key_column, not_in_index};
use schema::Table;
use storage::read::Row;
use store_api::ColumnsPredicate;
use value::predicate::Predicate;

use super::column_location::{ColumnContent, ColumnLocation};
use super::searches::SearchOrder;
use crate::statement::AddedCondition;

/// A condition whose columns have places in a row.
#[derive(Clone, Debug)]
pub(super) enum PlacedCondition {
    /// A condition on one column.
    Column {
        /// The place of the column in a row.
        place: ColumnLocation,
        /// The condition on its value.
        predicate: Predicate,
    },
    /// Conditions that must all hold.
    All(Vec<PlacedCondition>),
    /// Conditions of which one must hold.
    Any(Vec<PlacedCondition>),
    /// A condition that must not hold.
    Not(Box<PlacedCondition>),
}

impl PlacedCondition {
    /// Finds the places of a condition's columns.
    ///
    /// # Errors
    /// A column that the table does not have, and conditions that are not on one column each.
    pub(super) fn of(
        table: &Table,
        predicate: &ColumnsPredicate,
    ) -> Result<PlacedCondition, CqlError> {
        let all = |parts: &[ColumnsPredicate]| {
            let parts = parts.iter().map(|part| PlacedCondition::of(table, part));
            parts.collect::<Result<Vec<_>, CqlError>>()
        };
        Ok(match predicate {
            ColumnsPredicate::Column { column, predicate } => PlacedCondition::Column {
                place: ColumnLocation::of(column_of(table, column)?),
                predicate: predicate.clone(),
            },
            ColumnsPredicate::All(parts) => PlacedCondition::All(all(parts)?),
            ColumnsPredicate::Any(parts) => PlacedCondition::Any(all(parts)?),
            ColumnsPredicate::Not(inner) => {
                PlacedCondition::Not(Box::new(PlacedCondition::of(table, inner)?))
            }
            ColumnsPredicate::Tuple { .. }
            | ColumnsPredicate::Token { .. }
            | ColumnsPredicate::Words { .. } => {
                return Err(CqlError::invalid(
                    "A condition with OR and NOT is on one column in each of its parts",
                ));
            }
        })
    }

    /// Whether the row satisfies the condition; `None` if it does neither that nor the opposite.
    pub(super) fn truth(&self, row: &Row) -> Option<bool> {
        match self {
            PlacedCondition::Column { place, predicate } => match place.content(row) {
                ColumnContent::Null => None,
                content => Some(predicate.holds(content.observed())),
            },
            PlacedCondition::All(parts) => joined(parts, row, false),
            PlacedCondition::Any(parts) => joined(parts, row, true),
            PlacedCondition::Not(inner) => inner.truth(row).map(|truth| !truth),
        }
    }
}

/// The truth of several conditions, of which one that is `decisive` decides.
fn joined(parts: &[PlacedCondition], row: &Row, decisive: bool) -> Option<bool> {
    let mut truth = Some(!decisive);
    for part in parts {
        match part.truth(row) {
            Some(one) if one == decisive => return Some(decisive),
            Some(_) => {}
            None => truth = None,
        }
    }
    truth
}

/// Whether the searched indexes can search by a condition: they keep all its columns.
///
/// # Errors
/// A column whose values no index keeps, if the condition doesn't allow for filtering, and one
/// that the table does not have.
pub(super) fn is_searchable(
    table: &Table,
    order: &SearchOrder,
    condition: &AddedCondition,
) -> Result<bool, CqlError> {
    let mut is_searchable = true;
    for name in condition.predicate.columns() {
        let column = column_of(table, name)?;
        if is_key_column(column.kind) || order.keeps(column.id) {
            continue;
        }
        if !condition.allows_filtering && !order.has_own_index(column.id) {
            return Err(not_in_index(name));
        }
        is_searchable = false;
    }
    Ok(is_searchable)
}

fn column_of<'t>(table: &'t Table, name: &str) -> Result<&'t schema::Column, CqlError> {
    let unknown = || query::clauses::unknown_column(name, (&table.keyspace, &table.name));
    table.column(name).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use schema::{ColumnId, ColumnKind};
    use storage::read::{Cell, LiveCell, Partition, RowPosition};
    use value::CqlType;
    use value::predicate::ComparisonOperator;

    use super::*;
    use crate::fixtures;

    /// A row of the table `id, price`, with this price.
    fn row(price: Option<i32>) -> Row {
        let cells = price.map(|price| {
            let cell = LiveCell {
                value: Bytes::copy_from_slice(&price.to_be_bytes()),
                timestamp: 0,
                expiry: None,
            };
            (ColumnId(2), Cell::Simple(cell))
        });
        let key = vec![Bytes::copy_from_slice(&7_i32.to_be_bytes())];
        Row {
            partition: Arc::new(Partition {
                token: value::token::Partitioner::Murmur3.token(&value::token::routing_key(&key)),
                key,
                static_cells: Vec::new(),
            }),
            clustering: Some(Vec::new()),
            cells: cells.into_iter().collect(),
            marker: None,
            position: RowPosition(Bytes::new()),
        }
    }

    fn compare(column: &str, comparison: ComparisonOperator, value: i32) -> ColumnsPredicate {
        ColumnsPredicate::Column {
            column: column.to_owned(),
            predicate: Predicate::Compare {
                cql_type: CqlType::Int,
                comparison,
                value: Bytes::copy_from_slice(&value.to_be_bytes()),
            },
        }
    }

    #[test]
    fn a_row_without_a_value_satisfies_neither_a_condition_nor_its_opposite() {
        let key = ColumnKind::PartitionKey { position: 0 };
        let table = fixtures::table(
            "t",
            1,
            &[
                ("id", key, CqlType::Int),
                ("price", ColumnKind::Regular, CqlType::Int),
            ],
        );
        let truth = |predicate: &ColumnsPredicate, price| {
            let placed = PlacedCondition::of(&table, predicate).unwrap();
            placed.truth(&row(price))
        };
        let cheap = compare("price", ComparisonOperator::Lt, 10);
        let seventh = compare("id", ComparisonOperator::Eq, 7);
        let not = |one: &ColumnsPredicate| ColumnsPredicate::Not(Box::new(one.clone()));
        for (price, expected) in [(Some(5), Some(true)), (Some(10), Some(false)), (None, None)] {
            assert_eq!(truth(&cheap, price), expected);
            assert_eq!(truth(&not(&cheap), price), expected.map(|truth| !truth));
        }
        let any = ColumnsPredicate::Any(vec![cheap.clone(), seventh.clone()]);
        assert_eq!(truth(&any, None), Some(true));
        assert_eq!(truth(&not(&any), None), Some(false));
        let all = ColumnsPredicate::All(vec![cheap.clone(), seventh.clone()]);
        assert_eq!(truth(&all, None), None);
        let all = ColumnsPredicate::All(vec![cheap, not(&seventh)]);
        assert_eq!(truth(&not(&all), None), Some(true));
        let unknown = compare("colour", ComparisonOperator::Eq, 1);
        assert!(PlacedCondition::of(&table, &unknown).is_err());
    }
}
