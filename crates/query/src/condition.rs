//! The relations of WHERE together with an ordering by similarity.
//!
//! An index searches by those whose columns it keeps. The rows are checked for all of them, as the
//! index may not have taken up a change yet.

use cql::error::CqlError;
use schema::{Column, ColumnKind};

use crate::relation::{PreparedRelation, RelationKind};

/// A relation of WHERE together with an ordering by similarity.
#[derive(Clone, Debug)]
pub struct SearchCondition {
    /// The relation.
    pub relation: PreparedRelation,
    /// Whether the index keeps the values of the relation's columns, and so can search by it.
    pub is_kept: bool,
}

/// The use that a search can make of a column in WHERE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterSupport {
    /// The index keeps the values of the column.
    Kept,
    /// The index does not keep them, but the query needs no ALLOW FILTERING.
    Allowed,
    /// The query needs ALLOW FILTERING.
    None,
}

/// Whether a column is of the primary key. Every index keeps those.
pub fn is_key_column(kind: ColumnKind) -> bool {
    matches!(
        kind,
        ColumnKind::PartitionKey { .. } | ColumnKind::Clustering { .. }
    )
}

/// Makes conditions of the relations. `support` is called for columns outside of the primary key.
///
/// # Errors
/// A column without support, unless `allow_filtering`.
pub fn conditions(
    relations: impl IntoIterator<Item = PreparedRelation>,
    support: impl Fn(&Column) -> FilterSupport,
    allow_filtering: bool,
) -> Result<Vec<SearchCondition>, CqlError> {
    let condition = |relation: PreparedRelation| {
        let column = match &relation.kind {
            RelationKind::Column { column, .. } | RelationKind::Entry { column, .. } => {
                Some(column).filter(|column| !is_key_column(column.kind))
            }
            // They are on columns of the primary key.
            RelationKind::Tuple { .. } | RelationKind::Token { .. } => None,
        };
        let support_of = column.map_or(FilterSupport::Kept, &support);
        if relation.is_like() {
            // No index searches by patterns.
            return match allow_filtering {
                true => Ok(SearchCondition {
                    is_kept: false,
                    relation,
                }),
                false => Err(CqlError::invalid(format!(
                    "{} can't restrict a Vector ANN query without ALLOW FILTERING",
                    relation.text
                ))),
            };
        }
        match column {
            Some(column) if support_of == FilterSupport::None && !allow_filtering => {
                Err(not_in_index(&column.name))
            }
            _ => Ok(SearchCondition {
                is_kept: support_of == FilterSupport::Kept,
                relation,
            }),
        }
    };
    relations.into_iter().map(condition).collect()
}

/// The error for a relation on a column whose values no index keeps.
pub fn not_in_index(column: &str) -> CqlError {
    CqlError::invalid(format!(
        "Column {column} can't restrict a Vector ANN query, as the vector index doesn't keep its values: \
         declare it as a filter column of the index, or use ALLOW FILTERING"
    ))
}

/// The conditions that an index may search by; `filters` are those of the conditions, in their
/// order, and `predicate` makes of one what a search goes by.
pub fn predicates<F, P>(
    conditions: &[SearchCondition],
    filters: &[F],
    predicate: impl Fn(&F, &PreparedRelation) -> Option<P>,
) -> Vec<P> {
    let kept = conditions.iter().zip(filters);
    kept.filter(|(condition, _)| condition.is_kept)
        .filter_map(|(condition, filter)| predicate(filter, &condition.relation))
        .collect()
}
