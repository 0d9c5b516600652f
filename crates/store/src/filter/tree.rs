//! Conditions that are made of others: AND, OR and NOT.
//!
//! A negation is pushed down to the conditions that are made of no others, so what is left are
//! conjunctions and alternatives. There it becomes the opposite comparison, or a check that the
//! columns have values and the condition does not hold. So a row without a value satisfies neither
//! a condition nor its negation.
//!
//! A condition may name the ids of the only rows that can satisfy it: by the postings of a filter
//! column, or as the rows that words name. A conjunction names those of its rarest part, and an
//! alternative those of all parts, if each names some. All rows that are named are still checked.

use filter_columns::{FilterCondition, IdSet};
use store_api::ColumnsPredicate;
use value::predicate::{ComparisonOperator, OneOf, Predicate, TuplePredicate};

use super::check::{CheckedRow, RowCheck};
use super::words::{WordRows, WordsCondition};
use super::{
    RestrictedColumn, SearchFilter, TupleColumns, UnsupportedRestriction, is_of, types_of,
};
use crate::identity::{ColumnPlace, IndexIdentity};
use crate::keys::KeyTable;

/// A condition, without negations but at its leaves.
#[derive(Clone, Debug)]
pub(super) enum FilterTree {
    /// All of these hold.
    All(Vec<FilterTree>),
    /// One of these holds.
    Any(Vec<FilterTree>),
    /// A condition on only filter columns.
    Condition(FilterCondition),
    /// A condition that looks at the row.
    Check(RowCheck),
    /// The columns have values, and the condition does not hold.
    Lacks(Vec<ColumnPlace>, Box<FilterTree>),
    /// The condition on words of this number.
    Words { number: usize, is_negated: bool },
}

impl FilterTree {
    /// Whether the condition holds for a row. `named` are the rows that words name.
    pub(super) fn holds(&self, row: &CheckedRow<'_>, named: &[WordRows]) -> bool {
        match self {
            FilterTree::All(parts) => parts.iter().all(|part| part.holds(row, named)),
            FilterTree::Any(parts) => parts.iter().any(|part| part.holds(row, named)),
            FilterTree::Condition(condition) => {
                let conditions = std::slice::from_ref(condition);
                row.table.filters().matches(row.id, conditions)
            }
            FilterTree::Check(check) => check.holds(row),
            FilterTree::Lacks(places, condition) => {
                let mut places = places.iter();
                places.all(|place| row.value(*place).is_some()) && !condition.holds(row, named)
            }
            FilterTree::Words { number, is_negated } => {
                let named = named.get(*number);
                named.is_some_and(|rows| rows.hold(row.id, row.key, *is_negated))
            }
        }
    }

    /// Whether the condition is on a column outside the primary key.
    pub(super) fn has_filter_columns(&self) -> bool {
        match self {
            FilterTree::All(parts) | FilterTree::Any(parts) => {
                parts.iter().any(FilterTree::has_filter_columns)
            }
            FilterTree::Condition(_) => true,
            FilterTree::Check(check) => check.has_filter_columns(),
            FilterTree::Lacks(_, condition) => condition.has_filter_columns(),
            FilterTree::Words { .. } => false,
        }
    }

    /// An upper bound of the number of rows that the condition names; `None` if it names none.
    fn estimate(&self, keys: &KeyTable, named: &[WordRows]) -> Option<usize> {
        match self {
            FilterTree::All(parts) => estimate_all(parts, keys, named),
            FilterTree::Any(parts) => {
                let mut estimates = parts.iter().map(|part| part.estimate(keys, named));
                estimates.try_fold(0_usize, |sum, of_part| Some(sum.saturating_add(of_part?)))
            }
            FilterTree::Condition(condition) => {
                let conditions = std::slice::from_ref(condition);
                Some(keys.filters().resolve(conditions).estimate())
            }
            FilterTree::Check(_) | FilterTree::Lacks(..) => None,
            FilterTree::Words { number, is_negated } => {
                Some(named.get(*number)?.ids(*is_negated)?.len())
            }
        }
    }

