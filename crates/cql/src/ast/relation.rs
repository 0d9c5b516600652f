//! The relations of `WHERE` and `IF` as data.

use value::predicate::ComparisonOperator;

use super::{FunctionCall, Selector, Term};

/// The operator of a relation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`.
    Eq,
    /// `!=`.
    NotEq,
    /// `<`.
    Lt,
    /// `<=`.
    LtEq,
    /// `>`.
    Gt,
    /// `>=`.
    GtEq,
    /// `IN`.
    In,
    /// `NOT IN`.
    NotIn,
    /// `CONTAINS`.
    Contains,
    /// `CONTAINS KEY`.
    ContainsKey,
    /// `LIKE`.
    Like,
    /// `IS NOT NULL`.
    IsNotNull,
}

impl Operator {
    /// The comparison that the operator makes; `None` for an operator that makes another test.
    pub fn comparison(self) -> Option<ComparisonOperator> {
        match self {
            Operator::Eq => Some(ComparisonOperator::Eq),
            Operator::Lt => Some(ComparisonOperator::Lt),
            Operator::LtEq => Some(ComparisonOperator::LtEq),
            Operator::Gt => Some(ComparisonOperator::Gt),
            Operator::GtEq => Some(ComparisonOperator::GtEq),
            _ => None,
        }
    }

    /// The operator as CQL text.
    pub fn as_str(self) -> &'static str {
        match self {
            Operator::Eq => "=",
            Operator::NotEq => "!=",
            Operator::Lt => "<",
            Operator::LtEq => "<=",
            Operator::Gt => ">",
            Operator::GtEq => ">=",
            Operator::In => "IN",
            Operator::NotIn => "NOT IN",
            Operator::Contains => "CONTAINS",
            Operator::ContainsKey => "CONTAINS KEY",
            Operator::Like => "LIKE",
            Operator::IsNotNull => "IS NOT NULL",
        }
    }
}

/// The right side of a relation.
#[derive(Clone, Debug, PartialEq)]
pub enum Comparand {
    /// One term. In `IN ?` and `IN :x` the marker is the whole list.
    Term(Term),
    /// `IN (a, b, c)`; possibly empty.
    List(Vec<Term>),
    /// Nothing: `IS NOT NULL` has no right side.
    None,
}

/// A condition on a row: a `WHERE` or `IF` clause is one or more of these with `AND` between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// The left side.
    pub subject: ComparisonSubject,
    /// The operator.
    pub operator: Operator,
    /// The right side.
    pub comparand: Comparand,
}

/// The left side of a relation.
#[derive(Clone, Debug, PartialEq)]
pub enum ComparisonSubject {
    /// A column.
    Column(String),
    /// `column[key]`.
    Element {
        /// The column, a list or map.
        column: String,
        /// The term in brackets.
        key: Term,
    },
    /// `column.field`, of a user type.
    Field {
        /// The column.
        column: String,
        /// The field of its user type.
        field: String,
    },
    /// `(a, b)`: columns as a tuple. It stays a tuple with one column.
    Tuple(Vec<String>),
    /// `token(a, b)`, with the columns named in it.
    Token(Vec<String>),
    /// Any other function call on the left (`BM25(c, 'x') > 0`).
    Function(FunctionCall<Selector>),
}
