//! A relation of a WHERE clause, with its names and types resolved.

mod prepare;
mod single_term;
mod text;
mod token;
mod tuple;

use std::cmp::Ordering;

use cql::ast::Operator;
use storage::catalog::Column;

use crate::bind::{PreparedInList, PreparedTerm};

pub(super) use prepare::prepare;

/// A relation whose terms fit its columns.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    /// The relation as CQL text, for messages and printed plans.
    pub text: String,
    /// The restricted columns and their test.
    pub kind: RelationKind,
}

#[derive(Clone, Debug)]
/// The columns that a relation restricts, and its test of them.
pub(super) enum RelationKind {
    Column {
        column: Column,
        /// The test of this one column.
        test: Test,
    },
    /// `map[key] = value`. The column is the map.
    Entry {
        column: Column,
        key: PreparedTerm,
        value: PreparedTerm,
    },
    /// A test of successive clustering columns together, `(a, b) > (1, 2)`.
    Tuple {
        columns: Vec<Column>,
        test: TupleTest,
    },
    /// A comparison of the partition's token, `token(p) > 5`.
    Token {
        comparison: Comparison,
        value: TokenTerm,
    },
}

/// A test of one column.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// `column > value`, or another comparison.
    Compare(Comparison, PreparedTerm),
    /// `column IN (...)`.
    In(PreparedInList),
    /// `column CONTAINS value`.
    Contains(PreparedTerm),
    /// `column CONTAINS KEY key`.
    ContainsKey(PreparedTerm),
}

/// A test of several columns together.
#[derive(Clone, Debug)]
pub(super) enum TupleTest {
    /// `(a, b) > (1, 2)`, or another comparison.
    Compare(Comparison, TupleTerm),
    /// `(a, b) IN (...)`.
    In(TupleList),
}

/// The term that several columns together are compared with.
#[derive(Clone, Debug)]
pub(super) enum TupleTerm {
    /// One term for each column.
    Terms(Vec<PreparedTerm>),
    /// One bind marker for the whole tuple.
    Whole(PreparedTerm),
}

/// The right side of `(a, b) IN ...`.
#[derive(Clone, Debug)]
pub(super) enum TupleList {
    /// The tuples of the list.
    Terms(Vec<TupleTerm>),
    /// One bind marker for the whole list.
    Whole(PreparedTerm),
}

/// The term that a token is compared with.
#[derive(Clone, Debug)]
pub(super) enum TokenTerm {
    /// A term of type `bigint`.
    Value(PreparedTerm),
    /// `token(1, 2)`, with one term for each column of the partition key.
    Of(Vec<PreparedTerm>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// A comparison operator.
pub(super) enum Comparison {
    Eq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

impl Comparison {
    fn of(operator: Operator) -> Option<Comparison> {
        Some(match operator {
            Operator::Eq => Comparison::Eq,
            Operator::Lt => Comparison::Lt,
            Operator::LtEq => Comparison::LtEq,
            Operator::Gt => Comparison::Gt,
            Operator::GtEq => Comparison::GtEq,
            _ => return None,
        })
    }

    /// Whether the comparison holds, given the order of its left side relative to its right side.
    pub(super) fn accepts(self, order: Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Lt => order.is_lt(),
            Comparison::LtEq => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::GtEq => order.is_ge(),
        }
    }

    /// Whether a lower bound includes its value; `None` if the comparison is no lower bound.
    pub(super) fn as_lower(self) -> Option<bool> {
        match self {
            Comparison::Gt => Some(false),
            Comparison::GtEq => Some(true),
            _ => None,
        }
    }

    /// Whether an upper bound includes its value; `None` if the comparison is no upper bound.
    pub(super) fn as_upper(self) -> Option<bool> {
        match self {
            Comparison::Lt => Some(false),
            Comparison::LtEq => Some(true),
            _ => None,
        }
    }
}

impl Relation {
    /// Whether the relation restricts this column, alone or within a tuple.
    pub(super) fn is_on(&self, name: &str) -> bool {
        match &self.kind {
            RelationKind::Column { column, .. } | RelationKind::Entry { column, .. } => {
                column.name == name
            }
            RelationKind::Tuple { columns, .. } => columns.iter().any(|column| column.name == name),
            RelationKind::Token { .. } => false,
        }
    }

    /// The first column that the relation restricts; `None` for a token.
    pub(super) fn first_column(&self) -> Option<&Column> {
        match &self.kind {
            RelationKind::Column { column, .. } | RelationKind::Entry { column, .. } => {
                Some(column)
            }
            RelationKind::Tuple { columns, .. } => columns.first(),
            RelationKind::Token { .. } => None,
        }
    }
}