    /// The ids of the rows that the condition names.
    fn select(&self, keys: &KeyTable, named: &[WordRows]) -> Option<IdSet> {
        match self {
            FilterTree::All(parts) => select_all(parts, keys, named),
            FilterTree::Any(parts) => {
                let mut selected = IdSet::default();
                for part in parts {
                    for id in part.select(keys, named)?.iter() {
                        selected.insert(id);
                    }
                }
                Some(selected)
            }
            FilterTree::Condition(condition) => {
                let conditions = std::slice::from_ref(condition);
                Some(keys.filters().resolve(conditions).select())
            }
            FilterTree::Check(_) | FilterTree::Lacks(..) => None,
            FilterTree::Words { number, is_negated } => {
                named.get(*number)?.ids(*is_negated).cloned()
            }
        }
    }
}

/// An upper bound of the number of rows that satisfy conditions, which must all hold; `None` if
/// none of them names rows.
pub(super) fn estimate_all(
    parts: &[FilterTree],
    keys: &KeyTable,
    named: &[WordRows],
) -> Option<usize> {
    let estimates = parts.iter().map(|part| part.estimate(keys, named));
    estimates.flatten().min()
}

/// The ids of the rows that the rarest of conditions names, which must all hold.
pub(super) fn select_all(
    parts: &[FilterTree],
    keys: &KeyTable,
    named: &[WordRows],
) -> Option<IdSet> {
    let estimates = parts.iter().map(|part| (part.estimate(keys, named), part));
    let naming = estimates.filter_map(|(estimate, part)| Some((estimate?, part)));
    let (_, rarest) = naming.min_by_key(|(estimate, _)| *estimate)?;
    rarest.select(keys, named)
}

impl SearchFilter {
    /// Makes a condition of a predicate, or of its negation.
    pub(super) fn tree(
        &mut self,
        index: &IndexIdentity,
        predicate: ColumnsPredicate,
        is_negated: bool,
    ) -> Result<FilterTree, UnsupportedRestriction> {
        Ok(match predicate {
            ColumnsPredicate::Column { column, predicate } => {
                let column = RestrictedColumn::of(index, &column)?;
                if !is_of(column.cql_type, &predicate) {
                    return Err(column.is_retyped());
                }
                column_tree(index, &column, predicate, is_negated)
            }
            ColumnsPredicate::Tuple { columns, predicate } => {
                let columns = TupleColumns::of(index, &columns)?;
                columns.check(types_of(&predicate))?;
                tuple_tree(columns.places(), predicate, is_negated)
            }
            ColumnsPredicate::Token {
                columns,
                comparison,
                token,
            } => {
                let key = index.keys.partition.iter().map(|column| &column.name);
                if !key.eq(&columns) {
                    return Err(UnsupportedRestriction::Token);
                }
                token_tree(comparison, token, is_negated)
            }
            ColumnsPredicate::Words {
                column,
                index,
                query,
            } => {
                self.words.push(WordsCondition {
                    column,
                    index,
                    query,
                    is_negated,
                });
                FilterTree::Words {
                    number: self.words.len() - 1,
                    is_negated,
                }
            }
            ColumnsPredicate::Not(inner) => self.tree(index, *inner, !is_negated)?,
            ColumnsPredicate::All(parts) => {
                let parts = self.trees(index, parts, is_negated)?;
                joined(parts, !is_negated)
            }
            ColumnsPredicate::Any(parts) => {
                let parts = self.trees(index, parts, is_negated)?;
                joined(parts, is_negated)
            }
        })
    }

    fn trees(
        &mut self,
        index: &IndexIdentity,
        parts: Vec<ColumnsPredicate>,
        is_negated: bool,
    ) -> Result<Vec<FilterTree>, UnsupportedRestriction> {
        let parts = parts.into_iter();
        parts
            .map(|part| self.tree(index, part, is_negated))
            .collect()
    }
}

