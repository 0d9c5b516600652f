//! One conjunct of a WHERE clause, with its names and types settled.

mod prepare;
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
    /// As CQL, for messages and printed plans.
    pub text: String,
    pub kind: RelationKind,
}

#[derive(Clone, Debug)]
pub(super) enum RelationKind {
    Column {
        column: Column,
        test: Test,
    },
    /// `map[key] = value`.
    Entry {
        column: Column,
        key: PreparedTerm,
        value: PreparedTerm,
    },
    /// Successive clustering columns together.
    Tuple {
        columns: Vec<Column>,
        test: TupleTest,
    },
    /// The token of the partition.
    Token {
        comparison: Comparison,
        value: TokenTerm,
    },
}

/// What is asked of one column.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Compare(Comparison, PreparedTerm),
    In(PreparedInList),
    Contains(PreparedTerm),
    ContainsKey(PreparedTerm),
}

/// What is asked of several columns.
#[derive(Clone, Debug)]
pub(super) enum TupleTest {
    Compare(Comparison, TupleTerm),
    In(TupleList),
}

/// The value of a tuple of columns.
#[derive(Clone, Debug)]
pub(super) enum TupleTerm {
    /// One a column.
    Terms(Vec<PreparedTerm>),
    /// One marker for the tuple.
    Whole(PreparedTerm),
}

/// The right side of `(a, b) IN ...`.
#[derive(Clone, Debug)]
pub(super) enum TupleList {
    Terms(Vec<TupleTerm>),
    /// One marker for the list.
    Whole(PreparedTerm),
}

/// What a token is compared with.
#[derive(Clone, Debug)]
pub(super) enum TokenTerm {
    Value(PreparedTerm),
    /// `token(a, b)` of values of the partition key.
    Of(Vec<PreparedTerm>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// Whether it holds for a left side that lies so to the right side.
    pub(super) fn accepts(self, order: Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Lt => order.is_lt(),
            Comparison::LtEq => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::GtEq => order.is_ge(),
        }
    }

    /// For a bound from below, whether it includes its value.
    pub(super) fn as_lower(self) -> Option<bool> {
        match self {
            Comparison::Gt => Some(false),
            Comparison::GtEq => Some(true),
            _ => None,
        }
    }

    /// For a bound from above, whether it includes its value.
    pub(super) fn as_upper(self) -> Option<bool> {
        match self {
            Comparison::Lt => Some(false),
            Comparison::LtEq => Some(true),
            _ => None,
        }
    }
}

impl Relation {
    /// Whether it is on exactly this column.
    pub(super) fn is_on(&self, name: &str) -> bool {
        match &self.kind {
            RelationKind::Column { column, .. } | RelationKind::Entry { column, .. } => {
                column.name == name
            }
            RelationKind::Tuple { columns, .. } => columns.iter().any(|column| column.name == name),
            RelationKind::Token { .. } => false,
        }
    }

    /// The first column that it is on; `None` for a token.
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