/// Conditions of which all, or any, must hold. A single one is itself.
fn joined(mut parts: Vec<FilterTree>, are_all_needed: bool) -> FilterTree {
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return only;
    }
    match are_all_needed {
        true => FilterTree::All(parts),
        false => FilterTree::Any(parts),
    }
}

fn column_tree(
    index: &IndexIdentity,
    column: &RestrictedColumn<'_>,
    predicate: Predicate,
    is_negated: bool,
) -> FilterTree {
    let predicate = match (is_negated, predicate) {
        (
            true,
            Predicate::Compare {
                cql_type,
                comparison,
                value,
            },
        ) => match opposite(comparison) {
            Some(comparison) => Predicate::Compare {
                cql_type,
                comparison,
                value,
            },
            None => Predicate::NotEqual { cql_type, value },
        },
        (true, Predicate::NotEqual { cql_type, value }) => Predicate::Compare {
            cql_type,
            comparison: ComparisonOperator::Eq,
            value,
        },
        (true, predicate) => {
            let key = entry_key(&predicate).map(|has_key| column.leaf(has_key));
            let positive = column_tree(index, column, predicate, false);
            let lacks = FilterTree::Lacks(vec![column.place], Box::new(positive));
            let parts = key.into_iter().chain([lacks]).collect();
            return joined(parts, true);
        }
        (false, predicate) => predicate,
    };
    match predicate {
        Predicate::In(list) => column.one_of(index, list),
        Predicate::Compare {
            cql_type,
            comparison: ComparisonOperator::Eq,
            value,
        } => column.one_of(index, OneOf::new(cql_type, vec![value])),
        predicate => column.leaf(predicate),
    }
}

/// The condition that a map has the key of an entry: without it there is no value.
fn entry_key(predicate: &Predicate) -> Option<Predicate> {
    match predicate {
        Predicate::Entry { key_type, key, .. } => Some(Predicate::ContainsKey {
            key_type: key_type.clone(),
            key: key.clone(),
        }),
        Predicate::Compare { .. }
        | Predicate::NotEqual { .. }
        | Predicate::In(_)
        | Predicate::Like(_)
        | Predicate::Contains { .. }
        | Predicate::ContainsKey { .. } => None,
    }
}

fn tuple_tree(places: Vec<ColumnPlace>, predicate: TuplePredicate, is_negated: bool) -> FilterTree {
    if is_negated {
        let positive = tuple_tree(places.clone(), predicate, false);
        return FilterTree::Lacks(places, Box::new(positive));
    }
    let filters = places.iter().map(|place| match place {
        ColumnPlace::Filter(at) => Some(*at),
        ColumnPlace::Key(_) => None,
    });
    match filters.collect::<Option<Vec<usize>>>() {
        Some(columns) => FilterTree::Condition(FilterCondition::Tuple { columns, predicate }),
        None => FilterTree::Check(RowCheck::Tuple(places, predicate)),
    }
}

fn token_tree(comparison: ComparisonOperator, token: i64, is_negated: bool) -> FilterTree {
    let check = |comparison| FilterTree::Check(RowCheck::Token(comparison, token));
    match is_negated {
        false => check(comparison),
        true => match opposite(comparison) {
            Some(opposite) => check(opposite),
            None => {
                let outside = [ComparisonOperator::Lt, ComparisonOperator::Gt];
                FilterTree::Any(outside.map(check).into())
            }
        },
    }
}

/// The comparison that holds for just those values for which another does not; `None` of equality.
fn opposite(comparison: ComparisonOperator) -> Option<ComparisonOperator> {
    match comparison {
        ComparisonOperator::Eq => None,
        ComparisonOperator::Lt => Some(ComparisonOperator::GtEq),
        ComparisonOperator::LtEq => Some(ComparisonOperator::Gt),
        ComparisonOperator::Gt => Some(ComparisonOperator::LtEq),
        ComparisonOperator::GtEq => Some(ComparisonOperator::Lt),
    }
}
